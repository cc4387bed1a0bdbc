"""How data.train is divided by data.test_share and data.test_where, for every kind of input; tables that come
packed or by a pipe; what is said of columns that nothing, or too much, can be learnt from."""

import csv
import io
import json
import os
import random
import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile

import numpy as np
import pytest
from PIL import Image


def with_data(recipe, *keys):
    """The recipe with keys in [data], as in test_by="stratified"; those of test_share go where test_where is
    given."""
    text = recipe.replace("[data]\n", "[data]\n" + "".join(key + "\n" for key in keys), 1)
    return text.replace("test_share = 0.2\n", "") if "test_where" in text else text


@pytest.fixture
def trained_on(millrace, tmp_path):
    """trained_on(recipe): the columns of all samples to train on, which are one batch."""

    def of(recipe):
        file = tmp_path / "why.toml"
        file.write_text(recipe)
        text = millrace("data", "why", file, "--step", "1").stdout
        count = int(re.search(r" to 0 of (\d+) in its order", text)[1])
        file.write_text(recipe.replace("batch = 1\n", f"batch = {count}\n"))
        millrace("data", "why", file, "--step", "1", "--write", tmp_path / "batch")
        with open(tmp_path / "batch/rows.csv") as rows:
            found = list(csv.DictReader(rows))
        shutil.rmtree(tmp_path / "batch")
        assert len(found) == count
        return found

    return of


@pytest.fixture
def trained(millrace, tmp_path):
    """trained(recipe): the folder and what was said of a training of one step."""

    def of(recipe, *changes, code=0):
        run = tmp_path / f"run{len(list(tmp_path.glob('run*')))}"
        (tmp_path / "r.toml").write_text(recipe)
        done = millrace("train", tmp_path / "r.toml", "--out", run, "train.steps=1", *changes, code=code)
        return run, done.stdout + done.stderr

    return of


VISITS = '[data]\ntrain = "{}"\ntest_share = 0.2\n[output]\nkind = "class"\ncolumn = "{}"\n[train]\nbatch = 1\n'


def table(tmp_path):
    draw = random.Random(1)
    lines = ["number,x,patient,day,label"]
    for i in range(300):
        patient = draw.randrange(25)
        lines.append(f"{i},{draw.gauss(0, 1) + patient:.3f},{patient},2024-{draw.randrange(1, 13):02}-05,{'rare' if i % 30 == 3 else 'usual'}")
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    return list(csv.DictReader(lines)), VISITS.format(tmp_path / "x.csv", "label")


def pictures(tmp_path):
    """A tar with the columns of `table`; the picture tells the number."""
    rows, _ = table(tmp_path)
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        for row in rows:
            stream = io.BytesIO()
            Image.new("RGB", (16, 16), (int(row["number"]) % 256, 0, 0)).save(stream, "PNG")
            for extension, content in {"cls": b"%d" % (row["label"] == "rare"), "png": stream.getvalue(), "day.txt": row["day"].encode(),
                                       "patient.id": row["patient"].encode(), "number.id": row["number"].encode()}.items():
                info = tarfile.TarInfo(f"{int(row['number']):04}.{extension}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return rows, VISITS.format(tmp_path / "x.tar", "cls")


def sounds(tmp_path):
    """The same with sounds, of 0.1 s."""
    import wave

    rows, _ = table(tmp_path)
    draw = np.random.default_rng(1)
    with tarfile.open(tmp_path / "s.tar", "w") as tar:
        for row in rows:
            stream = io.BytesIO()
            with wave.open(stream, "wb") as sound:
                sound.setnchannels(1), sound.setsampwidth(2), sound.setframerate(8000)
                sound.writeframes(draw.integers(-9000, 9000, 800).astype("<i2").tobytes())
            for extension, content in {"cls": b"%d" % (row["label"] == "rare"), "wav": stream.getvalue(), "day.txt": row["day"].encode(),
                                       "patient.id": row["patient"].encode(), "number.id": row["number"].encode()}.items():
                info = tarfile.TarInfo(f"{int(row['number']):04}.{extension}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return rows, VISITS.format(tmp_path / "s.tar", "cls").replace("[output]", "[input]\nkind = \"sound\"\n[output]")


def texts(tmp_path):
    rows, _ = table(tmp_path)
    lines = [json.dumps({"text": f"visit {row['number']} was {'long' if row['label'] == 'rare' else 'short'}", **row, "number": int(row["number"])}) for row in rows]
    (tmp_path / "x.jsonl").write_text("\n".join(lines) + "\n")
    return rows, VISITS.format(tmp_path / "x.jsonl", "label").replace("[output]", "[input]\nkind = \"text\"\ncolumn = \"text\"\nlength = 32\n[output]")


KINDS = {"table": table, "pictures": pictures, "sounds": sounds, "texts": texts}
NAMES = {"table": ("number", "patient", "day"), "texts": ("number", "patient", "day"),
         "pictures": ("number.id", "patient.id", "day.txt"), "sounds": ("number.id", "patient.id", "day.txt")}


@pytest.mark.parametrize("kind", KINDS)
def test_samples_of_every_kind_are_divided_by_class_group_and_time(trained_on, trained, tmp_path, kind):
    rows, recipe = KINDS[kind](tmp_path)
    number, patient, day = NAMES[kind]

    def divided(key):
        train = trained_on(with_data(recipe, key))
        mine = {int(float(row[number])) for row in train}
        assert len(mine) == len(train)
        return [[row for row in rows if (int(row["number"]) in mine) == side] for side in (True, False)]

    train, test = divided('test_by = "stratified"')
    assert [sum(row["label"] == "rare" for row in side) for side in (train, test)] == [8, 2] and len(test) == 60
    train, test = divided(f'test_by = "group:{patient}"')
    assert not {row["patient"] for row in train} & {row["patient"] for row in test} and 40 <= len(test) <= 80
    train, test = divided(f'test_by = "time:{day}"')
    assert max(row["day"] for row in train) < min(row["day"] for row in test) and 35 <= len(test) <= 85
    train, test = divided(f'test_where = "{number} >= 250"')
    assert {int(row["number"]) for row in test} == set(range(250, 300))
    # The others are what is tested on.
    for key, count in (('test_by = "stratified"', 60), (f'test_where = "{number} >= 250"', 50)):
        assert re.search(rf": {count} (rows|pictures|sounds|texts) to test on", trained(with_data(recipe, key))[1])


def test_a_division_is_of_what_the_condition_leaves_and_its_bits_are_no_seeds(trained_on, tmp_path):
    rows, recipe = table(tmp_path)
    old = {row["day"] for row in rows if row["day"] < "2024-07"}
    train = {row["day"] for row in trained_on(with_data(recipe, """where = "day < '2024-07'" """, 'test_by = "time:day"'))}
    assert train < old and max(train) < min(old - train)
    train = trained_on(with_data(recipe, 'where = "patient != 3"', 'test_by = "stratified"'))
    rare = sum(row["label"] == "rare" and row["patient"] != "3" for row in rows)
    assert abs(sum(row["label"] == "rare" for row in train) - 0.8 * rare) <= 1 and all(row["patient"] != "3" for row in train)

    # At random a condition moves none to the other side, and the seed of the training nothing at all.
    def numbers(*keys, seed=1):
        return {row["number"] for row in trained_on(with_data(recipe, *keys) + f"seed = {seed}\n")}

    whole = numbers()
    assert numbers('where = "number < 150"') == {n for n in whole if int(n) < 150}
    for by in ("stratified", "group:patient"):
        assert numbers(f'test_by = "{by}"') == numbers(f'test_by = "{by}"', seed=7) != whole


def test_the_words_are_those_of_pack_and_so_are_the_samples(millrace, trained_on, tmp_path):
    _, recipe = pictures(tmp_path)
    for by in ("stratified", "group:patient.id", "time:day.txt"):
        millrace("pack", tmp_path / "x.tar", tmp_path / by, "--split", "train=0.8,test=0.2", "--split-by", by, "--keep-keys")
        head = json.loads(millrace("data", "head", tmp_path / by / "train-000000.tar", "-n", 999, "--json").stdout)["head"]
        assert {row["__key__"] for row in head} == {row["__key__"] for row in trained_on(with_data(recipe, f'test_by = "{by}"'))}


def test_a_group_is_no_input_by_itself_and_time_is(millrace, trained, tmp_path):
    _, recipe = table(tmp_path)
    run, text = trained(with_data(recipe, 'test_by = "group:patient"'))
    assert "patient keeps samples together" in text and "2 columns of numbers, 0 of categories" in text
    # Nobody asks for it again.
    (tmp_path / "new.csv").write_text("number,x,day\n1,2.5,2024-01-05\n")
    assert "new.csv#0: " in millrace("predict", run, tmp_path / "new.csv").stdout
    assert 40 <= json.loads(millrace("eval", run, "--json").stdout)["targets"] <= 80
    _, text = trained(with_data(recipe, 'test_by = "group:patient"') + '[input]\nkind = "table"\ncolumns = ["x", "patient"]\n')
    assert "patient keeps samples together" not in text and "2 columns of numbers, 0 of categories" in text
    _, text = trained(with_data(recipe, 'test_by = "time:day"'))
    # A date, which newer ones are, too.
    assert "3 columns of numbers, 0 of categories" in text and "does without it" not in text
    _, text = trained(with_data(recipe, 'test_by = "time:day"') + '[input]\nkind = "table"\ncategories = ["day"]\n')
    assert 'input.leave_out = ["day"] does without it' in text


def test_each_source_of_a_mixture_is_divided_by_itself(trained_on, tmp_path):
    _, recipe = table(tmp_path)
    (tmp_path / "late.csv").write_text("number,x,patient,day,label\n" + "".join(f"{i},0.5,{i % 10},2025-01-{i % 28 + 1:02},usual\n" for i in range(300, 356)))
    recipe = recipe.replace(f'"{tmp_path}/x.csv"', f'{{ a = "{tmp_path}/x.csv", b = "{tmp_path}/late.csv" }}')
    days = [row["day"] for row in trained_on(with_data(recipe, 'test_by = "time:day"', 'order = "sequential"'))]
    assert "2024-09" < max(day for day in days if day < "2025") < "2024-12"
    assert "2025-01-20" < max(days) < "2025-01-25"


def test_a_division_that_cannot_be_says_why_and_where(millrace, tmp_path):
    _, recipe = table(tmp_path)
    (tmp_path / "r.toml").write_text(recipe.replace("test_share = 0.2", 'test_share = 0.2\ntest_by = "grup:patient"'))
    error = lambda *changes: millrace("train", tmp_path / "r.toml", *changes, "--out", tmp_path / "none", code=1).stderr  # noqa: E731
    assert "r.toml:4:" in error() and "did you mean 'group:patient'?" in error()
    (tmp_path / "r.toml").write_text(recipe)
    assert "did you mean 'patient'?" in error("data.test_by=group:patiant")
    assert 'data.test_by = "group:patiant"' in error("data.test_by=group:patiant")
    assert 'output.kind = "number" has no classes' in error("data.test_by=stratified", "output.kind=number", "output.column=x")
    (tmp_path / "one.csv").write_text("x,site,when,label\n" + "".join(f"{i},a,{'' if i == 7 else i},{'xy'[i % 2]}\n" for i in range(50)))
    one = f"data.train={tmp_path / 'one.csv'}"
    assert "all 50 samples have the same 'site'" in error(one, "data.test_by=group:site")
    missing = error(one, "data.test_by=time:when")
    assert "#7 has no 'when'" in missing and 'data.where = "when = when"' in missing
    assert "done" in millrace("train", tmp_path / "r.toml", one, "data.test_by=time:when", "data.where=when = when", "train.steps=1", "--out", tmp_path / "run").stdout
    (tmp_path / "days.csv").write_text("x,day,label\n" + "".join(f"{i},{1 + i % 12}/{1 + i // 12}/2024,{'xy'[i % 2]}\n" for i in range(50)))
    assert "write the year first" in error(f"data.train={tmp_path / 'days.csv'}", "data.test_by=time:day")
    assert "data.test_share keeps of data.train" in error("data.test_share=0", "data.test_by=stratified")
    assert "of a stream nothing can be kept" in error("data.stream=true", "data.epoch_samples=100", "data.order=sequential", "data.test_by=stratified")
    (tmp_path / "corpus.txt").write_text("to be or not to be\n" * 300)
    corpus = [f"data.train={tmp_path / 'corpus.txt'}", "input.kind=tokens", "input.length=16", "output={kind=tokens}"]
    assert "of which the end is kept" in error(*corpus, "data.test_by=stratified")


ROWS = ["age,job,paid,label"] + [f"{20 + i % 40},{'abc'[i % 3]},{(i * 37 % 90) / 7:.2f},{'yes' if i % 40 > 20 else 'no'}" for i in range(240)]
SHEET = '[data]\ntrain = "{}"\ntest_share = 0.25\n[train]\nsteps = 3\nbatch = 16\n'


@pytest.fixture
def sheet(millrace, tmp_path):
    """x.csv, and a model of it."""
    (tmp_path / "x.csv").write_text("\n".join(ROWS) + "\n")
    (tmp_path / "x.toml").write_text(SHEET.format(tmp_path / "x.csv"))
    millrace("train", tmp_path / "x.toml", "--out", tmp_path / "run")
    return tmp_path


def packed(path, content, how):
    if how == "gz":
        import gzip

        path.write_bytes(gzip.compress(content))
    elif how in ("bz2", "xz"):
        path.write_bytes(__import__("bz2" if how == "bz2" else "lzma").compress(content))
    else:
        import pyarrow

        path.write_bytes(pyarrow.Codec("zstd").compress(content, asbytes=True))


FORMS = {"csv": lambda rows: "\n".join(rows), "tsv": lambda rows: "\n".join(rows).replace(",", "\t"), "data": lambda rows: "\n".join(rows).replace(",", ";"),
         "jsonl": lambda rows: "\n".join(json.dumps({k: float(v) if k in ("age", "paid") else v for k, v in row.items()}) for row in csv.DictReader(rows))}


@pytest.mark.parametrize("how", ["gz", "zst", "bz2", "xz"])
def test_packed_tables_open_as_they_are(millrace, sheet, how):
    """By what is in them, whatever they are called, with the same predictions as plain ones."""
    plain = millrace("predict", sheet / "run", sheet / "x.csv").stdout
    head = json.loads(millrace("data", "head", sheet / "x.csv", "--json", "-n", "3").stdout)
    for form, make in FORMS.items():
        for name in (f"y.{form}.{how}", "table"):
            file = sheet / name
            packed(file, make(ROWS).encode(), how)
            assert millrace("predict", sheet / "run", file).stdout.replace(str(file), str(sheet / "x.csv")) == plain or form == "jsonl"
            told = json.loads(millrace("data", "head", file, "--json", "-n", "3").stdout)
            assert [list(map(str, row.values())) for row in told["head"]] == [list(map(str, row.values())) for row in head["head"]] or form == "jsonl"
            assert "240" in millrace("data", "stat", file).stdout
    packed(sheet / f"z.csv.{how}", "\n".join(ROWS).encode(), how)
    log = (sheet / "run/metrics.jsonl").read_text()
    millrace("train", sheet / "x.toml", f"data.train={sheet}/z.csv.{how}", "--out", sheet / "again")
    strip = lambda text: re.sub(r'"(seconds\w*|system/\w+|\w+/hours)": ?[^,}]*', "", text)  # noqa: E731
    assert strip((sheet / "again/metrics.jsonl").read_text()) == strip(log)
    assert json.loads(millrace("eval", sheet / "run", sheet / f"z.csv.{how}", "--json").stdout)["targets"] == 240


def test_a_damaged_or_swollen_packed_table_is_refused(millrace, sheet):
    import gzip

    whole = gzip.compress("\n".join(ROWS).encode())
    (sheet / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    assert "cut.csv.gz: is damaged" in millrace("data", "head", sheet / "cut.csv.gz", code=1).stderr
    (sheet / "none.csv.gz").write_bytes(gzip.compress(b""))
    assert "there is nothing in it" in millrace("data", "head", sheet / "none.csv.gz", code=1).stderr
    with zipfile.ZipFile(sheet / "x.csv.zip", "w") as archive:
        archive.writestr("x.csv", "\n".join(ROWS))
    assert "x.csv.zip: is a zip archive or an Excel workbook" in millrace("data", "head", sheet / "x.csv.zip", code=1).stderr
    (sheet / "bomb.csv.gz").write_bytes(gzip.compress(b"1,1\n" * 40_000_000, 9))
    assert "unpack it first" in millrace("data", "head", sheet / "bomb.csv.gz", code=1).stderr


def test_rows_from_standard_input_are_predicted(binary, millrace, sheet):
    import gzip

    def predicted(content, code=0):
        found = subprocess.run([binary, "predict", sheet / "run", "-", "--json"], input=content, capture_output=True)
        assert found.returncode == code, found.stderr
        return [json.loads(line)["logits"] for line in found.stdout.splitlines()] if code == 0 else found.stderr.decode()

    known = [json.loads(line)["logits"] for line in millrace("predict", sheet / "run", sheet / "x.csv", "--json").stdout.splitlines()]
    for make in FORMS.values():
        content = make(ROWS).encode()
        assert predicted(content) == known and predicted(gzip.compress(content)) == known
    assert predicted("\n".join(ROWS[:2]).encode()) == known[:1]
    # Of rows of texts alone only the columns that the model knows say that the first line has names.
    (sheet / "w.csv").write_text("a,b,label\n" + "".join(f"{'xy'[i % 2]},{'uvw'[i % 3]},{'no' if i % 2 else 'yes'}\n" for i in range(120)))
    millrace("train", sheet / "x.toml", f"data.train={sheet}/w.csv", "--out", sheet / "words")
    found = subprocess.run([binary, "predict", sheet / "words", "-"], input="a,b\nx,u\ny,w\n", capture_output=True, text=True)
    assert found.returncode == 0 and len(found.stdout.splitlines()) == 2, found.stderr
    # Lines of text are no table, and neither is what no one wrote.
    assert "no column" in predicted(b"Hello, world\nGood day, moon\n", 1)
    assert "is no data source" in predicted(bytes(range(256)), 1)
    head = subprocess.run([binary, "data", "head", "-"], input="Hello, world\nGood day, moon\n", capture_output=True, text=True)
    assert head.returncode == 0 and "text" in head.stdout and "2" in head.stdout


def test_a_folder_of_parts_is_one_table(millrace, sheet):
    """As Spark and its like write them; files of other names are not put together."""
    parts = sheet / "parts"
    parts.mkdir()
    for k in range(3):
        (parts / f"part-0000{k}-c000.csv").write_text("\n".join(ROWS[:1] + ROWS[1 + 80 * k : 81 + 80 * k]) + "\n")
    (parts / "_SUCCESS").write_text("")
    (parts / ".part-00000-c000.csv.crc").write_bytes(b"crc")
    logits = lambda *source: [json.loads(line)["logits"] for line in millrace("predict", sheet / "run", *source, "--json").stdout.splitlines()]  # noqa: E731
    assert logits(parts) == logits(sheet / "x.csv")
    for k in range(3):
        packed(parts / f"part-0000{k}-c000.csv.gz", (parts / f"part-0000{k}-c000.csv").read_bytes(), "gz")
    for file in parts.glob("*.csv"):
        file.unlink()
    assert logits(parts) == logits(sheet / "x.csv")
    both = sheet / "both"
    both.mkdir()
    for name in ("train.csv", "test.csv"):
        (both / name).write_text("\n".join(ROWS) + "\n")
    assert "2 samples" in millrace("data", "head", both).stdout


def test_a_draft_wants_names_of_columns_in_utf_8(millrace, tmp_path):
    rows = "\n".join(["größe,b,label"] + [f"{i}.5,{i % 7}.1,{'ja' if i % 2 else 'nein'}" for i in range(40)])
    (tmp_path / "latin.csv").write_bytes(rows.encode("latin-1"))
    assert "latin.csv: a name in it is not UTF-8" in millrace("init", tmp_path / "latin.csv", code=1).stderr
    (tmp_path / "utf.csv").write_text(rows, encoding="utf-8")
    assert "größe" in millrace("init", tmp_path / "utf.csv").stdout
    named = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.csv")
    with open(named, "w", encoding="utf-8") as file:
        file.write(rows)
    assert "caf\\xe9.csv: its name is not UTF-8, as what stands in a recipe has to be: rename it" in millrace("init", named, code=1).stderr


def test_a_folder_whose_name_is_not_utf_8_is_one_to_train_in(millrace, tmp_path):
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    os.mkdir(folder)
    with open(folder + "/t.csv", "w", encoding="utf-8") as file:
        file.write("\n".join(["a,label", *(f"{i % 5},{'yes' if i % 2 else 'no'}" for i in range(40))]) + "\n")
    with open(folder + "/r.toml", "w", encoding="utf-8") as file:
        file.write('[data]\ntrain = "t.csv"\n[model]\nkind = "linear"\n[train]\nepochs = 2\nbatch = 10\n')
    millrace("train", "r.toml", "--out", "run", cwd=folder)
    millrace("train", "--resume", "run", "train.epochs=3", cwd=folder)
    assert "accuracy" in millrace("eval", "run", "t.csv", cwd=folder).stdout


def test_utf16_is_called_so(millrace, binary, tmp_path):
    (tmp_path / "x.csv").write_bytes("\n".join(ROWS).encode("utf-16"))
    assert "x.csv: is UTF-16; convert it" in millrace("data", "head", tmp_path / "x.csv", code=1).stderr
    found = subprocess.run([binary, "data", "head", "-"], input="\n".join(ROWS).encode("utf-16"), capture_output=True)
    assert found.returncode == 1 and b"-: is UTF-16; convert it" in found.stderr


def test_columns_that_are_no_classes_are_said(millrace, tmp_path):
    draw = random.Random(3)
    (tmp_path / "x.csv").write_text("x,one,price,code,label\n" + "".join(f"{draw.gauss(0, 1):.3f},same,{draw.randrange(300, 19000)},{draw.randrange(40)},{'ab'[i % 2]}\n" for i in range(2000)))
    (tmp_path / "few.csv").write_text("x,price\n" + "".join(f"{i * .5},{100 + 7 * i}\n" for i in range(40)))
    (tmp_path / "r.toml").write_text(f'[data]\ntrain = "{tmp_path}/x.csv"\n[train]\nsteps = 2\nbatch = 16\n')
    run = tmp_path / "run"

    def train(*changes, code=0):
        if run.exists():
            shutil.rmtree(run)
        done = millrace("train", tmp_path / "r.toml", *changes, "--out", run, code=code)
        return done.stdout + done.stderr

    refused = train("output.column=one", code=1)
    assert "x.csv: all samples are of one class in the column 'one', 'same'" in refused and "choose another column" in refused
    text = train("output.column=label", "data.where=label = 'a'")
    assert "all 1000 samples to train on are of the class 'a': nothing can be learnt from them" in text
    text = train("output.column=price", "output.kind=class")
    assert re.search(r"price has \d+ different whole numbers in 2000 samples: are these amounts\? output.kind = \"number\" predicts them", text)
    assert text.count("no sample to train on") <= 1  # not a line for each number

    # Where the kind is open, many whole numbers are numbers and few are classes, however few samples there
    # are.
    def kind(*changes):
        train(*changes)
        return tomllib.loads((run / "recipe.toml").read_text())["output"]["kind"]

    assert kind("output.column=price") == "number" and kind("output.column=code") == "class"
    assert kind("output.column=price", f"data.train={tmp_path}/few.csv") == "number"
