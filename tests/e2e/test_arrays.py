"""Training on tables and on sounds."""

import io
import json
import math
import random
import re
import struct
import tarfile

import pytest
from test_inputs import resumed

RECIPE = """
[data]
train = "{train}"
test = "{test}"
[input]
kind = "table"
[output]
kind = "class"
column = "kind"
[model]
kind = "table"
width = 16
[train]
epochs = 8
batch = 32
optimizer = {{ kind = "adamw", lr = 1e-2 }}
[eval]
metrics = ["accuracy", "log-loss"]
"""


@pytest.fixture
def table(tmp_path):
    """The class follows from a number and a category; some of both are missing."""
    random.seed(4)
    for name, rows in (("train", 600), ("test", 200)):
        with open(tmp_path / f"{name}.csv", "w") as file:
            file.write("size,colour,noise,kind\n")
            for _ in range(rows):
                size, colour = random.uniform(-9, 9), random.choice(["red", "green", "blue"])
                kind = "yes" if size > {"red": 3, "green": 0, "blue": -3}[colour] else "no"
                size = "" if random.random() < 0.02 else f"{size:.3f}"
                file.write(f"{size},{colour},{random.randrange(100)},{kind}\n")
        if name == "test":
            with open(tmp_path / "test.csv", "a") as file:
                file.write("1,pink,5,no\n")  # which training did not have
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.format(train=tmp_path / "train.csv", test=tmp_path / "test.csv"))
    return recipe


def last_test(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines() if "test_accuracy" in line][-1]


def test_a_table_is_learnt_evaluated_and_resumed(millrace, table, tmp_path):
    run = tmp_path / "run"
    millrace("train", table, "--out", run)
    result = json.loads(millrace("eval", run, "--json").stdout)
    assert result["accuracy"] > 0.9
    assert result["targets"] == 201
    # What it knows of the columns is in the checkpoint: the training data are not needed any more.
    (tmp_path / "train.csv").rename(tmp_path / "gone.csv")
    assert json.loads(millrace("eval", run, "--json").stdout)["accuracy"] == result["accuracy"]
    (tmp_path / "gone.csv").rename(tmp_path / "train.csv")
    # Stopped and resumed, the same to the last bit.
    parts, whole = tmp_path / "parts", tmp_path / "whole"
    changes = ("train.steps=40", "train.checkpoint_steps=20", "train.schedule.kind=constant")
    millrace("train", table, *changes, "--out", whole)
    millrace("train", table, *changes, "--out", parts)
    newest = sorted((parts / "checkpoints").iterdir())[-1]
    assert len(list((parts / "checkpoints").iterdir())) > 1
    newest.unlink()
    millrace("train", parts, "--resume")
    evaluated = [json.loads(millrace("eval", run, "--json").stdout) for run in (parts, whole)]
    assert evaluated[0]["log-loss"] == evaluated[1]["log-loss"]
    # With other data the columns mean something else, be there as many rows or not.
    newest.unlink()
    text = (tmp_path / "train.csv").read_text()
    (tmp_path / "train.csv").write_text(text.replace("red", "violet", 1))
    assert "its content is not what the run was begun with" in millrace("train", parts, "--resume", code=1).stderr
    (tmp_path / "train.csv").write_text(text + "1,violet,2,no\n")
    assert "the run was begun with" in millrace("train", parts, "--resume", code=1).stderr
    (tmp_path / "train.csv").write_text(text)
    millrace("train", parts, "--resume")


def predictions(millrace, run, *inputs, **more):
    return [json.loads(line) for line in millrace("predict", run, *inputs, "--json", **more).stdout.splitlines()]


def log_loss(rows, truth):
    """As evaluation computes it, from predicted logits."""
    total = 0
    for row, label in zip(rows, truth, strict=True):
        most = max(row["logits"])
        total += math.log(sum(math.exp(v - most) for v in row["logits"])) + most - row["logits"][label]
    return total / len(truth)


def test_rows_are_predicted_as_evaluation_sees_them(millrace, table, tmp_path):
    run = tmp_path / "run"
    millrace("train", table, "train.epochs=3", "--out", run)
    result = json.loads(millrace("eval", run, "--json").stdout)
    lines = (tmp_path / "test.csv").read_text().splitlines()
    truth = [line.rsplit(",", 1)[1] for line in lines[1:]]
    (tmp_path / "bare.csv").write_text("".join(line.rsplit(",", 1)[0] + "\n" for line in lines))
    millrace("data", "convert", tmp_path / "bare.csv", tmp_path / "bare.parquet", "--format", "parquet")
    rows = predictions(millrace, run, tmp_path / "test.csv")
    assert sum(row["class"] == kind for row, kind in zip(rows, truth)) / len(rows) == result["accuracy"]
    assert log_loss(rows, [["no", "yes"].index(kind) for kind in truth]) == pytest.approx(result["log-loss"], rel=1e-12)
    # Without labels, and in other formats, the same to the last bit; nothing of the training data is needed.
    (tmp_path / "train.csv").unlink()
    for other in ("bare.csv", "bare.parquet"):
        assert [row["logits"] for row in predictions(millrace, run, tmp_path / other)] == [row["logits"] for row in rows]
    # One row, whose values say little about the columns.
    size, colour, noise, _ = lines[5].split(",")
    (tmp_path / "one.jsonl").write_text(json.dumps({"size": size, "colour": colour, "noise": float(noise)}) + "\n")
    assert predictions(millrace, run, tmp_path / "one.jsonl")[0]["logits"] == rows[4]["logits"]
    text = millrace("predict", run, tmp_path / "one.jsonl", "--top", 1).stdout
    assert text.startswith(f"{tmp_path}/one.jsonl") and text.count("%") == 1
    # A file that is wrong is named, the others are predicted.
    (tmp_path / "one.csv").write_text("size,colour,noise\nlarge,red,3\n")
    failed = millrace("predict", run, tmp_path / "none.csv", tmp_path / "one.csv", tmp_path / "one.jsonl", code=1)
    assert "none.csv: no such file" in failed.stderr and "its size is 'large'" in failed.stderr
    assert failed.stdout.count("\n") == 1


def refused_below(millrace, recipe, tmp_path):
    """Trains within a limit of memory as without, and is refused by name where training or test set do not
    fit."""

    def attempt(name, *changes, code=None):
        return millrace("train", recipe, *changes, "--out", tmp_path / name, code=code)

    def kept(name):
        text = (tmp_path / name / "metrics.jsonl").read_text()
        losses = ("loss", "train/loss", "test/log-loss", "test/accuracy")
        return [{k: v for k, v in json.loads(line).items() if k in losses} for line in text.splitlines()]

    attempt("free", code=0)
    # First too little for two batches of the training set, then enough for these but not for those of the
    # test set.
    memory, refused = 1000, []
    while (result := attempt("limited", f"data.memory={memory:.0f}")).returncode:
        found = re.search(r"(train|test)\.\w+: .*data\.memory leaves .* take [\d.,]+ (bytes|MB).*raise it", result.stderr)
        assert found and result.stderr.count("\n") == 1, result.stderr
        assert not (tmp_path / "limited").exists()
        refused.append(found[1])
        memory *= 1.3
        assert memory < 100e6
    assert set(refused) == {"train", "test"} and refused[0] == "train"
    assert kept("limited") == kept("free") and len(kept("free")) > 3


def test_a_limit_of_memory_holds_tables_and_sounds_or_refuses_them(millrace, table, tmp_path):
    refused_below(millrace, table, tmp_path)
    sounds = tmp_path / "sounds"
    sounds.mkdir()
    for name in ("train", "test"):
        write_sounds(sounds / f"{name}.tar", {})
    recipe = sounds / "recipe.toml"
    recipe.write_text(SOUNDS.format(sounds / "train.tar").replace(f'test = "{sounds / "train.tar"}"', f'test = "{sounds / "test.tar"}"'))
    refused_below(millrace, recipe, sounds)


def test_an_estimate_counts_what_the_samples_are(millrace, table):
    estimate = json.loads(millrace("estimate", table, "--json").stdout)
    assert estimate["rows"] == 600 and estimate["here"]["rows_per_second"] > 0
    assert estimate["here"]["load_per_second"] > 0
    assert not any("pictures" in key for key in (*estimate, *estimate["here"]))


def test_recipes_of_tables_that_do_not_go_together(millrace, table):
    def refusal(*changes):
        return millrace("train", table, *changes, code=1).stderr

    assert "did you mean 'kind'" in refusal("output.column=kid")
    assert "different real numbers" in refusal("output.column=size", "data.where=size > -99")
    assert "does not go with" in refusal("model.kind=bag")
    assert "did you mean 'size'" in refusal('input.leave_out=["sise"]')
    # Keys that nobody would read.
    for change in ('input.augment=["flip"]', "input.channels=3", "input.tta=flip", "input.sequences=packed",
                   "input.masked=0.15 3", "input.tokenizer=byte", "input.spec_augment=spec-augment", "input.mels=20"):
        text = refusal(change)
        assert f"{change.split('=')[0]} means nothing to input.kind = 'table'" in text, text
    assert "input.leave_out means nothing to input.kind = 'picture'" in refusal("input.kind=picture", 'input.leave_out=["noise"]')
    assert "did you mean 'input.leave_out'" in refusal('input.leave_aut=["noise"]')
    assert "'bits-per-byte' does not apply to output, of kind class" in refusal('eval.metrics=["bits-per-byte"]')
    assert "did you mean 'output.loss.label_smoothing'" in refusal("output.loss.label_smoothin=0.1")
    # Where keys were before.
    for before, now in (("data.label=kind", "output.column"), ("data.samples=table", "input.kind"), ("data.augment=[flip]", "input.augment"),
                        ("train.loss.label_smoothing=0.1", "output.loss"), ("eval.tta=flip", "input.tta")):
        assert f"{before.split('=')[0].removesuffix('.label_smoothing')} is now {now}" in refusal(before)


def losses(run):
    return [line["loss"] for line in map(json.loads, (run / "metrics.jsonl").read_text().splitlines()) if "loss" in line]


def test_rows_have_weights_and_come_from_streams(millrace, table, tmp_path):
    few = ("train.steps=4", "data.order=sequential", 'input.leave_out=["noise"]')
    lines = (tmp_path / "train.csv").read_text().splitlines()
    for name, weight in (("once", 1), ("twice", 2)):
        rows = [",".join([*line.split(",")[:2], str(weight), line.split(",")[3]]) for line in lines[1:]]
        (tmp_path / f"{name}.csv").write_text("\n".join([lines[0], *rows]) + "\n")
        weighted = (f"data.train={tmp_path}/{name}.csv", "data.sample_weight=noise", "data.test=")
        millrace("train", table, *few[:2], *weighted, "--out", tmp_path / name)
    assert losses(tmp_path / "twice")[0] == pytest.approx(2 * losses(tmp_path / "once")[0], rel=1e-5)
    # Without random access the same rows give the same steps, as far as what is learnt of the columns is the
    # same.
    millrace("train", table, *few, "--out", tmp_path / "there")
    assert "a stream of rows" in millrace("train", table, *few, "data.stream=true", "--out", tmp_path / "streamed").stdout
    assert losses(tmp_path / "streamed") == pytest.approx(losses(tmp_path / "there"), rel=0.2)
    assert json.loads(millrace("eval", tmp_path / "streamed", "--json").stdout)["targets"] == 201


def test_tables_in_latin_1_are_evaluated_with_the_classes_of_training(millrace, table, tmp_path):
    for name in ("train", "test"):
        file = tmp_path / f"{name}.csv"
        file.write_bytes(file.read_bytes().replace(b",yes", b",h\xe9").replace(b",no\n", b",h\xea\n"))
    run = tmp_path / "run"
    millrace("train", table, "--out", run)
    assert json.loads(millrace("eval", run, "--json").stdout)["accuracy"] > 0.9


def write_sounds(path, extra):
    """40 sounds of noise, "0_…" and "1_…", and `extra` ones by their names."""
    draw = random.Random(3)
    noise = [struct.pack("<800h", *(draw.randrange(-9000, 9000) for _ in range(800))) for _ in range(40)]
    files = {f"{i % 2}_{i}.wav": (data, 1, 16) for i, data in enumerate(noise)} | extra
    with tarfile.open(path, "w") as tar:
        for name, (data, kind, bits) in files.items():
            form = struct.pack("<IHHIIHH", 16, kind, 1, 8000, 1000 * bits, bits // 8, bits)
            size = struct.pack("<I", 36 + len(data))
            content = b"RIFF" + size + b"WAVEfmt " + form + b"data" + struct.pack("<I", len(data)) + data
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


SOUNDS = """
[data]
train = "{0}"
test = "{0}"
[input]
kind = "sound"
rate = 8000
seconds = 0.1
mels = 10
[output]
kind = "class"
column = "__key__"
pattern = "^([0-9])_"
[model]
layers = ["conv 4 3 padding=1", "relu", "max-pool 2", "flatten", "linear 2"]
[train]
steps = 3
batch = 8
optimizer = {{ kind = "adamw", lr = 1e-2 }}
"""


def test_odd_sounds_and_recipes_of_sounds(millrace, tmp_path):
    loud = struct.pack("<800f", *[3e38] * 800)
    write_sounds(tmp_path / "sounds.tar", {"0_loud.wav": (loud, 3, 32), "1_empty.wav": (b"", 1, 16)})
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(SOUNDS.format(tmp_path / "sounds.tar"))
    run = tmp_path / "run"
    # A sound whose power no float holds is a bad sample, not the mean of all.
    millrace("train", recipe, "data.most_bad=5", "--out", run)
    bad = {json.loads(line)["why"] for line in (run / "bad_samples.jsonl").read_text().splitlines()}
    assert bad == {"it has no samples", "its samples are so large that their power is no number"}
    assert math.isfinite(json.loads(millrace("eval", run, "--json").stdout)["log-loss"])

    # What is predicted is what was evaluated; bad sounds are named, and the others predicted.
    failed = millrace("predict", run, tmp_path / "sounds.tar", "--json", code=1)
    rows = [json.loads(line) for line in failed.stdout.splitlines()]
    assert len(rows) == 40 and "1_empty: it has no samples" in failed.stderr and "0_loud: its samples are so large" in failed.stderr
    truth = [int(row["input"].split(":")[-1][0]) for row in rows]
    assert log_loss(rows, truth) == pytest.approx(json.loads(millrace("eval", run, "--json").stdout)["log-loss"], rel=1e-12)
    with tarfile.open(tmp_path / "sounds.tar") as tar:
        tar.extractall(tmp_path / "files")
    names = ["1_7.wav", "0_0.wav"]
    alone = predictions(millrace, run, *(tmp_path / "files" / name for name in names))
    assert [row["input"] for row in alone] == [str(tmp_path / "files" / name) for name in names]
    assert [row["logits"] for row in alone] == [rows[7]["logits"], rows[0]["logits"]]

    def refusal(*changes):
        return millrace("train", recipe, *changes, code=1).stderr

    assert "200 million" in refusal("input.seconds=3600", "input.rate=1000000")
    for change in ('input.categories=["a"]', 'input.leave_out=["a"]', "input.resize=8"):
        assert "means nothing to input.kind = 'sound'" in refusal(change)
    assert "there is no column 'x'" in refusal("data.sample_weight=x")
    assert "is no regular expression" in refusal("output.pattern=((")
    write_sounds(tmp_path / "none.tar", {f"{i % 2}_{i}.wav": (b"", 1, 16) for i in range(40)})
    assert "0_0: it has no samples" in refusal(f"data.train={tmp_path / 'none.tar'}")


def test_a_resumed_training_of_sounds_equals_the_uninterrupted_one(millrace, tmp_path):
    write_sounds(tmp_path / "sounds.tar", {})
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(SOUNDS.format(tmp_path / "sounds.tar"))
    run = tmp_path / "run"
    changes = ("input.spec_augment='spec-augment 1 3 1 3'", "train.checkpoint_steps=3", "train.keep_checkpoints=100")
    millrace("train", recipe, "train.steps=13", *changes, "--out", run)
    resumed(millrace, run, tmp_path / "copy")


def test_spoken_digits_of_a_speaker_never_heard(millrace, data, tmp_path):
    run = tmp_path / "run"
    millrace("train", "examples/spoken-digits.toml", "train.epochs=2", "input.mels=20", "--out", run)
    result = json.loads(millrace("eval", run, "--json").stdout)
    assert result["targets"] == 500
    assert result["accuracy"] > 0.3
    assert "does not match output.pattern" in millrace(
        "train", "examples/spoken-digits.toml", "output.pattern=^x", "--out", tmp_path / "x", code=1
    ).stderr


def test_conditions_by_pattern(millrace, data):
    tar = data / "audio/spoken-digits.tar"
    assert millrace("data", "query", tar, "__key__ like '7_*_1?'", "--count").stdout == "50\n"
    assert millrace("data", "query", tar, "__key__ not like '7_*'", "--count").stdout == "2250\n"
    assert "like" in millrace("data", "query", tar, "__key__ like 3", code=1).stderr
