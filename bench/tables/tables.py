"""Rows of tables beside scikit-learn on the same splits: accuracy, or error, on rows that were not seen."""
import csv
import json
import random
import statistics
import tempfile
from pathlib import Path

from measure import MILLRACE, data, output, peers, percent

NEEDS = ["sklearn", "tabular/titanic.csv", "tabular/diamonds.csv"]
MINUTES = 6
SEEDS = (1, 2, 3)
# What is predicted; what says it already is left out. penguins.csv is the table of the R package
# palmerpenguins (Horst, Hill, Gorman 2020, CC0: github.com/allisonhorst/palmerpenguins,
# inst/extdata/penguins.csv), where it lies beside the others.
TABLES = {"titanic": ("survived", ["alive"]), "diamonds": ("price", []), "penguins": ("species", [])}


def split(source, left_out, seed, folder):
    """Four rows in five to train on, the others to test on, by the seed."""
    with open(source, newline="") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name not in left_out]
    random.Random(seed).shuffle(rows)
    cut = len(rows) // 5
    for name, some in (("test", rows[:cut]), ("train", rows[cut:])):
        with open(folder / f"{name}.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, names, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(some)


def trained(folder, target, seed):
    """What a recipe as `millrace init` drafts it reaches: accuracy, else mean absolute error and R²."""
    recipe = folder / "recipe.toml"
    recipe.write_text(output(MILLRACE, "init", folder / "train.csv"))
    run = folder / "run"
    output(MILLRACE, "train", recipe, f"output.column={target}", f"train.seed={seed}", "--out", run)
    found = json.loads(output(MILLRACE, "eval", run, "--json"))
    return [found["accuracy"]] if "accuracy" in found else [found["mae"], found["r2"]]


def table():
    rows = [["", "", "Millrace, as `init` drafts it", "linear (LogisticRegression, Ridge)", "HistGradientBoosting"]]
    for name, (target, left_out) in TABLES.items():
        source = data(f"tabular/{name}.csv")
        if not source:
            print(f"{name}: left out, as $MILLRACE_DATA/tabular/{name}.csv is not there", flush=True)
            continue
        figures = {"millrace": [], "linear": [], "boosting": []}
        for seed in SEEDS:
            with tempfile.TemporaryDirectory() as path:
                folder = Path(path)
                split(source, left_out, seed, folder)
                figures["millrace"].append(trained(folder, target, seed))
                for line in peers("tables.py", folder / "train.csv", folder / "test.csv", target, seed):
                    figures[line["model"]].append(line["figures"])
        medians = {model: [statistics.median(each) for each in zip(*of_seeds)] for model, of_seeds in figures.items()}
        if len(medians["millrace"]) == 1:
            rows.append([f"{name}, {target}", "accuracy", *(percent(each[0]) for each in medians.values())])
        else:
            rows.append([f"{name}, {target}", "mean absolute error", *(f"{each[0]:,.1f}" for each in medians.values())])
            rows.append([None, "R²", *(f"{each[1]:.4f}" for each in medians.values())])
    return rows
