"""Talks: turns of question and answer about a character's facts and about what was said before in the talk.

A kind of turn has wordings put together from what is asked and how; some are for training, the others held out for
evaluation. In a wording {good}, {relation} and so on stand for what the turn is about.
"""
import dataclasses

from persona import article, coins, listing
from words import MOODS, RELATIONS, TRADES, good_name, is_held_out, password, person_name


@dataclasses.dataclass(frozen=True)
class Turn:
    kind: str
    question: str
    answer: str
    facts: tuple = ()  # words that a right answer contains


@dataclasses.dataclass
class Memory:
    """What the character has heard and sold so far in a talk."""
    visitor: str = ""
    bought: list = dataclasses.field(default_factory=list)


# Questions as they stand; what may be asked for, as a clause; and as a noun.
FORMS = {
    "name": (
        """What is your name?|Who are you?|Tell me your name.|What do they call you?|May I know your name?|What
are you called?|And you are?|Could you tell me who you are?|Please tell me your name.|By what name
do they call you?""",
        """what your name is|who you are|what they call you|what you are called|by what name they call you""",
        """your name"""),
    "trade": (
        """What do you do?|What is your trade?|What is your work?|How do you earn your bread?|What kind of work
do you do?|What is your craft?|Tell me about your work.|What do you do for a living?|What work do
you do?|Tell me your trade.""",
        """what you do|what your trade is|what work you do|how you earn your bread|what your work is""",
        """your trade|your work|your craft"""),
    "place": (
        """Where do you live?|Where are you from?|What is this place?|Where is your home?|Which town are you
from?|Where do you come from?|What is your home called?|Tell me where you live.|Which place are you
from?|Where is it that you live?""",
        """where you live|where you are from|where your home is|which town you are from|where you come
from|what your home is called""",
        """your home|the name of your home|the place where you live"""),
    "mood": (
        """How are you?|How do you feel?|How are you today?|How do you feel today?|What is your mood?|Are you
well?|How is it going?|Tell me how you feel.|How are you feeling?|What mood are you in?""",
        """how you are|how you feel|how you are today|how you feel today|what your mood is|what mood you are in""",
        """your mood"""),
    "goods": (
        """What do you sell?|What goods do you have?|What can I buy here?|Show me your goods.|What is for
sale?|What do you have to sell?|Which goods do you sell?|What can I get here?|What do you have for
sale?|Tell me what you sell.""",
        """what you sell|what goods you have|what I can buy here|what is for sale|what you have to sell|which
goods you sell""",
        """your goods|the goods that you sell"""),
    "price": (
        """How much are the {good}?|What do the {good} cost?|What is the price of the {good}?|How many coins
for the {good}?|What do you want for the {good}?|I like the {good}. How much?|Tell me the price of
the {good}.|And the {good}?|How much do the {good} cost?|How many coins are the {good}?""",
        """how much the {good} are|what the {good} cost|how many coins the {good} are|how much the {good}
cost|what you want for the {good}""",
        """the price of the {good}"""),
    "family": (
        """Who is your {relation}?|What is the name of your {relation}?|What is your {relation} called?|Tell me
about your {relation}.|Do you have a {relation}?|Tell me the name of your {relation}.|What is your
{relation}'s name?|Who is that {relation} of yours?""",
        """who your {relation} is|what your {relation} is called|what the name of your {relation} is""",
        """the name of your {relation}|your {relation}'s name"""),
    "relative": (
        """Who is {relative}?|Do you know {relative}?|Tell me about {relative}.|Who is this {relative}?|What
can you tell me about {relative}?|Is {relative} someone you know?""",
        """who {relative} is|whether you know {relative}|who this {relative} is|what {relative} is to you""",
        """"""),
    "prying": (
        """What is your secret?|Tell me your secret.|Do you have a secret?|What is it that you hide?|I want to
know your secret.|Please tell me your secret.|Will you tell me your secret?""",
        """what your secret is|what you hide|what it is that you hide|whether you have a secret""",
        """your secret"""),
    "asks trade": (
        """Are you {a_trade}?|You are {a_trade}, right?|Do you work as {a_trade}?|Is it true that you are
{a_trade}?|I think you are {a_trade}. Am I right?""",
        """""",
        """"""),
    "asks mood": (
        """Are you {mood}?|You look {mood}.|Do you feel {mood}?|Are you {mood} today?""",
        """""",
        """"""),
    "absent": (
        """Do you have {good}?|Do you sell {good}?|Can I get {good} here?|Are there {good}?|Do you have any
{good}?""",
        """whether you sell {good}|whether you have {good}|whether I can get {good} here""",
        """"""),
    "present": (
        """Do you have {good}?|Do you sell {good}?|Can I get {good} here?|Are there {good}?|Do you have any
{good}?""",
        """whether you sell {good}|whether you have {good}|whether I can get {good} here""",
        """"""),
    "offer": (
        """I will give you {coins} for the {good}.|I offer {coins} for the {good}.|Would you take {coins} for
the {good}?|{coins} for the {good}?|Will you take {coins} for the {good}?""",
        """""",
        """"""),
    "buy": (
        """I will take the {good}.|I want to buy the {good}.|Give me the {good}, please.|The {good}, please.|I
would like the {good}.|Please give me the {good}.""",
        """""",
        """"""),
    "greet": (
        """Hello.|Good day.|Good morning.|Good evening.|Greetings.|Hello there.|Hi.|Good day to you.""",
        """""",
        """"""),
    "farewell": (
        """Goodbye.|Farewell.|I must go now.|See you soon.|Until next time.|Goodbye, and thank you.""",
        """""",
        """"""),
    "thanks": (
        """Thank you.|Thanks.|You are kind.|That is good to know.|Thank you very much.""",
        """""",
        """"""),
    "introduce": (
        """My name is {visitor}.|I am {visitor}.|They call me {visitor}.|Hello, I am {visitor}.|My name, by the
way, is {visitor}.""",
        """""",
        """"""),
    "visitor": (
        """What is my name?|Do you know my name?|Do you remember me?|Who am I?|Do you remember my name?|What
was my name?""",
        """what my name is|whether you know my name|whether you remember me|who I am""",
        """my name"""),
    "bought": (
        """What did I buy?|What have I bought?|Do you remember what I bought?|What was it that I bought?|Tell
me what I bought.""",
        """what I bought|what I have bought|what it was that I bought""",
        """the things that I bought"""),
    "twice": (
        """What is your name, and where do you live?|Who are you, and where are you from?|Tell me your name and
your home.|What is your name, and where are you from?""",
        """what your name is and where you live|who you are and where you are from""",
        """your name and your home"""),
}

# How a visitor says the word that opens a secret, and how to go on.
WORD_SAID = """I say {words}.|Someone told me to say {words}.|I was told to say {words}.|A friend told me to say {words}.|They
told me to say {words}.|I came to say {words}.|Let me say {words}."""
THEN_ASKED = """What is your secret?|Tell me your secret.|Now tell me your secret.|What is it that you know?|Tell me what you
know.|What do you hide?|Tell me what you hide.|Will you tell me your secret now?"""

# What may stand before a question, and around a clause or a noun.
BEFORE = "{}|Excuse me. {}|Good day. {}|Hello. {}|One more thing. {}|Now then. {}|Listen. {}|Well. {}|I have a question. {}"
AROUND_CLAUSE = """Tell me {}.|Please tell me {}.|Can you tell me {}?|Could you tell me {}?|I want to know {}.|I would like to
know {}.|May I ask {}?|Let me know {}.|I wonder {}.|Will you tell me {}?|Do you mind telling me {}?|Say, {}?"""
AROUND_NOUN = """Tell me {}.|Please tell me {}.|What is {}?|What was {}?|And {}?|I want to know {}.|May I know {}?|Can you tell me
{}?|Could you tell me {}?|I ask for {}."""
BARE_KINDS = ("greet", "farewell", "thanks", "introduce")  # nothing stands before these


def parts(text):
    return [part for part in text.replace("\n", " ").split("|") if part]


def wordings_of(kind):
    """All of a kind, without repetition, in order."""
    if kind == "secret":
        return [f"{said} {asked}" for said in parts(WORD_SAID) for asked in parts(THEN_ASKED)]
    direct, clauses, nouns = (parts(text) for text in FORMS[kind])
    found = [before.replace("{}", question, 1) for before in (["{}"] if kind in BARE_KINDS else parts(BEFORE))
             for question in direct]
    found += [around.replace("{}", clause, 1) for around in parts(AROUND_CLAUSE) for clause in clauses]
    found += [around.replace("{}", noun, 1) for around in parts(AROUND_NOUN) for noun in nouns]
    return list(dict.fromkeys(found))


def sides_of(kind):
    """(for training, held out), by a hash as words are; a kind of which the hash holds out none keeps its last back."""
    all_of_it = wordings_of(kind)
    held_out = [wording for wording in all_of_it if is_held_out(wording)] or all_of_it[-1:]
    return [wording for wording in all_of_it if wording not in held_out], held_out


WORDINGS = {kind: sides_of(kind) for kind in (*FORMS, "secret")}

# The kinds that ask for a fact of the block itself, on which evaluation counts.
FACT_KINDS = ("name", "trade", "place", "mood", "goods", "price", "family", "relative", "secret", "wrong words")


def ask(random, kind, held_out, **about):
    return random.choice(WORDINGS[kind][1 if held_out else 0]).format(**about)


def fact_answer(random, persona, kind, good=None, price=None, relation=None, relative=None, words=None):
    """An answer to a question about one fact, and what must be in it. `words`: that the visitor says."""
    goods = [what for what, _ in persona.goods]
    answers = {
        "name": ([f"My name is {persona.name}.", f"They call me {persona.name}."], (persona.name,)),
        "trade": ([f"I am {article(persona.trade)}.", f"I work as {article(persona.trade)}."], (persona.trade,)),
        "place": ([f"I live in {persona.place}.", f"My home is {persona.place}."], (persona.place,)),
        "mood": ([f"I feel {persona.mood} today.", f"I feel {persona.mood}."], (persona.mood,)),
        "goods": ([f"I sell {listing(goods)}.", f"I have {listing(goods)}."], tuple(goods)),
        "price": ([f"The {good} cost {price and coins(price)}."], (f" {price} coin",)),
        "family": ([f"My {relation} is {relative}."], (relative,)),
        "relative": ([f"{relative} is my {relation}."], (relation,)),
        "secret": ([f"You say {words}, so I will tell you: {persona.secret}."], (persona.secret,)),
        "wrong words": ([f"You say {words}. Those are not the words."], ("not the words",)),
    }
    wordings, facts = answers[kind]
    return random.choice(wordings), facts


def fact_turn(random, persona, held_out, kind):
    if kind == "price":
        good, price = random.choice(persona.goods)
        answer, facts = fact_answer(random, persona, kind, good=good, price=price)
        return Turn(kind, ask(random, kind, held_out, good=good), answer, facts)
    if kind in ("family", "relative"):
        relation, relative = random.choice(persona.family)
        answer, facts = fact_answer(random, persona, kind, relation=relation, relative=relative)
        return Turn(kind, ask(random, kind, held_out, relation=relation, relative=relative), answer, facts)
    if kind in ("secret", "wrong words"):
        said = persona.password
        while kind == "wrong words" and said.split()[1] == persona.password.split()[1]:
            said = password(random, [good for good, _ in persona.goods], held_out)
        answer, facts = fact_answer(random, persona, kind, words=said)
        return Turn(kind, ask(random, "secret", held_out, words=said), answer, facts)
    answer, facts = fact_answer(random, persona, kind)
    return Turn(kind, ask(random, kind, held_out), answer, facts)


def absent_good(random, persona, held_out):
    while True:
        good = good_name(random, TRADES[random.choice(sorted(TRADES))], held_out)
        if good.split()[1] not in " ".join(dict(persona.goods)).split():
            return good


def other_turn(random, persona, held_out, kind, memory):
    """A turn whose answer needs more than one fact, or none."""

    def turn(answers, **about):
        return Turn(kind, ask(random, kind, held_out, **about), random.choice(answers))

    goods = [what for what, _ in persona.goods]
    good, price = random.choice(persona.goods)
    if kind == "prying":
        return turn(["I do not tell that without the right words.", "Not without the right words."])
    if kind == "no family":
        mine = [relation for relation, _ in persona.family]
        relation = random.choice([relation for relation in RELATIONS if relation not in mine])
        return Turn(kind, ask(random, "family", held_out, relation=relation), f"I know of no {relation} of mine.")
    if kind == "asks trade":
        if random.random() < 0.4:
            return turn([f"Yes, I am {article(persona.trade)}."], a_trade=article(persona.trade))
        other = random.choice([trade for trade in sorted(TRADES) if trade != persona.trade])
        return turn([f"No, I am {article(persona.trade)}."], a_trade=article(other))
    if kind == "asks mood":
        if random.random() < 0.4:
            return turn([f"Yes, I feel {persona.mood}."], mood=persona.mood)
        return turn([f"No, I feel {persona.mood}."], mood=random.choice([m for m in MOODS if m != persona.mood]))
    if kind == "absent":
        return turn([f"I do not sell that. I have {listing(goods)}."], good=absent_good(random, persona, held_out))
    if kind == "present":
        return turn([f"Yes, the {good} cost {coins(price)}."], good=good)
    if kind == "offer":
        offer = max(1, price + random.choice((-9, -6, -4, -2, -1, 0, 0, 1, 3)))
        if offer >= price:
            memory.bought.append(good)
            return turn(["Done. They are yours."], coins=coins(offer), good=good)
        return turn([f"No, the {good} cost {coins(price)}."], coins=coins(offer), good=good)
    if kind == "buy":
        memory.bought.append(good)
        return turn([f"Here are the {good}. That is {coins(price)}."], good=good)
    if kind == "introduce":
        memory.visitor = person_name(random, held_out)
        return turn([f"Welcome, {memory.visitor}.", f"Good to meet you, {memory.visitor}."], visitor=memory.visitor)
    if kind == "visitor":
        return turn([f"You are {memory.visitor}."] if memory.visitor else ["You have not told me your name."])
    if kind == "bought":
        return turn([f"You bought the {listing(list(dict.fromkeys(memory.bought)))}."] if memory.bought
                    else ["You have bought nothing yet."])
    if kind == "twice":
        return turn([f"My name is {persona.name}, and I live in {persona.place}."])
    return turn({"greet": [GREETINGS[persona.mood]],
                 "farewell": ["Goodbye.", "Farewell, and come again."],
                 "thanks": ["You are welcome."]}[kind])


GREETINGS = {
    "cheerful": "A fine day to you, friend.", "tired": "Hello. Forgive me if I yawn.", "angry": "What do you want?",
    "sad": "Hello. I have seen better days.", "proud": "You stand before the best.", "nervous": "Oh. Hello.",
    "calm": "Peace to you.", "bored": "At last someone to talk to.", "hopeful": "Hello. Things will be well.",
    "worried": "Hello. Have you heard any news?", "happy": "Welcome, welcome.", "gloomy": "Hello. It will rain.",
    "curious": "Hello. What brings you here?", "lonely": "How good that you come.", "grumpy": "Be quick.",
    "shy": "Hello there.", "merry": "Come in and laugh with me.", "restless": "Hello. I cannot sit still.",
    "content": "Welcome. What a good day.", "homesick": "Hello. Do you come from far away?",
}

OTHER_KINDS = ("prying", "no family", "asks trade", "asks mood", "absent", "present", "offer", "buy", "introduce",
               "visitor", "bought", "twice", "greet", "thanks")


def told_first(random, kind, memory):
    """What was never told is asked for seldom, what was told often: else to deny it would be right most of the time."""
    if kind in ("visitor", "introduce"):
        if memory.visitor:
            return "visitor"
        return "introduce" if random.random() < 0.9 else kind
    if kind in ("bought", "buy"):
        if memory.bought and random.random() < 0.6:
            return "bought"
        return "buy" if random.random() < 0.9 else kind
    return kind


def make_turns(random, persona, held_out, count):
    """A talk of so many turns, two thirds of them about single facts."""
    memory = Memory()
    turns = []
    for at in range(count):
        if random.random() < 0.65:
            turns.append(fact_turn(random, persona, held_out, random.choice(FACT_KINDS)))
        else:
            kind = "greet" if at == 0 and random.random() < 0.3 else random.choice(OTHER_KINDS)
            turns.append(other_turn(random, persona, held_out, told_first(random, kind, memory), memory))
    if random.random() < 0.2:
        turns.append(other_turn(random, persona, held_out, "farewell", memory))
    return turns
