"""Using models of tables, sounds and texts: docs/predict.md's commands and code, exported models in ONNX
Runtime, data why."""

import csv
import json
import random
import re
import shlex
import subprocess
import tarfile
import wave

import numpy as np
import onnxruntime
import pytest
from conftest import write_texts
from test_docs import blocks, commands

TABLE = """
[data]
train = "train.csv"
test_where = "noise < 20"
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
optimizer = { kind = "adamw", lr = 1e-2 }
"""
SOUNDS = """
[data]
train = "digits"
[input]
kind = "sound"
rate = 8000
seconds = 0.2
mels = 12
spec_augment = "spec-augment 1 3 1 4"
[output]
kind = "class"
column = "label"
[model]
layers = ["conv 4 3 padding=1", "relu", "max-pool 2", "flatten", "linear 2"]
[train]
steps = 20
batch = 8
optimizer = { kind = "adamw", lr = 1e-2 }
"""


def write_wav(path, pitch, seconds=0.2, rate=8000):
    path.parent.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(pitch)
    samples = 8000 * np.sin(np.arange(int(seconds * rate)) * pitch / rate * 6.283) + draw.normal(0, 200, int(seconds * rate))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())


@pytest.fixture(scope="module")
def desk(binary, tmp_path_factory):
    """A folder with the runs and files that docs/predict.md names."""
    folder = tmp_path_factory.mktemp("desk")
    draw = random.Random(4)
    for name, rows in (("train", 500), ("people", 40)):
        with open(folder / f"{name}.csv", "w") as file:
            file.write("size,colour,noise,kind\n")
            for _ in range(rows):
                size, colour = draw.uniform(-9, 9), draw.choice(["red", "green", "blue"])
                kind = "yes" if size > {"red": 3, "green": 0, "blue": -3}[colour] else "no"
                size = "" if draw.random() < 0.1 else f"{size:.3f}"
                file.write(f"{size},{colour if rows > 50 or draw.random() < 0.9 else 'pink'},{draw.randrange(100)},{kind}\n")
    (folder / "people.toml").write_text(TABLE)
    for i in range(30):
        write_wav(folder / f"digits/{i % 2}/{i}.wav", (300 if i % 2 else 1500) + 10 * i)
    for name, pitch in (("one.wav", 350), ("two.wav", 1600), ("recordings/three.wav", 333), ("recordings/more/four.wav", 1666)):
        write_wav(folder / name, pitch)
    (folder / "digits.toml").write_text(SOUNDS)
    write_texts(folder)
    corpus, messages = blocks("docs/text.md", "toml")[:2]
    (folder / "spam.toml").write_text(messages)
    (folder / "play.toml").write_text(corpus)
    small = ["train.steps=8", "input.length=32", "model.width=16", "model.depth=1"]
    for name, changes in (("people", []), ("digits", []), ("spam", small), ("play", small)):
        subprocess.run([binary, "train", f"{name}.toml", *changes, "--out", f"runs/{name}"], cwd=folder, check=True, capture_output=True)
    return folder


def predictions(millrace, folder, *words):
    return [json.loads(line) for line in millrace("predict", *words, "--json", cwd=folder).stdout.splitlines()]


def test_commands_and_code_of_the_page_run_in_their_order(millrace, desk, monkeypatch, capsys):
    # Those for models without a recipe are test_predict_model.py's.
    lines = [line for line in commands("docs/predict.md") if "net.onnx" not in line]
    assert len(lines) >= 14
    for line in lines:
        assert millrace(*shlex.split(line)[1:], cwd=desk).stdout, line
    monkeypatch.chdir(desk)
    (code,) = blocks("docs/predict.md", "python")
    exec(code, {})
    mine = [row["class"] for row in predictions(millrace, desk, "runs/people", "people.csv")]
    assert len(mine) == 40 and set(mine) == {"yes", "no"}
    assert capsys.readouterr().out.strip() == str(mine)


def test_code_of_the_page_gives_columns_that_become_several_once(millrace, desk, monkeypatch, capsys):
    millrace("train", "people.toml", "input.bins=4", "train.epochs=1", "--out", "runs/bins", cwd=desk)
    millrace("export", "runs/bins", "bins.onnx", cwd=desk)
    monkeypatch.chdir(desk)
    (code,) = blocks("docs/predict.md", "python")
    exec(code.replace("people.onnx", "bins.onnx"), {})
    mine = [row["class"] for row in predictions(millrace, desk, "runs/bins", "people.csv")]
    assert capsys.readouterr().out.strip() == str(mine)


def test_an_exported_model_of_a_table_takes_it_as_it_is(millrace, desk):
    session = onnxruntime.InferenceSession(desk / "runs/people/model.onnx")
    inputs = {i.name: (i.type, i.shape) for i in session.get_inputs()}
    assert inputs == {"numbers": ("tensor(double)", ["batch", 2]), "colour": ("tensor(string)", ["batch", 1])}
    assert [o.name for o in session.get_outputs()] == ["logits", "probabilities"]
    assert session.get_modelmeta().custom_metadata_map["classes"] == '["no", "yes"]'
    rows = list(csv.DictReader(open(desk / "people.csv")))
    numbers = np.array([[float(row["size"] or "nan"), float(row["noise"])] for row in rows])
    assert np.isnan(numbers).any()
    colours = np.array([[row["colour"]] for row in rows], dtype=object)
    assert "pink" in colours  # which training did not have
    logits, probabilities = session.run(None, {"numbers": numbers, "colour": colours})
    mine = predictions(millrace, desk, "runs/people", "people.csv")
    np.testing.assert_allclose([row["logits"] for row in mine], logits, rtol=1e-5, atol=1e-5)
    told = [[row["probabilities"][name] for name in ("no", "yes")] for row in mine]
    np.testing.assert_allclose(told, probabilities, rtol=1e-4, atol=1e-5)


def test_an_exported_model_of_sounds_takes_them_as_they_are(millrace, desk):
    session = onnxruntime.InferenceSession(desk / "runs/digits/model.onnx")
    (entry,) = session.get_inputs()
    assert (entry.name, entry.type, entry.shape) == ("sounds", "tensor(float)", ["batch", 1600])
    names = sorted((desk / "digits").glob("*/*.wav"))
    sounds = [np.frombuffer(wave.open(str(name)).readframes(1600), "<i2") / np.float32(32768) for name in names]
    write_wav(desk / "short.wav", 500, seconds=0.13)
    sounds.append(np.zeros(1600, np.float32))
    sounds[-1][:1040] = np.frombuffer(wave.open(str(desk / "short.wav")).readframes(1600), "<i2") / np.float32(32768)
    theirs = session.run(["logits"], {"sounds": np.array(sounds, np.float32)})[0]
    rows = predictions(millrace, desk, "runs/digits", *names, "short.wav")
    np.testing.assert_allclose([row["logits"] for row in rows], theirs, rtol=1e-3, atol=1e-3)
    assert [row["input"] for row in rows] == [*map(str, names), "short.wav"]


def test_exported_models_of_real_data_predict_as_the_runs_do(millrace, data, tmp_path):
    environment = {"MILLRACE_DATA": str(data)}
    millrace("train", "examples/adult.toml", "train.epochs=1", "--out", tmp_path / "adult", env=environment)
    mine = predictions(millrace, None, tmp_path / "adult", data / "tabular/adult-test.csv")
    session = onnxruntime.InferenceSession(tmp_path / "adult/model.onnx")
    rows = [[v.strip() for v in line.split(",")] for line in (data / "tabular/adult-test.csv").read_text().splitlines() if line]
    texts = [i.name for i in session.get_inputs() if i.type == "tensor(string)"]
    assert texts == ["c1", "c5", "c6", "c7", "c8", "c9", "c13"]
    value = np.array([[row[column] for column in (0, 4, 10, 11, 12)] for row in rows], float)
    given = {name: np.array([["" if row[int(name[1:])] == "?" else row[int(name[1:])]] for row in rows], object) for name in texts}
    theirs = session.run(["logits"], {"numbers": value, **given})[0]
    np.testing.assert_allclose([row["logits"] for row in mine], theirs, rtol=1e-4, atol=1e-4)

    millrace("train", "examples/spoken-digits.toml", "train.steps=30", "--out", tmp_path / "digits", env=environment)
    with tarfile.open(data / "audio/spoken-digits.tar") as tar:
        files = [m for m in tar if "_1.wav" in m.name and m.isfile()]
        for m in files:
            (tmp_path / m.name).write_bytes(tar.extractfile(m).read())
    mine = predictions(millrace, tmp_path, tmp_path / "digits", *(m.name for m in files))
    sounds = np.zeros((len(files), 6400), np.float32)
    for sound, m in zip(sounds, files):
        wav = np.frombuffer(wave.open(str(tmp_path / m.name)).readframes(6400), "<i2") / np.float32(32768)
        sound[: len(wav)] = wav
    theirs = onnxruntime.InferenceSession(tmp_path / "digits/model.onnx").run(["logits"], {"sounds": sounds})[0]
    assert len(files) == 50
    np.testing.assert_allclose([row["logits"] for row in mine], theirs, rtol=2e-3, atol=2e-3)


def test_a_step_of_a_table_is_explained_and_written(millrace, desk):
    why = json.loads(millrace("data", "why", "runs/people", "--step", 15, "--json", "--write", "w", cwd=desk).stdout)
    per_epoch = json.loads((desk / "runs/people/metrics.jsonl").read_text().splitlines()[0])
    assert per_epoch["step"] == 1
    rows = list(csv.DictReader(open(desk / "train.csv")))
    kept = [i for i, row in enumerate(rows) if float(row["noise"]) >= 20]
    assert why["epoch"] == 14 // (len(kept) // 32) and len(why["samples"]) == 32
    written = list(csv.DictReader(open(desk / "w/rows.csv")))
    labels, numbers, ids = (np.load(desk / f"w/{name}.npy") for name in ("target", "numbers", "ids"))
    assert numbers.shape == (32, 2) and ids.shape == (32, 1) and numbers.dtype == np.float64
    for sample, row, label, number in zip(why["samples"], written, labels, numbers, strict=True):
        original = rows[int(re.search(r"#(\d+)", sample["name"])[1])]
        assert {k: v for k, v in row.items() if k != "size"} == {k: v for k, v in original.items() if k != "size"}
        assert (float(row["size"]) == float(original["size"])) if original["size"] else row["size"] == ""
        assert sample["class"] == original["kind"] == ["no", "yes"][label]
        assert number[0] == float(original["size"]) if original["size"] else np.isnan(number[0])
        assert number[1] == float(original["noise"])
    # Neighbouring steps share no sample, an epoch has each once at most.
    other = json.loads(millrace("data", "why", "runs/people", "--step", 16, "--json", cwd=desk).stdout)
    assert not {s["index"] for s in why["samples"]} & {s["index"] for s in other["samples"]}
    assert "counted from 1" in millrace("data", "why", "runs/people", "--step", 0, cwd=desk, code=1).stderr


def test_a_few_texts_are_found_by_the_name_of_their_column(millrace, desk):
    """Of so few rows the content does not tell whether the first is names, nor that numbers are texts."""
    names = (desk / "messages.tsv").read_text().splitlines()[0].replace("\t", ",")
    for name, rows in (("few", ["call me", "win now"]), ("numbers", ["007", "12"])):
        (desk / f"{name}.csv").write_text("\n".join([names, *(f"x,{row}" for row in rows)]) + "\n")
        out = millrace("predict", "runs/spam", f"{name}.csv", "--json", cwd=desk).stdout.splitlines()
        alone = [json.loads(millrace("predict", "runs/spam", row, "--json", cwd=desk).stdout)["class"] for row in rows]
        assert [json.loads(line)["class"] for line in out] == alone
    assert "at least one" in millrace("predict", "runs/spam", "few.csv", "--top", 0, cwd=desk, code=1).stderr


def test_a_step_of_sounds_is_explained_and_written(millrace, desk):
    why = json.loads(millrace("data", "why", "runs/digits", "--step", 2, "--json", "--write", "h", cwd=desk).stdout)
    sounds = np.load(desk / "h/sounds.npy")
    assert sounds.shape == (8, 1600)
    for i, sample in enumerate(why["samples"]):
        # A WAV file of floats, which is the row, which is the file.
        written = np.frombuffer((desk / f"h/{i:04}-{sample['index']}.wav").read_bytes()[-4 * 1600:], "<f4")
        stored = np.frombuffer(wave.open(str(desk / sample["name"])).readframes(1600), "<i2") / np.float32(32768)
        assert np.array_equal(written, sounds[i]) and np.allclose(written, stored, atol=1e-6)
        assert sample["name"].split("/")[1] == sample["class"]
    # SpecAugment's masks are there, the same again.
    masks = [np.load(desk / f"h/{name}.npy") for name in ("mel_mask", "frame_mask")]
    assert masks[0].shape == (8, 12) and masks[1].shape[0] == 8
    assert all(set(np.unique(mask)) == {0, 1} for mask in masks)
    millrace("data", "why", "digits.toml", "--step", 2, "--write", "h2", cwd=desk)
    for name in ("sounds", "mel_mask", "frame_mask", "target"):
        assert (desk / f"h/{name}.npy").read_bytes() == (desk / f"h2/{name}.npy").read_bytes()


def test_a_step_of_texts_is_written(millrace, desk):
    millrace("data", "why", "runs/spam", "--step", 2, "--write", "r", cwd=desk)
    messages = [line.split("\t")[1] for line in (desk / "messages.tsv").read_text().splitlines()[1:]]
    tokens, segments = np.load(desk / "r/tokens.npy"), np.load(desk / "r/segments.npy")
    for i in range(len(tokens)):
        (path,) = (desk / "r").glob(f"{i:04}-*.txt")
        text = path.read_bytes()
        assert bytes(tokens[i][segments[i] > 0].astype(np.uint8)) == text
        assert any(message.encode()[:32] == text for message in messages)
    millrace("data", "why", "runs/play", "--step", 2, "--write", "p", cwd=desk)
    tokens, targets = np.load(desk / "p/tokens.npy"), np.load(desk / "p/targets.npy")
    assert (tokens[:, 1:] == targets[:, :-1]).all()
    assert (desk / "p/0001.txt").read_bytes() == bytes(tokens[1].astype(np.uint8))
    assert (desk / "p/0001.txt").read_text() in (desk / "corpus.txt").read_text()


def test_samples_that_are_predicted_part_by_part_keep_their_numbers(millrace, tmp_path):
    """Without a cache a part is a batch; a row that cannot be read is named by its place in the file."""
    draw = random.Random(1)
    rows = [(draw.gauss(0, 1), draw.gauss(0, 1)) for _ in range(200)]
    (tmp_path / "train.csv").write_text("x,z,y\n" + "".join(f"{x:.4f},{z:.4f},{2 * x + z:.4f}\n" for x, z in rows))
    (tmp_path / "recipe.toml").write_text(
        '[data]\ntrain = "train.csv"\ncache_mb = 0\n[output]\ncolumn = "y"\n[train]\nepochs = 1\n[eval]\nbatch = 4\n')
    millrace("train", "recipe.toml", "--out", "run", cwd=tmp_path)
    lines = [f"{x:.4f},{z:.4f}" for x, z in rows[:13]]
    (tmp_path / "whole.csv").write_text("\n".join(["x,z", *lines]))
    whole = millrace("predict", "run", "whole.csv", cwd=tmp_path).stdout.replace("whole.csv", "new.csv").splitlines()
    assert len(whole) == 13
    lines[9] = "oops,0.5"
    (tmp_path / "new.csv").write_text("\n".join(["x,z", *lines]))
    said = millrace("predict", "run", "new.csv", cwd=tmp_path, code=1)
    assert said.stdout.splitlines() == whole[:9] + whole[10:]
    assert "new.csv, line 11: its x is 'oops'" in said.stderr
