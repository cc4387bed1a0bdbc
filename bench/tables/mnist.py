"""The example mnist.toml, epoch by epoch."""
from measure import epochs

NEEDS = ["mnist/train-images-idx3-ubyte.gz"]
MINUTES = 3


def table():
    return epochs("examples/mnist.toml")
