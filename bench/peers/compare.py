"""Runs `kvasir bench` and peer.mjs on models in alternation, and prints what each reached at best, and the ratio."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(command):
    """(the JSON object that a command prints as its last line, None), or (None, what it said instead)."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout.strip().split("\n")[-1]), None
    said = [line for line in done.stderr.split("\n") if line.strip()]
    telling = [line for line in said if "rror" in line or "ASSERT" in line]
    return None, (telling or said or [f"status {done.returncode}"])[0].strip()


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", metavar="MODEL.gguf")
    parser.add_argument("--peer", required=True, help=argparse.SUPPRESS)
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


def compare(model, options):
    """Prints the lines of one model."""
    threads, prompt, generate = str(options.threads), str(options.prompt), str(options.generate)
    commands = {
        "kvasir": [str(ROOT / "build/release/bin/kvasir"), "bench", "-m", model, "--json", "--threads", threads,
                   "--pp", prompt, "--tg", generate, "--batch", options.batch],
        "node-llama-cpp": ["node", options.peer, model, threads, prompt, generate, options.batch],
    }
    found = {name: [] for name in commands}
    for turn in range(options.rounds):
        # Each goes first as often as the other, so that neither always finds the warmer machine.
        for name in list(commands) if turn % 2 == 0 else reversed(list(commands)):
            result, why = run(commands[name])
            if result is None:
                print(f"{model}: {name} does not run it: {why}")
                return
            found[name].append(rates(result))
    print(f"{model}, {threads} threads, {options.rounds} rounds, tokens per second: best (median)")
    print(f"{'':18}{'kvasir':>20}{'node-llama-cpp':>20}{'ratio of best':>15}")
    for what in found["kvasir"][0]:
        best, cells = {}, ""
        for name, results in found.items():
            each = [result[what] for result in results]
            best[name] = max(each)
            cells += f"{best[name]:11.1f} ({statistics.median(each):6.1f})"
        print(f"{what:18}{cells}{best['kvasir'] / best['node-llama-cpp']:15.2f}", flush=True)


def main():
    options = parse()
    for model in options.models:
        if not pathlib.Path(model).is_file():
            sys.exit(f"peers: there is no file '{model}'")
    for model in options.models:
        compare(model, options)


if __name__ == "__main__":
    main()
