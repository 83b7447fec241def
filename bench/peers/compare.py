"""Runs `kvasir bench` and peer.mjs on one model in alternation, and prints the medians and their ratios."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(command):
    """The JSON object that a command prints as its last line."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"peers: '{' '.join(command)}' failed with status {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout.strip().split("\n")[-1])


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--peer", required=True)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--prompt", type=int, default=256)
    parser.add_argument("--generate", type=int, default=32)
    parser.add_argument("--batch", default="1,4,16")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def rates(result):
    """{what is measured: tokens per second}."""
    named = {"prompt": result["pp"]}
    named.update({f"generation, {number}": rate for number, rate in result["tg"].items()})
    return named


def main():
    options = parse()
    common = [str(options.threads), str(options.prompt), str(options.generate), options.batch]
    kvasir = [str(ROOT / "build/release/bin/kvasir"), "bench", "-m", options.model, "--json", "--threads", common[0],
              "--pp", common[1], "--tg", common[2], "--batch", options.batch]
    peer = ["node", options.peer, options.model, *common]
    found = {"kvasir": [], "peer": []}
    for turn in range(options.rounds):
        # Each goes first as often as the other, so that neither always finds the warmer machine.
        order = [("kvasir", kvasir), ("peer", peer)]
        for name, command in order if turn % 2 == 0 else reversed(order):
            found[name].append(rates(run(command)))
    print(f"{options.model}, {options.threads} threads, medians of {options.rounds} rounds, tokens per second")
    print(f"{'':18}{'kvasir':>10}{'node-llama-cpp':>16}{'ratio':>8}")
    for what in found["kvasir"][0]:
        ours, theirs = (statistics.median(each[what] for each in found[name]) for name in ("kvasir", "peer"))
        print(f"{what:18}{ours:10.1f}{theirs:16.1f}{ours / theirs:8.2f}")


if __name__ == "__main__":
    main()
