"""The model in torch: Llama's layers (Touvron et al., 2023) with grouped-query attention, biases on queries and keys, and
tied output."""
import dataclasses
import math

import torch
from torch import nn


@dataclasses.dataclass(frozen=True)
class Shape:
    vocabulary: int = 1792
    width: int = 256
    layers: int = 4
    heads: int = 8
    kv_heads: int = 4
    head_dims: int = 32
    feed_forward: int = 512
    context: int = 2048
    rope_base: float = 10000000.0
    epsilon: float = 1e-5


class Norm(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(shape.width))
        self.epsilon = shape.epsilon

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * self.weight


def rotations(shape, length):
    """cos and sin [length, head_dims / 2]; a pair is two neighbouring dimensions."""
    pairs = torch.arange(0, shape.head_dims, 2, dtype=torch.float64) / shape.head_dims
    angles = torch.arange(length, dtype=torch.float64)[:, None] / shape.rope_base ** pairs
    return angles.cos().float(), angles.sin().float()


def rotate(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.attn_norm, self.ffn_norm = Norm(shape), Norm(shape)
        inner, kv = shape.heads * shape.head_dims, shape.kv_heads * shape.head_dims
        self.attn_q = nn.Linear(shape.width, inner)
        self.attn_k = nn.Linear(shape.width, kv)
        self.attn_v = nn.Linear(shape.width, kv, bias=False)
        self.attn_output = nn.Linear(inner, shape.width, bias=False)
        self.ffn_gate = nn.Linear(shape.width, shape.feed_forward, bias=False)
        self.ffn_up = nn.Linear(shape.width, shape.feed_forward, bias=False)
        self.ffn_down = nn.Linear(shape.feed_forward, shape.width, bias=False)

    def attend(self, x, cos, sin, hidden):
        batch, length, _ = x.shape
        group = self.shape.heads // self.shape.kv_heads

        def heads(projection):
            return projection(x).view(batch, length, -1, self.shape.head_dims).transpose(1, 2)

        q = rotate(heads(self.attn_q), cos, sin) / math.sqrt(self.shape.head_dims)
        k = rotate(heads(self.attn_k), cos, sin).repeat_interleave(group, 1)
        v = heads(self.attn_v).repeat_interleave(group, 1)
        scores = (q @ k.transpose(-1, -2)).masked_fill_(hidden, float("-inf")).softmax(-1)
        return self.attn_output((scores @ v).transpose(1, 2).reshape(batch, length, -1))

    def forward(self, x, cos, sin, hidden, wanted=None):
        x = x + self.attend(self.attn_norm(x), cos, sin, hidden)
        x = x if wanted is None else x[wanted]
        y = self.ffn_norm(x)
        return x + self.ffn_down(nn.functional.silu(self.ffn_gate(y)) * self.ffn_up(y))


EMBEDDING = 0.02  # the size of an embedding's numbers before anything is learned

# Before anything is learned the stream is divided: the token itself, then what stood 1, 2, 3 and 4 tokens before it.
OFFSETS = (1, 2, 3, 4)
PAIRS_THAT_POINT = 6  # of a head's dimensions: those that turn the fastest; the others hardly turn within a talk
POINTING = 8.0
MATCHING = 1.6  # at a match the score is then about 9, and for others about 0 +- 2


def orthonormal(rows, columns):
    return torch.linalg.qr(torch.randn(columns, columns))[0][:rows]


class Circuits:
    """Heads that can copy before anything is learned: which number belongs to which thing is then learned in minutes.

    A copy is found by what stood before it. Heads of the first layer note for each token which ones stood before it; heads
    of the later layers look for where the same stood before, and copy what is there into the stream as the token that it
    is. All of it is random numbers and copies of them; the learning may change every one. Source: Olsson et al.,
    "In-context Learning and Induction Heads" (2022).
    """

    def __init__(self, shape):
        self.width, self.dims = shape.width, shape.head_dims
        self.group = shape.heads // shape.kv_heads
        self.own = self.width - self.dims * len(OFFSETS)  # numbers of the stream that hold the token itself
        self.base = shape.rope_base
        self.fast = 2 * PAIRS_THAT_POINT
        self.views = orthonormal(self.own, self.own)

    def head(self, number):
        return slice(number * self.dims, (number + 1) * self.dims)

    def view(self, number):
        """As many numbers about the token itself as a head has: one of several ways to look at it."""
        return self.views[self.head(number)]

    def before(self, offset):
        """Where the stream has the first view of what stood `offset` tokens before."""
        first = self.own + (offset - 1) * self.dims
        return slice(first, first + self.dims)

    def look_back(self, layer):
        """Heads that look a fixed number of tokens back, through biases that the rotation aligns there."""
        pairs = torch.arange(0, self.fast, 2)
        rates = self.base ** (-pairs.double() / self.dims)
        for number, offset in enumerate(OFFSETS):
            head, shared = self.head(number), self.head(number // self.group)
            layer.attn_q.weight[head] = 0
            layer.attn_k.weight[shared] = 0
            layer.attn_q.bias[head][pairs] = (POINTING * (rates * offset).cos()).float()
            layer.attn_q.bias[head][pairs + 1] = (-POINTING * (rates * offset).sin()).float()
            layer.attn_k.bias[shared][pairs] = POINTING
            layer.attn_v.weight[shared] = 0
            # Of numbers of which the part beyond the token's own is still nothing: their norm made them larger.
            layer.attn_v.weight[shared, :self.own] = self.view(0) * (self.own / self.width) ** 0.5
            layer.attn_output.weight[:, head] = 0
            layer.attn_output.weight[self.before(offset), head] = EMBEDDING * torch.eye(self.dims)

    def read(self, weight, head, offset):
        """Lets a projection's head see what stood `offset` tokens before, in the numbers that hardly turn."""
        weight[head] = 0
        seen = slice(head.start + self.fast, head.stop)
        if offset == 0:
            weight[seen, :self.own] = MATCHING * self.view(0)[self.fast:]
        else:
            place = self.before(offset)
            weight[seen, place.start + self.fast:place.stop] = MATCHING * torch.eye(self.dims - self.fast)

    def copy(self, layer, copies):
        """Heads that look for where the same stood before, and copy from there; `copies` says what."""
        for shared, (key_offset, copied, queries) in enumerate(copies):
            keys = self.head(shared)
            self.read(layer.attn_k.weight, keys, key_offset)
            layer.attn_v.weight[keys] = 0
            if copied >= 0:
                layer.attn_v.weight[keys, :self.own] = self.view(copied)
            else:
                layer.attn_v.weight[keys, self.before(-copied)] = torch.eye(self.dims)
            for at, query_offset in enumerate(queries):
                head = self.head(shared * self.group + at)
                self.read(layer.attn_q.weight, head, query_offset)
                layer.attn_output.weight[:, head] = 0
                layer.attn_output.weight[:self.own, head] = EMBEDDING * self.view(max(copied, 0)).T


# By layer, and in it by head of keys and values: by which earlier token its keys are found (0 is the token itself); what is
# copied, one of the four views of the token there (0 to 3) or what stood so many before it (-2, -3); and which of the asking
# side's tokens are looked for. Most copy what came after the same word, or after the same word and one or two more; two what
# came before it.
COPIES = {
    1: ((1, 1, (0,)), (1, 2, (0,)), (2, 1, (1,)), (3, 2, (1, 2))),
    2: ((0, -2, (3, 4)), (0, -3, (3, 4)), (1, 0, (0,)), (1, 3, (0,))),
    3: ((2, 0, (1,)), (3, 3, (1,))),
}


class Village(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.token_embd = nn.Embedding(shape.vocabulary, shape.width)
        self.blk = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.output_norm = Norm(shape)
        self.cos, self.sin = rotations(shape, shape.context)
        self.initialize()

    def initialize(self):
        nn.init.normal_(self.token_embd.weight, std=EMBEDDING)
        for layer in self.blk:
            for name, weight in layer.named_parameters():
                if weight.dim() == 2:
                    nn.init.normal_(weight, std=weight.shape[1] ** -0.5)
                if name.startswith(("attn_output", "ffn_down")) or name.endswith("bias"):
                    nn.init.zeros_(weight)
        with torch.no_grad():
            circuits = Circuits(self.shape)
            self.token_embd.weight[:, circuits.own:] = 0
            circuits.look_back(self.blk[0])
            for number, copies in COPIES.items():
                circuits.copy(self.blk[number], copies)

    def forward(self, ids, wanted=None):
        """Logits of every position, or of those that the mask `wanted` names, in order."""
        length = ids.shape[1]
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        x = self.token_embd(ids)
        for layer in self.blk:
            is_last = layer is self.blk[-1]
            x = layer(x, self.cos[:length], self.sin[:length], hidden, wanted if is_last else None)
        return self.output_norm(x) @ self.token_embd.weight.T
