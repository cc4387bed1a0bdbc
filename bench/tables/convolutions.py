"""ResNet-18's 3×3 convolutions of stride 1, direct → by Winograd, milliseconds on one thread."""
import re

from measure import built

NEEDS = []
MINUTES = 4
OPERATIONS = {"y": "forward: direct → Winograd", "dx": "data gradient", "dw": "weight gradient"}


def table():
    layers, direct = {}, None
    for line in built("convolution_layers", "train", "f32", "cpu").splitlines():
        if found := re.match(r"(y|dx|dw) +(.+?) +\d+× +(\d+) µs", line):
            direct = found.groups()
        elif (found := re.match(r" +by Winograd +(\d+) µs", line)) and "-" not in direct[1]:
            operation, layer, slow = direct
            layers.setdefault(layer, {})[operation] = f"{int(slow) / 1e3:.1f} → {int(found[1]) / 1e3:.1f}"
    return [["Channels, map", *OPERATIONS.values()], *([layer, *map(each.get, OPERATIONS)] for layer, each in layers.items())]
