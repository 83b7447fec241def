"""The model in torch: Llama's layers (Touvron et al., 2023) with grouped-query attention, biases on queries and keys, and
tied output."""
import dataclasses
import math

import torch
from torch import nn


@dataclasses.dataclass(frozen=True)
class Shape:
    vocabulary: int = 1280
    width: int = 256
    layers: int = 5
    heads: int = 8
    kv_heads: int = 4
    head_dims: int = 32
    feed_forward: int = 512
    context: int = 2048
    rope_base: float = 200000.0
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

    def forward(self, x, cos, sin, hidden):
        x = x + self.attend(self.attn_norm(x), cos, sin, hidden)
        y = self.ffn_norm(x)
        return x + self.ffn_down(nn.functional.silu(self.ffn_gate(y)) * self.ffn_up(y))


EMBEDDING = 0.02  # the size of an embedding's numbers before anything is learned

# Which earlier token each of the first layer's first heads looks at before anything is learned.
OFFSETS = (1, 1, 2, 3)
PAIRS_THAT_POINT = 6  # of a head's dimensions: those that turn the fastest
POINTING = 6.0


def point_back(layer, shape):
    """Lets heads begin by looking a fixed number of tokens back, through biases that the rotation aligns there.

    A copy is found by what stood before it; to learn where "before" is takes most of the time otherwise.
    """
    pairs = torch.arange(0, 2 * PAIRS_THAT_POINT, 2)
    rates = shape.rope_base ** (-pairs.double() / shape.head_dims)
    group = shape.heads // shape.kv_heads
    for head, offset in enumerate(OFFSETS):
        first = head * shape.head_dims
        layer.attn_q.bias[first + pairs] = (POINTING * (rates * offset).cos()).float()
        layer.attn_q.bias[first + pairs + 1] = (-POINTING * (rates * offset).sin()).float()
        layer.attn_k.bias[head // group * shape.head_dims + pairs] = POINTING


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
        first = self.blk[0]
        nn.init.normal_(first.attn_output.weight, std=EMBEDDING * first.attn_output.weight.shape[1] ** -0.5)
        with torch.no_grad():
            point_back(first, self.shape)

    def forward(self, ids, wanted=None):
        """Logits of every position, or of those that the mask `wanted` names, in order."""
        length = ids.shape[1]
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        x = self.token_embd(ids)
        for layer in self.blk:
            x = layer(x, self.cos[:length], self.sin[:length], hidden)
        x = self.output_norm(x)
        return (x if wanted is None else x[wanted]) @ self.token_embd.weight.T
