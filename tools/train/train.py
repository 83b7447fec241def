"""Trains the village's model from nothing and writes it as GGUF.

usage: train.py OUT_F32.gguf [--seed S] [--steps N]

The rate of learning falls to nothing over --steps steps; what there is stands in the file every hundred of them. The same
seed, steps and number of threads give the same model on the same machine.
"""
import argparse
import functools
import random
import sys
import time

import numpy
import torch

import gguf_file
import vocabulary as words
from corpus import batches, draw_lesson, draw_talk, encode_talk, texts_of
from network import Shape, Village
from optimizer import optimizers_for

TALKS_FOR_VOCABULARY = 3000
# What is learned from, in order: until which part of the steps, and sentences of a lesson (none: whole talks). To find an
# answer in a few sentences is learned in minutes; to find it in a whole talk, from whole talks alone, takes far longer.
LESSONS = ((0.12, 3), (1.0, None))
TOKENS = 4096  # of a step
# Which number belongs to which thing, which name to which relation, and whether words are the right ones, is the hardest:
# some steps are about that alone.
BOUND = ("price", "family", "relative", "secret", "wrong words")
BOUND_EVERY = 3
WARM_UP = 20
SAVED_EVERY = 100
FIRST_HELD_OUT = 10_000_000


def loss_of(model, ids, weights):
    targets, counts = ids[:, 1:], weights[:, 1:]
    wanted = torch.zeros_like(ids, dtype=torch.bool)
    wanted[:, :-1] = counts > 0
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=model.training):
        logits = model(ids, wanted)
    logits = logits.float()
    losses = torch.nn.functional.cross_entropy(logits, targets[counts > 0], reduction="none")
    counts = counts[counts > 0]
    return (losses * counts).sum() / counts.sum(), losses[counts >= 1.0].mean()


def rate_at(step, steps):
    return min(1.0, (step + 1) / WARM_UP, 1.4 * (1 - step / steps))


def held_out_loss(model, vocabulary, count=8):
    talks = [encode_talk(vocabulary, draw_talk(FIRST_HELD_OUT + at, held_out=True)) for at in range(count)]
    model.eval()
    with torch.no_grad():
        found = [loss_of(model, torch.tensor([ids]), torch.tensor([weights]))[1].item() for ids, weights in talks]
    model.train()
    return sum(found) / len(found)


def lessons(vocabulary, arguments):
    """A batch for each step."""
    step = 0
    first_seed = 100 * arguments.seed * 1_000_000_000
    bound = batches(vocabulary, TOKENS, first_seed, functools.partial(draw_lesson, sentences=2, about=BOUND))
    for number, (part, sentences) in enumerate(LESSONS, 1):
        draw = functools.partial(draw_lesson, sentences=sentences) if sentences else draw_talk
        source = batches(vocabulary, TOKENS, first_seed + number * 1_000_000_000, draw)
        while step < part * arguments.steps:
            yield next(bound if step % BOUND_EVERY == BOUND_EVERY - 1 else source)
            step += 1


def train(model, vocabulary, arguments):
    """Writes what there is every SAVED_EVERY steps, so that an early end loses little."""
    optimizers = optimizers_for(model)
    highest = [group["lr"] for optimizer in optimizers for group in optimizer.param_groups]
    started = time.monotonic()
    seen = 0
    for step, (rows, weights) in enumerate(lessons(vocabulary, arguments)):
        ids = torch.tensor(rows)
        loss, answers = loss_of(model, ids, torch.tensor(weights))
        model.zero_grad(set_to_none=True)
        loss.backward()
        rate = rate_at(step, arguments.steps)
        groups = [group for optimizer in optimizers for group in optimizer.param_groups]
        for group, most in zip(groups, highest):
            group["lr"] = most * rate
        for optimizer in optimizers:
            optimizer.step()
        seen += ids.numel()
        spent = time.monotonic() - started
        if step % 50 == 0 or step + 1 == arguments.steps:
            print(f"step {step}, {seen / 1e6:.1f} M tokens, {spent / 60:.1f} min, answers {answers.item():.4f}, "
                  f"held out {held_out_loss(model, vocabulary):.4f}", file=sys.stderr, flush=True)
        if step % SAVED_EVERY == SAVED_EVERY - 1:
            gguf_file.write(arguments.out, model, vocabulary)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1200)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    numpy.random.seed(arguments.seed)
    torch.manual_seed(arguments.seed)
    torch.set_flush_denormal(True)
    shape = Shape()
    vocabulary = words.train(texts_of(draw_talk(seed) for seed in range(TALKS_FOR_VOCABULARY)), shape.vocabulary)
    model = Village(shape)
    count = sum(weight.numel() for weight in model.parameters())
    print(f"{count / 1e6:.2f} M parameters, {shape.vocabulary} tokens", file=sys.stderr, flush=True)
    train(model, vocabulary, arguments)
    gguf_file.write(arguments.out, model, vocabulary)


if __name__ == "__main__":
    main()
