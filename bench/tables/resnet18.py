"""ResNet-18 beside PyTorch, training and inference, pictures per second."""
import importlib

from measure import PYTORCH, count, times

NEEDS = [PYTORCH]
MINUTES = 3


def table():
    beside = importlib.import_module("tables.networks").beside
    rows = [["", "PyTorch eager", "PyTorch compiled", "Millrace", "to eager", "to compiled"]]
    for name, what in (("training, ResNet-18 for 32×32, batch 128, SGD; pictures/s", ("train", "resnet18_cifar", 128, "sgd")),
                       ("inference, ResNet-18 at 224×224, batch 1; pictures/s", ("infer", "resnet18", 1, "adamw"))):
        eager, compiled, ours = beside(*what, "fp32")
        rows.append([name, count(eager), count(compiled), count(ours), times(ours / eager), times(ours / compiled)])
    return rows
