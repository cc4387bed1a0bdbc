"""Writes tests/optim/published_values.inc: what optimisers make of a small model, 8 steps on one batch.

Run it with a Python that has PyTorch: tools/reference_values_published.py > tests/optim/published_values.inc
The model is Linear(4, 3) → tanh → Linear(3, 2) with the mean squared error. RMSprop, NAdam, RAdam and
Adafactor are PyTorch's. Muon is PyTorch's, too, with its iteration in f64 instead of bf16, and PyTorch's
AdamW for the biases. Lion, LAMB and SAM, which PyTorch lacks, are the papers' algorithms in f64.
"""

import torch
from torch import nn
from torch.optim import _muon

torch.set_default_dtype(torch.float64)
torch.manual_seed(5)
O = torch.optim


def draw(*shape):
    return (torch.randn(shape) * 8).round() / 8


X, Y = draw(6, 4), draw(6, 2) * 4
START = [draw(3, 4), draw(3), draw(2, 3), draw(2)]


def values(tensors):
    return ", ".join(f"{v:.9g}" for t in tensors for v in t.detach().flatten().tolist())


def newton_schulz(grad, coefficients, steps, eps):
    a, b, c = coefficients
    x = grad.T if grad.size(0) > grad.size(1) else grad
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if grad.size(0) > grad.size(1) else x


_muon._zeropower_via_newtonschulz = newton_schulz


class Own(O.Optimizer):
    def __init__(self, params, **defaults):
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["step"] = state.get("step", 0) + 1
                self.update(p, p.grad, state, group)


class Lion(Own):  # arXiv 2302.06675, algorithm 2
    def update(self, p, g, s, o):
        m = s.setdefault("m", torch.zeros_like(p))
        c = o["betas"][0] * m + (1 - o["betas"][0]) * g
        s["m"] = o["betas"][1] * m + (1 - o["betas"][1]) * g
        p -= o["lr"] * (c.sign() + o["decay"] * p)


class Lamb(Own):  # arXiv 1904.00962, algorithm 2
    def update(self, p, g, s, o):
        b1, b2 = o["betas"]
        s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
        s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g
        r = s["m"] / (1 - b1 ** s["step"]) / ((s["v"] / (1 - b2 ** s["step"])).sqrt() + o["eps"]) + o["decay"] * p
        trust = p.norm() / r.norm() if p.norm() > 0 and r.norm() > 0 else 1.0
        p -= o["lr"] * trust * r


class Both:
    def __init__(self, *optimizers):
        self.optimizers = optimizers

    def step(self):
        for each in self.optimizers:
            each.step()


def muon(model, lr, **more):
    matrices = [p for p in model.parameters() if p.ndim == 2]
    rest = [p for p in model.parameters() if p.ndim < 2]
    decay = more["weight_decay"]
    return Both(O.Muon(matrices, lr, **more), O.AdamW(rest, lr, betas=(0.9, 0.95), weight_decay=decay))


def run(name, make, rho=0.0):
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    for p, start in zip(model.parameters(), START):
        p.data.copy_(start)
    optimizer = make(model)
    losses = []

    def gradients():
        model.zero_grad()
        loss = nn.functional.mse_loss(model(X), Y)
        loss.backward()
        return loss.item()

    for _ in range(8):
        losses.append(gradients())
        if rho:  # arXiv 2010.01412, equations 2 and 3
            kept = [p.detach().clone() for p in model.parameters()]
            norm = torch.sqrt(sum((p.grad**2).sum() for p in model.parameters()))
            with torch.no_grad():
                for p in model.parameters():
                    p += rho * p.grad / norm
            gradients()
            for p, old in zip(model.parameters(), kept):
                p.data.copy_(old)
        optimizer.step()
    print(f'{{"{name}", {{{", ".join(f"{l:.9g}" for l in losses)}}}, {{{values(model.parameters())}}}}},')


print("// Written by tools/reference_values_published.py with PyTorch", torch.__version__)
for name, tensor in [("x", X), ("y", Y)] + [(f"start {i}", s) for i, s in enumerate(START)]:
    print(f'{{"{name}", {{}}, {{{values([tensor])}}}}},')
run("rmsprop", lambda m: O.RMSprop(m.parameters(), 0.02))
run("rmsprop centred", lambda m: O.RMSprop(m.parameters(), 0.02, alpha=0.9, eps=1e-3, momentum=0.8, centered=True, weight_decay=0.1))
run("nadam", lambda m: O.NAdam(m.parameters(), 0.05))
run("nadam decay", lambda m: O.NAdam(m.parameters(), 0.05, betas=(0.8, 0.9), momentum_decay=0.1, weight_decay=0.1))
run("nadam decoupled", lambda m: O.NAdam(m.parameters(), 0.05, weight_decay=0.1, decoupled_weight_decay=True))
run("radam", lambda m: O.RAdam(m.parameters(), 0.05, weight_decay=0.1))
run("radam decoupled", lambda m: O.RAdam(m.parameters(), 0.05, betas=(0.8, 0.95), weight_decay=0.1, decoupled_weight_decay=True))
run("lion", lambda m: Lion(m.parameters(), lr=0.3, betas=(0.6, 0.99), decay=0.1))
run("lamb", lambda m: Lamb(m.parameters(), lr=0.05, betas=(0.9, 0.999), eps=1e-6, decay=0.1))
run("adafactor", lambda m: O.Adafactor(m.parameters(), 0.4, eps=(2.0**-23, 1e-3), weight_decay=0.1))
run("adafactor clip", lambda m: O.Adafactor(m.parameters(), 0.2, eps=(2.0**-23, 0.5), beta2_decay=-0.5, d=1.2))
run("muon", lambda m: muon(m, 0.05, weight_decay=0.1))
run("muon adamw", lambda m: muon(m, 0.05, weight_decay=0.0, momentum=0.8, nesterov=False, ns_steps=3, adjust_lr_fn="match_rms_adamw"))
run("sam", lambda m: O.SGD(m.parameters(), 0.05, momentum=0.9, weight_decay=0.05), rho=0.5)
run("sam adamw", lambda m: O.AdamW(m.parameters(), 0.05, weight_decay=0.1), rho=0.2)
