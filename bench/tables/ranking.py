"""Ranking beside XGBoost's rank:ndcg on the same queries: NDCG@10 on queries that were not seen."""
import json
import math
import statistics
import tempfile
from pathlib import Path

from measure import MILLRACE, data, output, peers

NEEDS = ["xgboost", "ranking/rank.train", "ranking/rank.test"]
MINUTES = 5
SEEDS = (1, 2, 3)
LOSSES = ("lambdarank", "list-softmax", "query-rmse", "pair-logit")


def ndcg(scores, relevance, sizes, k=10):
    """With gains 2^relevance − 1, the mean over queries with a relevant row."""
    values, begin = [], 0
    for size in sizes:
        own = sorted(zip(scores[begin : begin + size], relevance[begin : begin + size]), key=lambda row: -row[0])
        begin += size
        gains = [2**grade - 1 for _, grade in own]
        best = sum(gain / math.log2(place + 2) for place, gain in enumerate(sorted(gains, reverse=True)[:k]))
        if best > 0:
            values.append(sum(gain / math.log2(place + 2) for place, gain in enumerate(gains[:k])) / best)
    return statistics.mean(values)


def table():
    train, test = data("ranking/rank.train"), data("ranking/rank.test")
    relevance = [float(line.split()[0]) for line in open(test)]
    sizes = [int(line) for line in open(f"{test}.query")]
    figures = {}
    for seed in SEEDS:
        for loss in LOSSES:
            with tempfile.TemporaryDirectory() as folder:
                run = Path(folder) / "run"
                output(MILLRACE, "train", "examples/ranking.toml", f"output.loss={loss}", f"train.seed={seed}", "--out", run)
                found = json.loads(output(MILLRACE, "eval", run, "--json"))
                figures.setdefault(f"Millrace, `{loss}`", []).append(found["ndcg-10"])
        for line in peers("ranking.py", train, test, seed):
            name = {"default": "XGBoost rank:ndcg, 100 trees as by default", "many": "XGBoost rank:ndcg, 300 trees of depth 4, rate 0.05"}
            figures.setdefault(name[line["model"]], []).append(ndcg(line["scores"], relevance, sizes))
    rows = [["", "NDCG@10, seeds 1, 2, 3", "mean"]]
    for name, values in figures.items():
        rows.append([name, ", ".join(f"{value:.3f}" for value in values), f"{statistics.mean(values):.4f}"])
    return rows
