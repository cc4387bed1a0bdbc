"""What `millrace estimate` says beforehand, and what the training takes, in seconds."""
import json
import time

from measure import letters, output, MILLRACE, trained

NEEDS = ["mnist/train-images-idx3-ubyte.gz", "cifar10/train.tar"]
MINUTES = 12


def table():
    rows = [["", "estimated, s", "taken, s"]]
    for recipe in ("letters", "mnist", "cifar10-airbench"):
        path = f"examples/{recipe}.toml"
        changes = letters() if recipe == "letters" else []
        estimated = json.loads(output(MILLRACE, "estimate", path, *changes, "--json"))["here"]["total_seconds"]
        begin = time.time()
        trained(path, *changes)
        rows.append([f"`{path}`", f"{estimated:.{1 if estimated < 100 else 0}f}", f"{time.time() - begin:.{1 if estimated < 100 else 0}f}"])
    return rows
