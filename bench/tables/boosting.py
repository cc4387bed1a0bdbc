"""Boosted trees beside the small networks of the same examples: what they reach, and rows a second beside
XGBoost's own."""
import json
import statistics
import tempfile
from pathlib import Path

from measure import MILLRACE, built, output

NEEDS = ["tabular/adult-train.csv", "tabular/california-housing.csv"]
MINUTES = 6
SEEDS = (1, 2, 3)
EXAMPLES = {"adult": ("roc-auc", "who earns more than 50,000 dollars, area under the ROC curve"),
            "houses": ("r2", "what houses cost, R²")}


def reached(name, metric, seed):
    with tempfile.TemporaryDirectory() as folder:
        told = output(MILLRACE, "train", f"examples/{name}.toml", f"train.seed={seed}", f"eval.metrics=[{metric}]",
                      "--out", Path(folder) / "run", "--json")
    return json.loads(told)["test"][metric]


def table():
    rows = [["", "boosted trees", "beside"]]
    for name, (metric, what) in EXAMPLES.items():
        means = [statistics.mean(reached(each, metric, seed) for seed in SEEDS) for each in (f"{name}-boosting", name)]
        rows.append([what, f"{means[0]:.4f}", f"{means[1]:.4f}, the network of {name}.toml"])
    for line in built("trees").splitlines()[1:]:
        words = line.split()
        own, theirs = float(words[3]), float(words[6])
        rows.append([f"{int(words[0]):,} rows at a time through 300 trees, rows/s", f"{own:,.0f}", f"{theirs:,.0f}, XGBoost"])
    return rows
