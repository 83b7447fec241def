"""How far quantization moves a model's logits: quantizes an F16 model to each type that can be packed, runs both, and
prints the normalized mean squared distance of their logits, and the size.

usage: quantize_distances.py KVASIR MODEL_F16.gguf WORK_DIRECTORY [TYPE ...]

The work directory needs room for one more model; each is removed again. Exit status 1 if a type could not be written,
loaded or run, or gave logits that are not finite.
"""
import json
import subprocess
import sys
from pathlib import Path

import numpy

TYPES = ("F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL MXFP4 Q4_K_M Q5_K_M").split()
TOKENS = 32


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"status {done.returncode}")
    return done.stdout


def logits_of(kvasir, model, ids, out):
    run(kvasir, "logits", "-m", model, "--tokens", ids, "--out", out)
    logits = numpy.fromfile(out, dtype="<f4").astype(numpy.float64)
    out.unlink()
    if not numpy.isfinite(logits).all():
        raise RuntimeError("logits that are not finite")
    return logits


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    kvasir, model, work = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    types = sys.argv[4:] or TYPES
    vocabulary = json.loads(run(kvasir, "inspect", model, "--json"))["n_vocab"]
    ids = work / "ids.txt"
    random = numpy.random.default_rng(1)
    ids.write_text(" ".join(str(i) for i in random.integers(0, vocabulary, TOKENS)))
    out = work / "logits.f32"
    reference = logits_of(kvasir, model, ids, out)
    print(f"{model.name}: {TOKENS} random tokens, {model.stat().st_size / 2**20:.0f} MiB as F16")
    failed = 0
    for name in types:
        quantized = work / f"{model.stem}-{name}.gguf"
        try:
            run(kvasir, "quantize", model, quantized, name)
            logits = logits_of(kvasir, quantized, ids, out)
            distance = ((logits - reference) ** 2).sum() / (reference ** 2).sum()
            print(f"{name:8} {quantized.stat().st_size / 2**20:6.0f} MiB  distance {distance:.3e}", flush=True)
        except RuntimeError as error:
            failed += 1
            print(f"{name:8} FAILED: {error}", flush=True)
        quantized.unlink(missing_ok=True)
    ids.unlink()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
