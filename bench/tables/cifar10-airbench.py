"""The example cifar10-airbench.toml from JPEG files to its result, epoch by epoch."""
from measure import epochs

NEEDS = ["cifar10/train.tar"]
MINUTES = 8


def table():
    return epochs("examples/cifar10-airbench.toml")
