"""Mixtures of several sources: their shares, changed while training runs, and comparing weightings."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from test_train import assert_same_run, letters, metric_lines, start, wait_for_step  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
RECIPE = """
[data]
train = {{ first = "{letters}/train", second = "{second}/train", other = "{digits}/train" }}
weights = {{ first = 0.6, second = 0.3, other = 0.1 }}
test = "{letters}/test"
[model]
layers = ["conv 4 3", "relu", "max-pool 4", "flatten", "linear {classes}"]
[train]
steps = 400
batch = 20
checkpoint_steps = 50
keep_checkpoints = 1000
optimizer = {{ kind = "sgd", lr = 0.02 }}
"""


@pytest.fixture(scope="module")
def recipe(binary, letters, tmp_path_factory):  # noqa: F811
    """Three sources; the third has classes of its own, X and Y, besides A."""
    folder = tmp_path_factory.mktemp("mixture")
    subprocess.run([binary, "letters", folder / "second", "--train", "200", "--test", "10", "--seed", "5"], check=True, capture_output=True)
    for number, name in enumerate("AXY"):
        target = folder / "third/train" / name
        target.mkdir(parents=True)
        for path in sorted((letters / "train" / "ABC"[number]).iterdir())[:15]:
            shutil.copy(path, target)
    path = folder / "mixture.toml"
    path.write_text(RECIPE.format(letters=letters, second=folder / "second", digits=folder / "third", classes=12))
    return path


def why(millrace, run, step):
    return json.loads(millrace("data", "why", run, "--step", step, "--json").stdout)["samples"]


def shares(samples):
    names = [sample["name"].split(":")[0] for sample in samples]
    return {name: names.count(name) / len(names) for name in ("first", "other", "second")}


def test_sources_are_drawn_by_their_weights_with_the_classes_of_all(millrace, recipe, tmp_path):
    samples = [sample for step in range(1, 31) for sample in why(millrace, recipe, step)]
    found = shares(samples)
    assert abs(found["first"] - 0.6) < 0.07 and abs(found["second"] - 0.3) < 0.07 and abs(found["other"] - 0.1) < 0.05
    assert {sample["class"] for sample in samples} == set("ABCDEFGHIJXY")
    # Each source goes through all of its samples before one comes again.
    other = [sample["index"] for sample in samples if sample["name"].startswith("other:")]
    assert len(set(other[:45])) == 45 if len(other) >= 45 else len(set(other)) == len(other)


def test_weights_change_while_it_runs_and_a_resume_replays_them(binary, millrace, recipe, tmp_path):
    run = tmp_path / "run"
    process = start(binary, "train", recipe, "train.steps=20000", "--out", run)
    wait_for_step(process, run, 60)
    text = millrace("ctl", run, "data.weights.first=0", "data.weights.second=0.5", "train.steps=20000").stdout
    assert "data.weights.first = 0" in text
    entries = [json.loads(line) for line in (run / "control.jsonl").read_text().splitlines()]
    at = entries[0]["step"]
    assert {"data.weights.first": 0, "data.weights.second": 0.5}.items() <= {e["key"]: e["value"] for e in entries}.items()
    wait_for_step(process, run, at + 20)
    error = millrace("ctl", run, "data.weights.third=1", code=1).stderr
    assert "is the weight of no source" in error
    error = millrace("ctl", run, "data.weights.second=0", "data.weights.other=0", code=1).stderr
    assert "all of data.weights are 0" in error
    millrace("ctl", run, f"train.steps={at + 2500}")
    process.kill()
    process.communicate()
    millrace("train", run, "--resume")
    # The same without a break: a run that has the journal from the beginning on.
    straight = tmp_path / "straight"
    straight.mkdir()
    shutil.copy(run / "control.jsonl", straight)
    millrace("train", recipe, "train.steps=20000", "--out", straight)
    assert_same_run(run, straight)
    before, after = why(millrace, run, at), [s for step in range(at + 1, at + 11) for s in why(millrace, run, step)]
    assert shares(before)["first"] > 0
    found = shares(after)
    assert found["first"] == 0 and abs(found["second"] - 5 / 6) < 0.1


@pytest.mark.parametrize(
    "change, message",
    [
        ("data.weights.first=-1", "must be from 0"),
        ("data.weights.frist=1", "is the weight of no source"),
        ("data.weights={first=1}", "has none for the source"),
        ("data.weights={first=0,second=0,other=0}", "all of data.weights are 0"),
        ("data.weights=label", "data.sample_weight"),
        ("data.train.a/b=x.tar", "has other characters"),
        ("data.train.new=nowhere.tar", "has none for the source 'new'"),
        ("data.stream=true", "is a folder, which is no stream"),
    ],
)
def test_wrong_weights_are_refused(millrace, recipe, tmp_path, change, message):
    extra = ["data.order=sequential"] if "stream" in change else []
    error = millrace("train", recipe, change, *extra, "--out", tmp_path / "run", code=1).stderr
    assert message in error, error


def test_one_source_instead_of_several(millrace, letters, recipe, tmp_path):  # noqa: F811
    millrace("train", recipe, f"data.train={letters}/train", "data.weights={}", "model.layers=[flatten, linear 10]",
             "train.steps=3", "--out", tmp_path / "run")
    assert len(metric_lines(tmp_path / "run")) >= 3


def test_the_example_compares_weightings(binary, tmp_path):
    environment = {**os.environ, "MILLRACE": str(binary), "OUT": "runs"}
    example = ROOT / "examples/mixture"
    subprocess.run([example / "sources.sh", "data/mixture", "400"], cwd=tmp_path, env=environment, check=True, capture_output=True)
    result = subprocess.run(
        [example / "compare.sh", example / "mixture.toml", "clean=1,scan=0", "clean=0.5,scan=0.5", "--", "train.steps=12",
         "model.kind=", "model.layers=[flatten, linear 10]"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["weighting", "accuracy", "%", "log-loss", "run"]
    rows = [line.split() for line in lines[1:]]
    assert {row[0] for row in rows} == {"clean=1,scan=0", "clean=0.5,scan=0.5"}
    assert float(rows[0][2]) <= float(rows[1][2]) and all((tmp_path / row[3] / "model.onnx").exists() for row in rows)
