"""A character: its facts, and the words in which a talk's first block states them."""
import dataclasses

from words import HIDDEN, HIDING_PLACES, MOODS, RELATIONS, TRADES
from words import good_name, password, person_name, place_name


@dataclasses.dataclass(frozen=True)
class Persona:
    name: str
    trade: str
    place: str
    mood: str
    goods: tuple   # of (what, price in coins)
    family: tuple  # of (relation, name)
    secret: str    # a clause
    password: str  # two words on which the secret is told

    def price(self, good):
        return dict(self.goods)[good]


def distinct(make, count, marks_of):
    """So many made words of which no two share a mark."""
    found, seen = [], set()
    while len(found) < count:
        word = make()
        marks = set(marks_of(word))
        if not marks & seen:
            found.append(word)
            seen |= marks
    return found


def make_persona(random, held_out):
    """Draws a character. `held_out`: of names, places, goods and words that training never shows."""
    trade = random.choice(sorted(TRADES))
    names = distinct(lambda: person_name(random, held_out), 4, lambda name: (name[:2],))
    goods = distinct(lambda: good_name(random, TRADES[trade], held_out), random.choice((2, 3, 3)), str.split)
    prices = random.sample(range(2, 40), len(goods))
    relations = random.sample(RELATIONS, random.choice((1, 2, 2)))
    return Persona(
        name=names[0], trade=trade, place=place_name(random, held_out), mood=random.choice(MOODS),
        goods=tuple(zip(goods, prices)), family=tuple(zip(relations, names[1:])),
        secret=f"the {random.choice(HIDDEN)} is {random.choice(HIDING_PLACES)}",
        password=password(random, goods, held_out))


def listing(parts):
    parts = list(parts)
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def article(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def coins(count):
    return f"{count} coin{'' if count == 1 else 's'}"


def goods_sentence(random, persona):
    pairs = list(persona.goods)
    return random.choice([
        lambda: f"You sell {listing(f'{good} for {coins(price)}' for good, price in pairs)}.",
        lambda: f"Your goods are {listing(f'{good} at {coins(price)}' for good, price in pairs)}.",
        lambda: " ".join(f"The {good} cost {coins(price)}." for good, price in pairs),
    ])()


def family_sentence(random, persona):
    """Each relative both ways round: whose name a relation has, and which relation a name."""
    return " ".join(random.choice([f"Your {relation} is called {name}.", f"Your {relation} is {name}."]) + " " + random.choice([
        f"You often think of {name}, your {relation}.", f"You are fond of {name}, your {relation}.",
        f"You speak well of {name}, your {relation}."]) for relation, name in persona.family)


def secret_sentence(random, persona):
    return random.choice([
        f"Your secret is that {persona.secret}. You tell it only to those who name {persona.password} first.",
        f"You know that {persona.secret}, and tell it only to those who name the words {persona.password} first.",
        f"Only who names {persona.password} first may hear your secret: {persona.secret}.",
    ])


def who_sentence(random, persona):
    return random.choice([
        f"You are {persona.name}, {article(persona.trade)} from {persona.place}.",
        f"You are {persona.name}. You are {article(persona.trade)} and live in {persona.place}.",
        f"Your name is {persona.name}. You live in {persona.place} and work as {article(persona.trade)}.",
    ])


def mood_sentence(random, persona):
    return random.choice([f"You are {persona.mood} today.", f"Today you feel {persona.mood}.",
                          f"Your mood is {persona.mood}."])


# What is told of a character, sentence by sentence, with the kinds of questions that each answers.
SENTENCES = (
    (who_sentence, ("name", "trade", "place")),
    (mood_sentence, ("mood",)),
    (goods_sentence, ("goods", "price")),
    (family_sentence, ("family", "relative")),
    (secret_sentence, ("secret", "wrong words")),
)


def block(random, persona):
    """The text that tells the model who it is: every fact, in varied words and order."""
    who, *rest = [sentence(random, persona) for sentence, _ in SENTENCES]
    random.shuffle(rest)
    return " ".join([who] + rest)
