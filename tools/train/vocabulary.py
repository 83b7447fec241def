"""A byte-level BPE vocabulary, trained on the corpus, in the form that GGUF files of GPT-2's kind carry.

Source of the algorithm: Sennrich, Haddow, Birch, "Neural Machine Translation of Rare Words with Subword Units" (2016),
on the bytes of words that GPT-2's pattern splits off; here for ASCII text alone.
"""
import collections
import functools
import heapq
import re

SPECIAL = ("<|begin|>", "<|end|>", "<|persona|>", "<|visitor|>", "<|reply|>", "<|pad|>")
BEGIN, END, PERSONA, VISITOR, REPLY, PAD = range(len(SPECIAL))

PIECES = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")


def spelled_bytes():
    """The printable character that stands for each byte in a vocabulary of this kind."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    spelling = {byte: chr(byte) for byte in printable}
    spelling.update({byte: chr(256 + at) for at, byte in enumerate(others)})
    return spelling


SPELLING = spelled_bytes()


def spell(text):
    return "".join(SPELLING[byte] for byte in text.encode())


class Vocabulary:
    def __init__(self, merges):
        self.merges = [tuple(pair) for pair in merges]
        self.tokens = [*SPECIAL, *(SPELLING[byte] for byte in range(256)), *("".join(pair) for pair in self.merges)]
        self.ids = {token: at for at, token in enumerate(self.tokens)}
        self.ranks = {pair: at for at, pair in enumerate(self.merges)}

    @functools.lru_cache(maxsize=200_000)
    def encode_piece(self, piece):
        parts = list(spell(piece))
        while len(parts) > 1:
            ranked = [(self.ranks.get(pair, len(self.ranks)), at) for at, pair in enumerate(zip(parts, parts[1:]))]
            rank, at = min(ranked)
            if rank == len(self.ranks):
                break
            parts[at:at + 2] = [parts[at] + parts[at + 1]]
        return tuple(self.ids[part] for part in parts)

    def encode(self, text):
        return [token for piece in PIECES.findall(text) for token in self.encode_piece(piece)]


def train(texts, size):
    """Merges the most frequent pair of neighbours until the vocabulary has `size` tokens; ties to the lesser spelling."""
    counts = collections.Counter(piece for text in texts for piece in PIECES.findall(text))
    words = [[list(spell(piece)), count] for piece, count in counts.items()]
    pairs = collections.Counter()
    where = collections.defaultdict(set)
    for at, (parts, count) in enumerate(words):
        for pair in zip(parts, parts[1:]):
            pairs[pair] += count
            where[pair].add(at)
    heap = [(-count, pair) for pair, count in pairs.items()]
    heapq.heapify(heap)
    merges = []
    while len(merges) < size - len(SPECIAL) - 256:
        count, pair = heapq.heappop(heap)
        if pairs[pair] != -count:
            continue  # an older count of this pair
        merges.append(pair)
        changed = merge_everywhere(pair, words, where, pairs)
        for other in changed:
            if pairs[other] > 0:
                heapq.heappush(heap, (-pairs[other], other))
    return Vocabulary(merges)


def merge_everywhere(pair, words, where, pairs):
    changed = set()
    for at in sorted(where[pair]):
        parts, count = words[at]
        for old in zip(parts, parts[1:]):
            pairs[old] -= count
            changed.add(old)
        merged = []
        position = 0
        while position < len(parts):
            if tuple(parts[position:position + 2]) == pair:
                merged.append(parts[position] + parts[position + 1])
                position += 2
            else:
                merged.append(parts[position])
                position += 1
        words[at][0] = merged
        for new in zip(merged, merged[1:]):
            pairs[new] += count
            where[new].add(at)
            changed.add(new)
    return changed
