"""What becomes of cells that training has not learnt to read, of small tables, and of values that are not
seen in training."""

import datetime
import json
import random

import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def recipe(path, train, rest, column="y"):
    path.write_text(f'[data]\ntrain = "{train}"\n{rest}\n[output]\ncolumn = "{column}"\n[train]\nepochs = 2\n')
    return path


def said(millrace, *arguments, **how):
    result = millrace(*arguments, **how)
    return result.stdout + result.stderr


def write_visits(path, rows, bad=None):
    """A date, a number, a class that both decide; `bad`: rows with cells that are neither."""
    draw = random.Random(rows)
    lines = ["seen,age,y"]
    for i in range(rows):
        month, age = draw.randint(1, 12), draw.randint(1, 80)
        seen, years = (bad or {}).get(i, (f"2023-{month:02}-05", str(age)))
        lines.append(f"{seen},{years},{'ill' if age + 3 * month > 60 else 'well'}")
    path.write_text("\n".join(lines) + "\n")


def test_cells_that_cannot_be_read_are_missing_in_training_and_evaluation(millrace, tmp_path):
    bad = {40: ("last week", "30"), 90: ("2023-01-05", "thirty"), 150: ("soon", "12 months"), 200: ("2023-02-05", "old"), 260: ("2023-02-05", "2O")}
    write_visits(tmp_path / "train.csv", 300, bad)
    write_visits(tmp_path / "test.csv", 10, {7: ("2023-03-05", "#REF!"), 4: ("?", "3")})
    r = recipe(tmp_path / "r.toml", tmp_path / "train.csv", f'test = "{tmp_path}/test.csv"')
    out = said(millrace, "train", r, "--out", tmp_path / "run", 'input.numbers=["age"]')
    assert f"seen: 2 of 300 values cannot be read as dates and count as missing (the first: 'last week' in {tmp_path}/train.csv, line 42)" in out
    assert f"age: 4 of 300 values cannot be read as numbers and count as missing (the first: 'thirty' in {tmp_path}/train.csv, line 92)" in out
    assert f"test.csv: age: 1 of 10 values cannot be read as numbers and counts as missing (the first: '#REF!' in {tmp_path}/test.csv, line 9)" in out
    result = millrace("eval", tmp_path / "run", "--json")
    assert json.loads(result.stdout)["targets"] == 10
    assert "test.csv, line 9)" in said(millrace, "eval", tmp_path / "run")
    # A bad value counts as what is missing does; a prediction of it is refused by name.
    (tmp_path / "other.csv").write_text((tmp_path / "test.csv").read_text().replace("#REF!", ""))
    losses = [json.loads(millrace("eval", tmp_path / "run", *more, "--json").stdout)["log-loss"] for more in ([], [tmp_path / "other.csv"])]
    assert losses[0] == losses[1]
    result = millrace("predict", tmp_path / "run", tmp_path / "test.csv", "--json", code=1)
    assert len(result.stdout.splitlines()) == 9
    assert "test.csv, line 9: its age is '#REF!', and in training the column holds numbers" in result.stderr
    # A column of which nothing can be read is another column.
    write_visits(tmp_path / "words.csv", 10, {i: ("2023-03-05", "young") for i in range(10)})
    assert "age: none of its 10 values can be read as numbers (the first: 'young' in " in said(
        millrace, "eval", tmp_path / "run", tmp_path / "words.csv", code=1
    )


def test_small_tables_are_not_learnt_by_heart(millrace, tmp_path):
    draw = random.Random(2)
    feeds = sorted("abc"[i % 3] for i in range(71))
    lines = ["row,name,weight,feed"] + [f"{i + 1},Chick {i},{draw.randint(100, 400)},{feed}" for i, feed in enumerate(feeds)]
    (tmp_path / "chicks.csv").write_text("\n".join(lines) + "\n")
    draft = millrace("init", tmp_path / "chicks.csv").stdout
    assert '# left out: ["row", "name"]' in draft
    out = said(millrace, "train", recipe(tmp_path / "r.toml", tmp_path / "chicks.csv", "test_share = 0.2", "feed"), "--out", tmp_path / "run", "train.batch=8")
    assert "row is left out: it counts the rows" in out and "name is left out" in out


def test_unknown_categories_are_predicted_as_the_mean_of_the_known(millrace, tmp_path):
    # What a category adds is from -4 to 4, so that of one that nobody knows 0 is to be expected.
    draw = random.Random(4)
    lines = ["c,x,y"]
    for i in range(2000):
        c, x = i % 9, draw.random()
        lines.append(f"{'abcdefghi'[c]},{x:.3f},{10 + 3 * x + c - 4:.3f}")
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "p.csv").write_text("c,x\nzebra,0.5\n,0.5\ne,0.5\n")
    for seed in range(3):
        path = recipe(tmp_path / "r.toml", tmp_path / "t.csv", "")
        millrace("train", path, "--out", tmp_path / f"run{seed}", f"train.seed={seed}", "train.epochs=15", "train.batch=32")
        lines = millrace("predict", tmp_path / f"run{seed}", tmp_path / "p.csv", "--json").stdout.splitlines()
        unknown, missing, known = (json.loads(line)["numbers"]["y"] for line in lines)
        assert unknown == missing
        assert abs(unknown - 11.5) < 1.3 and abs(known - 11.5) < 0.5, (seed, unknown, known)


def write_weeks(path):
    draw = random.Random(6)
    lines = ["day,x,y,one"] + [f"2024-{1 + i // 28}-{1 + i % 28},{draw.random():.3f},{'yn'[i % 2]},7.5" for i in range(300)]
    path.write_text("\n".join(lines) + "\n")


def test_a_number_that_is_the_same_in_all_samples_is_said(millrace, tmp_path):
    write_weeks(tmp_path / "d.csv")
    out = said(millrace, "train", recipe(tmp_path / "r.toml", tmp_path / "d.csv", "", "one"), "--out", tmp_path / "run", "output.kind=number")
    assert "one is 7.5 in all samples to train on, so that there is nothing to learn of it" in out and "±" not in out


def test_newer_days_are_unknown_only_where_days_are_categories(millrace, tmp_path):
    write_weeks(tmp_path / "d.csv")
    divided = recipe(tmp_path / "r.toml", tmp_path / "d.csv", "test_share = 0.2", "y")
    out = said(millrace, "train", divided, "--out", tmp_path / "days", "data.test_by=time:day")
    assert "day is taken as date" in out and "is one of input's categories" not in out
    out = said(millrace, "train", divided, "--out", tmp_path / "codes", "data.test_by=time:day", 'input.categories=["day"]')
    assert "day is one of input's categories, and all that are tested on are unknown to the model" in out


def test_words_for_what_is_missing_are_known_of_dates_and_of_answers(millrace, tmp_path):
    draw = random.Random(3)
    words = ["none", "NONE", "-", "--", "?", "nil", "na"]
    rows = []
    for i in range(200):
        day = words[i % 7] if i % 10 == 3 else f"2024-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
        answer = words[i % 7] if i % 8 == 5 else draw.choice(["yes", "no"])
        rows.append(f"{day},{answer},{draw.randint(1, 9)},{draw.choice('ab')}")
    rows[50] = "last week" + rows[50][rows[50].index(",") :]  # a bad cell is none of them
    (tmp_path / "t.csv").write_text("\n".join(["day,answer,n,y", *rows]) + "\n")
    stat = {c["name"]: c for c in json.loads(millrace("data", "stat", tmp_path / "t.csv", "--json").stdout)["columns"]}
    assert stat["day"]["taken_as"]["kind"] == "date" and stat["answer"]["taken_as"]["kind"] == "yes or no"
    assert (stat["day"]["missing"], stat["answer"]["missing"], stat["n"]["missing"]) == (20, 25, 0)
    assert stat["day"]["taken_as"]["missing"] == 21
    out = said(millrace, "train", recipe(tmp_path / "r.toml", tmp_path / "t.csv", ""), "--out", tmp_path / "run")
    assert "3 columns of numbers with 2 flags of what is missing (day, answer), 0 of categories" in out
    assert "day: 1 of 180 values cannot be read as dates and counts as missing (the first: 'last week' in " in out


def test_codes_that_training_wrote_otherwise_are_told(millrace, tmp_path):
    draw = random.Random(6)
    codes = [draw.randint(1, 5) for _ in range(300)]
    for name, written in (("train", "{}.0"), ("same", "{}.0"), ("number", "{}"), ("other", "0{}")):
        lines = [f"{written.format(code)},{draw.gauss(0, 1):.3f},{'ab'[code > 2]}" for code in codes]
        (tmp_path / f"{name}.csv").write_text("\n".join(["code,x,y", *lines]) + "\n")
    out = said(millrace, "train", recipe(tmp_path / "r.toml", tmp_path / "train.csv", '[input]\ncategories = ["code"]'), "--out", tmp_path / "run")
    assert "none that training had" not in out
    told = f'code: 300 of 300 values are none that training had ("0{codes[0]}" in {tmp_path}/other.csv, line 2; training had "'
    for verb, more in (("eval", []), ("predict", ["-o", tmp_path / "said.csv", "--force"])):
        assert told in said(millrace, verb, tmp_path / "run", tmp_path / "other.csv", *more)
        for alike in ("same", "number"):  # 5 is 5.0, and 05 is another code
            assert "none that training had" not in said(millrace, verb, tmp_path / "run", tmp_path / f"{alike}.csv", *more)


def test_amounts_of_different_currencies_are_no_numbers(millrace, tmp_path):
    draw = random.Random(4)
    for name, ways in {"mixed": ["$%d", "%d €"], "alike": ["$%d"]}.items():
        rows = [{"price": draw.choice(ways) % draw.randint(1, 10**6), "n": i % 7, "y": "ab"[i % 2]} for i in range(200)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        stat = json.loads(millrace("data", "stat", tmp_path / f"{name}.jsonl", "--json").stdout)["columns"][0]
        assert stat["taken_as"]["kind"] == ("left out" if name == "mixed" else "number"), stat


def test_how_numbers_are_written_is_told_as_it_is(millrace, tmp_path):
    draw = random.Random(5)
    columns = {
        "typeset": lambda: draw.choice(["−", ""]) + str(draw.randint(1, 99)),
        "share": lambda: f"{draw.randint(1, 99)} %",
        "comma": lambda: f"{draw.randint(1, 99)},5",
        "dots": lambda: draw.choice(["1.234.567", "12"]),
        "blanks": lambda: f"1 {draw.randint(100, 999)}",
    }
    rows = [";".join(make() for make in columns.values()) for _ in range(50)]
    (tmp_path / "t.csv").write_text(";".join(columns) + "\n" + "\n".join(rows) + "\n")
    notes = said(millrace, "data", "stat", tmp_path / "t.csv")
    for column, way in {
        "typeset": "the minus sign of typesetters (−5)",
        "share": "% (12 % is 12)",
        "comma": "decimal commas (1.234,5)",
        "dots": "thousands separated by dots (1.234.567)",
        "blanks": "separated thousands (1 234)",
    }.items():
        assert f"t.csv: {column}: numbers are written with {way}\n" in notes, notes


def test_numbers_of_rows_are_left_out_in_any_order(millrace, tmp_path):
    draw = random.Random(6)
    ids, ranks, twice = list(range(1, 201)), list(range(200)), [i // 2 for i in range(200)]
    for column in (ids, ranks, twice):
        draw.shuffle(column)
    rows = [f"{ids[i]},{ranks[i]},{twice[i]},{draw.randint(1, 9)},{draw.choice('ab')}" for i in range(200)]
    (tmp_path / "t.csv").write_text("id,rank,twice_id,n,y\n" + "\n".join(rows) + "\n")
    r = recipe(tmp_path / "r.toml", tmp_path / "t.csv", "test_share = 0.1")
    out = said(millrace, "train", r, "--out", tmp_path / "run")
    assert "id is left out: it numbers the rows, in another order" in out
    # A rank has such numbers as well, and says something.
    assert "rank is left out" not in out and "twice_id is left out" not in out and "3 columns of numbers" in out
    out = said(millrace, "train", r, 'input.columns=["id","n"]', "--out", tmp_path / "named")
    assert "left out" not in out and "2 columns of numbers" in out


def write_in_formats(folder, rows):
    """The same table as CSV, JSON lines and Parquet, which has booleans, dates and times."""
    names = {suffix: folder / f"t.{suffix}" for suffix in ["csv", "jsonl", "parquet"]}
    cells = [",".join("" if value is None else str(value) for value in row.values()) for row in rows]
    names["csv"].write_text("\n".join([",".join(rows[0]), *cells]) + "\n")
    names["jsonl"].write_text("\n".join(json.dumps(row, default=str) for row in rows) + "\n")
    pq.write_table(pa.Table.from_pylist(rows), names["parquet"])
    return names


BOOSTED = """
[input]
{input}
[model]
kind = "boosting"
rounds = 5
"""


@pytest.mark.parametrize("choice", ["", 'categories = ["b", "day"]'])
def test_booleans_and_dates_are_the_same_in_all_formats(millrace, tmp_path, choice):
    draw = random.Random(3)
    rows = []
    for i in range(200):
        b, x = draw.random() < 0.5, draw.random()
        day = datetime.date(2023, 1, 1) + datetime.timedelta(days=draw.randint(0, 20))
        at = datetime.datetime(2023, 1, 1) + datetime.timedelta(seconds=draw.randint(0, 10**6))
        y = b if x < 0.5 else (day.day + at.day) % 16 > 8
        rows.append({"x": round(x, 4), "b": None if i % 50 == 7 else b, "day": day, "at": at, "y": y})
    tables = write_in_formats(tmp_path, rows)
    told = {}
    for trained in tables:
        r = recipe(tmp_path / f"{trained}.toml", tables[trained], BOOSTED.format(input=choice))
        run = tmp_path / f"run_{trained}"
        millrace("train", r, "--out", run)
        for asked, table in tables.items():
            got = json.loads(millrace("eval", run, table, "--json").stdout)
            out = tmp_path / "out.csv"
            out.unlink(missing_ok=True)
            millrace("predict", run, table, "-o", out)
            predicted = [line.split(",")[-1] for line in out.read_text().splitlines()[1:]]
            told[trained, asked] = got["accuracy"], got["log-loss"], predicted
        assert told[trained, "csv"] == told[trained, "jsonl"] == told[trained, "parquet"], trained
    assert told["csv", "csv"][:2] == told["parquet", "csv"][:2] and told["csv", "csv"][0] > 0.8


def test_texts_of_booleans_are_no_classes_of_numbers(millrace, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i % 2},{i % 2}\n" for i in range(60)))
    (tmp_path / "other.csv").write_text("x,y\nTrue,1\n")
    (tmp_path / "classes.csv").write_text("x,y\n1,True\n")
    millrace("train", recipe(tmp_path / "r.toml", tmp_path / "t.csv", ""), "--out", tmp_path / "run")
    assert "holds numbers" in said(millrace, "predict", tmp_path / "run", tmp_path / "other.csv", code=None)
    assert "has the class 'True'" in millrace("eval", tmp_path / "run", tmp_path / "classes.csv", code=1).stderr


def test_booleans_of_json_beside_numbers_are_numbers(millrace, tmp_path):
    (tmp_path / "t.jsonl").write_text('{"n": true, "t": true}\n{"n": 2, "t": "no"}\n{"n": false, "t": null}\n')
    read = json.loads(millrace("data", "head", tmp_path / "t.jsonl", "--json").stdout)["head"]
    assert read == [{"n": 1, "t": "true"}, {"n": 2, "t": "no"}, {"n": 0, "t": None}]


def test_booleans_are_the_same_hashed_exported_and_in_mixtures(millrace, tmp_path):
    draw, rows = random.Random(9), []
    for _ in range(300):
        b = draw.random() < 0.5
        rows.append({"x": round(draw.random(), 3), "b": b, "y": b if draw.random() < 0.9 else not b})
    tables = write_in_formats(tmp_path, rows)
    choice = 'categories = ["b"]'
    r = recipe(tmp_path / "h.toml", tables["csv"], BOOSTED.format(input=choice + "\nhash = 50"))
    millrace("train", r, "--out", tmp_path / "hashed")
    told = [json.loads(millrace("eval", tmp_path / "hashed", table, "--json").stdout)["log-loss"] for table in tables.values()]
    assert told[0] == told[1] == told[2]
    r = recipe(tmp_path / "e.toml", tables["parquet"], BOOSTED.format(input=choice))
    millrace("train", r, "--out", tmp_path / "exported")
    session = onnxruntime.InferenceSession(tmp_path / "exported/model.onnx")
    feed = {}
    for port in session.get_inputs():
        texts = port.type == "tensor(string)"
        feed[port.name] = np.array([["True"], ["true"], ["FALSE"], ["false"]], object) if texts else np.full((4, 1), 0.5, "f8" if port.type == "tensor(double)" else "f4")
    first, second, third, fourth = session.run(None, feed)[0]
    assert (first == second).all() and (third == fourth).all() and (first != third).any()
    both = tmp_path / "both.toml"
    both.write_text(f'[data.train]\na = "{tables["csv"]}"\nb = "{tables["parquet"]}"\n[output]\ncolumn = "y"\n[train]\nepochs = 1\n')
    assert "y is one of 2 classes" in said(millrace, "train", both, "--out", tmp_path / "both")


def test_booleans_are_numbers_where_these_are_asked_for(millrace, tmp_path):
    rows = [{"b": i % 3 == 0, "y": i % 2 == 0} for i in range(90)]
    table = write_in_formats(tmp_path, rows)["parquet"]
    r = recipe(tmp_path / "n.toml", table, '[input]\nnumbers = ["b"]\n[model]\nkind = "linear"')
    millrace("train", r, "output.kind=number", "--out", tmp_path / "n")
    assert "r2" in millrace("eval", tmp_path / "n", table).stdout
