"""The words of the village: what its people are called, make, sell, feel and hide.

Names and places are put together from syllables, goods from a quality and a thing, so that there are more of them than
a model could learn by heart. Every name, place and thing is either for training or held out for evaluation, by a hash
of its spelling: which side it is on does not depend on anything else.
"""
import zlib

ONSETS = "b br c cl d dr f fl g gr h j k l m n p r s st t tr v w".split()
VOWELS = "a e i o u".split()
MIDDLES = "l ld ll m mm n nd nn r rr rt s d th".split()
ENDINGS = "a e i o in an en is ek wen ric dan mir bel".split()

PLACE_HEADS = """Thorn Mill Ash Oak Elder Stone Fox Crow Hazel Marsh Ember Frost Raven Birch Willow Copper Iron Salt Moss
Heather Otter Badger Heron Bramble Alder Rowan Cinder Harrow Winter Summer Amber Barley Clover Flint Gull Juniper Kestrel
Linden Maple Nettle Pine Quail Reed Sparrow Tallow Umber Vine Wren Yarrow Briar""".split()
PLACE_TAILS = """wick ford ton bury dale field bridge gate haven hollow market mere moor port ridge stead well wood brook
cross fell ham holt""".split()

QUALITIES = """red blue green white black brown grey golden old new small large fine plain sweet bitter soft hard warm cold
dark bright heavy light dry fresh smooth rough round long short wild""".split()

# Each trade with the things that those of it sell, in the plural.
TRADES = {
    "baker": "loaves rolls buns cakes biscuits pies tarts pretzels".split(),
    "smith": "nails hinges knives horseshoes hammers axes hooks chains".split(),
    "weaver": "blankets shawls rugs ribbons towels cloaks scarves sheets".split(),
    "potter": "bowls jugs cups plates jars vases tiles pots".split(),
    "fisher": "eels trout crabs nets herrings mussels carp oysters".split(),
    "farmer": "turnips carrots eggs beans onions apples pumpkins cabbages".split(),
    "brewer": "ales ciders meads barrels mugs hops".split(),
    "carpenter": "chairs tables stools shelves doors ladders chests benches".split(),
    "tailor": "coats shirts gloves hats belts dresses trousers aprons".split(),
    "cobbler": "boots shoes sandals laces soles slippers".split(),
    "herbalist": "salves teas tonics roots powders seeds mushrooms leaves".split(),
    "jeweller": "rings brooches beads bracelets pendants pins combs".split(),
    "candlemaker": "candles lanterns wicks soaps torches lamps".split(),
    "scribe": "quills letters maps books scrolls inks seals".split(),
    "beekeeper": "combs honeys waxes hives polishes".split(),
    "hunter": "furs arrows pelts traps antlers bows feathers".split(),
    "glassblower": "bottles lenses goblets mirrors windows marbles".split(),
    "toymaker": "dolls kites drums puppets tops whistles puzzles".split(),
    "cook": "soups stews sausages dumplings puddings pancakes noodles".split(),
    "miller": "flours grains brans sacks oats meals".split(),
    "gardener": "roses bulbs tulips ferns hedges lilies daisies".split(),
    "musician": "flutes fiddles harps strings songs bells horns".split(),
    "saddler": "saddles reins bridles straps whips harnesses".split(),
    "mason": "bricks stones slabs tiles pillars statues".split(),
}

MOODS = """cheerful tired angry sad proud nervous calm bored hopeful worried happy gloomy curious lonely grumpy shy merry
restless content homesick""".split()

RELATIONS = "brother sister mother father son daughter uncle aunt cousin wife husband".split()

HIDDEN = """key purse letter ring map crown dagger coin flute diary locket jewel book lamp mirror cup sword mask seed
bell""".split()
HIDING_PLACES = [f"{how} the {what}" for how in ("under", "behind", "inside", "near", "above")
                 for what in """well oak mill oven stairs bridge chapel barn chimney gate cellar hedge tower stable pond
                 fountain anvil clock bed door""".split()]

NO_NAMES = "Dildo Fart Homo Pedo Penis Pus Semen Sod".split()  # which the syllables would make

HELD_OUT_PART = 10  # one word in so many


def is_held_out(word):
    """Whether a word is for evaluation alone."""
    return zlib.crc32(word.encode()) % HELD_OUT_PART == 0


def make_until(make, held_out):
    while True:
        word = make()
        if is_held_out(word) == held_out and word not in NO_NAMES:
            return word


def person_name(random, held_out):
    def make():
        word = random.choice(ONSETS) + random.choice(VOWELS)
        if random.random() < 0.75:
            word += random.choice(MIDDLES) + random.choice(ENDINGS)
        else:
            word += random.choice(MIDDLES)
        return word.capitalize()

    return make_until(make, held_out)


def place_name(random, held_out):
    return make_until(lambda: random.choice(PLACE_HEADS) + random.choice(PLACE_TAILS), held_out)


def good_name(random, things, held_out):
    return make_until(lambda: f"{random.choice(QUALITIES)} {random.choice(things)}", held_out)


def password(random, goods, held_out):
    """Two words, of which the second is none that the character sells."""
    things = [thing for trade in sorted(TRADES) for thing in TRADES[trade] if thing not in " ".join(goods).split()]
    return good_name(random, things, held_out)
