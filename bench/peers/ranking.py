#!/usr/bin/env python3
"""Ranks with XGBoost's rank:ndcg: ranking.py TRAIN TEST SEED, LIBSVM rows with the sizes of queries beside
them (TRAIN.query). One JSON line a model with its scores of the test rows: as XGBoost is by default with 100
trees, and smaller steps with more and lesser trees, each on a part of the rows and columns.
"""
import json
import sys

import numpy as np
import xgboost

MODELS = {
    "default": (100, {}),
    "many": (300, {"eta": 0.05, "max_depth": 4, "subsample": 0.8, "colsample_bytree": 0.5}),
}


def read(path):
    rows = [line.split() for line in open(path)]
    width = 1 + max(int(pair.split(":")[0]) for row in rows for pair in row[1:])
    x = np.zeros((len(rows), width), np.float32)
    for i, row in enumerate(rows):
        for pair in row[1:]:
            index, value = pair.split(":")
            x[i, int(index)] = float(value)
    return x, [float(row[0]) for row in rows], [int(line) for line in open(f"{path}.query")]


def main():
    train, test, seed = sys.argv[1:]
    (x, y, sizes), (x_test, _, _) = read(train), read(test)
    wide = max(x.shape[1], x_test.shape[1])
    x, x_test = (np.pad(each, ((0, 0), (0, wide - each.shape[1]))) for each in (x, x_test))
    rows = xgboost.DMatrix(x, y)
    rows.set_group(sizes)
    for name, (trees, settings) in MODELS.items():
        model = xgboost.train({"objective": "rank:ndcg", "seed": int(seed), **settings}, rows, trees)
        scores = model.predict(xgboost.DMatrix(x_test))
        print(json.dumps({"model": name, "scores": [float(score) for score in scores]}))


main()
