"""millrace check: what it prints, its exit code, the page about it, and its short form in train."""
import json
import random
import re

import pytest
from conftest import ROOT
from PIL import Image, ImageDraw

RECIPE = """
[data]
train = "{folder}/table.csv"
test_share = 0.25
[input]
kind = "table"
[output]
kind = "class"
column = "label"
[train]
epochs = 4
batch = 32
"""


def write_table(folder, extra=None):
    draw = random.Random(4)
    rows = ["a,b,label" if extra is None else "a,b,more,label"]
    for i in range(600):
        a, b = draw.uniform(-1, 1), draw.uniform(0, 3)
        label = "yes" if a + b + draw.uniform(-0.7, 0.7) > 1.5 else "no"
        more = [] if extra is None else [extra(a, label)]
        rows.append(",".join([f"{a:.5f}", f"{b:.5f}", *more, label]))
    (folder / "table.csv").write_text("\n".join(rows) + "\n")
    (folder / "recipe.toml").write_text(RECIPE.format(folder=folder))
    return folder / "recipe.toml"


def findings(millrace, recipe, *arguments, code=0):
    result = json.loads(millrace("check", recipe, *arguments, "--json", code=code).stdout)
    return {each["check"]: each for each in result["checks"]}


def test_the_page_has_a_paragraph_for_each_check_in_their_order(millrace):
    kinds = json.loads(millrace("check", "--list", "--json").stdout)
    page = (ROOT / "docs/check.md").read_text()
    parts = re.split(r"^### (.+)\n", page, flags=re.M)
    assert parts[1::2] == [kind["check"] for kind in kinds]
    assert all(len(text.strip()) > 80 for text in parts[2::2])
    listed = millrace("check", "--list").stdout
    assert all(kind["check"] in listed and kind["doc"] and kind["matters"] for kind in kinds)


def test_a_healthy_table_passes_everything(millrace, tmp_path):
    recipe = write_table(tmp_path)
    found = findings(millrace, recipe)
    assert {name: each["saw"] for name, each in found.items() if each["verdict"] in ("warn", "fail")} == {}
    text = millrace("check", recipe).stdout
    assert "pass batch-leakage" in re.sub(" +", " ", text) and "\033" not in text and "0 failed" in text


def test_a_failing_check_says_why_and_what_to_do(millrace, tmp_path):
    recipe = write_table(tmp_path, lambda a, label: "closed" if label == "yes" else "open")
    result = millrace("check", recipe, "--only", "giveaway,labels", code=1)
    assert "fail giveaway" in re.sub(" +", " ", result.stdout) and "why:" in result.stdout and "do:" in result.stdout
    assert "ladder" not in result.stdout
    assert "there is no check 'giveway'" in millrace("check", recipe, "--only", "giveway", code=1).stderr


@pytest.mark.parametrize("layers, check", [
    (["linear 16", "relu", "linear 2", "sigmoid"], None),
    (["linear 16", "sigmoid", "linear 16", "sigmoid", "linear 16", "sigmoid", "linear 16", "sigmoid", "linear 16", "sigmoid",
      "linear 16", "sigmoid", "linear 16", "sigmoid", "linear 2"], "signal-scale"),
])
def test_models_of_layers_are_looked_at(millrace, tmp_path, layers, check):
    recipe = write_table(tmp_path)
    recipe.write_text(recipe.read_text() + f"\n[model]\nlayers = {json.dumps(layers)}\n")
    found = findings(millrace, recipe, "--only", "signal-scale,batch-leakage,probabilities", code=None)
    assert found["batch-leakage"]["verdict"] == "pass"
    if check:
        assert found[check]["verdict"] in ("warn", "fail")


def test_train_begins_with_the_short_form(millrace, tmp_path):
    recipe = write_table(tmp_path)
    assert "check:" not in millrace("train", recipe, "--out", tmp_path / "well").stdout
    recipe = write_table(tmp_path, lambda a, label: "7")
    result = millrace("train", recipe, "train.steps=3", "--out", tmp_path / "run").stdout
    lines = [line for line in result.splitlines() if line.startswith("check: ")]
    assert len(lines) == 1 and lines[0].startswith("check: constant-columns: always the same: more")
    assert f"millrace check {recipe}" in result
    assert "check:" not in millrace("train", recipe, "train.steps=3", "--no-check", "--out", tmp_path / "quiet").stdout


def write_letters(folder, names):
    """Letters drawn a little off their place, in a folder each."""
    draw = random.Random(1)
    for part, count in (("train", 40), ("test", 10)):
        for name in names:
            (folder / part / name).mkdir(parents=True)
            for i in range(count):
                picture = Image.new("L", (16, 16))
                ImageDraw.Draw(picture).text((4 + draw.randint(-1, 1), 2 + draw.randint(-1, 1)), name[0], fill=draw.randint(180, 255))
                picture.save(folder / part / name / f"{i}.png")


@pytest.mark.parametrize("names, augment, tta, check, verdict", [
    (list("bdpqLJ"), ["flip"], "none", "augmentation", "fail"),
    (["left turn", "right turn", "none"], ["flip"], "none", "augmentation", "fail"),
    (list("34567"), ["alternating-flip"], "none", "augmentation", "fail"),
    (list("bdpqLJ"), [], "flip", "test-augmentation", "fail"),
    (["cat", "dog"], ["random-shift 1"], "flip", "test-augmentation", "warn"),
    (["cat", "dog"], ["flip"], "shift", "test-augmentation", "warn"),
    (["cat", "dog"], ["flip"], "flip", "test-augmentation", "pass"),
])
def test_changes_of_pictures(millrace, tmp_path, names, augment, tta, check, verdict):
    write_letters(tmp_path, names)
    (tmp_path / "recipe.toml").write_text(f"""
[data]
train = "{tmp_path}/train"
test = "{tmp_path}/test"
[input]
kind = "picture"
augment = {json.dumps(augment)}
tta = "{tta}"
[output]
kind = "class"
[model]
layers = ["flatten", "linear 16", "relu", "linear {len(names)}"]
[train]
batch = 16
""")
    assert findings(millrace, tmp_path / "recipe.toml", "--only", check, code=None)[check]["verdict"] == verdict


@pytest.mark.parametrize("separator, sequences, verdict", [("", "padded", "fail"), ("\\n", "padded", "pass"), ("", "buckets 2", "fail")])
def test_texts_need_an_end(millrace, tmp_path, separator, sequences, verdict):
    draw = random.Random(3)
    lines = ["text"] + [" ".join(draw.choices(["a", "king", "of", "no", "land"], k=draw.randint(2, 9))) for _ in range(200)]
    (tmp_path / "texts.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "recipe.toml").write_text(f"""
[data]
train = "{tmp_path}/texts.csv"
header = "yes"
[input]
kind = "tokens"
column = "text"
tokenizer = "byte"
sequences = "{sequences}"
separator = "{separator}"
length = 32
[model]
kind = "gpt"
width = 16
depth = 1
heads = 2
[train]
batch = 8
""")
    assert findings(millrace, tmp_path / "recipe.toml", "--only", "end-of-sequence", code=None)["end-of-sequence"]["verdict"] == verdict


@pytest.mark.parametrize("name", ["adult", "adult-boosting", "adult-linear", "criteo-dlrm", "criteo-fm", "houses", "houses-boosting", "mnist", "ranking", "ranking-boosting", "sms-lstm",
                                  "sms-ngrams", "sms-spam", "spoken-digits"])
def test_no_check_fails_on_an_example(millrace, data, name):
    found = findings(millrace, ROOT / f"examples/{name}.toml")
    assert {check: each["saw"] for check, each in found.items() if each["verdict"] == "fail"} == {}
