"""Looking at what training sees: data stat, show and why; orders and weights of samples in a training."""

import io
import json
import shutil
import tarfile

import numpy as np
import pytest
from PIL import Image

RECIPE = """
[data]
train = "{data}"
[model]
layers = ["conv 4 3 stride=2", "relu", "global-avg-pool", "linear 3"]
[train]
epochs = 3
batch = 8
optimizer = {{ kind = "sgd", lr = 0.1, momentum = 0.9 }}
"""


def add(tar, name, content):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    """40 pictures of three classes in a WebDataset, with their weight (.count, always 2) and a score
    (.index)."""
    path = tmp_path_factory.mktemp("look") / "x.tar"
    random = np.random.default_rng(5)
    with tarfile.open(path, "w") as tar:
        for i in range(40):
            pixels = (random.integers(0, 60, (20, 24, 3)) + 60 * (i % 3)).astype(np.uint8)
            picture = io.BytesIO()
            Image.fromarray(pixels).save(picture, "PNG")
            add(tar, f"{i:04}.png", picture.getvalue())
            add(tar, f"{i:04}.cls", str(i % 3).encode())
            add(tar, f"{i:04}.count", b"2")
            add(tar, f"{i:04}.index", str(i % 4).encode())
    return path


@pytest.fixture
def recipe(shard, tmp_path):
    path = tmp_path / "r.toml"
    path.write_text(RECIPE.format(data=shard))
    return path


def losses(run):
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [line["loss"] for line in lines if "loss" in line]


def test_why_names_the_samples_of_a_step_and_writes_them(millrace, recipe, shard, tmp_path):
    millrace("train", recipe, "--out", tmp_path / "run")
    why = json.loads(millrace("data", "why", tmp_path / "run", "--step", 7, "--json", "--write", tmp_path / "w").stdout)
    assert (why["epoch"], why["position"], len(why["samples"])) == (1, 8, 8)
    with tarfile.open(shard) as tar:
        for i, sample in enumerate(why["samples"]):
            number = sample["index"]
            assert f"{number:04}" in sample["name"] and sample["class"] == str(number % 3)
            stored = Image.open(io.BytesIO(tar.extractfile(f"{number:04}.png").read()))
            written = Image.open(tmp_path / f"w/{i:04}-{number}.png")
            assert np.array_equal(np.asarray(stored), np.asarray(written))
    epoch = [json.loads(millrace("data", "why", recipe, "--step", s, "--json").stdout)["samples"] for s in range(6, 11)]
    assert sorted(sample["index"] for step in epoch for sample in step) == list(range(40))
    assert "position" in millrace("data", "why", recipe).stdout
    assert "counted from 1" in millrace("data", "why", recipe, "--step", 0, code=1).stderr


def test_show_draws_the_augmented_batch(millrace, recipe, tmp_path):
    text = millrace("data", "show", recipe, 'input.augment=["flip"]', "-o", tmp_path / "b.png", "--columns", 3).stdout
    sheet = Image.open(tmp_path / "b.png")
    # 24x20, four times as large, and maybe with the classes below.
    assert sheet.width == 3 * 96 + 4 and sheet.height >= 3 * 80 + 4 and sheet.mode == "RGB"
    assert len(text.splitlines()[0].split()) == 3 and len(text.splitlines()) == 4
    assert "--columns takes" in millrace("data", "show", recipe, "--columns", 0, code=1).stderr


def test_show_replaces_its_own_pictures_and_no_others(millrace, recipe, shard, tmp_path):
    millrace("data", "show", recipe, "-o", tmp_path / "b.png")
    first = (tmp_path / "b.png").read_bytes()
    assert Image.open(tmp_path / "b.png").info["Software"] == "millrace data show"
    millrace("data", "show", recipe, "--step", 2, "-o", tmp_path / "b.png")
    assert (tmp_path / "b.png").read_bytes() != first
    Image.new("RGB", (9, 9)).save(tmp_path / "mine.png")
    mine = (tmp_path / "mine.png").read_bytes()
    assert "--force replaces it" in millrace("data", "show", recipe, "-o", tmp_path / "mine.png", code=1).stderr
    assert (tmp_path / "mine.png").read_bytes() == mine
    # The data are not replaced at all, whatever they are called.
    (tmp_path / "link.png").symlink_to(shard)
    before = shard.read_bytes()
    for out in (tmp_path / "link.png", shard):
        assert "would be lost" in millrace("data", "show", recipe, "-o", out, "--force", code=1).stderr
    assert shard.read_bytes() == before
    millrace("data", "show", recipe, "-o", tmp_path / "mine.png", "--force")
    assert (tmp_path / "mine.png").read_bytes() != mine


def test_show_draws_the_pixels_of_the_samples(millrace, recipe, shard, tmp_path):
    millrace("data", "show", recipe, "--step", 2, "-o", tmp_path / "b.png", "--columns", 3)
    sheet = np.asarray(Image.open(tmp_path / "b.png"))
    samples = json.loads(millrace("data", "why", recipe, "--step", 2, "--json").stdout)["samples"]
    cell = (sheet.shape[0] + 2) // 3  # with the class below where it is drawn, and a gap
    with tarfile.open(shard) as tar:
        for i, sample in enumerate(samples):
            stored = np.asarray(Image.open(io.BytesIO(tar.extractfile(f"{sample['index']:04}.png").read())))
            top, left = i // 3 * cell, i % 3 * 98
            assert np.array_equal(sheet[top:top + 80, left:left + 96], stored.repeat(4, 0).repeat(4, 1))


def test_weights_of_samples_reach_the_loss(millrace, recipe, tmp_path):
    for name, change in {"plain": [], "twice": ["data.sample_weight=count"], "smooth": ["output.loss.label_smoothing=0.2"],
                         "smooth twice": ["data.sample_weight=count", "output.loss.label_smoothing=0.2"]}.items():
        millrace("train", recipe, "train.steps=1", *change, "--out", tmp_path / name)
    for one, two in (("plain", "twice"), ("smooth", "smooth twice")):
        assert losses(tmp_path / two)[0] == pytest.approx(2 * losses(tmp_path / one)[0], rel=1e-5)
    error = millrace("train", recipe, "data.sample_weight=counts", "--out", tmp_path / "bad", code=1).stderr
    assert "did you mean 'count'" in error


@pytest.mark.parametrize("order", ["class-balanced", "stratified", "block-shuffle 5 3", "quota 0=9 2=9", "weighted index",
                                   "importance index"])
def test_orders_train_and_resume_as_if_uninterrupted(millrace, recipe, tmp_path, order):
    change = [f"data.order={order}", "input.augment=[flip]", "train.checkpoint_steps=6", "train.steps=14"]
    millrace("train", recipe, *change, "--out", tmp_path / "whole")
    whole = sorted((tmp_path / "whole/checkpoints").iterdir())
    assert whole and all(np.isfinite(losses(tmp_path / "whole")))
    # As if it had been killed after step 13: the last checkpoint is that of step 12.
    part = tmp_path / "part"
    shutil.copytree(tmp_path / "whole", part)
    (part / "checkpoints" / whole[-1].name).unlink()
    (part / "model.onnx").unlink()
    assert "going on from step 12 of 14" in millrace("train", part, "--resume").stdout
    assert (part / "checkpoints" / whole[-1].name).read_bytes() == whole[-1].read_bytes()
    epochs = [[line["train/loss"] for line in map(json.loads, open(run / "metrics.jsonl")) if "train/loss" in line] for run in (tmp_path / "whole", part)]
    assert epochs[0] == epochs[1] and len(epochs[0]) > 1


def test_an_order_that_cannot_be_is_refused(millrace, recipe, tmp_path):
    assert "did you mean" in millrace("train", recipe, "data.order=shufle", "--out", tmp_path / "x", code=1).stderr


def test_stat_finds_what_is_in_both_sets(millrace, letters_pair):
    train, test = letters_pair
    text = millrace("data", "stat", train, test).stdout
    assert "1 groups across sources" in text
    found = json.loads(millrace("data", "stat", train, test, "--json").stdout)
    assert found["sources"][0]["pictures"] == 21 and found["sources"][0]["classes"] == {"A": 11, "B": 10}
    assert len(found["same"]) == 1 and found["same"][0]["sources_differ"]


def test_stat_of_pictures_without_classes(millrace, letters_pair, tmp_path):
    """Of a tar, beside pictures with classes, and of a folder."""
    train, _ = letters_pair
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        for i, path in enumerate(sorted((train / "B").iterdir())):
            tar.add(path, f"{i}.jpg")
    (tmp_path / "flat").mkdir()
    for path in (train / "B").iterdir():
        (tmp_path / "flat" / path.name).write_bytes(path.read_bytes())
    for source in (tmp_path / "x.tar", tmp_path / "flat"):
        assert "10 pictures, no classes" in millrace("data", "stat", source).stdout
        found = json.loads(millrace("data", "stat", source, train, "--json").stdout)
        assert [one["pictures"] for one in found["sources"]] == [10, 21]
        assert "classes" not in found["sources"][0] and found["sources"][1]["classes"] == {"A": 11, "B": 10}
        assert len([twins for twins in found["same"] if twins["sources_differ"]]) == 10


@pytest.fixture(scope="module")
def letters_pair(binary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    random = np.random.default_rng(8)
    for split, count in (("train", 10), ("test", 5)):
        for label in "AB":
            (folder / split / label).mkdir(parents=True)
            for i in range(count):
                Image.fromarray(random.integers(0, 256, (32, 32), dtype=np.uint8)).save(folder / split / label / f"{i}.jpg")
    (folder / "train/A/leak.jpg").write_bytes((folder / "test/B/3.jpg").read_bytes())
    return folder / "train", folder / "test"
