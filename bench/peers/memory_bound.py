#!/usr/bin/env python3
"""PyTorch's compiler on operations that memory bounds, beside ours:
memory_bound.py ../build/release/memory_bound

Prints one Markdown table: GB/s of both (bytes that must be read and written at least, the same for both), and
the share of what a copy of the same size reaches on this machine.
"""
import json
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

WIDTH = 1024
torch.set_num_threads(len(__import__("os").sched_getaffinity(0)))


def inputs(op, n):
    if op.startswith("batch norm"):
        x = torch.randn(n // (64 * 256), 64, 16, 16).to(memory_format=torch.channels_last)
        return x, (torch.randn(64), torch.randn(64))
    x = torch.randn(n // WIDTH, WIDTH)
    if op.startswith("cross-entropy"):
        return x, (torch.arange(len(x)) % WIDTH,)
    return x, ((torch.randn(WIDTH), torch.randn(WIDTH)) if op.startswith("layer norm") else ())


FORWARD = {
    "gelu": lambda x: F.gelu(x),
    "softmax": lambda x: F.softmax(x, -1),
    "layer norm": lambda x, w, b: F.layer_norm(x, (WIDTH,), w, b),
    "batch norm": lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
    "cross-entropy": lambda x, y: F.cross_entropy(x, y),
}


def adam(p, m, v, g):
    m.mul_(0.9).add_(g * 0.1)
    v.mul_(0.999).add_(g * g * 0.001)
    p.sub_(m / (v.sqrt() + 1e-8) * 1e-3)


def runner(op, n):
    if op == "adam":
        arrays = [torch.rand(n) for _ in range(4)]
        step = torch.compile(adam, dynamic=False)
        return lambda: step(*arrays)
    x, rest = inputs(op, n)
    forward = FORWARD[op.removesuffix(" backward")]
    if not op.endswith("backward"):
        step = torch.compile(forward, dynamic=False)

        def run():
            with torch.no_grad():
                step(x, *rest)

        return run
    leaves = [x] + [r for r in rest if r.is_floating_point()]
    for leaf in leaves:
        leaf.requires_grad_()
    y = torch.compile(forward, dynamic=False)(x, *rest)
    gradient = torch.randn_like(y)
    return lambda: torch.autograd.grad(y, leaves, gradient, retain_graph=True)


def rate(run, seconds=0.3):
    for _ in range(3):
        run()
    runs, begin = 0, time.perf_counter()
    while True:
        run()
        runs += 1
        spent = time.perf_counter() - begin
        if spent > seconds:
            return runs / spent


def main():
    ours = [json.loads(line) for line in subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout.splitlines()]
    limits = {o["limit"]: o["gb_per_s"] for o in ours if "limit" in o}
    print("copies:", ", ".join(f"{name} {value} GB/s" for name, value in limits.items()), "\n")
    print("| Operation | MB read and written | PyTorch compiled, GB/s | Millrace, GB/s | ratio | of a copy in RAM |")
    print("|---|---|---|---|---|---|")
    for o in ours:
        if "op" not in o:
            continue
        bytes_ = o["passes"] * 4 * o["elements"]
        torch._dynamo.reset()
        theirs = rate(runner(o["op"], o["elements"])) * bytes_ / 1e9
        print(f"| {o['op']} | {bytes_ / 1e6:,.1f} | {theirs:.1f} | {o['gb_per_s']:.1f} | {o['gb_per_s'] / theirs:.2f}× | "
              f"{100 * o['gb_per_s'] / limits['RAM']:.0f} % |", flush=True)


if __name__ == "__main__":
    main()
