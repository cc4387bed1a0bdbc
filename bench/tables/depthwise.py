"""MobileNetV2's depthwise convolutions, oneDNN → ours (share of a copy's speed), milliseconds on one
thread."""
import re

from measure import built

NEEDS = []
MINUTES = 4
OPERATIONS = {"conv2d": "forward", "conv2d_input_grad": "data gradient", "conv2d_weight_grad": "weight gradient"}


def table():
    layers = {}
    for dtype in ("f32", "bf16"):
        for line in built("convolution_layers", "depthwise", dtype, "cpu").splitlines():
            found = re.match(r"(conv2d\w*) +(.+?) +\d+× +(\d+) µs.*?([\d.]+) of a copy; oneDNN +(\d+) µs", line)
            if found:
                operation, layer, ours, share, theirs = found.groups()
                cell = f"{int(theirs) / 1e3:.2f} → {int(ours) / 1e3:.2f} ({share})"
                layers.setdefault(layer, []).append(cell)  # in the order of OPERATIONS
    heads = [("f32: " if dtype == "f32" else "bf16: ") * (i == 0) + name
             for dtype in ("f32", "bf16") for i, name in enumerate(OPERATIONS.values())]
    return [["Channels, map", *heads], *([layer, *cells] for layer, cells in layers.items())]
