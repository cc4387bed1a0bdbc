"""Is the loss that is trained on a guide to the metric of the tests? Said at the end of a training where it
is not."""

import json
import random
import subprocess

import pytest

RECIPE = """
[data]
train = "train.csv"
test = "test.csv"
[output]
kind = "class"
column = "kind"
[train]
epochs = 8
batch = 32
optimizer = { kind = "sgd", lr = 1e-2 }
[eval]
metrics = ["log-loss", "accuracy"]
"""


@pytest.mark.parametrize("turned", [False, True])
def test_tests_that_go_the_other_way_are_noticed(binary, tmp_path, turned):
    draw = random.Random(1)
    for name in ("train", "test"):
        with open(tmp_path / f"{name}.csv", "w") as file:
            file.write("a,b,kind\n")
            for _ in range(320):
                a, b = draw.gauss(0, 1), draw.gauss(0, 1)
                other = turned and name == "test"
                file.write(f"{a:.3f},{b:.3f},{'yes' if (a + b > 0) != other else 'no'}\n")
    (tmp_path / "r.toml").write_text(RECIPE)
    said = subprocess.run([binary, "train", "r.toml", "--out", "run"], cwd=tmp_path, check=True, capture_output=True, text=True)
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    epochs = [line for line in lines if "train/loss" in line]
    assert len(epochs) == 8 and all("loss_rank_correlation" not in line for line in epochs[:-1])
    assert epochs[-1]["loss_rank_correlation"] == pytest.approx(-1 if turned else 1, abs=0.2)
    text = said.stdout + said.stderr
    assert ("says the opposite of test log-loss" in text) == turned
