"""Tables as people have them: what stands in their cells, what became of each column, and that a model
trained on all of them is as good as what a careful person would have made of it."""

import json
import random
import subprocess

import pytest

NAMES = ["Kaya", "Ito", "Silva", "Novak", "Haddad", "Berg", "Okafor", "Lund"]


def write_passengers(path, rows=900, seed=3, extra=None):
    """Like the Titanic's list: a name, a ticket and a cabin for each, most of them there once; sex, age and
    fare decide."""
    draw = random.Random(seed)
    lines = ["PassengerId,Survived,Class,Name,Sex,Age,Ticket,Fare,Cabin"]
    for i in range(rows):
        sex, cls = draw.choice(["male", "female"]), draw.choice([1, 2, 3])
        age = "" if draw.random() < 0.2 else draw.randint(1, 70)
        fare = round(draw.lognormvariate(4 - cls, 0.5), 2)
        chance = 0.85 - 0.2 * (cls - 1) if sex == "female" else 0.25 - 0.08 * (cls - 1)
        cabin = f"{draw.choice('ABC')}{draw.randint(1, 200)}" if draw.random() < 0.25 else ""
        ticket = f"{draw.choice(['PC', 'A/5', 'STON'])} {draw.randint(1000, 99999)}"
        lines.append(
            f'{i + 1},{int(draw.random() < chance)},{cls},"{draw.choice(NAMES)}, {i} {draw.randint(0, 9)}",{sex},{age},{ticket},{fare},{cabin}'
        )
    path.write_text("\n".join(lines) + "\n")


def recipe(tmp_path, text, name="r.toml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def train(millrace, *arguments):
    """All that training says."""
    result = millrace("train", *arguments)
    return result.stdout + result.stderr


def columns(millrace, path):
    return {c["name"]: c for c in json.loads(millrace("data", "stat", path, "--json").stdout)["columns"]}


def test_texts_that_nearly_all_differ_are_not_learnt_by_heart(millrace, tmp_path):
    write_passengers(tmp_path / "ship.csv")
    of = columns(millrace, tmp_path / "ship.csv")
    assert of["PassengerId"]["taken_as"] == {"kind": "left out", "why": "it counts the rows", "missing": 0, "categories": 0, "rare": 0}
    assert of["Name"]["taken_as"]["kind"] == "left out"
    assert of["Ticket"]["taken_as"]["kind"] == "left out"
    assert of["Cabin"]["taken_as"]["kind"] == "there or not"
    assert of["Sex"]["taken_as"]["kind"] == "category"
    assert "taken as" in millrace("data", "stat", tmp_path / "ship.csv").stdout

    text = f'[data]\ntrain = "{tmp_path}/ship.csv"\ntest_share = 0.25\n[output]\ncolumn = "Survived"\nkind = "class"\n[train]\nepochs = 15\n'
    path = recipe(tmp_path, text)
    out = train(millrace, path, "--out", tmp_path / "run")
    assert "Name is left out" in out and "Ticket is left out" in out and "PassengerId is left out" in out
    score = json.loads(millrace("eval", tmp_path / "run", "--json").stdout)
    # Who decides by sex and class alone, which is how the rows were made, is right in 76 of 100.
    learnt = score["accuracy"]
    # What the same model makes of it where names and tickets are categories after all, by the key that says
    # so.
    millrace("train", path, "--out", tmp_path / "all", 'input.categories=["Name", "Ticket", "Cabin"]')
    said = json.loads(millrace("eval", tmp_path / "all", "--json").stdout)
    assert learnt > 0.70
    assert score["log-loss"] < said["log-loss"] + 0.02

    # Names and no rows, some of them not even those of training.
    (tmp_path / "none.csv").write_text("Class,Sex\n")
    assert "has names of columns (Class, Sex) and no rows" in millrace("predict", tmp_path / "run", tmp_path / "none.csv", code=1).stderr

    # A value that training never saw is one of the others, not an error.
    (tmp_path / "new.csv").write_text("PassengerId,Class,Name,Sex,Age,Ticket,Fare,Cabin\n1,1,X,unknown,30,Z 1,70,\n")
    assert millrace("predict", tmp_path / "run", tmp_path / "new.csv").stdout


def test_words_for_missing_values_and_bad_cells(millrace, tmp_path):
    rows = ["age,income,group"] + [f"{20 + i % 50},{1000 + i},{'ab'[i % 2]}" for i in range(3000)]
    for i, word in enumerate(["NULL", "None", "N/A", "n/a", "#N/A", "NaN", "-", ".", "?", "missing", "", "nan"]):
        rows[100 + i] = f"{word},{1000 + i},a"
    rows[2000] = "#REF!,5,b"
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    read = millrace("data", "stat", tmp_path / "people.csv", "--json")
    age = {c["name"]: c for c in json.loads(read.stdout)["columns"]}["age"]
    assert age["kind"] == "integer" and age["missing"] == 13
    assert "people.csv: age: 1 of 2988 cells is no number (the first: '#REF!' in line 2001)" in read.stderr
    # Words of one's own.
    text = f'[data]\ntrain = "{tmp_path}/people.csv"\nmissing = ["5", "a"]\n[output]\ncolumn = "age"\n[train]\nepochs = 1\n'
    (tmp_path / "some.csv").write_text("\n".join(r for r in rows if r[:2].isdigit() or r.startswith("age")) + "\n")
    out = train(millrace, recipe(tmp_path, text.replace("people", "some")), "--out", tmp_path / "run")
    assert "is taken as" not in out.split("income")[0]


@pytest.mark.parametrize(
    "cells,values,note",
    [
        (["1,5", "2,25", "1.000,5"], [1.5, 2.25, 1000.5], "decimal commas"),
        (["$1.5", "$2,000", "-$3"], [1.5, 2000, -3], "a currency's sign"),
        (["10%", "20.5 %", "0 %"], [10, 20.5, 0], "% (12 % is 12)"),
        (["1,000", "22,500.25", "7"], [1000, 22500.25, 7], "separated thousands"),
    ],
)
def test_numbers_as_people_write_them(millrace, tmp_path, cells, values, note):
    (tmp_path / "x.csv").write_text("a;b\n" + "".join(f"{cell};t\n" for cell in cells * 3))
    if note == "separated thousands":  # a comma in a file of semicolons is decimal
        (tmp_path / "x.csv").write_text("a\tb\n" + "".join(f"{cell}\tt\n" for cell in cells * 3))
    read = millrace("data", "head", tmp_path / "x.csv", "-n", 3, "--json")
    assert [row["a"] for row in json.loads(read.stdout)["head"]] == values
    assert note in read.stderr


def test_a_model_reads_what_is_predicted_as_its_training_data(millrace, tmp_path):
    """Decimal commas, dates, yes and no: of one row nothing could be found out about its columns."""
    draw = random.Random(1)
    rows = ["size;day;member;price"]
    for i in range(600):
        size, day, member = draw.uniform(1, 9), draw.randint(1, 28), draw.choice(["yes", "no"])
        price = 3 * size + (5 if member == "yes" else 0)
        rows.append(f"{size:.2f};{day:02}.{1 + i % 12:02}.2023;{member};{price:.2f}".replace(".2023", "#").replace(".", ",").replace("#", ".2023"))
    text = "\n".join(rows).replace(",0", ",0") + "\n"
    # dates have dots between day and month, too
    fixed = []
    for line in text.splitlines():
        parts = line.split(";")
        if len(parts) == 4 and parts[1] != "day":
            parts[1] = parts[1].replace(",", ".")
        fixed.append(";".join(parts))
    (tmp_path / "houses.csv").write_text("\n".join(fixed) + "\n")
    path = recipe(
        tmp_path,
        f'[data]\ntrain = "{tmp_path}/houses.csv"\ntest_share = 0.2\n[output]\ncolumn = "price"\nkind = "number"\n[train]\nepochs = 30\n',
    )
    out = train(millrace, path, "--out", tmp_path / "run")
    assert "day is taken as date" in out and "member is taken as yes or no" in out and "decimal commas" in out
    assert json.loads(millrace("eval", tmp_path / "run", "--json").stdout)["r2"] > 0.9

    def predicted(text, **how):
        (tmp_path / "one.csv").write_text(text)
        lines = millrace("predict", tmp_path / "run", tmp_path / "one.csv", "--json", **how).stdout.splitlines()
        return [json.loads(line) for line in lines]

    (one,) = predicted("size;day;member\n5,00;03.04.2023;yes\n")
    (same,) = predicted("size;day;member\n5;03.04.2023;YES\n")
    assert one["prediction"] == same["prediction"] if "prediction" in one else one == {**same, "input": one["input"]}
    # One bad cell loses its row, named; the others are predicted.
    (tmp_path / "some.csv").write_text("size;day;member\n5,00;03.04.2023;yes\nbig;03.04.2023;yes\n2,5;03.04.2023;no\n1;soon;no\n")
    result = millrace("predict", tmp_path / "run", tmp_path / "some.csv", "--json", code=1)
    assert len(result.stdout.splitlines()) == 2
    assert "some.csv, line 3: its size is 'big', and in training the column holds numbers" in result.stderr
    assert "some.csv, line 5: its day is 'soon', and in training the column holds dates" in result.stderr
    assert "2 of 4 could not be predicted" in result.stderr


def test_the_exported_model_takes_missing_texts_as_the_program_does(millrace, tmp_path):
    ort = pytest.importorskip("onnxruntime")
    import numpy as np

    draw = random.Random(5)
    rows = ["town,n,label"]
    for i in range(400):
        town = draw.choice(["Bern", "Oslo", "", "None"])
        rows.append(f"{town},{i % 7},{'yes!' if town in ('Bern', '') else 'no!'}")
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    path = recipe(tmp_path, f'[data]\ntrain = "{tmp_path}/t.csv"\n[output]\ncolumn = "label"\n[train]\nepochs = 2\n')
    millrace("train", path, "--out", tmp_path / "run")
    millrace("export", tmp_path / "run", tmp_path / "m.onnx")
    session = ort.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    towns = ["Bern", "", "None", "N/A", "nowhere"]
    (tmp_path / "p.csv").write_text("town,n\n" + "".join(f"{t},3\n" for t in towns))
    ours = [json.loads(line)["logits"] for line in millrace("predict", tmp_path / "run", tmp_path / "p.csv", "--json").stdout.splitlines()]
    feeds = {}
    for each in session.get_inputs():
        feeds[each.name] = (
            np.array([[t] for t in towns], dtype=object) if each.name == "town" else np.full((len(towns), 1), 3, np.float64)
        )
    theirs = session.run(["logits"], feeds)[0] if "logits" in [o.name for o in session.get_outputs()] else session.run(None, feeds)[0]
    assert np.allclose(np.array(ours), theirs, atol=1e-5)
    assert np.allclose(theirs[1], theirs[2]) and np.allclose(theirs[1], theirs[3])
    assert not np.allclose(theirs[1], theirs[4])


def test_files_of_old_macs_and_excel(millrace, tmp_path):
    (tmp_path / "mac.csv").write_bytes(b"a,b\r1,x\r2,y\r")
    (tmp_path / "excel.csv").write_bytes(b"\xef\xbb\xbfsep=;\r\na;b\r\n1;x\r\n2;y\r\n")
    (tmp_path / "trailing.csv").write_text("a,b,\n1,x,\n2,y,\n")
    for name in ("mac.csv", "excel.csv", "trailing.csv"):
        rows = json.loads(millrace("data", "head", tmp_path / name, "--json").stdout)["head"]
        assert [(row["a"], row["b"]) for row in rows] == [(1, "x"), (2, "y")], name


def test_names_without_rows_and_places_as_lines(millrace, tmp_path):
    (tmp_path / "empty.csv").write_text("name,age,town\n")
    path = recipe(tmp_path, f'[data]\ntrain = "{tmp_path}/empty.csv"\n[output]\ncolumn = "town"\n')
    for arguments in (("data", "stat", tmp_path / "empty.csv"), ("train", path, "--out", tmp_path / "run")):
        assert "has names of columns (name, age, town) and no rows" in millrace(*arguments, code=1).stderr
    (tmp_path / "odd.csv").write_text('a,b\n1,"x\ny"\n3,4,5\n')
    assert "odd.csv: line 4 has 3 values, the first row has 2" in millrace("data", "head", tmp_path / "odd.csv", code=1).stderr


def test_a_table_with_tabs_may_be_called_txt(millrace, tmp_path):
    rows = tmp_path / "rows.txt"
    rows.write_text("height\tsex\n" + "".join(f"{150 + i % 40}.5\t{'mf'[i % 2]}\n" for i in range(300)))
    assert "height (real)" in millrace("data", "head", rows).stdout
    assert 'kind = "table"' in millrace("init", rows).stdout
    verse = tmp_path / "verse.txt"
    verse.write_text("\tTo be\nor not to be\n" * 200)
    assert "text (text)" in millrace("data", "head", verse).stdout


def test_dates_and_numbers_by_keys(millrace, tmp_path):
    rows = ["when,code,y"] + [f"{1 + i % 12}/{1 + i % 9}/2024,{i % 5},{i % 12}" for i in range(300)]
    (tmp_path / "d.csv").write_text("\n".join(rows) + "\n")
    base = f'[data]\ntrain = "{tmp_path}/d.csv"\n[output]\ncolumn = "y"\nkind = "number"\n[train]\nepochs = 1\n'
    path = recipe(tmp_path, base)
    out = train(millrace, path, "--out", tmp_path / "a")
    assert "when is taken as date" in out
    out = train(millrace, path, "--out", tmp_path / "b", 'input.categories=["when"]')
    assert "when is taken as" not in out
    assert "input.categories and input.dates both name 'when'" in millrace(
        "train", path, "--out", tmp_path / "c", 'input.categories=["when"]', 'input.dates=["when"]', code=1
    ).stderr.replace("input.dates and input.categories", "input.categories and input.dates")
    error = millrace("train", path, "--out", tmp_path / "d", 'input.dates=["whem"]', code=1).stderr
    assert "whem" in error and "when" in error


def test_codes_are_as_they_are_written_also_in_an_exported_model(millrace, tmp_path):
    """Zeros in front stay, 1.0 is another code than 1, and ONNX Runtime on the exported graph agrees row by
    row."""
    numpy, onnxruntime = pytest.importorskip("numpy"), pytest.importorskip("onnxruntime")
    draw = random.Random(5)
    prices = {"01234": 1, "1234": 5, "02139": 9, "52218": 13}
    levels = {"1": 0.0, "1.0": 3.0, "1e3": 6.0, "1000": 9.0, "+4": 12.0}
    rows = []
    for _ in range(400):
        zip_code, level = draw.choice(list(prices)), draw.choice(list(levels))
        rows.append((zip_code, level, round(draw.random(), 3), prices[zip_code] + levels[level]))
    table = tmp_path / "zips.csv"
    table.write_text("zip,level,x,price\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    path = recipe(
        tmp_path,
        f'[data]\ntrain = "{table}"\ntest_share = 0.2\n[input]\ncategories = ["level"]\n[output]\ncolumn = "price"\nkind = "number"\n'
        "[train]\nbatch = 16\nepochs = 2\n",
    )
    out = train(millrace, path, "--out", tmp_path / "run")
    assert "zip:" in out and "begin with 0, as codes do" in out
    session = onnxruntime.InferenceSession(str(tmp_path / "run" / "model.onnx"))
    feed = {"numbers": numpy.array([[row[2]] for row in rows])}
    for k, name in enumerate(["zip", "level"]):
        feed[name] = numpy.array([[row[k]] for row in rows], object)
    theirs = session.run(["logits"], feed)[0].reshape(-1)
    ours = [json.loads(line)["logits"] for line in millrace("predict", tmp_path / "run", table, "--json").stdout.splitlines()]
    assert numpy.abs(numpy.array(ours).reshape(-1) - theirs).max() < 1e-4
    # Each code is one of its own, whatever stands beside it in the file, and evaluation reads them like
    # training.
    (tmp_path / "few.csv").write_text("zip,level,x\n" + "".join(f"{code},1,0.5\n" for code in prices))
    few = [json.loads(line)["logits"] for line in millrace("predict", tmp_path / "run", tmp_path / "few.csv", "--json").stdout.splitlines()]
    assert len({str(logits) for logits in few}) == 4
    ints = tmp_path / "ints.csv"
    ints.write_text("zip,level,x,price\n" + "".join(",".join(map(str, row)) + "\n" for row in rows if row[:2] == ("1234", "1000")))
    assert json.loads(millrace("eval", tmp_path / "run", ints, "--json").stdout)["targets"] > 10
    # As a target, 01, 001 and 1 are three classes; input.numbers takes codes as the numbers they are.
    (tmp_path / "kinds.csv").write_text("x,kind\n" + "".join(f"{i / 100},{['01', '001', '1'][i % 3]}\n" for i in range(90)))
    said = train(millrace, recipe(tmp_path, f'[data]\ntrain = "{tmp_path}/kinds.csv"\ntest_share = 0.2\n[output]\ncolumn = "kind"\n[train]\nbatch = 16\nepochs = 1\n', "kinds.toml"), "--out", tmp_path / "kinds")
    classes = json.loads(millrace("eval", tmp_path / "kinds", "--json").stdout)
    assert "3 classes" in said or len(classes.get("classes", [])) == 3, said
    out = train(millrace, path, "--out", tmp_path / "numbers", 'input.numbers=["zip"]')
    assert "zip is taken as number: named in numbers" in out


def test_what_a_table_does_not_take_is_named(millrace, tmp_path):
    draw = random.Random(2)
    lines = [{"a": round(draw.random(), 3), "tags": ["x"], "y": draw.choice("uv")} for _ in range(200)]
    lines[50]["a"] = "n/a"
    table = tmp_path / "rows.jsonl"
    table.write_text("".join(json.dumps(line) + "\n" for line in lines))
    of = columns(millrace, table)
    assert of["a"]["kind"] == "real" and of["a"]["missing"] == 1 and of["a"]["taken_as"]["kind"] == "number"
    assert of["tags"]["taken_as"]["why"] == "it holds json, and a table takes numbers and texts"
    path = recipe(tmp_path, f'[data]\ntrain = "{table}"\ntest_share = 0.2\n[input]\nkind = "table"\n[output]\ncolumn = "y"\n[train]\nbatch = 16\nepochs = 1\n')
    out = train(millrace, path, "--out", tmp_path / "run")
    assert "1 columns of numbers" in out and out.count("tags is left out: it holds json") == 1, out
    assert "tags is left out" not in train(millrace, path, "--out", tmp_path / "said", 'input.leave_out=["tags"]')


def test_rows_to_predict_that_are_damaged_or_none(millrace, binary, tmp_path):
    """Names without rows, and a row that lacks a value, also from standard input, where no name says that it
    is CSV."""
    draw = random.Random(2)
    table = tmp_path / "rows.csv"
    table.write_text("x,colour,y\n" + "".join(f"{draw.random():.3f},{draw.choice(['red', 'blue'])},{draw.choice('uv')}\n" for _ in range(120)))
    path = recipe(tmp_path, f'[data]\ntrain = "{table}"\n[output]\ncolumn = "y"\n[train]\nbatch = 16\nepochs = 1\n')
    train(millrace, path, "--out", tmp_path / "run")

    def said(text):
        return subprocess.run(
            [binary, "predict", tmp_path / "run", "-"], input=text, capture_output=True, text=True, check=False
        )

    assert "has names of columns (x, colour) and no rows" in said("x,colour\n").stderr
    assert "line 3 has 1 value, the first row has 2" in said("x,colour\n0.5,red\n0.7\n").stderr
    assert said("x,colour\n0.5,red\n").returncode == 0
    for names in (",x,colour,y\n", '"","x","colour","y"\n'):
        (tmp_path / "none.csv").write_text(names)
        for verb in (("predict", tmp_path / "run"), ("data", "head")):
            assert "has names of columns (c0, x, colour, y) and no rows" in millrace(*verb, tmp_path / "none.csv", code=1).stderr


def test_files_that_are_no_tables_say_what_they_are(millrace, tmp_path):
    table = "a,b\n1,x\n2,y\n"

    def refused(content):
        (tmp_path / "x.csv").write_bytes(content)
        return millrace("data", "head", tmp_path / "x.csv", code=1).stderr

    assert "is UTF-16 without its mark; convert it to UTF-8 first (iconv -f utf-16le -t utf-8)" in refused(table.encode("utf-16-le"))
    assert "(iconv -f utf-16be -t utf-8)" in refused(table.encode("utf-16-be"))
    assert "has bytes of 0 among its text, the first at byte 6" in refused(table.replace("x", "\0").encode())
    assert "is an Excel workbook (.xls)" in refused(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600))


def test_names_and_cells_of_several_lines_do_not_break_tables_and_notes_come_once(millrace, tmp_path):
    table = tmp_path / "rows.csv"
    table.write_text('"the\nname",x,x,y\n' + "".join(f'"two\nlines",{i % 7},{i / 4},{"uv"[i % 2]}\n' for i in range(120)))
    lines = millrace("data", "stat", table).stdout.splitlines()
    assert len(lines) == 6 and "the\\nname" in lines[2] and "two\\nlines (120)" in lines[2], lines
    path = recipe(tmp_path, f'[data]\ntrain = "{table}"\ntest_share = 0.2\n[output]\ncolumn = "y"\n[train]\nbatch = 16\nepochs = 1\n')
    assert train(millrace, path, "--out", tmp_path / "run").count("some names of columns come again") == 1
