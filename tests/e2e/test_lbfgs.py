"""Linear models by L-BFGS: scikit-learn's coefficients, resumed to the same bits, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from test_optimisers import check_resumed
from test_train import metric_lines

VALUES = json.loads((Path(__file__).parent / "linear_values.json").read_text())


@pytest.fixture(scope="module")
def recipes(tmp_path_factory):
    """A recipe for each of the three targets."""
    folder = tmp_path_factory.mktemp("linear")
    (folder / "rows.csv").write_text(VALUES["table"])
    made = {}
    for target in ["two", "three", "price"]:
        path = made[target] = folder / f"{target}.toml"
        path.write_text(
            f'[data]\ntrain = "{folder}/rows.csv"\n[input]\ncolumns = ["a", "b", "colour"]\n[output]\ncolumn = "{target}"\n'
            '[model]\nkind = "linear"\n[train]\nepochs = 300\nbatch = 100\nkeep_checkpoints = 100\n'
            f'optimizer = {{ kind = "lbfgs", weight_decay = {VALUES["weight_decay"]}, tolerance = 1e-6 }}\n'
        )
    return made


def coefficients(run):
    """Weights [outputs, numbers and colours], and the bias."""
    tensors = load_file(sorted((run / "checkpoints").glob("step-*"))[-1])
    colours = tensors["model.category0.weight"]
    assert np.all(np.abs(colours[0]) < 1e-6)  # of what training does not have
    return np.hstack([tensors["model.weight"], colours[1:].T]), tensors["model.bias"]


@pytest.mark.parametrize("target", ["two", "three", "price"])
def test_coefficients_are_those_of_scikit_learn(millrace, recipes, tmp_path, target):
    # Batches of 100 of 240 rows: the last one is not full, and counts for what it has.
    text = millrace("train", recipes[target], "--out", tmp_path / "run").stdout
    assert "lbfgs converged after" in text, text
    weights, bias = coefficients(tmp_path / "run")
    wanted = VALUES[target]
    if target == "two":  # one score, of the second class against the first
        weights, bias = weights[1:] - weights[:1], bias[1:] - bias[:1]
    if target == "three":
        bias = bias - bias.mean() + np.mean(wanted["bias"])
    np.testing.assert_allclose(weights, wanted["weights"], atol=2e-4)
    np.testing.assert_allclose(bias, wanted["bias"], atol=2e-4)


def test_one_batch_or_many_are_the_same_loss(millrace, recipes, tmp_path):
    losses = []
    for batch in [7, 100, 1000]:
        millrace("train", recipes["two"], f"train.batch={batch}", "train.epochs=1", "--out", tmp_path / f"{batch}")
        losses.append([line["train/loss"] for line in metric_lines(tmp_path / f"{batch}") if "train/loss" in line][-1])
    # Weights of 0 know nothing of two classes.
    np.testing.assert_allclose(losses, np.log(2), rtol=1e-6)


def test_resumed_is_as_if_it_had_never_stopped(millrace, recipes, tmp_path):
    words = ["data.test_share=0.2", "train.checkpoint_steps=1"]
    # Within a pass, and at the end of one.
    for step in [7, 8]:
        folder = tmp_path / f"{step}"
        folder.mkdir()
        whole, text = check_resumed(millrace, recipes["three"], folder, *words, step=step)
        assert "lbfgs converged after" in text
    gradients = [line["gradient"] for line in metric_lines(whole) if "gradient" in line]
    assert gradients[-1] <= 1e-6 < gradients[-2] and len(gradients) < 300


def test_more_passes_go_on(millrace, recipes, tmp_path):
    run = tmp_path / "run"
    text = millrace("train", recipes["two"], "train.epochs=3", "--out", run).stdout
    refused = millrace("train", run, "--resume", "train.epochs=300", "train.on_bad_step=skip", code=1).stderr
    assert "train.on_bad_step does not go with" in refused, refused
    assert "lbfgs has not converged in 3 passes" in text and "--resume train.epochs=" in text, text
    assert "lbfgs converged after" in millrace("train", run, "--resume", "train.epochs=300").stdout
    whole = tmp_path / "whole"
    millrace("train", recipes["two"], "--out", whole)
    for a, b in zip(coefficients(run), coefficients(whole)):
        np.testing.assert_array_equal(a, b)


def test_weights_of_samples_are_as_rows_that_come_again(millrace, recipes, tmp_path):
    lines = VALUES["table"].splitlines()
    times = [1 + i % 3 for i in range(len(lines) - 1)]
    (tmp_path / "weighed.csv").write_text("\n".join([lines[0] + ",w", *[f"{row},{n}" for row, n in zip(lines[1:], times)]]) + "\n")
    (tmp_path / "again.csv").write_text("\n".join([lines[0], *[row for row, n in zip(lines[1:], times) for _ in range(n)]]) + "\n")
    columns = "input.numbers=[a, b]"
    millrace("train", recipes["two"], columns, f"data.train={tmp_path}/again.csv", "--out", tmp_path / "again")
    # The mean is over rows, so a decay of the same rows together.
    decay = VALUES["weight_decay"] * sum(times) / len(times)
    words = ["data.sample_weight=w", f"train.optimizer.weight_decay={decay}", "input.columns=[a, b, colour]"]
    millrace("train", recipes["two"], columns, f"data.train={tmp_path}/weighed.csv", *words, "--out", tmp_path / "weighed")
    lost = [json.loads(millrace("eval", tmp_path / name, recipes["two"].parent / "rows.csv", "--json").stdout)["log-loss"] for name in ["again", "weighed"]]
    # Columns are standardised by the rows that there are, so the penalty is a little another.
    assert lost[0] == pytest.approx(lost[1], rel=0.01)


@pytest.mark.parametrize(
    "words, wanted",
    [
        (["train.steps=10"], "train.steps does not go with train.optimizer"),
        (["train.ema=0.9"], "train.ema does not go with"),
        (["train.schedule=cosine"], "train.schedule does not go with"),
        (["output.class_weights=balanced"], "class_weights does not go with"),
        (["train.on_bad_step=skip"], "train.on_bad_step does not go with train.optimizer = \"lbfgs\""),
        (["train.on_bad_step=rollback"], "train.on_bad_step does not go with train.optimizer = \"lbfgs\""),
        (["train.loss_spike=20"], "train.loss_spike does not go with train.optimizer = \"lbfgs\""),
        (["train.optimizer.lr=0.1"], "train.optimizer.lr means nothing to"),
        (["model={kind=table, dropout=0.5}"], "draws random numbers"),
        (["model={layers=[linear 4, batch-norm, linear 2]}", "input.columns=[a, b]"], "running statistics"),
    ],
)
def test_what_it_refuses(millrace, recipes, tmp_path, words, wanted):
    result = millrace("train", recipes["two"], *words, "--out", tmp_path / "run", code=1)
    assert wanted in result.stderr, result.stderr
    assert not (tmp_path / "run").exists()


def test_verbs_that_want_steps(millrace, recipes):
    assert "has no rate" in millrace("lr-find", recipes["two"], code=1).stderr
    assert "fail" not in millrace("check", recipes["two"], "--only", "ladder,unused-parameters,reproducible").stdout.split("passed")[0]


def test_steps_log_the_values_of_their_batches(millrace, recipes, tmp_path):
    # Of 240 rows the last batch has 2, and of batches as large as that all are full.
    logged = {}
    for batch in [119, 2]:
        millrace("train", recipes["two"], f"train.batch={batch}", "train.epochs=2", "train.log_every=1", "--out", tmp_path / f"{batch}")
        lines = metric_lines(tmp_path / f"{batch}")
        logged[batch] = {key: [line[key] for line in lines if key in line] for key in ["loss", "accuracy", "gradient_norm", "train/loss", "train/accuracy"]}
    large, small = logged[119], logged[2]
    for key in ["loss", "accuracy", "gradient_norm"]:
        assert large[key][2] == pytest.approx(small[key][119], rel=1e-5), key
    # Weights of 0 know nothing of two classes, in each batch alike.
    np.testing.assert_allclose(large["loss"][:3], np.log(2), rtol=1e-6)
    for steps in [[0, 1, 2], [3, 4, 5]]:
        for key in ["loss", "accuracy"]:
            values = [large[key][step] for step in steps]
            assert np.average(values, weights=[119, 119, 2]) == pytest.approx(large[f"train/{key}"][steps[0] // 3], rel=1e-5)
            assert key == "loss" or all(0 <= value <= 1 for value in values)



def test_a_check_looks_at_mixed_batches(millrace, recipes, tmp_path):
    # As the training has them, the first batches are of one class, and the last one has 2 of its 119 rows.
    lines = VALUES["table"].splitlines()
    place = lines[0].split(",").index("two")
    (tmp_path / "sorted.csv").write_text("\n".join([lines[0], *sorted(lines[1:], key=lambda row: row.split(",")[place])]) + "\n")
    words = ["--only", "initial-loss,resume,batch-variety,input-independent"]
    for batch in [119, 1000]:
        text = millrace("check", recipes["two"], f"data.train={tmp_path}/sorted.csv", f"train.batch={batch}", *words).stdout
        assert "4 passed" in text, text
