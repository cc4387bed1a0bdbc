"""Models that are fitted to all samples at once, from the outside: the same verbs as for any other."""

import csv
import json
import random

import numpy as np
import onnxruntime
import pytest

KINDS = ["naive_bayes", "nearest_neighbours"]
NUMBERS = [kind for kind in KINDS if kind != "naive_bayes"]


def write_rows(path, count, seed):
    """Fruit by weight, hue and where it grows; a weight is missing now and then."""
    draw = random.Random(seed)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["weight", "hue", "grows", "price", "fruit"])
        for _ in range(count):
            kind = draw.randrange(3)
            weight = draw.gauss([150, 120, 8][kind], [20, 15, 2][kind])
            grows = ["tree", "tree", "bush"][kind] if draw.random() < 0.9 else "field"
            price = 0.01 * weight + [0.2, 0.5, 3][kind]
            rows.writerow(
                ["" if draw.random() < 0.05 else f"{weight:.2f}", f"{draw.gauss(kind, 0.7):.3f}", grows, f"{price:.3f}", ["apple", "lemon", "berry"][kind]]
            )


@pytest.fixture
def table(tmp_path):
    write_rows(tmp_path / "fruit.csv", 400, 1)
    write_rows(tmp_path / "more.csv", 150, 2)

    def write(kind, column="fruit", more=""):
        leave_out = "price" if column == "fruit" else "fruit"
        (tmp_path / "recipe.toml").write_text(
            f"""
[data]
train = "{tmp_path / "fruit.csv"}"
test = "{tmp_path / "more.csv"}"
[input]
leave_out = ["{leave_out}"]
[output]
column = "{column}"
[model]
kind = "{kind}"
{more}
"""
        )
        return tmp_path / "recipe.toml"

    return write


def logits(millrace, run, *arguments):
    lines = millrace("predict", run, *arguments, "--json").stdout.splitlines()
    return np.array([json.loads(line)["logits"] for line in lines])


def of_onnx(path, table, leave_out):
    session = onnxruntime.InferenceSession(path)
    with table.open() as file:
        rows = [row for row in csv.DictReader(file)]
    columns = ["weight", "hue"]
    feed = {"numbers": np.array([[float(row[c]) if row[c] else np.nan for c in columns] for row in rows])}
    feed["grows"] = np.array([[row["grows"]] for row in rows])
    return session.run(None, feed)


@pytest.mark.parametrize("kind", KINDS)
def test_classes_are_told_by_all_verbs(millrace, table, tmp_path, kind):
    run = tmp_path / "run"
    told = millrace("train", table(kind), "--out", run).stdout
    assert "fitted to 400 rows" in told or "round" in told
    result = json.loads(millrace("eval", run, "--json").stdout)
    assert result["accuracy"] > 0.9
    found = logits(millrace, run, tmp_path / "more.csv")
    exported = of_onnx(run / "model.onnx", tmp_path / "more.csv", "price")[0]
    assert np.allclose(found, exported, rtol=1e-4, atol=1e-4)
    # A finished run goes on to nothing, and says the same.
    millrace("train", run, "--resume")
    assert np.array_equal(found, logits(millrace, run, tmp_path / "more.csv"))
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert metrics[-1]["test/accuracy"] == result["accuracy"]
    millrace("calibrate", run)
    assert "accuracy" in millrace("diff", run, run).stdout


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_are_told(millrace, table, tmp_path, kind):
    run = tmp_path / "run"
    millrace("train", table(kind, "price"), "--out", run)
    assert json.loads(millrace("eval", run, "--json").stdout)["r2"] > 0.8


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_about_steps_does_not_apply(millrace, table, tmp_path, kind):
    recipe = table(kind, more="[train]\nepochs = 3\nbatch = 'auto'\n")
    for verb in ("lr-find", "estimate", "profile"):
        error = millrace(verb, recipe, code=1).stderr
        assert "fitted to all samples at once" in error, error
    told = millrace("train", recipe, "--out", tmp_path / "run").stdout
    assert "train.epochs, train.batch are not used" in told
    checks = json.loads(millrace("check", recipe, "--json").stdout)
    assert {each["verdict"] for each in checks["checks"] if each["group"] != "data"} == {"does-not-apply"}


def test_what_a_fitted_model_cannot_be_given_is_refused(millrace, table, tmp_path):
    assert "not numbers" in millrace("train", table("naive_bayes", "price"), "--out", tmp_path / "a", code=1).stderr
    stream = millrace("train", table("nearest_neighbours"), "data.stream=true", "--out", tmp_path / "b", code=1).stderr
    assert "data.stream" in stream and "at once" in stream
    unknown = millrace("train", table("naive_bayes"), "model.neighbours=3", "--out", tmp_path / "c", code=1).stderr
    assert "nearest_neighbours" in unknown
    assert not (tmp_path / "a").exists() and not (tmp_path / "b").exists()
