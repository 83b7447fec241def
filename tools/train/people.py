"""Draws the twenty-four characters of `kvasir demo`, with what they are asked, and writes them as C++.

usage: people.py src/cli/village_people.cc

All of their words are held out from training. Whom the model does not answer for everything right, whatever was asked
before, is not among them: tests/village tells.
"""
import pathlib
import random
import re
import sys

from persona import block, make_persona
from talk import FACT_KINDS, fact_turn, Memory, other_turn

# Names that are easy to say, no secret twice, no trade more than twice, and everything answered right.
SEEDS = (31, 8, 20, 32, 35, 38, 39, 45, 51, 73, 5, 13, 14, 15, 16, 1, 34, 9, 22, 33, 42, 54, 62, 70)
# What is asked, in any order; each time with other words.
KINDS = ("twice", "name", "trade", "place", "mood", "goods", "price", "price", "family", "relative", "secret", "wrong words")

HEAD = """// The characters of the demonstration. Made by tools/train/people.py; changed there.

#include "cli/village_people.h"

#include <array>

namespace kvasir::cli {
namespace {

constexpr std::array<Person, %d> kPeople = {{
"""
TAIL = """}};

}  // namespace

std::span<const Person> village_people() {
  return kPeople;
}

}  // namespace kvasir::cli
"""


def facts_of(turn):
    """What a right answer contains: of a kind with one wording all of it."""
    return turn.facts or (turn.answer.removesuffix("."),)


def draw_turns(source, persona):
    turns = []
    for kind in source.sample(KINDS, len(KINDS)):
        if kind in FACT_KINDS:
            turn = fact_turn(source, persona, True, kind)
        else:
            turn = other_turn(source, persona, True, kind, Memory())
        turns.append((turn.kind, turn.question, "|".join(facts_of(turn))))
    return turns


def draw_person(seed):
    source = random.Random(f"demonstration {seed}")
    persona = make_persona(source, held_out=True)
    first = block(source, persona)
    turns = draw_turns(source, persona)
    call = [other_turn(source, persona, True, "twice", Memory()), fact_turn(source, persona, True, "secret")]
    facts = [(persona.name, persona.place), (persona.secret,)]
    calls = [(turn.kind, turn.question, "|".join(right)) for turn, right in zip(call, facts)]
    return seed, persona, first, turns, calls


def draw_people():
    return [draw_person(seed) for seed in SEEDS]


def quoted(text, width=93):
    """A string literal, in parts where it is long; the facts of prices begin with a space."""
    parts = re.findall(r".{1,%d}(?:\s|$)" % width, text) if len(text) > width else [text]
    assert "".join(parts) == text and '"' not in text and "\\" not in text
    return "\n".join(f'"{part}"' for part in parts)


def written(person):
    seed, persona, first, turns, calls = person
    lines = [f"    {{.seed = {seed},", f'     .name = "{persona.name}",', f'     .trade = "{persona.trade}",',
             f'     .word = "{persona.password}",',
             f"     .block = {quoted(first)},", "     .talk = {{"]
    for kind, question, facts in turns:
        lines.append(f"         {{{quoted(kind)}, {quoted(question)}, {quoted(facts)}}},")
    lines.append("     }},")
    lines.append("     .roll_call = {{")
    lines += [f"         {{{quoted(kind)}, {quoted(question)}, {quoted(facts)}}}," for kind, question, facts in calls]
    lines.append("     }}},")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    people = draw_people()
    pathlib.Path(sys.argv[1]).write_text(HEAD % len(SEEDS) + "".join(map(written, people)) + TAIL)


if __name__ == "__main__":
    main()
