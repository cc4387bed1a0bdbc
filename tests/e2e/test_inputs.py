"""Several inputs beside each other, texts above all: what they learn, resume, predict and export; and samples
of which one is bad."""

import csv
import io
import json
import random
import shutil
import tarfile

import numpy as np
import onnxruntime
import pytest
from PIL import Image
from test_tasks import evaluated, predictions
from test_train import assert_same_run

WORDS = ["the", "king", "of", "no", "land", "sings", "to", "his", "horse", "and", "never", "sleeps"]

PAPERS = """
[data]
train = "{folder}/train.{kind}"
test = "{folder}/test.{kind}"

[inputs.title]
kind = "text"
length = 24

[inputs.body]
kind = "text"
length = 96
{inputs}

[output]
kind = "class"
column = "label"

[model.title]
kind = "bag"
[model.body]
kind = "bag"

[train]
epochs = 8
batch = 32
checkpoint_steps = 20
keep_checkpoints = 100
optimizer = {{ kind = "adamw", lr = 1e-2 }}
schedule = "cosine"  # with a constant rate one training in ten ends at 91 to 95 %

[eval]
batch = 50
"""


def write_papers(path, count, seed):
    """What a paper is takes both: its title says who, its body says when. The colour, the weight and the
    photo of it say it, too."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        a, b = draw.randrange(2), draw.randrange(2)
        words = [draw.choices(WORDS, k=draw.randint(0, most)) for most in (2, 16)]
        words[0].insert(draw.randint(0, len(words[0])), ("queen", "fool")[a])
        words[1].insert(draw.randint(0, len(words[1])), ("today", "morrow")[b])
        rows.append({"title": " ".join(words[0]), "body": " ".join(words[1]), "weight": round(draw.uniform(0, 1) + 2 * a, 3),
                     "colour": ("red", "blue")[b], "label": f"{('queen', 'fool')[a]} {('today', 'morrow')[b]}", "bright": a})
    if path.suffix == ".csv":
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, ["title", "body", "label"], extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".tar":
        with tarfile.open(path, "w") as tar:
            for i, row in enumerate(rows):
                picture = io.BytesIO()
                Image.fromarray(np.full((8, 8), 60 + 120 * row["bright"] + i % 20, np.uint8)).save(picture, "PNG")
                for end, content in (("png", picture.getvalue()), ("txt", row["body"].encode()), ("cls", str(2 * row["bright"] + (row["colour"] == "blue")).encode())):
                    info = tarfile.TarInfo(f"{i:05}.{end}")
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
    else:
        path.write_text("".join(json.dumps({name: row[name] for name in ("title", "body", "weight", "colour", "label")}) + "\n" for row in rows))
    return rows


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("papers")
    tests = {}
    for kind in ("csv", "jsonl", "tar"):
        write_papers(folder / f"train.{kind}", 600, 1)
        tests[kind] = write_papers(folder / f"test.{kind}", 120, 2)
    (folder / "papers.toml").write_text(PAPERS.format(folder=folder, kind="csv", inputs=""))
    (folder / "rows.toml").write_text(PAPERS.format(folder=folder, kind="jsonl", inputs='[inputs.row]\nkind = "table"\ncolumns = ["weight", "colour"]'))
    return folder, tests


def resumed(millrace, run, copy):
    """Goes on from the third checkpoint: to the same bits."""
    shutil.copytree(run, copy)
    for path in sorted((copy / "checkpoints").iterdir())[3:]:
        path.unlink()
    (copy / "model.onnx").unlink()
    assert "going on from step" in millrace("train", copy, "--resume", "--threads", 1).stdout
    assert_same_run(run, copy)


def test_two_texts_train_resume_predict_and_are_exported(millrace, papers, tmp_path):
    folder, tests = papers
    run = tmp_path / "run"
    millrace("train", folder / "papers.toml", "--out", run)
    result = evaluated(millrace, run)
    assert result["accuracy"] > 0.95 and result["targets"] == 120
    # The longer one decides which rows share a batch, the other is padded to one length.
    recipe = (run / "recipe.toml").read_text()
    title, body = recipe.split("[inputs.")[1:3] if recipe.index("[inputs.title]") < recipe.index("[inputs.body]") else recipe.split("[inputs.")[2:0:-1]
    assert 'sequences = "padded"' in title and 'sequences = "padded"' not in body.split("[output")[0]
    resumed(millrace, run, tmp_path / "again")
    rows = predictions(millrace, run, folder / "test.csv")
    truth = [row["label"] for row in tests["csv"]]
    assert sum(row["class"] == label for row, label in zip(rows, truth, strict=True)) / 120 == result["accuracy"]
    why = json.loads(millrace("data", "why", run, "--step", 2, "--json").stdout)
    assert len(why["samples"]) == 32 and all("tokens" in sample["row"] for sample in why["samples"])

    millrace("export", run, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    shapes = {i.name: i.shape for i in session.get_inputs()}
    assert shapes["title.tokens"][1] == 24 and shapes["body.tokens"][1] == 96
    given = {}
    for name, length in (("title", 24), ("body", 96)):
        tokens = np.zeros((120, length), np.int64)
        segments = np.zeros((120, length), np.int64)
        for i, row in enumerate(tests["csv"]):
            ids = list(row[name].encode())[:length]
            tokens[i, : len(ids)], segments[i, : len(ids)] = ids, 1
        given |= {f"{name}.tokens": tokens, f"{name}.segments": segments}
    logits = session.run(["logits"], {name: given[name] for name in shapes})[0]
    np.testing.assert_allclose([row["logits"] for row in rows], logits, rtol=1e-3, atol=1e-3)


def test_texts_go_with_rows_and_pictures(millrace, papers, tmp_path):
    folder, tests = papers
    millrace("train", folder / "rows.toml", "--out", tmp_path / "rows")
    assert evaluated(millrace, tmp_path / "rows")["accuracy"] > 0.95
    resumed(millrace, tmp_path / "rows", tmp_path / "again")
    assert len(predictions(millrace, tmp_path / "rows", folder / "test.jsonl")) == 120

    (tmp_path / "seen.toml").write_text(f"""
[data]
train = "{folder}/train.tar"
test = "{folder}/test.tar"
[inputs.photo]
kind = "picture"
[inputs.words]
kind = "text"
length = 96
[output]
kind = "class"
[model.photo]
layers = ["flatten", "linear 16"]
[model.words]
kind = "bag"
[train]
epochs = 8
batch = 32
checkpoint_steps = 20
keep_checkpoints = 100
optimizer = {{ kind = "adamw", lr = 1e-2 }}
""")
    millrace("train", tmp_path / "seen.toml", "--out", tmp_path / "seen")
    result = evaluated(millrace, tmp_path / "seen")
    assert result["accuracy"] > 0.95
    resumed(millrace, tmp_path / "seen", tmp_path / "seen again")
    rows = predictions(millrace, tmp_path / "seen", folder / "test.tar")
    truth = [str(2 * row["bright"] + (row["colour"] == "blue")) for row in tests["tar"]]
    assert sum(row["class"] == label for row, label in zip(rows, truth, strict=True)) / 120 == result["accuracy"]


def test_inputs_that_cannot_stand_beside_each_other_are_refused(millrace, papers, tmp_path):
    folder, _ = papers

    def error(recipe, *changes):
        text = millrace("train", folder / recipe, *changes, "--out", tmp_path / "never", code=1).stderr
        assert text.startswith("error: ") and text.count("\n") == 1, text
        return text

    both = ("inputs.title.sequences=buckets 2", "inputs.body.sequences=buckets 4")
    text = error("papers.toml", *both)
    assert "inputs.title and inputs.body both decide" in text or "inputs.body and inputs.title both decide" in text
    # What is to be predicted is no input.
    text = error("rows.toml", 'inputs.row.columns=["weight", "label"]')
    assert "inputs.row names the column 'label', which is the target of output" in text
    assert "which is the target of output" in error("papers.toml", "inputs.title.column=label")
    # Samples that are mixed would be mixed in one input only.
    (tmp_path / "mixed.toml").write_text(f'[data]\ntrain = "{folder}/train.tar"\n[inputs.photo]\nkind = "picture"\nmix = ["mixup 0.2"]\n'
                                         '[inputs.words]\nkind = "text"\n[output]\nkind = "class"\n')
    assert "inputs.photo.mix mixes samples" in error(tmp_path / "mixed.toml")
    # Weights that leave nothing to learn.
    assert "output.weight = 0" in error("papers.toml", "output.weight=0")
    assert "input is a table" in millrace("train", folder / "papers.toml", "input=3", "--out", tmp_path / "never", code=1).stderr


def test_sources_are_mixed_for_several_inputs(millrace, papers, tmp_path):
    folder, _ = papers
    text = (folder / "rows.toml").read_text().replace(f'train = "{folder}/train.jsonl"', f'train = {{ a = "{folder}/train.jsonl", b = "{folder}/test.jsonl" }}\nweights = {{ a = 1, b = 3 }}')
    (tmp_path / "mixture.toml").write_text(text)
    # Texts in buckets come as they lie, texts of one length are drawn by the weights.
    assert "data.weights" in millrace("train", tmp_path / "mixture.toml", "--out", tmp_path / "never", code=1).stderr
    run = tmp_path / "run"
    millrace("train", tmp_path / "mixture.toml", "inputs.title.sequences=padded", "inputs.body.sequences=padded", "train.epochs=1", "--out", run)
    names = [sample["name"] for step in (1, 2, 3, 4) for sample in json.loads(millrace("data", "why", run, "--step", step, "--json").stdout)["samples"]]
    assert 0.6 < sum(name.startswith("b: ") for name in names) / len(names) < 0.9


def test_weights_that_are_zero_are_said(millrace, tmp_path):
    rows = ["x,weight,label\n"] + [f"{i % 7},{{}},{i % 2}\n" for i in range(64)]
    (tmp_path / "none.csv").write_text("".join(rows).format(*[0] * 64))
    (tmp_path / "some.csv").write_text("".join(rows).format(*[int(i > 15) for i in range(64)]))
    (tmp_path / "r.toml").write_text('[data]\ntrain = "none.csv"\nsample_weight = "weight"\n[output]\ncolumn = "label"\n[train]\nsteps = 2\nbatch = 8\n')
    assert "all weights are 0" in millrace("train", "r.toml", "--out", "never", cwd=tmp_path, code=1).stderr
    assert "16 of 64 rows weigh 0" in millrace("train", "r.toml", "data.train=some.csv", "--out", "run", cwd=tmp_path).stdout


def test_a_step_that_a_training_does_not_have(millrace, tmp_path):
    (tmp_path / "x.csv").write_text("x,label\n" + "".join(f"{i},{i % 2}\n" for i in range(40)))
    (tmp_path / "r.toml").write_text('[data]\ntrain = "x.csv"\n[output]\ncolumn = "label"\n[train]\nepochs = 2\nbatch = 10\n')
    millrace("train", "r.toml", "--out", "run", cwd=tmp_path)
    millrace("data", "why", "run", "--step", 8, cwd=tmp_path)
    assert "step 9: the training ends with step 8 (4 an epoch)" in millrace("data", "why", "run", "--step", 9, cwd=tmp_path, code=1).stderr


def test_a_wrong_value_loses_its_row_only(millrace, tmp_path):
    (tmp_path / "x.csv").write_text("size,colour,label\n" + "".join(f"{i % 9}.5,{'red' if i % 2 else 'blue'},{i % 2}\n" for i in range(80)))
    (tmp_path / "r.toml").write_text('[data]\ntrain = "x.csv"\n[output]\ncolumn = "label"\n[train]\nsteps = 3\nbatch = 8\n[eval]\nbatch = 4\n')
    millrace("train", "r.toml", "--out", "run", cwd=tmp_path)
    lines = [f"{i % 9}.5,{'red' if i % 2 else 'blue'}" for i in range(11)]
    (tmp_path / "good.csv").write_text("\n".join(["size,colour", *lines]) + "\n")
    lines[3], lines[10] = "large,red", "??,blue"
    (tmp_path / "odd.csv").write_text("\n".join(["size,colour", *lines]) + "\n")
    whole = predictions(millrace, "run", "good.csv", cwd=tmp_path)
    result = millrace("predict", "run", "odd.csv", "--json", cwd=tmp_path, code=1)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["logits"] for row in rows] == [row["logits"] for i, row in enumerate(whole) if i not in (3, 10)]
    errors = result.stderr.splitlines()
    assert len(errors) == 3 and errors[2] == "warning: 2 of 11 could not be predicted, as said above"
    assert "odd.csv" in errors[0] and "size" in errors[0] and "'large'" in errors[0] and errors[0].count("odd.csv") == 1
    assert "'??'" in errors[1]
    # Where all are wrong, each is named.
    (tmp_path / "all.csv").write_text("size,colour\nlarge,red\nsmall,red\n")
    result = millrace("predict", "run", "all.csv", cwd=tmp_path, code=1)
    assert "'large'" in result.stderr and "'small'" in result.stderr and not result.stdout


def test_a_picture_that_one_of_two_inputs_lacks_is_named_and_left_out(millrace, tmp_path):
    def write(path, count, lacking):
        with tarfile.open(path, "w") as tar:
            for i in range(count):
                for side in ("left", "right"):
                    if i == lacking and side == "right":
                        continue
                    picture = io.BytesIO()
                    Image.fromarray(np.full((8, 8), 50 + 100 * (i % 2), np.uint8)).save(picture, "PNG")
                    info = tarfile.TarInfo(f"{i:05}.{side}.png")
                    info.size = len(picture.getvalue())
                    tar.addfile(info, io.BytesIO(picture.getvalue()))
                info = tarfile.TarInfo(f"{i:05}.cls")
                info.size = 1
                tar.addfile(info, io.BytesIO(str(i % 2).encode()))

    write(tmp_path / "train.tar", 60, 7)
    write(tmp_path / "test.tar", 20, 4)
    side = 'kind = "picture"\ncolumn = "{}.png"\n'
    (tmp_path / "r.toml").write_text('[data]\ntrain = "train.tar"\n[inputs.left]\n' + side.format("left") + "[inputs.right]\n" + side.format("right") +
                                     '[output]\nkind = "class"\n[model.left]\nlayers = ["flatten", "linear 8"]\n[model.right]\nlayers = ["flatten", "linear 8"]\n'
                                     "[train]\nsteps = 4\nbatch = 8\n")
    result = millrace("train", "r.toml", "data.most_bad=0.1", "--out", "run", cwd=tmp_path)
    assert "00007.left.png: its 'right.png' is missing" in result.stdout + result.stderr
    result = millrace("predict", "run", "test.tar", "--json", cwd=tmp_path, code=1)
    assert len(result.stdout.splitlines()) == 19
    assert "00004.left.png: its 'right.png' is missing" in result.stderr


STREAM = """
[data]
train = "{train}"
stream = true
order = "shuffle-buffer 50"
epoch_samples = 600
test = "{folder}/test.jsonl"
[input]
kind = "text"
column = "body"
length = 96
[output]
kind = "class"
column = "colour"
[model]
kind = "bag"
[train]
epochs = 4
batch = 32
checkpoint_steps = 20
keep_checkpoints = 100
optimizer = {{ kind = "adamw", lr = 1e-2 }}
"""


def test_texts_come_from_streams(millrace, papers, tmp_path):
    folder, tests = papers
    (tmp_path / "s.toml").write_text(STREAM.format(train=f"pipe:cat {folder}/train.jsonl", folder=folder))
    text = millrace("train", tmp_path / "s.toml", "--out", tmp_path / "run").stdout
    assert "a stream of texts" in text
    result = evaluated(millrace, tmp_path / "run")
    assert result["accuracy"] > 0.95
    resumed(millrace, tmp_path / "run", tmp_path / "again")
    rows = predictions(millrace, tmp_path / "run", folder / "test.jsonl")
    assert sum(row["class"] == truth["colour"] for row, truth in zip(rows, tests["jsonl"], strict=True)) / 120 == result["accuracy"]
    # In order, the same as from the file.
    same = ("train.steps=5", "data.order=sequential", "input.sequences=padded")
    millrace("train", tmp_path / "s.toml", *same, "--out", tmp_path / "streamed")
    millrace("train", tmp_path / "s.toml", *same, "data.stream=false", f"data.train={folder}/train.jsonl", "data.epoch_samples=0", "--out", tmp_path / "there")
    def losses(run):
        return [line["loss"] for line in map(json.loads, (tmp_path / run / "metrics.jsonl").read_text().splitlines()) if "loss" in line]
    assert losses("streamed") == losses("there")
    assert 'input.sequences = "padded"' in millrace("train", tmp_path / "s.toml", "input.sequences=buckets 4", "--out", tmp_path / "never", code=1).stderr


CORPUS = """
[data]
train = "pipe:cat {folder}/train.jsonl"
stream = true
order = "shuffle-buffer 30"
epoch_samples = 160
test = "{folder}/test.jsonl"
[input]
kind = "tokens"
column = "body"
length = 32
[model]
kind = "gpt"
width = 16
depth = 1
heads = 2
[train]
epochs = 3
batch = 16
checkpoint_steps = 5
keep_checkpoints = 100
optimizer = {{ kind = "adamw", lr = 1e-2 }}
"""


@pytest.mark.parametrize("changes", [[], ["input.sequences=padded"], ["input.masked=0.2 3", "model.kind=encoder"]])
def test_a_corpus_comes_from_a_stream(millrace, papers, tmp_path, changes):
    folder, _ = papers
    (tmp_path / "c.toml").write_text(CORPUS.format(folder=folder))
    text = millrace("train", tmp_path / "c.toml", *changes, "--out", tmp_path / "run").stdout
    assert "of 32 tokens" in text
    assert evaluated(millrace, tmp_path / "run")["log-loss"] < np.log(257)
    resumed(millrace, tmp_path / "run", tmp_path / "again")
    why = json.loads(millrace("data", "why", tmp_path / "run", "--step", 2, "--json").stdout)
    assert len(why["samples"]) == 16
    # In order, the rows are those of the indexed corpus, as far as that goes.
    same = (*changes, "train.steps=6", "data.order=sequential", "data.epoch_samples=1000")
    millrace("train", tmp_path / "c.toml", *same, "--out", tmp_path / "streamed")
    millrace("train", tmp_path / "c.toml", *same, "data.stream=false", f"data.train={folder}/train.jsonl", "data.epoch_samples=0", "--out", tmp_path / "there")
    losses = [[line["loss"] for line in map(json.loads, (tmp_path / run / "metrics.jsonl").read_text().splitlines()) if "loss" in line] for run in ("streamed", "there")]
    assert losses[0] == losses[1]


def test_what_a_stream_of_texts_cannot_is_said(millrace, papers, tmp_path):
    folder, _ = papers
    (tmp_path / "c.toml").write_text(CORPUS.format(folder=folder))

    def error(*changes):
        return millrace("train", tmp_path / "c.toml", *changes, "--out", tmp_path / "never", code=1).stderr

    assert 'input.sequences = "padded"' in error("input.sequences=packed")
    assert "have no weights" in error("data.sample_weight=weight")
    assert "did you mean 'body'" in error("input.column=boddy")
