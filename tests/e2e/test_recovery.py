"""Bad steps, checkpoints written aside, and a precision that changes on the way: whatever happens, a resumed
run is the uninterrupted one."""

import json
import random
import re
import shutil
import signal

import numpy as np
import pytest
from safetensors import safe_open
from test_train import assert_same_run, metric_lines, start, wait_for_step

RECIPE = """
[data]
train = "{rows}"
order = "sequential"
test_share = 0.1

[input]
kind = "table"

[output]
kind = "number"
column = "y"
standardise = false

[model]
kind = "mlp"

[train]
epochs = 5
batch = 20
optimizer = {{ kind = "adamw", lr = 0.01 }}
"""


def write_rows(path, bad=None, count=600):
    """y of two columns, learnt easily; the row before the last is `bad`."""
    draw = random.Random(5)
    lines = ["a,b,y"]
    for i in range(count):
        a, b = draw.gauss(0, 1), draw.gauss(0, 1)
        y = 2 * a - b + draw.gauss(0, 0.05)
        lines.append(f"{a:.5f},{b:.5f},{bad if bad and i == count - 30 else f'{y:.5f}'}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def recipe(tmp_path):
    """recipe(bad=…) → the path of a recipe whose data have one such target."""

    def make(bad):
        write_rows(tmp_path / "rows.csv", bad)
        path = tmp_path / "recipe.toml"
        path.write_text(RECIPE.format(rows=tmp_path / "rows.csv"))
        return path

    return make


def recovery(run):
    path = run / "recovery.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for line in lines:
        line.pop("time")
    return lines


def steps(run):
    return {line["step"]: line for line in metric_lines(run) if "lr" in line}


def epochs(run):
    return [line for line in metric_lines(run) if "train/loss" in line]


def killed_and_resumed(binary, millrace, run, at, *arguments):
    process = start(binary, "train", *arguments, "--out", run)
    wait_for_step(process, run, at)
    process.send_signal(signal.SIGKILL)
    process.wait()
    millrace("train", run, "--resume")
    return run


def test_a_bad_step_stops_a_training_with_the_operation_and_the_way_out(recipe, millrace, tmp_path):
    error = millrace("train", recipe("1e30"), "--out", tmp_path / "run", code=1).stderr
    assert error.startswith("error: the loss of step ") and "is infinite" in error and "made infinite values" in error
    assert 'train.on_bad_step = "skip" or "rollback"' in error
    # What it is told when it goes on holds from there.
    text = millrace("train", tmp_path / "run", "--resume", "train.on_bad_step=skip").stdout
    assert "bad and left out" in text and len(recovery(tmp_path / "run")) == 5


def test_missing_cells_are_not_blamed_for_what_a_training_made(millrace, tmp_path):
    """They are no numbers to the model, which knows what they stand for."""
    rows = [f"{'' if i % 7 == 0 else i / 50},{i * i % 11},{'ab'[i % 2]}" for i in range(120)]
    (tmp_path / "rows.csv").write_text("x,z,y\n" + "\n".join(rows) + "\n")
    (tmp_path / "recipe.toml").write_text(f'[data]\ntrain = "{tmp_path}/rows.csv"\n[output]\ncolumn = "y"\n[train]\nepochs = 20\noptimizer = {{ kind = "sgd", lr = 1e15 }}\n')
    error = millrace("train", tmp_path / "recipe.toml", "--out", tmp_path / "run", "--no-check", code=1).stderr
    assert " made " in error and "input 'numbers'" not in error, error


def test_of_several_outputs_the_one_to_blame_is_named(recipe, millrace, tmp_path):
    text = recipe("3e38").read_text().replace("[output]", "[outputs.total]")
    text = text.replace("[model]", '[outputs.first]\nkind = "number"\ncolumn = "b"\n[model]').replace('[input]\nkind = "table"', '[input]\nkind = "table"\ncolumns = ["a"]')
    (tmp_path / "two.toml").write_text(text)
    error = millrace("train", tmp_path / "two.toml", "--out", tmp_path / "run", code=1).stderr
    assert "is infinite (that of total): " in error and " in the loss made infinite values" in error and ".cpp" not in error


def test_bad_steps_are_skipped_named_and_counted(recipe, binary, millrace, tmp_path):
    path = recipe("1e30")
    text = millrace("train", path, "train.on_bad_step=skip", "--out", tmp_path / "whole").stdout
    noted = recovery(tmp_path / "whole")
    assert len(noted) == 5 and {line["what"] for line in noted} == {"skipped"}
    assert all("made infinite values" in line["why"] for line in noted)
    bad = [line["step"] for line in noted]
    assert [step for step, line in steps(tmp_path / "whole").items() if line["loss"] is None] == bad
    assert len({b - a for a, b in zip(bad, bad[1:])}) == 1, "once an epoch"
    assert "5 were bad and left out" in text
    losses = [line["train/loss"] for line in epochs(tmp_path / "whole")]
    assert losses[-1] < 0.5 * losses[0] and epochs(tmp_path / "whole")[-1]["test/mae"] < 1
    # As if the batch were not there, but for the place in the schedule: no state saw it.
    run = killed_and_resumed(binary, millrace, tmp_path / "run", bad[2] + 3, path, "train.on_bad_step=skip", "train.epochs=60")
    again = tmp_path / "again"
    millrace("train", path, "train.on_bad_step=skip", "train.epochs=60", "--out", again)
    assert_same_run(run, again)
    assert recovery(run) == recovery(again)


def test_many_bad_steps_in_a_row_end_it(recipe, millrace, tmp_path):
    error = millrace("train", recipe(None), "train.on_bad_step=skip", "train.optimizer={kind=sgd, lr=1e15}", "train.most_bad_steps=4",
                     "--out", tmp_path / "run", code=1).stderr
    assert "the last of 4 bad steps in a row (train.most_bad_steps)" in error
    assert [line["what"] for line in recovery(tmp_path / "run")] == ["skipped"] * 4


def test_a_spike_is_a_bad_step_where_it_is_asked_for(recipe, millrace, tmp_path):
    path = recipe("5000")
    millrace("train", path, "train.on_bad_step=skip", "--out", tmp_path / "off")
    assert recovery(tmp_path / "off") == []
    millrace("train", path, "train.on_bad_step=skip", "train.loss_spike=30", "--out", tmp_path / "on")
    noted = recovery(tmp_path / "on")
    assert len(noted) == 5 and all("robust deviations above the median" in line["why"] for line in noted)
    assert epochs(tmp_path / "on")[-1]["test/mae"] < epochs(tmp_path / "off")[-1]["test/mae"]
    error = millrace("train", path, "train.loss_spike=30", "--out", tmp_path / "stop", code=1).stderr
    assert "robust deviations above the median" in error


def tensors(path):
    with safe_open(path, "np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}


def test_an_estimate_times_steps_whatever_their_losses(recipe, millrace):
    assert "epoch" in millrace("estimate", recipe("1"), "train.loss_spike=0.001").stdout


def test_a_rollback_takes_the_checkpoints_weights_and_a_lower_rate(recipe, binary, millrace, tmp_path):
    path, told = recipe("1e30"), ("train.on_bad_step=rollback", "train.rollback_lr=0.25", "train.checkpoint_steps=10", "train.epochs=3.2",
                                  "train.keep_checkpoints=1000")
    text = millrace("train", path, *told, "--out", tmp_path / "whole").stdout
    noted = recovery(tmp_path / "whole")
    assert [line["what"] for line in noted] == ["rolled back"] * 3
    assert [line["lr_factor"] for line in noted] == [0.25, 0.25**2, 0.25**3]
    rates = {step: line["lr"] for step, line in steps(tmp_path / "whole").items()}
    for line in noted:
        assert rates[line["step"] + 1] == pytest.approx(rates[line["step"]] * 0.25)
        before = tensors(tmp_path / f"whole/checkpoints/step-{line['to']:08}.safetensors")
        after = tensors(tmp_path / f"whole/checkpoints/step-{line['step']:08}.safetensors")
        for name, value in before.items():
            if name.startswith(("model.", "optimizer.")):
                assert value.tobytes() == after[name].tobytes(), name
    assert f"rolled back to the weights of step {noted[0]['to']}" in text
    assert "rolled back" in millrace("lineage", tmp_path / "whole").stdout
    # Checkpoints that a stop or the clock led to are none to go back to.
    for at in (noted[0]["step"] - 3, noted[1]["step"] + 1):
        run = tmp_path / f"run-{at}"
        process = start(binary, "train", path, *told, "train.checkpoint_minutes=1e-4", "--out", run)
        wait_for_step(process, run, at)
        process.send_signal(signal.SIGINT)
        process.wait()
        millrace("train", run, "--resume", "train.checkpoint_minutes=10")
        assert recovery(run) == noted
        assert_same_run(tmp_path / "whole", run)


def test_a_rollback_passes_over_what_is_damaged_and_ends_after_so_many(recipe, millrace, tmp_path):
    error = millrace("train", recipe("1e30"), "train.on_bad_step=rollback", "train.most_rollbacks=2", "--out", tmp_path / "run", code=1).stderr
    assert "after 2 rollbacks (train.most_rollbacks)" in error and "made infinite values" in error
    assert len(recovery(tmp_path / "run")) == 2
    # It goes on when it is told so.
    millrace("train", tmp_path / "run", "--resume", "train.most_rollbacks=9")
    assert len(recovery(tmp_path / "run")) == 5


def test_checkpoints_aside_are_those_in_place(recipe, binary, millrace, tmp_path):
    path = recipe(None)
    millrace("train", path, "train.checkpoint_steps=3", "--out", tmp_path / "aside")
    assert all("seconds_saving" in json.loads(line) for line in (tmp_path / "aside/metrics.jsonl").read_text().splitlines() if "train/loss" in line)
    # Too little memory for a copy beside the step: the least that a step needs, and not a byte more.
    error = millrace("train", path, "train.memory=1000", "--out", tmp_path / "none", code=1).stderr
    least = re.search(r"([\d.,]+ ?(?:bytes|[kMG]?B))", error.split("at least")[-1])
    assert least, error
    run = killed_and_resumed(binary, millrace, tmp_path / "run", 50, path, "train.checkpoint_steps=3")
    assert_same_run(tmp_path / "aside", run)


@pytest.mark.parametrize("begun, then", [("fp32", "bf16"), ("fp32", "bf16-pure"), ("bf16-pure", "fp32"), ("fp16", "bf16-pure"), ("fp32", "fp16")])
def test_the_precision_changes_where_the_run_is_told(recipe, binary, millrace, tmp_path, begun, then):
    path, run, again = recipe(None), tmp_path / "run", tmp_path / "again"
    process = start(binary, "train", path, f"train.precision={begun}", "train.epochs=40", "train.keep_checkpoints=100", "--out", run)
    wait_for_step(process, run, 40)
    process.send_signal(signal.SIGINT)
    process.wait()
    begin = int(re.search(r"\d+", sorted((run / "checkpoints").iterdir())[-1].name)[0])
    text = millrace("train", run, "--resume", f"train.precision={then}").stdout
    assert f"from step {begin + 1} on train.precision = {then}" in text
    (noted,) = [json.loads(line) for line in (run / "control.jsonl").read_text().splitlines()]
    assert (noted["key"], noted["value"], noted["step"]) == ("train.precision", then, begin)
    newest = sorted((run / "checkpoints").iterdir())[-1]
    assert {kind for name, (kind, _) in raw(newest).items() if name.startswith("model.") and name.endswith("weight")} == {"BF16" if then == "bf16-pure" else "F32"}
    last = [line for line in metric_lines(run) if "test/mae" in line]
    assert last[-1]["test/mae"] < last[0]["test/mae"]
    assert json.loads(millrace("eval", run, "--json").stdout)["mae"] == last[-1]["test/mae"]
    # Resumed again, from the checkpoint of the change, from one before it and from one behind it, it ends in
    # the same bits.
    for at in (begin, 26, begin + 60):
        shutil.rmtree(again, ignore_errors=True)
        shutil.copytree(run, again)
        for checkpoint in (again / "checkpoints").iterdir():
            if checkpoint.name > f"step-{at:08}.safetensors":
                checkpoint.unlink()
        millrace("train", again, "--resume")
        assert metric_lines(run) == metric_lines(again) and (run / "model.onnx").read_bytes() == (again / "model.onnx").read_bytes()
        assert raw(newest) == raw(again / "checkpoints" / newest.name)


def raw(path):
    """The tensors of a safetensors file: (type, bytes) by name."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, item in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            first, last = item["data_offsets"]
            tensors[name] = (item["dtype"], data[begin + first : begin + last])
    return tensors


def test_a_precision_that_cannot_be_is_refused_and_nothing_changes(recipe, millrace, tmp_path):
    run = tmp_path / "run"
    millrace("train", recipe(None), "train.ema=0.9", "train.epochs=1", "--out", run)
    before = {path.name: path.read_bytes() for path in (run / "checkpoints").iterdir()}
    error = millrace("train", run, "--resume", "train.precision=bf16-pure", "train.epochs=2", code=1).stderr
    assert "train.ema" in error and "bf16-pure" in error and error.count("\n") == 1
    assert "'bf17'" in millrace("train", run, "--resume", "train.precision=bf17", code=1).stderr
    assert {path.name: path.read_bytes() for path in (run / "checkpoints").iterdir()} == before
    assert np.all([not (run / "control.jsonl").exists()])
