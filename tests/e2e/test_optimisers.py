"""Optimisers, schedules, averages of weights, early stopping, lr-find and batches by measuring: from a
recipe, and resumed to the same bits."""

import json
import re
import shutil
import xml.etree.ElementTree as ET

import numpy as np
import onnxruntime
import pytest
from safetensors import safe_open
from test_train import assert_same_run, letters, metric_lines, recipe  # noqa: F401

PLAIN = ["train.lookahead=0", "train.freeze=[]", "train.schedule=constant", "train.keep_checkpoints=100"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """400 rows whose class depends on two of three numbers."""
    folder = tmp_path_factory.mktemp("table")
    draw = np.random.default_rng(3)
    x = draw.normal(size=(400, 3))
    rows = [f"{a:.3f},{b:.3f},{c:.3f},{'yes' if a - b + 0.3 * n > 0 else 'no'}" for (a, b, c), n in zip(x, draw.normal(size=400))]
    (folder / "rows.csv").write_text("\n".join(["a,b,c,answer", *rows]) + "\n")
    path = folder / "table.toml"
    path.write_text(
        f'[data]\ntrain = "{folder}/rows.csv"\ntest_share = 0.25\n[output]\ncolumn = "answer"\n'
        "[model]\nkind = \"mlp\"\n[train]\nepochs = 4\nbatch = 30\nkeep_checkpoints = 100\n"
        '[eval]\nmetrics = ["accuracy", "log-loss"]\n'
    )
    return path


def cut_back(run, step):
    """As a kill after that step would have left it."""
    for path in (run / "checkpoints").glob("step-*"):
        if int(path.stem[5:]) > step:
            path.unlink()
    (run / "model.onnx").unlink()


def check_resumed(millrace, recipe, tmp_path, *words, step):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    text = millrace("train", recipe, *words, "--out", whole).stdout
    shutil.copytree(whole, parts)
    cut_back(parts, step)
    millrace("train", parts, "--resume")
    assert_same_run(whole, parts)
    return whole, text


def last_test(run):
    return [line for line in metric_lines(run) if "test/log-loss" in line][-1]


def rates(run):
    return [line["lr"] for line in metric_lines(run) if "lr" in line]


@pytest.mark.parametrize("kind", ["rmsprop", "nadam", "radam", "lion", "lamb", "adafactor", "muon", "sam"])
def test_an_optimiser_learns_verifies_and_resumes_exactly(millrace, table, tmp_path, kind):
    words = [f"train.optimizer.kind={kind}", "train.optimizer.weight_decay=0.01", "train.verify=7", "train.checkpoint_steps=6"]
    words += ["train.optimizer.lr=0.003"] if kind == "lion" else ["train.optimizer.lr=0.02"]
    if kind == "rmsprop":
        words += ["train.optimizer.momentum=0.5", "train.optimizer.centred=true"]
    run, _ = check_resumed(millrace, table, tmp_path, *words, step=18)
    assert last_test(run)["test/accuracy"] > 0.8


def test_a_plateau_lowers_the_rate_and_remembers_it(millrace, table, tmp_path):
    words = ["train.schedule={kind=plateau, metric=accuracy, patience=0, factor=0.5, threshold=0.5}", "train.epochs=6", "train.optimizer.lr=0.01"]
    run, text = check_resumed(millrace, table, tmp_path, *words, step=30)
    # Nothing is better by half: after the first test each of them lowers the rate.
    epochs = np.reshape(rates(run), (6, -1))
    assert np.allclose(epochs, 0.01 * np.array([1, 1, 0.5, 0.25, 0.125, 0.0625])[:, None])
    assert "the rate is 0.5 of train.optimizer.lr: accuracy has not improved" in text
    error = millrace("train", table, "train.schedule={kind=plateau, metric=mae}", "--out", tmp_path / "no", code=1).stderr
    assert 'train.schedule.metric = "mae" is none of eval.metrics' in error


def test_training_ends_early_and_stays_ended(millrace, table, tmp_path):
    words = ["train.keep_best=accuracy", "train.early_stopping=2", "train.epochs=40", "train.optimizer.lr=0.02"]
    run, text = check_resumed(millrace, table, tmp_path, *words, step=25)
    done, of, best = map(int, re.search(r"ends with step (\d+) of (\d+): accuracy has not .* best at step (\d+)", text).groups())
    assert done < of and done - best == 2 * of // 40
    tested = {line["step"]: line["test/accuracy"] for line in metric_lines(run) if "test/accuracy" in line}
    assert max(tested.values()) == tested[best] and done == max(tested)
    # Who asks for more patience gets it.
    assert "ends with step" in millrace("train", run, "--resume").stdout
    more = millrace("train", run, "--resume", "train.early_stopping=3").stdout
    assert f"from step {done + 1} on train.early_stopping = 3" in more and len(rates(run)) > done
    error = millrace("train", table, "train.early_stopping=2", "--out", tmp_path / "no", code=1).stderr
    assert "train.early_stopping = 2 goes by the metric of train.keep_best, which is not set" in error


@pytest.mark.parametrize("average", ["ema=0.9", "swa=0.3"])
def test_averages_are_what_is_tested_predicted_and_exported(millrace, recipe, letters, tmp_path, average):
    run, _ = check_resumed(millrace, recipe, tmp_path, *PLAIN, f"train.{average}", step=49)
    measured = json.loads(millrace("eval", run, "--json").stdout)
    assert measured["log-loss"] == last_test(run)["test/log-loss"]
    plain = tmp_path / "plain"
    millrace("train", recipe, *PLAIN, "--out", plain)
    assert [line["loss"] for line in metric_lines(plain) if "lr" in line] == [line["loss"] for line in metric_lines(run) if "lr" in line]
    assert last_test(plain)["test/log-loss"] != measured["log-loss"]
    # The weights go on as if there were no average.
    newest = sorted((run / "checkpoints").glob("step-*"))[-1]
    prefix = "optimizer.ema." if "ema" in average else "average."
    with safe_open(newest, "np") as a, safe_open(plain / "checkpoints" / newest.name, "np") as b:
        name = "6.weight"
        assert np.array_equal(a.get_tensor("model." + name), b.get_tensor("model." + name))
        assert not np.array_equal(a.get_tensor("model." + name), a.get_tensor(prefix + name))
        mean = a.get_tensor(prefix + name)
    if "swa" in average:
        # Of 75 steps those from the 23rd on, at the ends of epochs.
        ends = []
        for step in (25, 50, 75):
            with safe_open(plain / "checkpoints" / f"step-{step:08}.safetensors", "np") as b:
                ends.append(b.get_tensor("model." + name))
        assert np.allclose(mean, np.mean(ends, axis=0), atol=1e-6)
    graph = onnxruntime.InferenceSession(run / "model.onnx")
    again = tmp_path / "again.onnx"
    millrace("export", run, again)
    assert again.read_bytes() == (run / "model.onnx").read_bytes() and graph.get_inputs()
    error = millrace("train", recipe, "train.ema=0.9", "train.swa=0.5", "--out", tmp_path / "no", code=1).stderr
    assert "train.ema and train.swa both average the weights" in error


def test_rates_by_name_and_depth(millrace, recipe, tmp_path):
    words = [*PLAIN, "train.rates=[6.* 0.000001]", "train.layer_decay=0.5", "train.optimizer.weight_decay=0", "train.steps=5"]
    millrace("train", recipe, *words, "--out", tmp_path / "run")
    first, *_, last = sorted((tmp_path / "run/checkpoints").glob("step-*"))
    with safe_open(first, "np") as a, safe_open(last, "np") as b:
        moved = {n: np.abs(a.get_tensor(n) - b.get_tensor(n)).max() for n in ("model.6.weight", "model.0.weight")}
    assert moved["model.6.weight"] < 1e-5 < 1e-4 < moved["model.0.weight"]
    error = millrace("train", recipe, *PLAIN, "train.rates=[7.* 0.1]", "--out", tmp_path / "no", code=1).stderr
    assert "train.rates: no parameter is called '7.*'" in error
    error = millrace("train", recipe, "train.rates=[7.*]", "--out", tmp_path / "no", code=1).stderr
    assert "is not a pattern of names and the factor of their rate" in error


def test_stochastic_depth_trains_resumes_and_is_off_in_evaluation(millrace, letters, tmp_path):
    path = tmp_path / "deep.toml"
    path.write_text(
        f'[data]\ntrain = "{letters}/train"\ntest = "{letters}/test"\n[model]\nkind = "resnet18_cifar"\ndrop_path = 0.5\n'
        "[train]\nsteps = 4\nbatch = 16\ncheckpoint_steps = 2\nkeep_checkpoints = 9\n"
    )
    run, _ = check_resumed(millrace, path, tmp_path, step=2)
    results = [json.loads(millrace("eval", run, "--json").stdout)["accuracy"] for _ in range(2)]
    assert results[0] == results[1] == [line for line in metric_lines(run) if "test/accuracy" in line][-1]["test/accuracy"]


def test_lr_find_suggests_a_rate_that_learns_and_leaves_nothing(millrace, table, tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    text = millrace("lr-find", table, "train.optimizer=sgd", cwd=folder).stdout
    rate = float(re.search(r"train\.optimizer\.lr=(\S+)", text)[1])
    assert "*" in text and "1e-3" in text and not list(folder.iterdir())
    found = json.loads(millrace("lr-find", table, "train.optimizer=sgd", "--json", "--svg", folder / "rates.svg").stdout)
    assert found["suggested"] == pytest.approx(rate, rel=0.05) and len(found["losses"]) == len(found["rates"]) <= 100
    assert 1e-4 < rate < 5 and (found["diverged"] is None or rate <= found["diverged"] / 9.9)
    drawn = list(ET.parse(folder / "rates.svg").getroot().iter())
    assert drawn[0].tag.endswith("svg") and sum(each.tag.endswith("circle") for each in drawn) == len(found["losses"])
    (line,) = [each.attrib["points"].split() for each in drawn if each.tag.endswith("polyline")]
    places = [float(point.split(",")[0]) for point in line]
    assert 10 < len(line) <= len(found["losses"]) and places == sorted(places)
    assert [p.name for p in folder.iterdir()] == ["rates.svg"]
    millrace("train", table, "train.optimizer=sgd", f"train.optimizer.lr={rate}", "--out", tmp_path / "run")
    assert last_test(tmp_path / "run")["test/accuracy"] > 0.8
    for steps in (0, 3):
        assert f"not {steps}" in (said := millrace("lr-find", table, "--steps", steps, code=1).stderr) and "a sweep has 20 to" in said
    assert "rates are swept from one above 0" in millrace("lr-find", table, "--from", 1, "--to", 0.1, code=1).stderr


def test_a_batch_found_by_measuring_stands_in_the_run(millrace, table, tmp_path):
    run = tmp_path / "run"
    text = millrace("train", table, "train.batch=auto", "train.steps=20", "train.checkpoint_steps=5", "--out", run).stdout
    batch = int(re.search(r"train\.batch = (\d+), the smallest that is nearly as fast", text)[1])
    assert batch in (16, 32)  # of 300 rows an epoch has ten batches of no more
    assert f"\nbatch = {batch}\n" in (run / "recipe.toml").read_text()
    parts = tmp_path / "parts"
    shutil.copytree(run, parts)
    cut_back(parts, 10)
    assert "nearly as fast" not in millrace("train", parts, "--resume").stdout
    assert_same_run(run, parts)
    error = millrace("train", table, "train.batch=auto", "train.accumulate=2", "--out", tmp_path / "no", code=1).stderr
    assert "leaves nothing for train.accumulate = 2" in error
    assert "train.batch must be a number, not" in millrace("train", table, "train.batch=many", "--out", tmp_path / "no", code=1).stderr


def test_layers_far_from_the_output_train_slower(millrace, tmp_path):
    (tmp_path / "corpus.txt").write_text("the king of no land sings\n" * 400)
    (tmp_path / "gpt.toml").write_text(
        f'[data]\ntrain = "{tmp_path}/corpus.txt"\n[input]\nkind = "tokens"\nlength = 16\n'
        '[model]\nkind = "gpt"\nwidth = 16\ndepth = 2\nheads = 2\n'
        '[train]\nsteps = 1\nbatch = 8\nlayer_decay = 0.1\noptimizer = { kind = "lion", lr = 0.01 }\n'
    )
    millrace("train", tmp_path / "gpt.toml", "--out", tmp_path / "run")
    first, last = sorted((tmp_path / "run/checkpoints").glob("step-*"))
    # Lion's steps are of one size: the rate. The final norm and the head are registered before the blocks.
    expected = {"tok": 1e-5, "pos": 1e-5, "blocks.0.fc1.weight": 1e-4, "blocks.1.fc1.weight": 1e-3, "norm.weight": 1e-2, "head.weight": 1e-2}
    with safe_open(first, "np") as a, safe_open(last, "np") as b:
        for name, step in expected.items():
            moved = np.abs(a.get_tensor("model." + name) - b.get_tensor("model." + name)).max()
            assert moved == pytest.approx(step, rel=0.01), name
