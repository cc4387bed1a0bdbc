"""The examples: what each reaches on samples that were not seen, three seeds."""
import json
import os
import tempfile
import time
from pathlib import Path

from measure import MILLRACE, ROOT, missing, output

NEEDS = []
MINUTES = 150
# Of each example what must be there, the metrics that count, and what is changed for a further row.
EXAMPLES = [
    ("adult", "tabular/adult-train.csv", ["roc-auc", "accuracy"]),
    ("adult-linear", "tabular/adult-train.csv", ["roc-auc", "accuracy"]),
    ("adult-boosting", "tabular/adult-train.csv", ["roc-auc", "accuracy"]),
    ("houses", "tabular/california-housing.csv", ["r2", "mae"]),
    ("houses-boosting", "tabular/california-housing.csv", ["r2", "mae"]),
    ("criteo-fm", "tabular/criteo-train.tiny.csv", ["log-loss", "roc-auc"]),
    ("criteo-dlrm", "tabular/criteo-train.tiny.csv", ["log-loss", "roc-auc"]),
    ("ranking", "ranking/rank.train", ["ndcg-10", "map"]),
    ("ranking-boosting", "ranking/rank.train", ["ndcg-10", "map"]),
    ("sms-spam", "text/sms-spam.tsv", ["f1", "accuracy"]),
    ("sms-ngrams", "text/sms-spam.tsv", ["f1", "accuracy"]),
    ("sms-lstm", "text/sms-spam.tsv", ["f1", "accuracy"]),
    ("sms-lstm", "text/sms-spam.tsv", ["f1", "accuracy"], "model.kind=gru"),
    ("sms-minilm", "text/sms-spam.tsv", ["f1", "accuracy"]),
    ("sms-masked", "text/sms-spam.tsv", ["accuracy", "log-loss"]),
    ("shakespeare", "text/tinyshakespeare.txt", ["log-loss", "bits-per-byte"]),
    ("shakespeare-bpe", "text/tinyshakespeare.txt", ["log-loss", "bits-per-byte"]),
    ("spoken-digits", "audio/spoken-digits.tar", ["accuracy"]),
    ("spoken-digits", "audio/spoken-digits.tar", ["accuracy"], "data.test_where=", "data.test_share=0.2"),
    ("mnist", "mnist/train-images-idx3-ubyte.gz", ["accuracy"]),
    ("mnist-vit", "mnist/train-images-idx3-ubyte.gz", ["accuracy"]),
    ("cifar10-networks", "cifar10/train.tar", ["accuracy"], "data.sample=5%"),
    ("cifar10-networks", "cifar10/train.tar", ["accuracy"], "model.kind=mobilenet_v2", "input.resize=64", "data.sample=20%"),
    ("cifar10-networks", "cifar10/train.tar", ["accuracy"], "model.kind=resnet50", "input.resize=64", "data.sample=5%"),
]
SHARES = {"accuracy", "f1"}


def spread(name, of):
    """Mean and deviation, shares in percent, long numbers without decimals."""
    digits = 100 if name in SHARES else 1
    mean, deviation = digits * of["mean"], digits * of["deviation"]
    if abs(mean) >= 1000:
        return f"{mean:,.0f} ± {deviation:,.0f}"
    return f"{mean:.2f} ± {deviation:.2f} %" if name in SHARES else f"{mean:.4f} ± {deviation:.4f}"


def rows_of(name, changes, metrics, tested, minutes):
    told = f"`{name}.toml`" + "".join(f" `{change}`" for change in changes)
    return [[told if at == 0 else None, metric, spread(metric, tested[metric]), f"{minutes:.1f}" if at == 0 else None]
            for at, metric in enumerate(metrics)]


def table():
    rows = [["Example", "Metric", "Mean and deviation of three seeds", "Minutes a seed"]]
    for name, needs, metrics, *changes in EXAMPLES:
        recipe = ROOT / f"examples/{name}.toml"
        if missing(needs) or ("MILLRACE_MINILM" in recipe.read_text() and "MILLRACE_MINILM" not in os.environ):
            print(f"{name}: left out, as its data is not there", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            found = json.loads(output(MILLRACE, "train", recipe, *changes, "--no-check", "--seeds", 3, "--json", "--out", Path(folder) / "runs"))
            minutes = (time.monotonic() - began) / 180
        rows += rows_of(name, changes, metrics, found["test"], minutes)
        print(*(" | ".join(cell or "" for cell in row) for row in rows[-len(metrics):]), sep="\n", flush=True)
    return rows
