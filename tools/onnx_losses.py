"""Writes what the test of training an ONNX file further compares with: PyTorch's export, pictures, and
PyTorch's next losses.

    python tools/onnx_losses.py small OUT             a small network with batch norms
    python tools/onnx_losses.py resnet18_cifar OUT    that of bench/peers

Needs PyTorch 2.5 or later with onnxscript, which the tests do not: they have what `small` wrote. OUT gets
model.onnx (the dynamo exporter, not optimised, so that batch norms stay), train.tar of PNG files in the order
in which both read them, and losses.json: those of the steps after the export, and the settings that a recipe
must have.
"""

import io
import json
import sys
import struct
import tarfile
import zlib
from pathlib import Path

import numpy as np

MEAN, STD = (0.5, 0.45, 0.4), (0.25, 0.25, 0.2)
OPTIMIZER = {"lr": 0.02, "momentum": 0.9, "weight_decay": 5e-4}
STEPS = 20


def drawn(count, classes, size):
    """Pictures of noise, brighter where their class says, by a rule that needs no random numbers of
    anybody."""
    n, c, y, x = np.ogrid[:count, :3, :size, :size]
    noise = (n * 7919 + c * 104729 + y * 15485863 + x * 32452843) ** 2 // 1009 % 190
    label = np.arange(count) * 7 % classes
    bright = ((y + x * (c + 1)) % classes == label[:, None, None, None]) * 60
    return (5 + noise + bright).astype(np.uint8), label, [f"class{k}" for k in range(classes)]


def png(picture):
    """A PNG file of [3, height, width]."""
    rows = picture.transpose(1, 2, 0)
    height, width, _ = rows.shape

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = b"".join(b"\0" + row.tobytes() for row in rows)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def write_tar(path, pictures, labels, names):
    with tarfile.open(path, "w") as tar:
        for k, (picture, label) in enumerate(zip(pictures, labels)):
            data = png(picture)
            info = tarfile.TarInfo(f"train/{names[label]}/{k:05}.png")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def small(classes):
    """Convolutions with batch norms, a residual sum, and a linear head."""
    from torch import nn, relu

    class Small(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
            self.body = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8))
            self.down = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16, momentum=0.2), nn.ReLU())
            self.head = nn.Linear(16, classes)

        def forward(self, x):
            x = self.stem(x)
            x = self.down(relu(x + self.body(x)))
            return self.head(x.mean((2, 3)))

    return Small()


def without_remarks(path):
    """The exporter's remarks name places on the machine."""
    import onnx

    model = onnx.load(path)
    del model.metadata_props[:]
    for part in [model.graph, *model.graph.node, *model.graph.value_info, *model.graph.initializer, *model.graph.input, *model.graph.output]:
        del part.metadata_props[:]
        part.doc_string = ""
    del model.graph.value_info[:]
    onnx.save(model, path)


def main():
    import torch
    from torch import nn

    kind, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    if kind == "small":
        batch = 16
        pictures, labels, names = drawn(batch * STEPS, 4, 12)
        model = small(4)
        further = OPTIMIZER
    else:
        sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench" / "peers"))
        import models

        batch = 64
        pictures, labels, names = drawn(batch * STEPS, 10, 32)
        model = models.ResNet(18, 10, small_images=True)
        # At 0.02 its loss falls from 1.5 to 0.02 in 20 steps, and rounding errors grow to 5e-3 on the way
        # (PyTorch's own, with oneDNN and without, to 3e-3 at 0.005).
        further = {**OPTIMIZER, "lr": 0.001}
    write_tar(out / "train.tar", pictures, labels, names)
    mean, std = (torch.tensor(v).reshape(1, 3, 1, 1) for v in (MEAN, STD))
    x = (torch.from_numpy(pictures).float() / 255 - mean) / std
    y = torch.from_numpy(labels)

    def train(optimizer, first, last):
        model.train()
        for k in range(first, last):
            rows = slice(k * batch, (k + 1) * batch)
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss.item()

    # Weights and running statistics that are not those of the beginning.
    list(train(torch.optim.SGD(model.parameters(), **OPTIMIZER), 0, STEPS // 2))
    model.eval()
    torch.onnx.export(model, (x[:batch],), out / "model.onnx", dynamo=True, optimize=False, external_data=False,
                      dynamic_shapes=({0: torch.export.Dim("batch")},), input_names=["x"], output_names=["logits"])
    without_remarks(out / "model.onnx")
    with torch.no_grad():
        before = nn.functional.cross_entropy(model(x[:batch]), y[:batch]).item()
    losses = list(train(torch.optim.SGD(model.parameters(), **further), 0, STEPS))
    model.eval()
    with torch.no_grad():
        after = nn.functional.cross_entropy(model(x), y).item()
    result = {"losses": losses, "first_batch_before": before, "all_after": after, "batch": batch, "mean": MEAN, "std": STD,
              "optimizer": further}
    (out / "losses.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
