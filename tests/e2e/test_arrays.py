"""Training on tables and on sounds."""

import json
import random

import pytest

RECIPE = """
[data]
train = "{train}"
test = "{test}"
samples = "table"
label = "kind"
[model]
kind = "table"
width = 16
[train]
epochs = 8
batch = 32
optimizer = {{ kind = "adamw", lr = 1e-2 }}
[eval]
metrics = ["accuracy", "log-loss"]
"""


@pytest.fixture
def table(tmp_path):
    """The class follows from a number and a category; some of both are missing."""
    random.seed(4)
    for name, rows in (("train", 600), ("test", 200)):
        with open(tmp_path / f"{name}.csv", "w") as file:
            file.write("size,colour,noise,kind\n")
            for _ in range(rows):
                size, colour = random.uniform(-9, 9), random.choice(["red", "green", "blue"])
                kind = "yes" if size > {"red": 3, "green": 0, "blue": -3}[colour] else "no"
                size = "" if random.random() < 0.02 else f"{size:.3f}"
                file.write(f"{size},{colour},{random.randrange(100)},{kind}\n")
        if name == "test":
            with open(tmp_path / "test.csv", "a") as file:
                file.write("1,pink,5,no\n")  # which training did not have
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.format(train=tmp_path / "train.csv", test=tmp_path / "test.csv"))
    return recipe


def last_test(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines() if "test_accuracy" in line][-1]


def test_a_table_is_learnt_evaluated_and_resumed(millrace, table, tmp_path):
    run = tmp_path / "run"
    millrace("train", table, "--out", run)
    result = json.loads(millrace("eval", run, "--json").stdout)
    assert result["accuracy"] > 0.9
    assert result["targets"] == 201
    # What it knows of the columns is in the checkpoint: the training data are not needed any more.
    (tmp_path / "train.csv").rename(tmp_path / "gone.csv")
    assert json.loads(millrace("eval", run, "--json").stdout)["accuracy"] == result["accuracy"]
    (tmp_path / "gone.csv").rename(tmp_path / "train.csv")
    # Stopped and resumed, the same to the last bit.
    parts, whole = tmp_path / "parts", tmp_path / "whole"
    changes = ("train.steps=40", "train.checkpoint_steps=20", "train.schedule.kind=constant")
    millrace("train", table, *changes, "--out", whole)
    millrace("train", table, *changes, "--out", parts)
    newest = sorted((parts / "checkpoints").iterdir())[-1]
    assert len(list((parts / "checkpoints").iterdir())) > 1
    newest.unlink()
    millrace("train", parts, "--resume")
    evaluated = [json.loads(millrace("eval", run, "--json").stdout) for run in (parts, whole)]
    assert evaluated[0]["log-loss"] == evaluated[1]["log-loss"]
    # With other data the columns mean something else.
    newest.unlink()
    with open(tmp_path / "train.csv", "a") as file:
        file.write("1,violet,2,no\n")
    assert "encoded in another way" in millrace("train", parts, "--resume", code=1).stderr


def test_recipes_of_tables_that_do_not_go_together(millrace, table):
    def refusal(*changes):
        return millrace("train", table, *changes, code=1).stderr

    assert "data.augment does not go with" in refusal('data.augment=["flip"]')
    assert "did you mean 'kind'" in refusal("data.label=kid")
    assert 'model.kind = "table" goes with' in refusal("model.kind=bag")
    assert "goes with data.samples" in refusal("data.samples=pictures", 'data.leave_out=["noise"]')
    assert "did you mean 'size'" in refusal('data.leave_out=["sise"]')


def test_spoken_digits_of_a_speaker_never_heard(millrace, data, tmp_path):
    run = tmp_path / "run"
    millrace("train", "examples/spoken-digits.toml", "train.epochs=2", "data.mels=20", "--out", run)
    result = json.loads(millrace("eval", run, "--json").stdout)
    assert result["targets"] == 500
    assert result["accuracy"] > 0.3
    assert "does not match data.label_pattern" in millrace(
        "train", "examples/spoken-digits.toml", "data.label_pattern=^x", "--out", tmp_path / "x", code=1
    ).stderr


def test_conditions_by_pattern(millrace, data):
    tar = data / "audio/spoken-digits.tar"
    assert millrace("data", "query", tar, "__key__ like '7_*_1?'", "--count").stdout == "50\n"
    assert millrace("data", "query", tar, "__key__ not like '7_*'", "--count").stdout == "2250\n"
    assert "like" in millrace("data", "query", tar, "__key__ like 3", code=1).stderr
