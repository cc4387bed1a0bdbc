"""Writes tests/e2e/linear_values.json: a small table, and what scikit-learn's linear models make of it.

Run from the repository root with scikit-learn: python tools/reference_values_linear.py
"""

import json
from pathlib import Path

import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression, Ridge

ROWS, DECAY = 240, 0.01
COLOURS = ["red", "green", "blue"]  # from the most frequent on


def table():
    draw = np.random.default_rng(5)
    a, b = draw.normal(3, 2, ROWS).round(3), draw.uniform(-50, 200, ROWS).round(2)
    colour = draw.choice(3, ROWS, p=[0.5, 0.3, 0.2])
    score = 0.8 * (a - 3) - 0.01 * (b - 75) + np.array([0.5, -1, 0.2])[colour] + draw.logistic(size=ROWS)
    two = np.where(score > 0, "yes", "no")
    three = np.select([score < -1, score < 1], ["high", "low"], "middle")
    price = (1000 + 250 * a - 3 * b + np.array([0, 90, -200])[colour] + draw.normal(0, 60, ROWS)).round(1)
    return a, b, colour, two, three, price


def encoded(a, b, colour):
    numbers = np.stack([a, b], 1)
    return np.hstack([(numbers - numbers.mean(0)) / numbers.std(0), np.eye(3)[colour]])


def main():
    a, b, colour, two, three, price = table()
    assert list(np.argsort(-np.bincount(colour))) == [0, 1, 2]
    x = encoded(a, b, colour)
    exact = {"tol": 1e-10, "max_iter": 10000}
    binary = LogisticRegression(C=2 / (ROWS * DECAY), **exact).fit(x, two)
    several = LogisticRegression(C=1 / (ROWS * DECAY), **exact).fit(x, three)
    standard = (price - price.mean()) / price.std()
    ridge = Ridge(alpha=ROWS * DECAY / 2).fit(x, standard)
    rows = [f"{p},{q},{COLOURS[c]},{y},{k},{n}" for p, q, c, y, k, n in zip(a, b, colour, two, three, price)]
    values = {
        "written by": f"tools/reference_values_linear.py with scikit-learn {sklearn.__version__}",
        "weight_decay": DECAY,
        "table": "\n".join(["a,b,colour,two,three,price", *rows]) + "\n",
        # Weights of the numbers, then of the colours; the bias.
        "two": {"classes": list(binary.classes_), "weights": binary.coef_.tolist(), "bias": binary.intercept_.tolist()},
        "three": {"classes": list(several.classes_), "weights": several.coef_.tolist(), "bias": several.intercept_.tolist()},
        "price": {"weights": [ridge.coef_.tolist()], "bias": [float(ridge.intercept_)]},
    }
    Path("tests/e2e/linear_values.json").write_text(json.dumps(values, indent=1) + "\n")


main()
