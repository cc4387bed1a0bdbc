"""Learning curves: trainings of several sizes, and what they say of larger ones (millrace scale)."""

import json
import re
import signal
import subprocess
import time

from conftest import write_texts
from test_sample import CLASS, write_table
from test_train import letters  # noqa: F401



def test_letters(millrace, letters, tmp_path):  # noqa: F811
    recipe = tmp_path / "letters.toml"
    recipe.write_text(f'[data]\ntrain = "{letters}/train"\ntest = "{letters}/test"\n[input]\nkind = "picture"\n[output]\nkind = "class"\n'
                      '[model]\nlayers = ["max-pool 2", "flatten", "linear 10"]\n[train]\nbatch = 16\nepochs = 4\noptimizer = { kind = "adamw", lr = 1e-3 }\n')
    folder = tmp_path / "scale"
    said = millrace("scale", recipe, "--out", folder, "--svg", tmp_path / "s.svg").stdout
    assert "law:" in said and "10 times the data: accuracy" in said and "1/16" in said
    assert (tmp_path / "s.svg").read_text().startswith("<svg")
    runs = sorted(path.name for path in folder.iterdir() if path.is_dir())
    assert runs == sorted([f"data-1_{part}-seed-{seed}" for part in (2, 4, 8, 16) for seed in (1, 2)] + ["data-1-seed-1"])
    before = {name: (folder / name / "metrics.jsonl").stat().st_mtime_ns for name in runs}
    found = json.loads(millrace("scale", recipe, "--out", folder, "--json").stdout)
    assert before == {name: (folder / name / "metrics.jsonl").stat().st_mtime_ns for name in runs}
    assert len(found["trainings"]) == 9 and found["complete"] and found["metric"] == "accuracy"
    for larger in found["larger"]:
        assert larger["low"] <= larger["value"] <= larger["high"]
    small = [each["value"] for each in found["trainings"] if each["size"] < 0.1]
    assert max(small) < found["trainings"][-1]["value"]
    assert "another recipe" in millrace("scale", recipe, "train.batch=8", "--out", folder, code=1).stderr
    # A part gets more epochs, so that its steps are a quarter of the whole's.
    assert re.search(r"^epochs = 16", (folder / "data-1_16-seed-1/recipe.toml").read_text(), re.M)


def test_little_is_said_of_few_points_and_short_trainings(millrace, tmp_path):
    recipe = write_table(tmp_path, CLASS)
    said = millrace("scale", recipe, "train.epochs=6", "--seeds", "1", "--sizes", "1/4,1/2,1", "--metric", "log-loss", "--out", tmp_path / "s").stdout
    assert "this says little: too few points" in said
    assert "trainings are far from converged" in said
    assert "above 0 and at most 1" in millrace("scale", recipe, "--sizes", "1/4,2", "--out", tmp_path / "t", code=1).stderr
    assert "is no size" in millrace("scale", recipe, "--sizes", "half", "--out", tmp_path / "t", code=1).stderr
    assert "no test set" in millrace("scale", recipe, "data.test_share=0", "--out", tmp_path / "t", code=1).stderr
    assert "model.kind" in millrace("scale", recipe, "--by", "model.width", "--out", tmp_path / "t", code=1).stderr


def test_widths_of_a_model(millrace, tmp_path):

    write_texts(tmp_path)
    recipe = tmp_path / "messages.toml"
    recipe.write_text(f'[data]\ntrain = "{tmp_path}/messages.tsv"\ntest_share = 0.3\n[output]\ncolumn = "label"\n[model]\nkind = "bag"\nwidth = 8\n'
                      "[train]\nepochs = 1\nbatch = 32\n")
    found = json.loads(millrace("scale", recipe, "--by", "model.width", "--metric", "log-loss", "--out", tmp_path / "s", "--json").stdout)
    assert sorted({each["size"] for each in found["trainings"]}) == [0.25, 0.5, 1, 2]
    assert re.search(r"^width = 2$", (tmp_path / "s/model.width-1_4-seed-1/recipe.toml").read_text(), re.M)


def test_ctrl_c_loses_nothing(millrace, tmp_path, binary):
    recipe = write_table(tmp_path, CLASS)
    arguments = ["scale", recipe, "train.epochs=60", "--metric", "log-loss", "--seeds", "1", "--out", tmp_path / "s"]

    process = subprocess.Popen([str(binary), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    first = tmp_path / "s/data-1_16-seed-1/model.onnx"
    while not first.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130 and "the same command goes on" in process.stderr.read()
    before = first.stat().st_mtime_ns
    assert "law:" in millrace(*arguments).stdout
    assert first.stat().st_mtime_ns == before
