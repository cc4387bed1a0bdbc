"""Learning curves: trainings of several sizes, and what they say of larger ones (millrace scale)."""

import json
import re
import signal
import subprocess
import time

from conftest import write_rankings, write_texts
from test_sample import CLASS, write_table
from test_train import letters  # noqa: F401



def test_letters(millrace, letters, tmp_path):  # noqa: F811
    recipe = tmp_path / "letters.toml"
    recipe.write_text(f'[data]\ntrain = "{letters}/train"\ntest = "{letters}/test"\n[input]\nkind = "picture"\n[output]\nkind = "class"\n'
                      '[model]\nlayers = ["max-pool 2", "flatten", "linear 10"]\n[train]\nbatch = 16\nepochs = 4\noptimizer = { kind = "adamw", lr = 1e-3 }\n')
    folder = tmp_path / "scale"
    said = millrace("scale", recipe, "--out", folder, "--svg", tmp_path / "s.svg").stdout
    assert "law:" in said and "10 times the data: accuracy" in said and "1/16" in said
    svg = (tmp_path / "s.svg").read_text()
    assert svg.startswith("<svg") and svg.count("<circle") >= 9  # one for each training
    assert svg.count("<polyline") == 1 and svg.count("<polygon") == 1  # the curve, and where it may lie
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


def test_parts_smaller_than_a_batch_have_smaller_ones(millrace, tmp_path):
    recipe = write_table(tmp_path, CLASS)
    arguments = ["scale", recipe, "train.epochs=1", "train.batch=200", "--metric", "log-loss", "--seeds", "1", "--out", tmp_path / "s"]
    found = json.loads(millrace(*arguments, "--json").stdout)
    assert len(found["trainings"]) == 5 and found["left_out"] == []
    # Of 800 rows, 1/8 and 1/16 do not fill 200.
    batches = {part: int(re.search(r"^batch += +(\d+)", (tmp_path / f"s/data-1_{part}-seed-1/recipe.toml").read_text(), re.M)[1]) for part in (2, 4, 8, 16)}
    assert batches[2] == 200 and 80 < batches[8] < 120 and 40 < batches[16] < 60
    assert len(found["small_batches"]) == sum(batch < 200 for batch in batches.values())
    assert f"has batches of {batches[16]}, as its samples do not fill one of 200" in millrace(*arguments).stdout
    said = millrace("train", recipe, "--sample", "5%", "train.batch=200", "--out", tmp_path / "run").stdout
    assert re.search(r"train.batch = \d\d: the \d\d rows of data.sample do not fill a batch of 200", said)


def test_rankings_are_scaled_by_whole_queries(millrace, tmp_path):
    write_rankings(tmp_path)
    recipe = tmp_path / "r.toml"
    recipe.write_text(f'[data]\ntrain = "{tmp_path}/rank.train"\ntest = "{tmp_path}/rank.test"\n[output]\nkind = "rank"\n[model]\nkind = "table"\n'
                      "width = 8\ndepth = 1\n[train]\nepochs = 1\nbatch = 8\n[eval]\nbatch = 20\n")
    found = json.loads(millrace("scale", recipe, "--seeds", "1", "--sizes", "1/15,1/4,1/2,1", "--out", tmp_path / "s", "--json").stdout)
    assert len(found["trainings"]) == 4, found["left_out"]
    said = millrace("train", recipe, "--sample", "25%", "--out", tmp_path / "run").stdout
    assert "data.sample = 25%: 15 of 60 queries to train on" in said, said
