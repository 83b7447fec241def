"""Writes what the village's model is measured by: held-out questions, held-out talks, and torch's logits beside Kvasir's.

usage: evaluate.py questions OUT.tsv [--personas N] [--each N] [--seed S]
       evaluate.py memory OUT.tsv [--personas N] [--seed S]
       evaluate.py talks OUT.txt [--talks N] [--seed S]
       evaluate.py logits KVASIR MODEL_F32.gguf [--talks N]

Names, places, goods, passwords and wordings of all of them never occur in training.

questions: for `build/release/bin/bench/village`. A line is a list of fields with tabs between: "persona" and the block
that tells who it is, then for each question "ask", its kind, the question, and the facts that a right answer contains,
with bars between.
memory: the same about what the visitor has said and bought in the talk.
talks: for `kvasir perplexity --special`.
logits: asks both for the logits of held-out talks and prints the greatest normalized mean squared error; the exit
status is 1 where it is above 1e-9. MODEL_F32.gguf is what train.py wrote.
"""
import argparse
import pathlib
import random
import subprocess
import sys
import tempfile

import gguf_file
import vocabulary as words
from corpus import draw_talk
from persona import block, make_persona
from talk import FACT_KINDS, Memory, fact_turn, other_turn

ERROR_MAX = 1e-9
FIRST_TALK = 20_000_000  # no seed of a talk that training or its held-out loss draws


def write_asked(arguments, turns_of):
    """Draws characters, and what each is asked: pairs of a turn and the facts of its answer."""
    source = random.Random(f"{arguments.verb} {arguments.seed}")
    lines = []
    for _ in range(arguments.personas):
        persona = make_persona(source, held_out=True)
        lines.append(("persona", block(source, persona)))
        lines += [("ask", turn.kind, turn.question, "|".join(facts)) for turn, facts in turns_of(source, persona)]
    pathlib.Path(arguments.out).write_text("".join("\t".join(line) + "\n" for line in lines))


def fact_turns(source, persona, kinds):
    for kind in kinds:
        turn = fact_turn(source, persona, True, kind)
        yield turn, turn.facts


def write_questions(arguments):
    def turns_of(source, persona):
        kinds = [FACT_KINDS[at] if at < len(FACT_KINDS) else source.choice(FACT_KINDS) for at in range(arguments.each)]
        source.shuffle(kinds)
        yield from fact_turns(source, persona, kinds)

    write_asked(arguments, turns_of)


def write_memory(arguments):
    """In each talk the visitor tells a name and buys, and asks for both after some other questions."""

    def turns_of(source, persona):
        memory = Memory()
        yield other_turn(source, persona, True, "introduce", memory), (memory.visitor,)
        yield from fact_turns(source, persona, source.sample(FACT_KINDS, 2))
        yield other_turn(source, persona, True, "visitor", memory), (memory.visitor,)
        yield other_turn(source, persona, True, "buy", memory), memory.bought
        yield from fact_turns(source, persona, source.sample(FACT_KINDS, 1))
        yield other_turn(source, persona, True, "bought", memory), memory.bought
        yield other_turn(source, persona, True, "visitor", memory), (memory.visitor,)

    write_asked(arguments, turns_of)


def talk_text(talk):
    first, turns, _ = talk
    said = "".join(f"<|visitor|>{turn.question}<|end|><|reply|>{turn.answer}<|end|>" for turn in turns)
    return f"<|begin|><|persona|>{first}<|end|>{said}"


def write_talks(arguments):
    talks = (draw_talk(FIRST_TALK + arguments.seed * 1_000_000 + at, held_out=True) for at in range(arguments.talks))
    pathlib.Path(arguments.out).write_text("".join(talk_text(talk) for talk in talks))


def encode(vocabulary, talk):
    first, turns, _ = talk
    ids = [words.BEGIN, words.PERSONA, *vocabulary.encode(first), words.END]
    for turn in turns:
        ids += [words.VISITOR, *vocabulary.encode(turn.question), words.END]
        ids += [words.REPLY, *vocabulary.encode(turn.answer), words.END]
    return ids


def kvasir_logits(kvasir, model, ids, vocabulary_size):
    import numpy
    with tempfile.TemporaryDirectory() as scratch:
        tokens, out = pathlib.Path(scratch, "ids"), pathlib.Path(scratch, "logits")
        tokens.write_text(" ".join(map(str, ids)))
        subprocess.run([kvasir, "logits", "-m", model, "--kv", "f32", "--tokens", tokens, "--out", out], check=True,
                       stderr=subprocess.DEVNULL)
        return numpy.fromfile(out, "<f4").reshape(len(ids), vocabulary_size)


def compare_logits(arguments):
    import torch
    model, vocabulary = gguf_file.read(arguments.model)
    model.double().eval()
    greatest = 0.0
    for at in range(arguments.talks):
        ids = encode(vocabulary, draw_talk(FIRST_TALK + at, held_out=True))
        with torch.no_grad():
            torchs = model(torch.tensor([ids]))[0].numpy()
        ours = kvasir_logits(arguments.kvasir, arguments.model, ids, torchs.shape[1]).astype(torchs.dtype)
        error = ((ours - torchs) ** 2).sum() / (torchs ** 2).sum()
        greatest = max(greatest, error)
    print(f"greatest normalized mean squared error of {arguments.talks} talks: {greatest:.2e}")
    return 0 if greatest <= ERROR_MAX else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    questions = verbs.add_parser("questions")
    questions.add_argument("out")
    questions.add_argument("--personas", type=int, default=100)
    questions.add_argument("--each", type=int, default=10)
    memory = verbs.add_parser("memory")
    memory.add_argument("out")
    memory.add_argument("--personas", type=int, default=100)
    talks = verbs.add_parser("talks")
    talks.add_argument("out")
    talks.add_argument("--talks", type=int, default=200)
    for verb in (questions, memory, talks):
        verb.add_argument("--seed", type=int, default=1)
    logits = verbs.add_parser("logits")
    logits.add_argument("kvasir")
    logits.add_argument("model")
    logits.add_argument("--talks", type=int, default=10)
    arguments = parser.parse_args()
    verbs_of = {"questions": write_questions, "memory": write_memory, "talks": write_talks, "logits": compare_logits}
    return verbs_of[arguments.verb](arguments)


if __name__ == "__main__":
    sys.exit(main())
