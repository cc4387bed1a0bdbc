"""Writes tests/optim/reference_values.inc: what PyTorch's optimisers and schedules do.

Run it with a Python that has PyTorch: tools/reference_values_optim.py > tests/optim/reference_values.inc
The model is Linear(4, 3) → tanh → Linear(3, 2) with the mean squared error, trained for 8 steps on one batch.
"""

import torch
from torch import nn

torch.manual_seed(3)


def draw(*shape):
    return (torch.randn(shape) * 8).round() / 8


X, Y = draw(6, 4), draw(6, 2) * 4
START = [draw(3, 4), draw(3), draw(2, 3), draw(2)]
# A table of 24 rows, of which each of 6 steps reads some, one of them twice.
TABLE, TARGET = draw(24, 3), draw(6, 5, 3)
IDS = torch.stack([torch.cat([i, i[:1]]) for i in (torch.randperm(24)[:4] for _ in range(6))])


def values(tensor):
    return ", ".join(f"{v:.9g}" for v in tensor.detach().flatten().tolist())


def run(name, make, clip_value=0.0, clip_norm=0.0):
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    for p, start in zip(model.parameters(), START):
        p.data.copy_(start)
    optimizer = make(model)
    losses = []
    for _ in range(8):
        loss = nn.functional.mse_loss(model(X), Y)
        optimizer.zero_grad()
        loss.backward()
        if clip_value:
            nn.utils.clip_grad_value_(model.parameters(), clip_value)
        if clip_norm:
            nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        optimizer.step()
        losses.append(loss.item())
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    print(f'{{"{name}", {{{", ".join(f"{l:.9g}" for l in losses)}}}, {{{values(flat)}}}}},')


def run_table(name, make, sparse, clip_norm=0.0):
    table = nn.Embedding(24, 3, sparse=sparse)
    table.weight.data.copy_(TABLE)
    optimizer = make([table.weight])
    losses = []
    for ids, target in zip(IDS, TARGET):
        loss = nn.functional.mse_loss(table(ids), target)
        optimizer.zero_grad()
        loss.backward()
        if clip_norm:
            nn.utils.clip_grad_norm_([table.weight], clip_norm)
        optimizer.step()
        losses.append(loss.item())
    print(f'{{"{name}", {{{", ".join(f"{l:.9g}" for l in losses)}}}, {{{values(table.weight)}}}}},')


def groups(model, lr):
    biases = [p for n, p in model.named_parameters() if n.endswith("bias")]
    rest = [p for n, p in model.named_parameters() if not n.endswith("bias")]
    return [{"params": biases, "lr": 4 * lr, "weight_decay": 0.0}, {"params": rest}]


def schedule(name, lr, make, steps):
    parameter = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr)
    scheduler = make(optimizer)
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    print(f'{{"{name}", {{{", ".join(f"{r:.12g}" for r in rates)}}}, {{}}}},')


O, S = torch.optim, torch.optim.lr_scheduler
print("// Written by tools/reference_values_optim.py with PyTorch", torch.__version__)
for name, tensor in [("x", X), ("y", Y)] + [(f"start {i}", s) for i, s in enumerate(START)]:
    print(f'{{"{name}", {{}}, {{{values(tensor)}}}}},')
run("sgd", lambda m: O.SGD(m.parameters(), 0.1))
run("sgd decay", lambda m: O.SGD(m.parameters(), 0.1, weight_decay=0.05))
run("sgd momentum", lambda m: O.SGD(m.parameters(), 0.1, momentum=0.9, weight_decay=0.05))
run("sgd nesterov", lambda m: O.SGD(m.parameters(), 0.1, momentum=0.85, nesterov=True, weight_decay=0.05))
run("sgd groups", lambda m: O.SGD(groups(m, 0.05), 0.05, momentum=0.9, weight_decay=0.1))
run("sgd clip norm", lambda m: O.SGD(m.parameters(), 0.1), clip_norm=0.7)
run("sgd clip value", lambda m: O.SGD(m.parameters(), 0.1), clip_value=0.3)
run("adam", lambda m: O.Adam(m.parameters(), 0.05))
run("adam decay", lambda m: O.Adam(m.parameters(), 0.05, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1))
run("adam epsilon", lambda m: O.Adam(m.parameters(), 0.05, eps=0.1))
run("adamw", lambda m: O.AdamW(m.parameters(), 0.05, weight_decay=0.1))
run("adamw clip", lambda m: O.AdamW(groups(m, 0.05), 0.05, weight_decay=0.1), clip_value=1.0, clip_norm=0.5)
for name, tensor in [("table", TABLE), ("table ids", IDS), ("table target", TARGET)]:
    print(f'{{"{name}", {{}}, {{{values(tensor)}}}}},')
run_table("rows sgd", lambda p: O.SGD(p, 0.3), sparse=True)
run_table("rows sgd clip", lambda p: O.SGD(p, 0.3), sparse=False, clip_norm=0.4)
run_table("rows adagrad", lambda p: O.Adagrad(p, 0.3), sparse=True)
run_table("rows adagrad clip", lambda p: O.Adagrad(p, 0.3), sparse=False, clip_norm=0.4)
run_table("rows lazy adam", lambda p: O.SparseAdam(p, 0.1), sparse=True)
run_table("rows adam", lambda p: O.Adam(p, 0.1), sparse=False)
run_table("rows adamw clip", lambda p: O.AdamW(p, 0.1, weight_decay=0.1), sparse=False, clip_norm=0.4)
schedule("step", 0.5, lambda o: S.StepLR(o, 4, 0.3), 12)
schedule("cosine", 0.5, lambda o: S.CosineAnnealingLR(o, 10, 0.01), 11)
schedule("one cycle", 0.5, lambda o: S.OneCycleLR(o, 0.5, 20), 20)
schedule("one cycle short", 0.2, lambda o: S.OneCycleLR(o, 0.2, 7, pct_start=0.5, div_factor=10, final_div_factor=100), 7)
schedule("warm up", 0.5, lambda o: S.LinearLR(o, 0.2, 1.0, 4), 8)
