"""Writes tests/nn/peers_values.inc: 20 losses of small models, trained by PyTorch.

Run it with a Python that has PyTorch: tools/reference_values_peers.py > tests/nn/peers_values.inc
No weight is stored: weights and inputs are a formula of their name and position (`fill`), which
tests/nn/peers_test.cpp computes too. PyTorch computes in float64 here, so that what the test allows is this
program's own rounding.
"""

import math

import numpy
import torch
from torch import nn


def fill(name, shape):
    """Numbers in [-1, 1) with 24 bits: a mixing function (C. Wellons, "lowbias32") of position and the name's
    FNV-1a hash."""
    start = 2166136261
    for byte in name.encode():
        start = (start ^ byte) * 16777619 & 0xFFFFFFFF
    with numpy.errstate(over="ignore"):
        x = numpy.arange(math.prod(shape), dtype=numpy.uint32) + numpy.uint32(start)
        for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
            x ^= x >> numpy.uint32(shift)
            x *= numpy.uint32(factor)
        x ^= x >> numpy.uint32(16)
    return torch.from_numpy((x >> numpy.uint32(8)).astype(numpy.float64) / 2.0**23 - 1).reshape(shape)


def fill_model(model):
    """Of a matrix: ± sqrt(3 / fan-in), which keeps the variance; of a norm's scale: 1 ± 1/4; of any other
    vector: ± 1/8."""
    for name, p in model.named_parameters():
        values = fill(name, tuple(p.shape))
        if p.dim() > 1:
            values *= math.sqrt(3 * p.shape[0] / p.numel())
        else:
            values = 1 + values / 4 if name.endswith("weight") else values / 8
        p.data = values.float().double()  # as f32 holds them


class Residual(nn.Module):
    def __init__(self, body, shortcut=None):
        super().__init__()
        self.body = body
        if shortcut:
            self.shortcut = shortcut

    def forward(self, x):
        return self.body(x) + (self.shortcut(x) if hasattr(self, "shortcut") else x)


class Mean(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def residual(cin, cout, stride):
    body = nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(),
                         nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout))
    shortcut = None
    if stride != 1 or cin != cout:
        shortcut = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))
    return nn.Sequential(Residual(body, shortcut), nn.ReLU())


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5), nn.ReLU(),
                                  nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, x):
        return self.body(x)


class LSTMClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(256, 64)
        self.rnn = nn.LSTM(64, 128, batch_first=True)
        self.head = nn.Linear(128, 2)

    def forward(self, ids):
        return self.head(self.rnn(self.emb(ids))[0][:, -1])


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, s, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, s, d))
        return x + self.fc2(nn.functional.gelu(self.fc1(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary, width, depth, heads, length):
        super().__init__()
        self.pos = nn.Parameter(torch.zeros(length, width))
        self.tok = nn.Parameter(torch.zeros(vocabulary, width))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.tok[ids] + self.pos)))


def mlp():
    return nn.Sequential(nn.Linear(14, 128), nn.ReLU(), nn.LayerNorm(128), nn.Linear(128, 64), nn.ReLU(),
                         nn.LayerNorm(64), nn.Linear(64, 2))


def residual_network():
    return nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), residual(16, 16, 1),
                         residual(16, 32, 2), Mean(), nn.Linear(32, 10))


def train(name, model, inputs, vocabulary, lr):
    fill_model(model)
    model.double().train()
    x = fill("x", inputs)
    x = ((x + 1) / 2 * vocabulary).long() if vocabulary else x
    optimizer = torch.optim.SGD(model.parameters(), lr, momentum=0.9)
    losses = []
    for _ in range(20):
        output = model(x).flatten(0, -2)
        loss = nn.functional.cross_entropy(output, torch.arange(output.shape[0]) % output.shape[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(f"{loss.item():.9g}")
    count = sum(p.numel() for p in model.parameters())
    print(f'{{"{name}", {lr}, {count}, {{{", ".join(losses)}}}}},')


print(f"// Written by tools/reference_values_peers.py with PyTorch {torch.__version__}; do not edit.")
print("// name, learning rate, number of parameters, losses")
print("// clang-format off")
train("mlp", mlp(), (16, 14), 0, 0.05)
train("lenet", LeNet(), (8, 1, 28, 28), 0, 0.005)
train("lstm", LSTMClassifier(), (6, 20), 256, 0.1)
train("gpt", GPT(50, 32, 2, 4, 16), (4, 16), 50, 0.05)
train("residual", residual_network(), (6, 3, 12, 12), 0, 0.02)
