"""Talks as token ids and weights of their targets."""
import random

import vocabulary as words
from persona import SENTENCES, block, make_persona
from talk import fact_turn, make_turns

TURNS_MIN, TURNS_MAX = 3, 14
FACT_WEIGHT, FIRST_WEIGHT = 4.0, 2.0


def draw_talk(seed, held_out=False):
    """A character's block and its turns; the same for the same seed."""
    source = random.Random(f"{'held out' if held_out else 'training'} {seed}")
    persona = make_persona(source, held_out)
    return block(source, persona), make_turns(source, persona, held_out, source.randint(TURNS_MIN, TURNS_MAX)), persona


def draw_lesson(seed, sentences, about=None):
    """A short talk: at most so many sentences about a character, and as many questions that they answer, or more.

    `about`: the kinds of its questions; all where there are none.
    """
    source = random.Random(f"lesson {seed}")
    persona = make_persona(source, False)
    useful = [(sentence, [kind for kind in kinds if about is None or kind in about]) for sentence, kinds in SENTENCES]
    useful = [(sentence, kinds) for sentence, kinds in useful if kinds]
    told = source.sample(useful, source.randint(1, min(sentences, len(useful))))
    first = " ".join(sentence(source, persona) for sentence, _ in told)
    kinds = [kind for _, kinds in told for kind in kinds]
    turns = [fact_turn(source, persona, False, source.choice(kinds)) for _ in range(len(told) + source.randint(2, 5))]
    return first, turns, persona


def texts_of(talks):
    for first, turns, _ in talks:
        yield first
        for turn in turns:
            yield turn.question
            yield turn.answer


def weights_of(turn):
    """Pairs of a piece of the answer and how much it counts: facts and numbers, which must be looked up, the most; then
    the first, which says what kind of an answer it will be."""
    spans = [(at, at + len(fact)) for fact in turn.facts for at in [turn.answer.find(fact)] if at >= 0]
    found = []
    for match in words.PIECES.finditer(turn.answer):
        is_fact = any(match.start() < end and first < match.end() for first, end in spans)
        is_number = any(character.isdigit() for character in match.group())
        found.append((match.group(), FACT_WEIGHT if is_fact or is_number else FIRST_WEIGHT if not found else 1.0))
    return found


def encode_talk(vocabulary, talk):
    """Ids, and for each how much its being predicted counts: what is not an answer, nothing."""
    first, turns, _ = talk
    ids, weights = [words.BEGIN], [0.0]

    def add(token, text):
        encoded = [token, *vocabulary.encode(text), words.END]
        ids.extend(encoded)
        weights.extend([0.0] * len(encoded))

    add(words.PERSONA, first)
    for turn in turns:
        add(words.VISITOR, turn.question)
        ids.append(words.REPLY)
        weights.append(0.0)
        for piece, weight in weights_of(turn):
            encoded = vocabulary.encode_piece(piece)
            ids.extend(encoded)
            weights.extend([weight] * len(encoded))
        ids.append(words.END)
        weights.append(1.0)
    return ids, weights


def batches(vocabulary, tokens_in_batch, first_seed, draw, pool=1024):
    """Endless batches of (ids, weights) of drawn talks, each a list of rows of about one length, padded."""
    source = random.Random(first_seed)
    seed = first_seed
    while True:
        talks = [encode_talk(vocabulary, draw(at)) for at in range(seed, seed + pool)]
        seed += pool
        talks.sort(key=lambda talk: len(talk[0]))
        groups, group = [], []
        for talk in talks:
            if group and (len(group) + 1) * len(talk[0]) > tokens_in_batch:
                groups.append(group)
                group = []
            group.append(talk)
        groups.append(group)
        source.shuffle(groups)
        for group in groups:
            longest = max(len(ids) for ids, _ in group)
            yield ([ids + [words.PAD] * (longest - len(ids)) for ids, _ in group],
                   [weights + [0.0] * (longest - len(weights)) for _, weights in group])
