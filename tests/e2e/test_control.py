"""Changing a training while it runs, and what it says of its data: bad samples, and whether they were the
limit."""
import json
import re
import shutil
import signal
import subprocess

import numpy as np
import pytest
from PIL import Image
from test_train import assert_same_run, letters, metric_lines, recipe, start, wait_for_step, whole_lines  # noqa: F401

MANY = "train.epochs=400"  # 10,000 steps: a machine that is fast must not be through before the change


def journal(run):
    path = run / "control.jsonl"
    return whole_lines(path) if path.exists() else []


def rates(run):
    return {line["step"]: line["lr"] for line in metric_lines(run) if "lr" in line}


def finish(process):
    text = process.communicate(timeout=240)[0]
    assert process.returncode == 0, text
    return text


@pytest.fixture(scope="module")
def changed(binary, recipe, millrace_module, tmp_path_factory):  # noqa: F811
    """A run that was made longer and slower while it ran, killed after that, and resumed."""
    run = tmp_path_factory.mktemp("runs") / "changed"
    process = start(binary, "train", recipe, MANY, "train.keep_checkpoints=1000", "--out", run)
    wait_for_step(process, run, 30)
    text = millrace_module("ctl", run, "train.lr_scale=0.5", "train.steps=8000", "train.checkpoint_steps=100")
    assert "train.lr_scale = 0.5" in text
    at = journal(run)[0]["step"]
    wait_for_step(process, run, at + 5)
    process.kill()
    process.communicate()
    assert len(metric_lines(run)) < 8000
    text = millrace_module("train", run, "--resume")
    assert f"from step {at + 1} on train.lr_scale = 0.5" in text
    return run


@pytest.fixture(scope="module")
def millrace_module(binary):
    def run(*arguments):
        result = subprocess.run([binary, *map(str, arguments)], capture_output=True, text=True, timeout=240)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    return run


def test_a_change_is_made_at_a_step_and_noted(changed):
    notes = journal(changed)
    assert [(n["key"], n["value"]) for n in notes] == [("train.checkpoint_steps", 100), ("train.lr_scale", 0.5), ("train.steps", 8000)]
    assert len({n["step"] for n in notes}) == 1 and all(set(n) == {"step", "key", "value", "time"} for n in notes)
    at = notes[0]["step"]
    lr = rates(changed)
    assert sorted(lr) == list(range(1, 8001))
    # The schedule (warm-up of 5 steps, then a cosine) of 10,000 steps up to the change, of 8,000 steps and
    # half of it from then on.
    cosine = lambda step, total: 0.05 * 0.5 * (1 + np.cos(np.pi * (step - 1) / total))
    assert lr[at] == pytest.approx(cosine(at, 10000), rel=1e-6)
    assert lr[at + 1] == pytest.approx(0.5 * cosine(at + 1, 8000), rel=1e-6)
    assert lr[8000] == pytest.approx(0.5 * cosine(8000, 8000), abs=1e-6)
    every_hundredth = {s for s in range(at + 1, 8001) if s % 100 == 0}
    assert every_hundredth <= {int(p.name[5:13]) for p in (changed / "checkpoints").iterdir()}


def test_killed_and_resumed_is_the_run_that_went_through_with_the_journal(changed, recipe, millrace, tmp_path):  # noqa: F811
    through = tmp_path / "through"
    through.mkdir()
    shutil.copy(changed / "control.jsonl", through)
    millrace("train", recipe, MANY, "train.keep_checkpoints=1000", "--out", through)
    assert_same_run(changed, through)
    assert journal(changed) == journal(through)


@pytest.mark.parametrize("before", [True, False])
def test_a_resume_from_before_or_after_the_change_replays_it(changed, millrace, tmp_path, before):
    run = tmp_path / "run"
    shutil.copytree(changed, run)
    at = journal(run)[0]["step"]
    for path in (run / "checkpoints").iterdir():
        if (int(path.name[5:13]) > at - 1) if before else (int(path.name[5:13]) > at + 200):
            path.unlink()
    (run / "model.onnx").unlink()
    millrace("train", run, "--resume")
    assert_same_run(changed, run)


def test_what_cannot_change_is_refused(binary, recipe, millrace, tmp_path):  # noqa: F811
    run = tmp_path / "run"
    process = start(binary, "train", recipe, "train.epochs=4000", "--out", run)  # ended by SIGINT below
    wait_for_step(process, run, 3)
    error = millrace("ctl", run, "train.batch=10", code=1).stderr
    assert "train.batch cannot change" in error and "train.lr_scale" in error
    assert "did you mean" in millrace("ctl", run, "train.lr_scal=1", code=1).stderr
    assert "from 0 to" in millrace("ctl", run, "train.lr_scale=-2", code=1).stderr
    assert "is done already" in millrace("ctl", run, "train.steps=2", code=1).stderr
    assert "train.epochs must be more than 0" in millrace("ctl", run, "train.epochs=0", code=1).stderr
    shown = millrace("ctl", run).stdout
    assert ": training, step " in shown and "from step" not in shown
    state = json.loads(millrace("ctl", run, "--json").stdout)
    assert state["state"] == "training" and state["step"] >= 3 and state["loss"] > 0 and state["journal"] == []

    # One that does not come to its next step: the request is withdrawn.
    process.send_signal(signal.SIGSTOP)
    assert "has not taken" in millrace("ctl", run, "train.lr_scale=3", "--wait", "0.5", code=1).stderr
    process.send_signal(signal.SIGCONT)
    text = millrace("ctl", run, "train.steps=90000").stdout
    assert "train.steps" in text
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert 3 not in [n["value"] for n in journal(run)] and not list((run / "control").iterdir())
    error = millrace("ctl", run, "train.lr_scale=0.5", code=1).stderr
    assert "no training runs in" in error and "--resume" in error
    shown = millrace("ctl", run).stdout
    assert ": stopped, step " in shown and "train.steps = " in shown
    assert "run folder" in millrace("ctl", tmp_path / "none", code=1).stderr


def damaged(letters, folder, count, split="train"):  # noqa: F811
    shutil.copytree(letters, folder)
    pictures = sorted((folder / split / "C").iterdir())[:count]
    for picture in pictures:
        picture.write_bytes(b"no picture at all")
    return pictures


@pytest.mark.parametrize("cache", [2048, 0])
def test_too_many_bad_samples_stop_the_training_with_a_list(millrace, recipe, letters, tmp_path, cache):  # noqa: F811
    bad = damaged(letters, tmp_path / "data", 12)
    run = tmp_path / "run"
    train = ["train", recipe, f"data.train={tmp_path}/data/train", "train.epochs=2", f"data.cache_mb={cache}"]
    error = millrace(*train, "--out", run, code=1).stderr
    assert "more than data.most_bad = 0.01 allows" in error and "and 7 more" in error or "more\n" in error
    assert error.count("no picture at all") == 0 and "bad_samples.jsonl" in error and error.count("data/train/C/") == 5
    assert list((run / "checkpoints").iterdir())
    listed = [json.loads(line) for line in (run / "bad_samples.jsonl").read_text().splitlines()]
    assert 9 <= len(listed) <= 12 and {line["set"] for line in listed} == {"train"}
    assert {line["name"] for line in listed} <= {str(picture) for picture in bad} and all(line["why"] for line in listed)

    # Stopped again as it is; with a higher limit it goes on, and each sample stays listed once.
    if cache:
        assert "data.most_bad" in millrace("train", run, "--resume", code=1).stderr
    text = (run / "recipe.toml").read_text()
    assert "most_bad = 0.01" in text
    (run / "recipe.toml").write_text(text.replace("most_bad = 0.01", "most_bad = 12"))
    millrace("train", run, "--resume")
    listed = [json.loads(line) for line in (run / "bad_samples.jsonl").read_text().splitlines()]
    assert sorted(line["name"] for line in listed) == [str(picture) for picture in bad]
    millrace(*train, "data.most_bad=0.1", "--out", tmp_path / "borne")
    assert_same_run(run, tmp_path / "borne")


def test_too_many_bad_samples_of_a_test_set(millrace, recipe, letters, tmp_path):  # noqa: F811
    damaged(letters, tmp_path / "data", 3, "test")
    run = tmp_path / "run"
    train = ["train", recipe, f"data.test={tmp_path}/data/test", "train.steps=30"]
    assert "data.most_bad = 2 allows" in millrace(*train, "data.most_bad=2", "--out", run, code=1).stderr
    assert [json.loads(line)["set"] for line in (run / "bad_samples.jsonl").read_text().splitlines()] == ["test"] * 3
    error = millrace("eval", run, code=1).stderr
    assert "3 of the 100 samples" in error and "data.most_bad = 2" in error
    millrace(*train, "--out", tmp_path / "borne")  # a few never stop it
    assert json.loads(millrace("eval", tmp_path / "borne", "--json").stdout)["targets"] == 97


def test_the_data_is_named_where_it_is_the_limit(millrace, letters, tmp_path):  # noqa: F811
    """Large pictures for a tiny model: decoding binds, and the figures agree with each other."""
    random = np.random.default_rng(1)
    for c in "AB":
        (tmp_path / "data" / c).mkdir(parents=True)
        for n in range(30):
            noise = random.integers(0, 256, (480, 640, 3), dtype=np.uint8)
            Image.fromarray(noise).save(tmp_path / "data" / c / f"{n}.jpg", quality=90)
    (tmp_path / "r.toml").write_text(f"""
[data]
train = "{tmp_path}/data"
[input]
augment = ["random-resized-crop 16"]
[model]
layers = ["flatten", "linear 2"]
[train]
epochs = 4
batch = 4
optimizer = {{ kind = "sgd", lr = 0.1, momentum = 0.9 }}
""")
    text = millrace("train", tmp_path / "r.toml", "--out", tmp_path / "run").stdout
    lines = [line for line in text.splitlines() if line.startswith("data: ")]
    assert len(lines) == 5 and "over all epochs" in lines[-1]
    # On a machine that other programs keep busy, that is what is said.
    assert "the model could take" in lines[-1], lines
    assert ("decode-bound at" in lines[-1] and re.search(r"--resize 18 would give about \+\d+ %", lines[-1])) or "short of CPUs at" in lines[-1], lines
    epochs = [json.loads(l) for l in (tmp_path / "run/metrics.jsonl").read_text().splitlines() if "train/loss" in l]
    assert all(0 < e["seconds_waiting"] <= e["seconds"] and e["seconds_loading_a_sample"] > 0 for e in epochs)
    profile = millrace("profile", tmp_path / "r.toml", "--steps", "5").stdout
    assert "data: decode-bound at" in profile or "data: short of CPUs at" in profile
    profile = json.loads(millrace("profile", tmp_path / "r.toml", "--steps", "5", "--json").stdout)
    assert profile["data"].startswith(("data: decode-bound", "data: short of CPUs"))

    # A model that takes long over small pictures: hardly any waiting.
    text = millrace(
        "train", tmp_path / "r.toml", f"data.train={letters}/train", "input.augment=[]", "data.cache_mb=0", "train.batch=50",
        "model.layers=[conv 64 3, relu, conv 64 3, relu, flatten, linear 10]", "--out", tmp_path / "slow").stdout
    assert ("data: the model waited" in text or "data: short of CPUs" in text) and "of CPU each" in text
    assert "decode-bound" not in text
