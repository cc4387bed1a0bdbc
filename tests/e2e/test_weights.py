"""Weights: of classes in the loss, of other trainings to begin with, and the best of a training."""

import csv
import json
import re
import shutil

import numpy as np
import onnxruntime
import pytest
from PIL import Image
from safetensors import safe_open
from safetensors.numpy import save_file
from test_running_habits import refusal, step_of
from test_train import assert_same_run, letters, metric_lines, recipe, start, steps_logged, wait_for_step, whole  # noqa: F401


# ---- weights of classes


def export_logits(millrace, run, step, inputs):
    path = run / f"at-{step}.onnx"
    millrace("export", run, path, "--checkpoint", step)
    return onnxruntime.InferenceSession(path).run(["logits"], inputs)[0].astype(np.float64)


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def weighted_loss(logits, labels, weights, smoothing):
    """torch.nn.CrossEntropyLoss(weight=weights, label_smoothing=smoothing), by its documentation."""
    each = -log_softmax(logits)
    own, classes = weights[labels], logits.shape[1]
    right = own * each[np.arange(len(labels)), labels]
    spread = (each * weights).sum(-1) / classes
    return ((1 - smoothing) * right + smoothing * spread).sum() / own.sum()


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """A table with a rare class and two labels, one of them rare."""
    folder = tmp_path_factory.mktemp("rows")
    draw = np.random.default_rng(5)
    kinds = np.array(["common"] * 50 + ["rare"] * 6 + ["some"] * 8)
    draw.shuffle(kinds)
    x = draw.normal(size=(64, 3)).astype(np.float32)
    hot, odd = (draw.random(64) < 0.5).astype(int), (draw.random(64) < 0.1).astype(int)
    odd[0] = 1
    with open(folder / "x.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "kind", "hot", "odd"])
        for i in range(64):
            writer.writerow([*x[i], kinds[i], hot[i], odd[i]])
    return folder, x, kinds, np.stack([hot, odd], 1)


CLASSES = """
[data]
train = "{0}/x.csv"
[input]
kind = "table"
columns = ["a", "b", "c"]
[output]
{1}
[model]
kind = "table"
width = 8
[train]
steps = 1
batch = 64
"""


@pytest.mark.parametrize(
    "written, meant, smoothing",
    [
        ('class_weights = "balanced"', "balanced", 0),
        ("class_weights = { rare = 5, some = 0.5 }", [1, 5, 0.5], 0),
        ("class_weights = [0.5, 3, 2]", [0.5, 3, 2], 0.1),
        ('class_weights = ["rare=7"]', [1, 7, 1], 0),
    ],
)
def test_class_weights_are_those_of_pytorch(millrace, rows, tmp_path, written, meant, smoothing):
    folder, x, kinds, _ = rows
    names = sorted(set(kinds))
    labels = np.array([names.index(kind) for kind in kinds])
    counts = np.bincount(labels)
    # scikit-learn's compute_class_weight("balanced")
    weights = len(labels) / (len(names) * counts) if meant == "balanced" else np.array(meant, float)
    loss = f'loss = {{ kind = "cross-entropy", label_smoothing = {smoothing} }}'
    (tmp_path / "r.toml").write_text(CLASSES.format(folder, f'column = "kind"\n{written}\n{loss}'))
    run = tmp_path / "run"
    millrace("train", tmp_path / "r.toml", "--out", run)
    logged = metric_lines(run)[0]["loss"]
    logits = export_logits(millrace, run, 0, {"numbers": x.astype(np.float64)})
    assert logged == pytest.approx(weighted_loss(logits, labels, weights, smoothing), rel=1e-4)


def test_weights_of_labels_are_those_of_pytorch(millrace, rows, tmp_path):
    folder, x, _, holds = rows
    for written, meant in [('"balanced"', None), ("{ odd = 9 }", np.array([1, 9.0])), ("[2, 3]", np.array([2, 3.0]))]:
        run = tmp_path / re.sub(r"\W", "", written)
        output = f'kind = "classes"\ncolumns = ["hot", "odd"]\npos_weight = {written}'
        (tmp_path / "r.toml").write_text(CLASSES.format(folder, output))
        millrace("train", tmp_path / "r.toml", "--out", run)
        weights = (64 - holds.sum(0)) / holds.sum(0) if meant is None else meant
        z = export_logits(millrace, run, 0, {"numbers": x.astype(np.float64)})
        # torch.nn.BCEWithLogitsLoss(pos_weight=weights)
        each = weights * holds * np.logaddexp(0, -z) + (1 - holds) * np.logaddexp(0, z)
        assert metric_lines(run)[0]["loss"] == pytest.approx(each.mean(), rel=1e-4)


def test_weights_of_classes_that_cannot_be_are_refused(millrace, rows, tmp_path):
    folder = rows[0]

    def error(written, kind='column = "kind"'):
        (tmp_path / "w.toml").write_text(CLASSES.format(folder, f"{kind}\n{written}"))
        return millrace("train", tmp_path / "w.toml", "--out", tmp_path / "none", code=1).stderr

    assert "there is no class 'rar'; did you mean 'rare'?" in error("class_weights = { rar = 3 }")
    assert "has 2 weights, and there are 3 classes" in error("class_weights = [1, 2]")
    assert "'balancd' is not a weight" in error('class_weights = "balancd"')
    assert "is not a weight" in error("class_weights = [1, 2, -3]")
    assert "means nothing to output.kind = 'number'" in error('class_weights = "balanced"', 'kind = "number"\ncolumn = "hot"')


def test_balanced_weights_find_the_rare_class(millrace, tmp_path):
    draw = np.random.default_rng(1)
    with open(tmp_path / "x.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "kind"])
        for i in range(1000):
            rare = i % 20 == 0
            writer.writerow([f"{value:.5f}" for value in draw.normal([1.0 if rare else 0.0, 0, 0])] + ["rare" if rare else "common"])
    recall = {}
    for weights in ['""', '"balanced"']:
        text = f'[data]\ntrain = "{tmp_path}/x.csv"\n[output]\ncolumn = "kind"\n'
        text += "" if weights == '""' else f"class_weights = {weights}\n"
        (tmp_path / "r.toml").write_text(text + '[model]\nkind = "table"\nwidth = 8\n[train]\nepochs = 10\nbatch = 50\noptimizer = { kind = "adamw", lr = 0.02 }\n')
        run = tmp_path / f"run{len(recall)}"
        millrace("train", tmp_path / "r.toml", "--out", run)
        lines = millrace("predict", run, tmp_path / "x.csv", "--json").stdout.splitlines()
        told = [json.loads(line)["class"] for line in lines]
        recall[weights] = np.mean([told[i] == "rare" for i in range(0, 1000, 20)])
    assert recall['""'] < 0.1 and recall['"balanced"'] > 0.6


# ---- other weights to begin with


def tensors(path):
    with safe_open(path, "np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}


def at_step(run, step):
    return {name[6:]: value for name, value in tensors(run / f"checkpoints/step-{step:08}.safetensors").items() if name.startswith("model.")}


def test_a_training_begins_with_the_weights_of_another(millrace, recipe, whole, tmp_path):
    theirs = at_step(whole, step_of(whole))
    plain = tmp_path / "weights.safetensors"
    save_file({f"module.{name}": value for name, value in theirs.items()}, plain)
    for n, source in enumerate([whole, whole / "checkpoints" / f"step-{step_of(whole):08}.safetensors", plain]):
        run = tmp_path / str(n)
        text = millrace("train", recipe, f"train.init_from={source}", "train.steps=1", "--out", run).stdout
        assert f"{len(theirs)} of {len(theirs)} tensors taken" in text
        own = at_step(run, 0)
        assert own.keys() == theirs.keys()
        for name, value in own.items():
            np.testing.assert_array_equal(value, theirs[name], name)


def test_a_head_for_other_classes_is_new(millrace, recipe, whole, letters, tmp_path):
    """Of three classes, and of ten others: whose head has the same shape."""
    theirs = at_step(whole, step_of(whole))
    few, named = tmp_path / "few", tmp_path / "named"
    for split in ["train", "test"]:
        for letter in "ABC":
            shutil.copytree(letters / split / letter, few / split / letter)
        for folder in sorted((letters / split).iterdir()):
            shutil.copytree(folder, named / split / f"{folder.name}2")
    for data, count in [(few, 3), (named, 10)]:
        run = tmp_path / f"run-{data.name}"
        words = [f"data.train={data}/train", f"data.test={data}/test", "train.freeze=[]", "train.steps=1"]
        layers = recipe.read_text().split("layers = ")[1].split("\n")[0].replace("linear 10", f"linear {count}").replace('"', "")
        text = millrace("train", recipe, *words, f"model.layers={layers}", f"train.init_from={whole}", "--out", run).stdout
        assert f"{len(theirs) - 2} of {len(theirs)} tensors taken; new, as the head is for others: 6.weight, 6.bias" in text
        own = at_step(run, 0)
        for name, value in own.items():
            same = value.shape == theirs[name].shape and (value == theirs[name]).all()
            assert same != name.startswith("6."), name


def test_weights_that_do_not_fit_are_refused_by_name(millrace, recipe, whole, tmp_path):
    theirs = at_step(whole, step_of(whole))

    def error(weights):
        save_file(weights, tmp_path / "w.safetensors")
        return refusal(millrace, recipe, tmp_path, f"train.init_from={tmp_path}/w.safetensors")

    assert "it lacks 1 of" in error({n: v for n, v in theirs.items() if n != "0.weight"})
    assert "of other shapes: 0.weight [4, " in error({**theirs, "0.weight": theirs["0.weight"][:4].copy()})
    assert "it lacks" in error({n: v for n, v in theirs.items() if n.startswith("6.")})
    odd = theirs["0.weight"].copy()
    odd.flat[3] = np.nan
    assert "0.weight that is no finite number (nan)" in error({**theirs, "0.weight": odd})
    assert "0.weight as i32, and weights are floats" in error({**theirs, "0.weight": np.ones_like(odd, np.int32)})
    (tmp_path / "w.txt").write_text("these are no weights\n")
    assert "w.txt: is no safetensors file" in refusal(millrace, recipe, tmp_path, f"train.init_from={tmp_path}/w.txt")
    assert "no such file" in refusal(millrace, recipe, tmp_path, f"train.init_from={tmp_path}/none.safetensors")
    spare = {**theirs, "spare": np.zeros(3, np.float32)}
    save_file(spare, tmp_path / "w.safetensors")
    text = millrace("train", recipe, f"train.init_from={tmp_path}/w.safetensors", "train.steps=1", "--out", tmp_path / "run").stdout
    assert "not used: spare" in text


def test_resuming_needs_the_other_weights_no_more(binary, millrace, recipe, whole, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(whole, source)
    through, stopped = tmp_path / "through", tmp_path / "stopped"
    millrace("train", recipe, f"train.init_from={source}", "--out", through)
    process = start(binary, "train", recipe, f"train.init_from={source}", "--out", stopped)
    wait_for_step(process, stopped, 8)
    process.kill()
    process.wait()
    shutil.rmtree(source)
    millrace("train", stopped, "--resume")
    assert_same_run(through, stopped)


# ---- the best checkpoint


def test_the_best_checkpoint_is_kept_by_the_metric_and_its_direction(millrace, recipe, tmp_path):
    for metric, better in [("accuracy", max), ("log-loss", min)]:
        run = tmp_path / metric
        # A rate that ruins what was learnt: the last epoch is not the best.
        words = ["train.optimizer.lr=0.3", "train.schedule=constant", "train.epochs=5", "train.lookahead=0", "train.freeze=[]"]
        millrace("train", recipe, *words, f"train.keep_best={metric}", "train.keep_checkpoints=100", "--out", run)
        epochs = [line for line in metric_lines(run) if f"test/{metric}" in line]
        values = [line[f"test/{metric}"] for line in epochs]
        best = epochs[values.index(better(values))]
        kept = tensors(run / "checkpoints/best.safetensors")
        of_step = tensors(run / f"checkpoints/step-{best['step']:08}.safetensors")
        assert kept.keys() == of_step.keys() and all((kept[name] == of_step[name]).all() for name in kept)
        told = json.loads(millrace("eval", run, "--checkpoint", "best", "--json").stdout)
        assert told[metric] == better(values)
        by_step = json.loads(millrace("eval", run, "--checkpoint", best["step"], "--json").stdout)
        assert by_step[metric] == told[metric]
        assert json.loads(millrace("eval", run, "--json").stdout)[metric] == values[-1]
        assert json.loads(millrace("eval", run, "--checkpoint", "last", "--json").stdout)[metric] == values[-1]
    assert "there is no checkpoint 'bst'" in millrace("eval", run, "--checkpoint", "bst", code=1).stderr
    assert "has no checkpoint '3'" in millrace("eval", run, "--checkpoint", 3, code=1).stderr


def test_the_best_stays_the_best_over_interruptions(binary, millrace, recipe, tmp_path):
    through, stopped = tmp_path / "through", tmp_path / "stopped"
    words = ["train.keep_best=accuracy", "train.optimizer.lr=0.2", "train.epochs=4"]
    millrace("train", recipe, *words, "--out", through)
    process = start(binary, "train", recipe, *words, "--out", stopped)
    for step in [30, 60]:
        wait_for_step(process, stopped, step)
        process.kill()
        process.wait()
        process = start(binary, "train", stopped, "--resume")
    assert process.wait() == 0
    a, b = (tensors(run / "checkpoints/best.safetensors") for run in (through, stopped))
    assert a.keys() == b.keys() and all((a[name] == b[name]).all() for name in a)


# A rate that ruins what was learnt: the last epoch is not the best.
RUINOUS = ["train.optimizer.lr=0.3", "train.schedule=constant", "train.lookahead=0", "train.freeze=[]", "train.keep_checkpoints=100"]


def test_another_metric_of_the_best_begins_anew_and_stays(binary, millrace, recipe, tmp_path):
    begun, through, stopped = tmp_path / "begun", tmp_path / "through", tmp_path / "stopped"
    # Nothing is learnt yet: the least loss is a number that no accuracy reaches.
    millrace("train", recipe, *RUINOUS, "train.lr_scale=1e-6", "train.epochs=2", "train.keep_best=log-loss", "--out", begun)
    shutil.copytree(begun, through)
    shutil.copytree(begun, stopped)
    told = ["train.keep_best=accuracy", "train.epochs=8", "train.lr_scale=1"]
    millrace("train", through, "--resume", *told)
    # A loss is no measure of an accuracy: the best is that of the epochs since it was told.
    epochs = [line for line in metric_lines(through) if "test/accuracy" in line and line["step"] > 50]
    best = max(epochs, key=lambda line: (line["test/accuracy"], -line["step"]))
    expected = tensors(through / f"checkpoints/step-{best['step']:08}.safetensors")
    # Each resume goes by the metric that the journal has, not by that of the recipe.
    process = start(binary, "train", stopped, "--resume", *told)
    for step in [80, 105, 130, 155]:
        wait_for_step(process, stopped, step)
        process.kill()
        process.wait()
        process = start(binary, "train", stopped, "--resume")
    assert process.wait() == 0
    assert_same_run(through, stopped)
    for run in (through, stopped):
        kept = tensors(run / "checkpoints/best.safetensors")
        assert kept.keys() == expected.keys() and all((kept[name] == expected[name]).all() for name in kept)


def test_a_resume_takes_no_metric_that_the_test_does_not_report(millrace, recipe, tmp_path):
    run = tmp_path / "run"
    millrace("train", recipe, "train.epochs=1", "eval.metrics=[]", "train.keep_best=accuracy", "--out", run)
    words = ["train", run, "--resume", "train.epochs=2"]
    assert 'train.keep_best = "ece" is none of what the test reports' in millrace(*words, "train.keep_best=ece", code=1).stderr
    assert not (run / "control.jsonl").exists()
    # What is told counts, and not what the recipe began with.
    millrace(*words, "train.keep_best=ece", "eval.metrics=[ece]")
    assert (run / "checkpoints/best.safetensors").exists()


def test_a_resume_keeps_no_best_when_told_so(millrace, recipe, tmp_path):
    run = tmp_path / "run"
    millrace("train", recipe, "train.epochs=1", "train.keep_best=accuracy", "--out", run)
    kept = (run / "checkpoints/best.safetensors").read_bytes()
    text = millrace("train", run, "--resume", "train.keep_best=", "train.epochs=2").stdout
    assert 'from step 26 on train.keep_best = ""' in text
    assert (run / "checkpoints/best.safetensors").read_bytes() == kept
    journal = [json.loads(line) for line in (run / "control.jsonl").read_text().splitlines()]
    assert {"train.keep_best": "", "train.epochs": 2} == {entry["key"]: entry["value"] for entry in journal}
    assert 'train.keep_best = ""' in millrace("ctl", run).stdout
    told = json.loads(millrace("ctl", run, "--json").stdout)["journal"]
    assert [entry["value"] for entry in told] == ["", 2]
    millrace("train", run, "--resume", "train.epochs=3")
    assert steps_logged(run) == 75


def test_predict_and_export_use_the_checkpoint_that_is_named(millrace, recipe, letters, tmp_path):
    run = tmp_path / "run"
    millrace("train", recipe, "train.keep_best=log-loss", "train.keep_checkpoints=100", "--out", run)
    picture = next((letters / "test/A").iterdir())

    def logits(*words):
        return json.loads(millrace("predict", run, picture, "--json", *words).stdout)["logits"]

    assert logits("--checkpoint", 0) != logits()
    millrace("export", run, tmp_path / "0.onnx", "--checkpoint", 0)
    pixels = np.asarray(Image.open(picture).convert("RGB" if Image.open(picture).mode == "RGB" else "L"))
    pixels = pixels.transpose(2, 0, 1) if pixels.ndim == 3 else pixels[None]
    theirs = onnxruntime.InferenceSession(tmp_path / "0.onnx").run(["logits"], {"pictures": pixels[None]})[0][0]
    np.testing.assert_allclose(theirs, logits("--checkpoint", 0), rtol=1e-3, atol=1e-4)


def test_a_best_that_cannot_be_told_is_refused(millrace, recipe, tmp_path):
    assert "did you mean 'accuracy'" in refusal(millrace, recipe, tmp_path, "train.keep_best=acuracy")
    assert "is none of eval.metrics" in refusal(millrace, recipe, tmp_path, "train.keep_best=perplexity")
    assert "set data.test or data.test_share" in refusal(millrace, recipe, tmp_path, "train.keep_best=accuracy", "data.test=")
