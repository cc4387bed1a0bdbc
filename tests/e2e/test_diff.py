"""Comparing runs, several seeds, and where a run comes from (docs/diff.md)."""

import json
import re
import shlex
import signal

import pytest
from conftest import write_texts
from test_docs import commands
from test_train import assert_same_run, letters, recipe, start, wait_for_step  # noqa: F401


def diff(millrace, *arguments, **how):
    return json.loads(millrace("diff", *arguments, "--json", **how).stdout)


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    """A folder with messages.tsv and a recipe for it."""
    folder = tmp_path_factory.mktemp("messages")
    write_texts(folder)
    (folder / "messages.toml").write_text(
        '[data]\ntrain = "messages.tsv"\ntest_share = 0.3\n[output]\ncolumn = "label"\n'
        '[model]\nkind = "bag"\nwidth = 8\n[train]\nepochs = 2\nbatch = 32\n'
    )
    return folder


def test_the_commands_of_the_page(millrace, messages):
    lines = commands("docs/diff.md")
    assert [shlex.split(line)[1] for line in lines] == ["train", "train", "diff", "lineage"]
    said = [millrace(*shlex.split(line)[1:], cwd=messages).stdout for line in lines]
    assert re.search(r"accuracy +\S+ ± \S+ % over 5 seeds", said[0])
    assert "model.width  8" in said[2] and re.search(r"accuracy .*(better|worse|noise|the same)", said[2])
    assert "--seeds 5 --out runs/after" in said[3] and re.search(r"xxh3 \w{32} of all 630 samples", said[3])
    for run in ("before", "after"):
        seeds = sorted((messages / "runs" / run).iterdir())
        assert [seed.name for seed in seeds] == [f"seed-{i}" for i in range(1, 6)]
        assert [int(re.search(r"^seed = (\d+)", (seed / "recipe.toml").read_text(), re.M)[1]) for seed in seeds] == [1, 2, 3, 4, 5]


def test_a_model_that_is_better_is_told_from_noise(millrace, messages):
    millrace("train", "messages.toml", "train.epochs=40", "train.optimizer.lr=0.03", "--seeds", 3, "--out", "runs/long", cwd=messages)
    (pair,) = diff(millrace, "runs/before", "runs/long", cwd=messages)["pairs"]
    assert {each["key"] for each in pair["recipe"]} == {"train.epochs", "train.optimizer.lr"}
    accuracy = next(each for each in pair["metrics"] if each["metric"] == "accuracy")
    assert accuracy["verdict"] == "better" and accuracy["rows"][0] > 0 and accuracy["seeds"]["interval"][0] > 0
    assert "mcnemar" not in accuracy
    (loss,) = [each for each in pair["metrics"] if each["metric"] == "log-loss"]
    assert loss["verdict"] == "better" and loss["difference"] < 0
    # Two seeds of one recipe differ by nothing that would show again.
    (pair,) = diff(millrace, "runs/long/seed-1", "runs/long/seed-2", cwd=messages)["pairs"]
    assert [each["key"] for each in pair["recipe"]] == ["train.seed"]
    accuracy = next(each for each in pair["metrics"] if each["metric"] == "accuracy")
    assert accuracy["verdict"] in ("noise", "the same") and accuracy["mcnemar"]["p"] > 0.05


def test_the_values_are_those_of_eval(millrace, messages):
    values = json.loads(millrace("eval", "runs/before/seed-1", "--json", cwd=messages).stdout)
    assert "runs/before holds runs of several seeds: name one" in millrace("eval", "runs/before", cwd=messages, code=1).stderr
    (pair,) = diff(millrace, "runs/before/seed-1", "runs/after/seed-1", cwd=messages)["pairs"]
    for metric in pair["metrics"]:
        assert metric["first"] == values[metric["metric"]]
    # On data of one's own.
    (pair,) = diff(millrace, "runs/before/seed-1", "runs/after/seed-1", "--data", "messages.tsv", cwd=messages)["pairs"]
    values = json.loads(millrace("eval", "runs/after/seed-1", "messages.tsv", "--json", cwd=messages).stdout)
    assert pair["metrics"][0]["second"] == values[pair["metrics"][0]["metric"]]


def test_rows_that_differ_are_not_compared(millrace, messages):
    lines = (messages / "messages.tsv").read_text().splitlines(keepends=True)
    (messages / "other.tsv").write_text("".join(lines[:600]))
    millrace("train", "messages.toml", "data.train=other.tsv", "--out", "runs/other", cwd=messages)
    said = millrace("diff", "runs/before/seed-1", "runs/other", cwd=messages, code=1).stderr
    assert "tested on other rows" in said and "--data DATA" in said
    (pair,) = diff(millrace, "runs/before/seed-1", "runs/other", "--data", "messages.tsv", cwd=messages)["pairs"]
    origin = {each["key"]: each for each in pair["origin"]}
    assert {"train data", "train samples", "test data"} <= origin.keys()
    assert millrace("diff", "runs/other", cwd=messages, code=1).stderr.count("compares two runs") == 1
    assert "did you mean" in millrace("diff", "runs/other", "runs/othr", cwd=messages, code=1).stderr


def test_runs_that_still_learn_are_named(millrace, messages):
    millrace("train", "messages.toml", "train.epochs=4", "train.optimizer.lr=3e-4", "--out", "runs/slow", cwd=messages)
    said = diff(millrace, "runs/slow", "runs/long/seed-1", cwd=messages)["doubts"]
    assert any(line.startswith("runs/slow still learned") for line in said)
    assert not any(line.startswith("runs/long") for line in said)


def test_going_on_is_noted_in_the_lineage(millrace, messages):
    millrace("train", "messages.toml", "--out", "runs/longer", cwd=messages)
    millrace("train", "runs/longer", "--resume", "train.epochs=3", cwd=messages)
    told = json.loads(millrace("lineage", "runs/longer", "--json", cwd=messages).stdout)
    first, second = told["origins"]
    assert first["step"] == 0 and second["step"] > 0 and "--resume" in second["command"]
    assert first["data"] == second["data"] and first["program"] == second["program"]
    assert [change["key"] for change in told["changes"]] == ["train.epochs"]
    assert "gone on with" in millrace("lineage", "runs/longer", cwd=messages).stdout
    # What was changed on the way is a difference of the recipes.
    (pair,) = diff(millrace, "runs/before/seed-1", "runs/longer", cwd=messages)["pairs"]
    assert any(each["key"].startswith("train.epochs, from step") for each in pair["recipe"])
    # Runs of before there was such a file.
    (messages / "runs/longer/origin.jsonl").unlink()
    assert "an older Millrace" in millrace("lineage", "runs/longer", cwd=messages).stdout
    (messages / "runs/longer/origin.jsonl").write_text("{}\n")
    assert "origin.jsonl:1" in millrace("lineage", "runs/longer", cwd=messages, code=1).stderr


def test_seeds_go_on_where_they_were_stopped(binary, recipe, millrace, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    change = "train.epochs=30"
    millrace("train", recipe, change, "--seeds", 2, "--out", whole)
    process = start(binary, "train", recipe, change, "--seeds", "2", "--out", cut)
    wait_for_step(process, cut / "seed-2", 8)
    process.send_signal(signal.SIGINT)
    text = process.communicate(timeout=60)[0]
    assert process.returncode == 130 and "stopped in seed 2 of 2" in text
    again = shlex.split(re.search(r"^  millrace (train .*--resume.*)", text, re.M)[1])
    assert "mean" in json.loads(millrace(*again, "--json").stdout)["test"]["accuracy"]
    for seed in ("seed-1", "seed-2"):
        assert_same_run(whole / seed, cut / seed)
    assert "--resume goes on" in millrace("train", recipe, "--seeds", 2, "--out", whole, code=1).stderr
    assert "from 2 to 1000" in millrace("train", recipe, "--seeds", 1, code=1).stderr
