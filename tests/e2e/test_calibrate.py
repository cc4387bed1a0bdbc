"""millrace calibrate: fitted on validation data, kept in the run, and used by eval, predict and the exported
model."""

import csv
import json
import math
import random
import subprocess

import numpy as np
import onnxruntime
import pytest

RECIPE = """
[data]
train = "train.csv"
test = "valid.csv"
[input]
kind = "table"
columns = ["a", "b", "c"]
[output]
{output}
[model]
kind = "table"
width = 64
[train]
epochs = {epochs}
batch = 32
optimizer = {{ kind = "adam", lr = 2e-2 }}
"""


def write_rows(path, rows, seed):
    draw = random.Random(seed)
    with open(path, "w") as file:
        file.write("a,b,c,kind,tags,third\n")
        for _ in range(rows):
            a, b, c = (draw.gauss(0, 1) for _ in range(3))
            rare = draw.random() < 1 / (1 + math.exp(2.5 - 1.5 * a))
            tags = [name for name, x in (("high", b), ("far", c)) if draw.random() < 1 / (1 + math.exp(1 - x))]
            third = max(range(3), key=lambda k: (a, b, c)[k] + draw.gauss(0, 1))
            file.write(f"{a:.4f},{b:.4f},{c:.4f},{'yes' if rare else 'no'},\"{','.join(tags)}\",k{third}\n")


@pytest.fixture(scope="module")
def desk(binary, tmp_path_factory):
    """Overfitted runs of two classes, three classes, and labels: their probabilities are too sure."""
    folder = tmp_path_factory.mktemp("calibrate")
    for name, rows, seed in (("train", 300, 1), ("valid", 1500, 2), ("fresh", 1500, 3)):
        write_rows(folder / f"{name}.csv", rows, seed)
    outputs = {"kind": 'kind = "class"\ncolumn = "kind"', "third": 'kind = "class"\ncolumn = "third"', "tags": 'kind = "classes"\ncolumn = "tags"'}
    for name, output in outputs.items():
        (folder / f"{name}.toml").write_text(RECIPE.format(output=output, epochs=12))
        subprocess.run([binary, "train", f"{name}.toml", "--out", name], cwd=folder, check=True, capture_output=True)
    return folder


def run(binary, folder, *arguments, code=0):
    done = subprocess.run([binary, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done


def evaluated(binary, folder, model, data, *metrics):
    return json.loads(run(binary, folder, "eval", model, data, f"eval.metrics=[{','.join(metrics)}]", "--json").stdout)


def served(binary, folder, model):
    """What predict says of fresh.csv, and what ONNX Runtime makes of the exported model."""
    told = [json.loads(line) for line in run(binary, folder, "predict", model, "fresh.csv", "--json", "--top", "9").stdout.splitlines()]
    run(binary, folder, "export", model, f"{model}.onnx")
    session = onnxruntime.InferenceSession(folder / f"{model}.onnx")
    rows = list(csv.DictReader(open(folder / "fresh.csv")))
    numbers = np.array([[float(row[c]) for c in "abc"] for row in rows])
    names = [output.name for output in session.get_outputs()]
    return told, dict(zip(names, session.run(names, {"numbers": numbers}))), session.get_modelmeta().custom_metadata_map


@pytest.mark.parametrize("method", ["temperature", "isotonic"])
@pytest.mark.parametrize("model", ["kind", "third", "tags"])
def test_probabilities_mean_more_and_serve_alike(binary, desk, model, method):
    for left in desk.glob(f"{model}/calibration.json"):
        left.unlink()
    before = evaluated(binary, desk, model, "fresh.csv", "log-loss", "ece")
    assert "calibrated" not in before
    said = json.loads(run(binary, desk, "calibrate", model, "--method", method, "--json").stdout)
    fitted, = said["outputs"]
    assert fitted["method"] == method and fitted["targets"] == 1500 and fitted["fitted"].startswith(method)
    assert fitted["after"]["log-loss"] < fitted["before"]["log-loss"]
    low, high = fitted["after"]["intervals"]["log-loss"]
    assert low < fitted["after"]["log-loss"] < high
    after = evaluated(binary, desk, model, "fresh.csv", "log-loss", "ece")
    assert after["log-loss"] < 0.98 * before["log-loss"]
    if method == "isotonic":  # a temperature cannot shift what is told too often
        assert after["ece"] < 0.7 * before["ece"]
    assert after["calibrated"] == [fitted["fitted"]]
    # What was said of the data that it was fitted on is what eval says of them.
    same = evaluated(binary, desk, model, "valid.csv", "log-loss")
    assert same["log-loss"] == pytest.approx(fitted["after"]["log-loss"], rel=1e-4)
    told, onnx, metadata = served(binary, desk, model)
    names = json.loads(metadata["classes"])
    probabilities = np.array([[row["probabilities"][name] for name in names] for row in told])
    np.testing.assert_allclose(onnx["probabilities"], probabilities, atol=2e-5)
    if model != "tags":
        np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-6)
    assert "decisions" not in onnx and json.loads(metadata["calibration"])


def test_temperature_is_the_best_of_all(binary, desk):
    run(binary, desk, "calibrate", "third", "valid.csv")
    kept = json.loads((desk / "third/calibration.json").read_text())
    temperature = kept["outputs"][""]["temperature"]
    loss = {}
    for factor in (0.95, 1, 1.05):
        kept["outputs"][""]["temperature"] = temperature * factor
        (desk / "third/calibration.json").write_text(json.dumps(kept))
        loss[factor] = evaluated(binary, desk, "third", "valid.csv", "log-loss")["log-loss"]
    assert loss[1] < loss[0.95] and loss[1] < loss[1.05]


def test_thresholds_are_used_everywhere(binary, desk):
    """A rare class: told at a lower probability, F1 is higher on fresh rows, and all say the same of each
    row."""
    run(binary, desk, "calibrate", "kind")
    before = evaluated(binary, desk, "kind", "fresh.csv", "f1", "log-loss")
    done = run(binary, desk, "calibrate", "kind", "--method", "threshold")
    assert "threshold 0." in done.stdout and "temperature" in done.stdout and "with others" in done.stdout
    after = evaluated(binary, desk, "kind", "fresh.csv", "f1", "log-loss")
    assert after["f1"] > before["f1"] + 0.03 and after["log-loss"] == before["log-loss"]
    told, onnx, metadata = served(binary, desk, "kind")
    names, threshold = json.loads(metadata["classes"]), json.loads(metadata["calibration"])["thresholds"][0]
    assert threshold < 0.45
    assert [row["class"] for row in told] == [names[i] for i in onnx["decisions"]]
    assert any(row["class"] == "yes" and row["probabilities"]["yes"] < 0.5 for row in told)
    report, = after["classes"]
    rows = list(csv.DictReader(open(desk / "fresh.csv")))
    confusion = [[0, 0], [0, 0]]
    for row, one in zip(rows, told):
        confusion[names.index(row["kind"])][names.index(one["class"])] += 1
    assert report["confusion"] == confusion
    assert report["each"][1]["f1"]["value"] == after["f1"]
    text = run(binary, desk, "eval", "kind", "fresh.csv").stdout
    assert "calibrated: temperature" in text and "precision" in text and "told" in text


def test_each_label_has_a_threshold(binary, desk):
    said = json.loads(run(binary, desk, "calibrate", "tags", "--method", "threshold", "--metric", "macro-f1", "--json").stdout)
    assert said["outputs"][0]["after"]["macro-f1"] > said["outputs"][0]["before"]["macro-f1"]
    told, onnx, metadata = served(binary, desk, "tags")
    names = json.loads(metadata["classes"])
    assert [row["classes"] for row in told] == [[n for n, holds in zip(names, row) if holds] for row in onnx["decisions"]]


def test_what_it_cannot_do_it_says(binary, desk):
    assert "decides between two classes" in run(binary, desk, "calibrate", "third", "--method", "threshold", code=1).stderr
    assert "did you mean 'isotonic'" in run(binary, desk, "calibrate", "kind", "--method", "isotonik", code=1).stderr
    assert "does not apply" in run(binary, desk, "calibrate", "kind", "--method", "threshold", "--metric", "rmse", code=1).stderr
    # Before it looks for the data.
    assert "did you mean 'isotonic'" in run(binary, desk, "calibrate", "kind", "none.csv", "--method", "isotonik", code=1).stderr
    error = run(binary, desk, "calibrate", "kind", "--method", "threshold", "--metric", "log-loss", code=1).stderr
    assert "the same at every threshold" in error
    # Its own data cannot measure it.
    run(binary, desk, "calibrate", "kind")
    assert "other samples must say" in run(binary, desk, "eval", "kind").stdout
    assert "other samples must say" in run(binary, desk, "eval", "kind", desk / "valid.csv").stdout
    assert "other samples must say" not in run(binary, desk, "eval", "kind", "fresh.csv").stdout
    (desk / "kind/calibration.json").write_text("{")
    assert "calibration.json: is damaged" in run(binary, desk, "eval", "kind", code=1).stderr
    (desk / "kind/calibration.json").unlink()


def test_it_is_of_one_checkpoint(binary, desk):
    """Other weights are not calibrated by what was fitted for these; the model that training left is the new
    one."""
    models = []
    for method in ("temperature", "isotonic"):
        run(binary, desk, "calibrate", "third", "--method", method)
        models.append((desk / "third/model.onnx").read_bytes())
    assert models[0] != models[1]
    error = run(binary, desk, "eval", "third", "--checkpoint", "0", code=1).stderr
    assert "there is no" in error or "has no checkpoint" in error  # only the newest are kept
    run(binary, desk, "train", "--resume", "third", "train.epochs=13")
    done = run(binary, desk, "eval", "third")
    assert "does not fit the weights of step" in done.stdout and "calibrated:" not in done.stdout
