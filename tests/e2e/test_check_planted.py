"""Mistakes that people make in tables, pictures, texts and sounds, each of which a check must find; and the
same data without any."""

import itertools
import random
import wave

import numpy as np
import pytest
from PIL import Image
from test_check import findings

NAMES = {"table": ["no", "yes", "maybe"], "pictures": ["rose", "sky", "leaf", "sun"], "texts": ["ham", "spam"], "sounds": ["low", "mid", "high"]}
TRAIN = {
    "table": "batch = 64\nepochs = 2",
    "pictures": "batch = 32\nepochs = 2",
    "texts": "batch = 32\nepochs = 2",
    "sounds": 'batch = 32\nepochs = 2\noptimizer = { kind = "adamw", lr = 3e-3 }',
}
INPUT = {
    "table": "",
    "pictures": '[input]\nkind = "picture"\n[model]\nlayers = ["conv 16 3", "batch-norm", "relu", "max-pool 2", "conv 16 3", "relu", "global-avg-pool", "linear 4"]',
    "texts": '[input]\nkind = "text"\ncolumn = "message"\ntokenizer = "byte"\nsequences = "padded"\nlength = {length}\n[model]\nkind = "bag"\nwidth = 32',
    "sounds": '[input]\nkind = "sound"\nrate = 8000\nseconds = 0.4\nmels = 32\n[model]\nlayers = ["flatten", "linear 16", "relu", "linear 3"]',
}


def table(path, seed, count, label, change=lambda x: x, order=None):
    draw = np.random.default_rng(seed)
    rows = []
    for i in range(count):
        x = draw.normal(size=3)
        y = 0 if x[0] < -0.4 else 1 if x[0] + 0.3 * x[1] < 0.5 else 2
        rows.append((y, ",".join(f"{v:.4f}" for v in change(x)), label(y)))
    if order:
        rows.sort(key=order)
    path.write_text("a,b,c,label\n" + "".join(f"{x},{y}\n" for _, x, y in rows))


def pictures(path, seed, count, label, change=lambda x: x, order=None):
    draw = np.random.default_rng(seed)
    for i in range(count // 4):
        y = i % 4
        pixels = np.clip(np.array([[200, 60, 60], [60, 60, 200], [60, 200, 60], [180, 180, 60]][y]) + draw.normal(0, 40, (16, 16, 3)), 0, 255)
        folder = path / label(y)
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(change(pixels.astype("uint8"))).save(folder / f"{i}.png")


def texts(path, seed, count, label, change=lambda x: x, order=None):
    draw = random.Random(seed)
    words = "the king of no land sings to his horse and never sleeps".split()
    lines = ["label\tmessage\n"]
    for i in range(count // 3):
        text = " ".join(draw.choices(words, k=6)) + (" win a prize" if i % 2 else " see you soon")
        lines.append(f"{label(i % 2)}\t{change(text)}\n")
    path.write_text("".join(lines))


def sounds(path, seed, count, label, change=lambda x: x, order=None):
    draw = np.random.default_rng(seed)
    for i in range(count // 6):
        pitch = [300, 800, 2000][i % 3] * (1 + 0.05 * draw.normal())
        values = 9000 * np.sin(2 * np.pi * pitch * np.arange(3200) / 8000 + draw.uniform(0, 6)) + 900 * draw.normal(size=3200)
        folder = path / label(i % 3)
        folder.mkdir(parents=True, exist_ok=True)
        with wave.open(str(folder / f"{i}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(8000)
            file.writeframes(change(values).astype("<i2").tobytes())


MAKE = {"table": table, "pictures": pictures, "texts": texts, "sounds": sounds}


def recipe_of(folder, kind, data="", train="", length=64, **how):
    """A recipe for training and test data of a kind; how: training and tests, each what is said of labels,
    values and order."""
    names = NAMES[kind]
    ending = {"table": ".csv", "texts": ".tsv"}.get(kind, "")
    for part, seed, count in (("training", 1, 2400), ("tests", 2, 1200)):
        MAKE[kind](folder / (part + ending), seed, count, **{"label": lambda y: names[y], **how.get(part, {})})
    recipe = folder / "recipe.toml"
    recipe.write_text(f'[data]\ntrain = "{folder}/training{ending}"\ntest = "{folder}/tests{ending}"\n{data}\n{INPUT[kind].format(length=length)}\n'
                      f'[output]\nkind = "class"\n{"" if kind in ("pictures", "sounds") else "column = {}".format(chr(34) + "label" + chr(34))}\n[train]\n{train or TRAIN[kind]}\n')
    return recipe


def verdict(millrace, recipe, check):
    return findings(millrace, recipe, "--only", check, code=None)[check]


def shuffled(kind):
    draw = random.Random(4)
    return lambda y: draw.choice(NAMES[kind])


KINDS = ["table", "pictures", "texts", "sounds"]


@pytest.mark.parametrize("kind", KINDS)
def test_healthy_data_pass(millrace, tmp_path, kind):
    found = findings(millrace, recipe_of(tmp_path, kind), "--only", "test-agreement,batch-variety,updates,preprocessing,labels")
    assert {name: each["saw"] for name, each in found.items() if each["verdict"] in ("warn", "fail")} == {}


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_that_hardly_a_sample_has(millrace, tmp_path, kind):
    """And a test set that has another share of it: a sorted set that was cut in two."""
    names, number = NAMES[kind], itertools.count()
    rare = {"label": lambda y: names[0] if y == 1 and next(number) % 50 != 7 else names[y]}
    found = verdict(millrace, recipe_of(tmp_path, kind, training=rare), "labels")
    assert found["verdict"] in ("warn", "fail"), found["saw"]


@pytest.mark.parametrize("kind", KINDS)
def test_samples_of_training_among_those_to_test_on(millrace, tmp_path, kind):
    recipe = recipe_of(tmp_path, kind)
    if kind in ("table", "texts"):
        tests = tmp_path / ("tests.csv" if kind == "table" else "tests.tsv")
        lines = (tmp_path / tests.name.replace("tests", "training")).read_text().splitlines()
        tests.write_text("\n".join([*tests.read_text().splitlines(), *lines[1:120]]) + "\n")
    else:
        for i, path in enumerate(sorted((tmp_path / "training").rglob("*.*"))[::10]):
            (tmp_path / "tests" / path.parent.name / f"copy{i}{path.suffix}").write_bytes(path.read_bytes())
    found = verdict(millrace, recipe, "overlap")
    assert found["verdict"] in ("warn", "fail"), found["saw"]


@pytest.mark.parametrize("kind", KINDS)
def test_classes_of_the_test_set_in_another_order(millrace, tmp_path, kind):
    names = NAMES[kind]
    found = verdict(millrace, recipe_of(tmp_path, kind, tests={"label": lambda y: names[(y + 1) % len(names)]}), "test-agreement")
    assert found["verdict"] == "fail" and "each other's names" in found["saw"]


@pytest.mark.parametrize("kind", ["table", "texts", "sounds"])
def test_labels_mixed_up_against_their_rows_in_one_file(millrace, tmp_path, kind):
    for part in ("training", "tests"):
        (tmp_path / part).mkdir()
        found = verdict(millrace, recipe_of(tmp_path / part, kind, **{part: {"label": shuffled(kind)}}), "test-agreement")
        assert found["verdict"] == "warn", found["saw"]


@pytest.mark.parametrize("kind, change", [
    ("table", lambda x: x[::-1]),  # columns in another order under the same names
    ("pictures", lambda x: x[:, :, ::-1].copy()),  # BGR
    ("pictures", lambda x: 255 - x),
    ("sounds", lambda x: np.repeat(x, 3)[:3200]),  # another rate
])
def test_values_of_the_test_set_made_in_another_way(millrace, tmp_path, kind, change):
    assert verdict(millrace, recipe_of(tmp_path, kind, tests={"change": change}), "test-agreement")["verdict"] in ("warn", "fail")


@pytest.mark.parametrize("kind, change", [
    ("table", lambda x: 100 * x),
    ("pictures", lambda x: x // 255),  # divided by 255 once more
    ("sounds", lambda x: x / 3000),
])
def test_another_scale_in_the_test_set(millrace, tmp_path, kind, change):
    assert verdict(millrace, recipe_of(tmp_path, kind, tests={"change": change}), "preprocessing")["verdict"] in ("warn", "fail")


@pytest.mark.parametrize("kind, order", [("table", lambda row: row[0]), ("pictures", None), ("sounds", None)])
def test_sorted_and_not_shuffled(millrace, tmp_path, kind, order):
    recipe = recipe_of(tmp_path, kind, 'order = "sequential"', training={"order": order})
    assert verdict(millrace, recipe, "batch-variety")["verdict"] == "fail"


def test_texts_cut_to_their_greeting_and_black_pictures(millrace, tmp_path):
    (tmp_path / "t").mkdir()
    greeting = {"change": lambda text: "dear customer of our bank: " + text}
    assert verdict(millrace, recipe_of(tmp_path / "t", "texts", length=16, training=greeting, tests=greeting), "batch-variety")["verdict"] == "fail"
    (tmp_path / "p").mkdir()
    assert verdict(millrace, recipe_of(tmp_path / "p", "pictures", training={"change": lambda x: x * 0}), "batch-variety")["verdict"] == "fail"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("train", [
    'clip_norm = 1e-9\noptimizer = { kind = "sgd", lr = 0.1 }',
    'optimizer = { kind = "adamw", lr = 4 }',
    'optimizer = { kind = "adamw", lr = 1e-3, weight_decay = 500 }',
])
def test_steps_that_go_nowhere_or_too_far(millrace, tmp_path, kind, train):
    found = verdict(millrace, recipe_of(tmp_path, kind, train="batch = 32\nepochs = 2\n" + train), "updates")
    assert found["verdict"] == "fail" and found["advice"], found["saw"]
