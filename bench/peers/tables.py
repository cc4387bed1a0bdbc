#!/usr/bin/env python3
"""Learns a column of a table with scikit-learn: tables.py TRAIN.csv TEST.csv TARGET SEED. One JSON line a
model, with its accuracy on the test rows, or its mean absolute error and R² where TARGET holds more than
twenty different numbers.

Numbers are standardised and what is missing is their mean, texts are one-hot, for the linear models;
HistGradientBoosting takes numbers as they are and texts as categories. All else is as scikit-learn has it by
default.
"""
import csv
import json
import math
import sys

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, mean_absolute_error, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

MISSING = ("", "NA", "?", "null", "nan")


def number(text):
    return math.nan if text in MISSING else float(text)


def is_number(text):
    try:
        number(text)
        return True
    except ValueError:
        return False


def main():
    train_path, test_path, target, seed = sys.argv[1:]
    sets = []
    for path in (train_path, test_path):
        with open(path, newline="") as file:
            sets.append(list(csv.DictReader(file)))
    names = [name for name in sets[0][0] if name != target]
    numeric = [name for name in names if all(is_number(row[name]) for rows in sets for row in rows)]
    texts = [name for name in names if name not in numeric]
    order = numeric + texts
    x = [np.array([[number(row[n]) if n in numeric else row[n] for n in order] for row in rows], dtype=object) for rows in sets]
    y = [[row[target] for row in rows] for rows in sets]
    amounts = all(map(is_number, y[0])) and len(set(y[0])) > 20
    if amounts:
        y = [np.array(each, dtype=float) for each in y]

    numbers, categories = list(range(len(numeric))), list(range(len(numeric), len(order)))
    linear = ColumnTransformer([("numbers", make_pipeline(SimpleImputer(), StandardScaler()), numbers),
                                ("texts", OneHotEncoder(handle_unknown="ignore"), categories)])
    codes = ColumnTransformer([("numbers", "passthrough", numbers),
                               ("texts", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan), categories)])
    boosting = (HistGradientBoostingRegressor if amounts else HistGradientBoostingClassifier)(
        categorical_features=categories, random_state=int(seed))
    models = {"linear": make_pipeline(linear, Ridge() if amounts else LogisticRegression(max_iter=10_000)),
              "boosting": make_pipeline(codes, boosting)}
    for name, model in models.items():
        told = model.fit(x[0], y[0]).predict(x[1])
        figures = [mean_absolute_error(y[1], told), r2_score(y[1], told)] if amounts else [accuracy_score(y[1], told)]
        print(json.dumps({"model": name, "figures": figures}), flush=True)


main()
