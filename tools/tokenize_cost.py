#!/usr/bin/python3
"""Is tokenizing linear?   tokenize_cost.py KVASIR VOCABULARY...  [--length N]

Counts the instructions (callgrind) of `kvasir tokenize` for lines of one repeated unit, at a length and at twice that,
less those of an empty text. Exit status 1 if doubling the line costs 2.2 times as much or more."""
import argparse
import re
import subprocess
import sys

UNITS = {"A": "A", "space": " ", "line end": "\n", "CJK": "\u4e2d", "us": "us"}
MOST = 2.2


def instructions(kvasir, vocabulary, text):
    run = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", kvasir, "tokenize",
                          "-m", vocabulary], input=text.encode(), capture_output=True, check=True)
    return int(re.search(r"Collected : (\d+)", run.stderr.decode()).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kvasir")
    parser.add_argument("vocabulary", nargs="+")
    parser.add_argument("--length", type=int, default=500_000, help="units in the shorter line")
    arguments = parser.parse_args()
    worst = 0
    for vocabulary in arguments.vocabulary:
        loading = instructions(arguments.kvasir, vocabulary, "")
        for name, unit in UNITS.items():
            short, long = (instructions(arguments.kvasir, vocabulary, unit * length) - loading
                           for length in (arguments.length, 2 * arguments.length))
            worst = max(worst, long / short)
            print(f"{vocabulary.split('/')[-1]}: {name} x {arguments.length}: {short / arguments.length:.0f} "
                  f"instructions each; twice as long costs {long / short:.3f} times as much", flush=True)
    return worst >= MOST


if __name__ == "__main__":
    sys.exit(main())
