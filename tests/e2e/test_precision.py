"""Trainings in 16 bits from the outside: what they reach, what their checkpoints hold, who can read them,
resuming."""
import json
import os
import shutil
import subprocess

import numpy as np
import onnxruntime
import pytest
from PIL import Image
from safetensors import safe_open

RECIPE = """
[data]
train = "{letters}/train"
test = "{letters}/test"

[model]
layers = ["conv 16 3 stride=2", "batch-norm", "relu", "max-pool 2", "flatten", "dropout 0.1", "linear 10"]

[train]
epochs = 5
batch = 40
optimizer = {{ kind = "adamw", lr = 5e-3, weight_decay = 1e-2 }}
schedule = {{ kind = "cosine", warmup = 0.2 }}
freeze = ["6.bias 2"]
checkpoint_steps = 7
clip_norm = 5
"""
PRECISIONS = ["fp32", "bf16", "bf16-pure", "fp16"]


@pytest.fixture(scope="module")
def letters(binary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "letters"
    subprocess.run([binary, "letters", folder, "--train", "800", "--test", "200"], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def recipe(letters, tmp_path_factory):
    path = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    path.write_text(RECIPE.format(letters=letters))
    return path


@pytest.fixture(scope="module")
def runs(binary, recipe, tmp_path_factory):
    """An uninterrupted run of each precision."""
    folder = tmp_path_factory.mktemp("runs")
    for precision in PRECISIONS:
        result = subprocess.run([binary, "train", recipe, f"train.precision={precision}", "--out", folder / precision],
                                capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
    return {precision: folder / precision for precision in PRECISIONS}


def lines(run):
    parsed = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for line in parsed:
        for key in [key for key in line if key.startswith(("seconds", "system/"))]:
            line.pop(key)
    return parsed


def newest(run):
    return sorted((run / "checkpoints").iterdir())[-1]


def tensors(run):
    """Name → (type, elements, bytes) of the newest checkpoint, read from the file itself: numpy has no
    bf16."""
    data = newest(run).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    return {
        name: (entry["dtype"], int(np.prod(entry["shape"])), data[8 + size :][slice(*entry["data_offsets"])])
        for name, entry in header.items()
        if name != "__metadata__"
    }


def test_they_learn_as_much_as_fp32(runs):
    last = {precision: [line for line in lines(run) if "test/accuracy" in line][-1] for precision, run in runs.items()}
    reached = last["fp32"]["test/accuracy"]
    assert reached > 0.5
    for precision in PRECISIONS:
        assert abs(last[precision]["test/accuracy"] - reached) < 0.06, last
        assert abs(last[precision]["test/log-loss"] - last["fp32"]["test/log-loss"]) < 0.15, last


def test_bf16_pure_checkpoints_hold_half_the_bytes(runs):
    wide, pure = tensors(runs["fp32"]), tensors(runs["bf16-pure"])
    assert wide.keys() == pure.keys()
    for name, (dtype, count, data) in pure.items():
        # Statistics stay as they are.
        assert dtype == ("BF16" if wide[name][0] == "F32" and "running_" not in name else wide[name][0]), name
        assert len(data) == (len(wide[name][2]) if dtype != "BF16" else count * 2)
    assert newest(runs["bf16-pure"]).stat().st_size < 0.6 * newest(runs["fp32"]).stat().st_size


def test_fp16_logs_its_scale_and_keeps_it_in_the_checkpoint(runs):
    steps = [line for line in lines(runs["fp16"]) if "lr" in line]
    assert steps[0]["loss_scale"] == 65536
    assert all("loss_scale" not in line for line in lines(runs["fp32"]))
    state = tensors(runs["fp16"])
    skipped = int(np.frombuffer(state["optimizer.skipped_steps"][2], np.int64)[0])
    halved = sum(b["loss_scale"] < a["loss_scale"] for a, b in zip(steps, steps[1:]))
    assert skipped >= halved
    assert state["optimizer.loss_scale"][0] == "F32" and state["optimizer.good_steps"][0] == "I64"


@pytest.mark.parametrize("precision", ["bf16-pure", "fp16"])
def test_a_resumed_run_on_one_thread_equals_the_uninterrupted_one(binary, runs, tmp_path, precision):
    run = tmp_path / "run"
    shutil.copytree(runs[precision], run)
    newest(run).unlink()
    assert len(list((run / "checkpoints").iterdir())) == 1
    one = min(os.sched_getaffinity(0))  # a CPU: a thread
    subprocess.run([binary, "train", run, "--resume"], check=True, capture_output=True,
                   preexec_fn=lambda: os.sched_setaffinity(0, {one}))
    assert lines(run) == lines(runs[precision])
    assert tensors(run) == tensors(runs[precision])
    assert (run / "model.onnx").read_bytes() == (runs[precision] / "model.onnx").read_bytes()


@pytest.mark.parametrize("precision", ["bf16-pure", "fp16"])
def test_they_are_evaluated_and_exported(runs, letters, millrace, tmp_path, precision):
    run = runs[precision]
    last = [line for line in lines(run) if "test/accuracy" in line][-1]
    assert json.loads(millrace("eval", run, "--json").stdout)["accuracy"] == last["test/accuracy"]
    millrace("export", run, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    pictures = sorted(letters.glob("test/*/*.jpg"))[::29]
    batch = np.stack([np.asarray(Image.open(p))[None] for p in pictures])
    logits = session.run(["logits"], {"pictures": batch})[0]
    predicted = [json.loads(line) for line in millrace("predict", run, "--json", *pictures).stdout.splitlines()]
    for line, row in zip(predicted, logits):
        assert np.abs(np.array(line["logits"]) - row).max() <= 0.05 * (1 + np.abs(row).max())


def test_another_precision_than_the_checkpoints_is_one_clear_message(runs, millrace, tmp_path):
    def message(begun, resumed):
        run = tmp_path / f"{begun}-{resumed}"
        shutil.copytree(runs[begun], run)
        text = (run / "recipe.toml").read_text()
        (run / "recipe.toml").write_text(text.replace(f'precision = "{begun}"', f'precision = "{resumed}"', 1))
        error = millrace("train", run, "--resume", code=1).stderr
        assert error.startswith("error: ") and error.count("\n") == 1, error
        return error

    for begun, resumed in (("bf16-pure", "bf16"), ("fp32", "bf16-pure")):
        assert "go on with the train.precision that the run was begun with" in message(begun, resumed)
    assert "'optimizer.loss_scale'" in message("fp32", "fp16")


def test_lookahead_wants_f32_weights(recipe, millrace, tmp_path):
    text = millrace("train", recipe, "train.precision=bf16-pure", "train.lookahead=4", "--out", tmp_path / "x", code=1).stderr
    assert "train.lookahead" in text and "bf16-pure" in text


@pytest.mark.parametrize("precision", ["bf16-pure", "fp16"])
def test_verbs_that_take_a_precision(recipe, millrace, precision):
    assert "items/s" in millrace("bench", "train", "lenet", "8", "--precision", precision, "--seconds", "0.05").stdout
    assert "items/s" in millrace("bench", "infer", "lenet", "8", "--precision", precision, "--seconds", "0.05").stdout
    for verb in (["explain"], ["profile", "--steps", "2"]):
        assert precision in millrace(verb[0], recipe, f"train.precision={precision}", *verb[1:]).stdout
    assert millrace("estimate", recipe, f"train.precision={precision}").stdout
