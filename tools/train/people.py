"""Draws the twenty-four characters of `kvasir demo`, with what they are asked, and writes them as C++.

usage: people.py src/cli/village_people.cc

All of their words are held out from training. Who does not answer everything right, alone and whatever was asked
before, is left out by hand: tests/village tells.
"""
import pathlib
import random
import re
import sys

from persona import block, make_persona
from talk import FACT_KINDS, fact_turn, Memory, other_turn

COUNT = 24
TURNS = 12
SEED_FIRST = 1
LEFT_OUT = {6, 17, 34}
OTHER_KINDS = ("prying", "stranger", "asks trade", "asks mood", "absent", "offer", "buy", "cheapest", "twice")
EASY_NAME = re.compile(r"(?!.*(ae|ea|ia)).{4,7}")
TRADES_EACH = 2  # at most so many of one trade

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


def facts_of(turn, memory):
    """What a right answer contains: of a kind with one wording all of it."""
    if turn.facts:
        return turn.facts
    if turn.kind == "introduce":
        return (memory.visitor,)
    if turn.kind == "prying":
        return ("word",)
    return (turn.answer.removesuffix("."),)


def draw_turns(source, persona, remembers):
    """Half of them about facts; one who remembers is told a name, sells something, and is asked about both."""
    memory = Memory()
    kinds = source.sample(FACT_KINDS[1:], 5)
    others = [kind for kind in OTHER_KINDS if kind not in ("offer", "buy")]
    kinds += ["offer", "buy", "bought"] if remembers else ["offer"]
    kinds += source.sample(others, TURNS - len(kinds) - 2)
    source.shuffle(kinds)
    if remembers:
        kinds.remove("bought")
        kinds.insert(kinds.index("buy") + 1 + source.randrange(len(kinds) - kinds.index("buy")), "bought")
    kinds = ["introduce", *kinds, "visitor"] if remembers else ["twice", *kinds, "cheapest"]
    turns = []
    for kind in kinds:
        if kind in FACT_KINDS:
            turn = fact_turn(source, persona, True, kind)
        else:
            turn = other_turn(source, persona, True, kind, memory)
        turns.append((turn.kind, turn.question, "|".join(facts_of(turn, memory))))
    return turns


def draw_people():
    people, seed = [], SEED_FIRST
    while len(people) < COUNT:
        source = random.Random(f"demonstration {seed}")
        persona = make_persona(source, held_out=True)
        first = block(source, persona)
        fits = (EASY_NAME.fullmatch(persona.name) and seed not in LEFT_OUT
                and all(persona.name[:3] != other.name[:3] for _, other, _, _, _ in people)
                and all(persona.secret != other.secret for _, other, _, _, _ in people)
                and sum(persona.trade == other.trade for _, other, _, _, _ in people) < TRADES_EACH)
        if fits:
            turns = draw_turns(source, persona, remembers=bool(people))
            call = [other_turn(source, persona, True, "twice", Memory()), fact_turn(source, persona, True, "secret")]
            facts = [(persona.name, persona.place), (persona.secret,)]
            calls = [(turn.kind, turn.question, "|".join(right)) for turn, right in zip(call, facts)]
            people.append((seed, persona, first, turns, calls))
        seed += 1
    return people


def quoted(text, width=96):
    """A string literal, in parts where it is long; the facts of prices begin with a space."""
    parts = re.findall(r".{1,%d}(?:\s|$)" % width, text) if len(text) > width else [text]
    assert "".join(parts) == text and '"' not in text and "\\" not in text
    return "\n".join(f'"{part}"' for part in parts)


def written(person):
    seed, persona, first, turns, calls = person
    lines = [f"    {{.seed = {seed},", f'     .name = "{persona.name}",', f'     .trade = "{persona.trade}",',
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
    pathlib.Path(sys.argv[1]).write_text(HEAD % COUNT + "".join(map(written, people)) + TAIL)


if __name__ == "__main__":
    main()
