"""Tables: what other programs wrote is read as they read it, and what is written here they read back."""

import csv
import datetime
import decimal
import json
import math
import random
import subprocess

import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.feather  # noqa: E402
import pyarrow.parquet  # noqa: E402

MISSING = ("", "NA", "?", "null")


def head(millrace, path, count=10**9):
    return json.loads(millrace("data", "head", path, "-n", count, "--json").stdout)


def kinds(table):
    return {column["name"]: column["kind"] for column in table["columns"]}


def close(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-15) or (math.isnan(a) and math.isnan(b))
    return a == b and isinstance(a, type(b))


# ---- CSV: Python's csv module is the judge -----------------------------------------------------------------


def judged(path, names=None, **dialect):
    """The rows that Python reads: columns are whole numbers, else reals, else texts."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True, **dialect) if row]
    if names is None:
        names, rows = rows[0], rows[1:]
    columns = []
    for cells in zip(*([cell.strip() for cell in row] for row in rows)):
        for kind in (int, float, str):
            try:
                columns.append([None if cell in MISSING else kind(cell) for cell in cells])
                break
            except ValueError:
                pass
    return [dict(zip(names, row)) for row in zip(*columns)]


@pytest.mark.parametrize(
    "name,dialect",
    [
        ("tabular/adult-train.csv", {"names": [f"c{i}" for i in range(15)]}),
        ("tabular/adult-test.csv", {"names": [f"c{i}" for i in range(15)]}),
        ("tabular/titanic.csv", {}),
        ("tabular/diamonds.csv", {}),
        ("tabular/california-housing.csv", {}),
        ("tabular/criteo-train.tiny.csv", {}),
        ("tabular/criteo-test.tiny.csv", {}),
        # Its quotes are letters.
        ("text/sms-spam.tsv", {"delimiter": "\t", "quoting": csv.QUOTE_NONE}),
    ],
)
def test_csv_of_others(millrace, data, name, dialect):
    wanted = judged(data / name, **dialect)
    read = head(millrace, data / name)
    assert read["samples"] == len(wanted)
    for i, (row, judge) in enumerate(zip(read["head"], wanted)):
        assert row.keys() == judge.keys()
        assert all(close(row[key], judge[key]) for key in judge), (i, row, judge)


def test_csv_of_any_texts(millrace, tmp_path):
    """Python writes every hard text in every dialect; it comes back."""
    rng = random.Random(1)
    parts = ['"', '""', ",", ";", "\t", "|", "\n", "\r\n", " ", "a", "1", "é", "NA", ""]
    rows = [["".join(rng.choices(parts, k=rng.randint(0, 6))) for _ in range(3)] for _ in range(3000)]
    for delimiter in ",;\t|":
        path = tmp_path / "x.csv"
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL)
            writer.writerow(["n", "a", "b", "c"])
            writer.writerows([i, *("t" + cell for cell in row)] for i, row in enumerate(rows))
        read = head(millrace, path)["head"]
        assert [[row["a"][1:], row["b"][1:], row["c"][1:]] for row in read] == rows
        assert [row["n"] for row in read] == list(range(len(rows)))


def test_written_csv_and_jsonl_are_read_by_python(millrace, data, tmp_path):
    wanted = judged(data / "tabular/titanic.csv")
    for name in ("x.csv", "x.tsv"):
        millrace("data", "convert", data / "tabular/titanic.csv", tmp_path / name, "--format", "csv")
        assert judged(tmp_path / name, delimiter="\t" if name == "x.tsv" else ",") == wanted
    millrace("data", "convert", data / "tabular/titanic.csv", tmp_path / "x.jsonl", "--format", "jsonl")
    assert [json.loads(line) for line in open(tmp_path / "x.jsonl")] == wanted


def test_statistics_of_a_table(millrace, data):
    rows = judged(data / "tabular/titanic.csv")
    of = {c["name"]: c for c in json.loads(millrace("data", "stat", data / "tabular/titanic.csv", "--json").stdout)["columns"]}
    ages = [row["age"] for row in rows if row["age"] is not None]
    assert of["age"]["missing"] == len(rows) - len(ages)
    assert of["age"]["different"] == len(set(ages))
    assert (of["age"]["least"], of["age"]["most"]) == (min(ages), max(ages))
    assert math.isclose(of["age"]["mean"], sum(ages) / len(ages), rel_tol=1e-12)
    towns = [row["embark_town"] for row in rows if row["embark_town"] is not None]
    assert dict(of["embark_town"]["frequent"]) == {town: towns.count(town) for town in set(towns)}


# ---- JSON lines --------------------------------------------------------------------------------------------


def test_jsonl(millrace, tmp_path):
    lines = ['{"i": 1, "r": 1, "t": "é\\n", "n": {"a": [1, null]}, "m": 1}', "", '{"r": 2.5, "m": "x", "b": true}', '{"i": null}']
    (tmp_path / "x.jsonl").write_text("\n".join(lines), encoding="utf-8")
    read = head(millrace, tmp_path / "x.jsonl")
    assert kinds(read) == {"i": "integer", "r": "real", "t": "text", "n": "json", "m": "text", "b": "text"}
    first, second, third = read["head"]
    assert (first["i"], first["r"], first["t"], json.loads(first["n"])) == (1, 1.0, "é\n", {"a": [1, None]})
    assert (first["m"], second["i"], second["r"], second["m"], second["b"]) == ("1", None, 2.5, "x", "true")
    assert set(third.values()) == {None}


# ---- LIBSVM and text ---------------------------------------------------------------------------------------


def test_what_is_wrong_with_a_line_or_a_column_is_said_of_it(millrace, tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"a": 1, "label": "x"}\n{"a": 1, "label": y}\n')
    error = millrace("data", "head", "bad.jsonl", cwd=tmp_path, code=1).stderr
    assert "at its character 19" in error and "line 1" not in error
    (tmp_path / "empty.csv").write_text("a,label\n1,\n2,\n3,\n")
    assert "the column 'label' has no value in any sample" in millrace("init", "empty.csv", cwd=tmp_path, code=1).stderr


@pytest.mark.parametrize("name", ["rank.train", "rank.test"])
def test_libsvm_with_queries(millrace, data, name):
    sizes = [int(line) for line in open(data / "ranking" / f"{name}.query")]
    queries = [query for query, size in enumerate(sizes) for _ in range(size)]
    read = head(millrace, data / "ranking" / name)["head"]
    lines = open(data / "ranking" / name).read().splitlines()
    assert len(read) == len(lines) == len(queries)
    for row, line, query in zip(read, lines, queries):
        label, *pairs = line.split()
        assert row["label"] == int(label) and row["query"] == query
        features = {i: x for i, x in enumerate(row["features"], 1) if x}
        wanted = {int(i): float(x) for i, x in (pair.split(":") for pair in pairs)}
        assert features.keys() == {i for i, x in wanted.items() if x}
        assert all(math.isclose(features[i], wanted[i], rel_tol=1e-6) for i in features)


def test_libsvm_forms(millrace, tmp_path):
    (tmp_path / "a.svm").write_text("1.5 qid:7 1:2 3:-1 # c 4:4\n\n# nothing\n-1 qid:8\n")
    assert head(millrace, tmp_path / "a.svm")["head"] == [
        {"label": 1.5, "features": [2, 0, -1], "query": 7},
        {"label": -1.0, "features": [0, 0, 0], "query": 8},
    ]
    (tmp_path / "b.svm").write_text("1 0:2 100000:3\n0 5:1\n")
    assert head(millrace, tmp_path / "b.svm")["head"] == [
        {"label": 1, "indices": [0, 100000], "values": [2, 3]},
        {"label": 0, "indices": [5], "values": [1]},
    ]
    (tmp_path / "b.svm.query").write_text("1\n2\n")
    assert "does not fit the rows" in millrace("data", "head", tmp_path / "b.svm", code=1).stderr
    (tmp_path / "b.svm.query").write_text("1\n")
    assert "do not add up" in millrace("data", "head", tmp_path / "b.svm", code=1).stderr
    (tmp_path / "c.svm").write_text("1 1:1\n" * 1000 + "1 3:1 2:1\n")
    assert "'2:1' does not follow a smaller index" in millrace("data", "head", tmp_path / "c.svm", code=1).stderr


def test_text(millrace, data):
    text = open(data / "text/tinyshakespeare.txt").read()
    assert [row["text"] for row in head(millrace, data / "text/tinyshakespeare.txt")["head"]] == text.splitlines()


# ---- Parquet and Arrow: pyarrow is the judge ---------------------------------------------------------------

DAY = datetime.date(1969, 12, 31)
TABLE = pa.table(
    {
        "i8": pa.array([1, None, -3], pa.int8()),
        "u32": pa.array([1, 2, 2**32 - 1], pa.uint32()),
        "flag": [True, None, False],
        "f16": pa.array([1.5, 2.5, None], pa.float16()),
        "f32": pa.array([0.5, None, 0.1], pa.float32()),
        "text": ["a", None, "é"],
        "large": pa.array(["x", "", None], pa.large_string()),
        "view": pa.array(["x", "longer than twelve bytes", None], pa.string_view()),
        "raw": [b"\0\1", b"", None],
        "list": [[1.5, 2.5], [], None],
        "i16s": pa.array([[1, 2], None, [3]], pa.list_(pa.int16())),
        "pairs": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int32(), 2)),
        "category": pa.array(["u", "v", None]).dictionary_encode(),
        "codes": pa.array([5, None, 5]).dictionary_encode(),
        "ns": pa.array([0, None, -1], pa.timestamp("ns")),
        "zone": pa.array([5, None, 1], pa.timestamp("s", "Europe/Berlin")),
        "day": [DAY, None, DAY],
        "time": [datetime.time(1, 2, 3, 4), None, None],
        "money": [decimal.Decimal("1.10"), None, decimal.Decimal("-99999999999999999.25")],
        "took": pa.array([999, None, -1], pa.duration("ns")),
        "nothing": pa.nulls(3),
        "struct": [{"a": 1}, None, {"a": 2}],
        "nested": [[[1]], None, []],
        "words": [["a"], None, []],
    }
)
SEEN = {
    "i8": [1, None, -3],
    "u32": [1, 2, 2**32 - 1],
    "flag": ["true", None, "false"],
    "f16": [1.5, 2.5, None],
    "f32": [0.5, None, 0.10000000149011612],
    "text": ["a", None, "é"],
    "large": ["x", "", None],
    "view": ["x", "longer than twelve bytes", None],
    "raw": ["2 bytes", "0 bytes", None],
    "list": [[1.5, 2.5], [], None],
    "i16s": [[1, 2], None, [3]],
    "pairs": [[1, 2], None, [3, 4]],
    "category": ["u", "v", None],
    "codes": [5, None, 5],
    "ns": ["1970-01-01 00:00:00", None, "1969-12-31 23:59:59.999999999"],
    "zone": ["1970-01-01 00:00:05Z", None, "1970-01-01 00:00:01Z"],
    "day": ["1969-12-31", None, "1969-12-31"],
    "time": ["01:02:03.000004", None, None],
    "money": [1.1, None, -99999999999999999.25],
    "took": [0, None, -1],
    "nothing": [None, None, None],
    "words": ['["a"]', None, "[]"],
}


def write(path, table, rows=2, compression=None):
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path, row_group_size=rows, compression=compression or "none")
        return
    make = pa.ipc.new_stream if path.suffix == ".arrows" else pa.ipc.new_file
    with make(path, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=rows)


def read_back(path):
    if path.suffix == ".parquet":
        return pa.parquet.read_table(path)
    return (pa.ipc.open_stream if path.suffix == ".arrows" else pa.ipc.open_file)(path).read_all()


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".arrows"])
def test_every_type_of_column(millrace, tmp_path, suffix, compression):
    path = tmp_path / f"x{suffix}"
    write(path, TABLE, compression=compression)
    result = millrace("data", "head", path, "--json")
    for refused in ("'struct' (struct<a: int64>)", "'nested'"):
        assert f"the column {refused}" in result.stderr
    read = json.loads(result.stdout)
    assert list(kinds(read)) == list(SEEN)
    for name, values in SEEN.items():
        assert [row[name] for row in read["head"]] == values, name


def test_feather_and_damage_are_told_apart(millrace, tmp_path):
    table = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    pyarrow.feather.write_feather(table, tmp_path / "x.feather")
    assert head(millrace, tmp_path / "x.feather")["head"] == table.to_pylist()
    (tmp_path / "y.feather").write_bytes(b"FEA1" + bytes(100))
    assert "Feather version 1" in millrace("data", "head", tmp_path / "y.feather", code=1).stderr
    write(tmp_path / "s.parquet", TABLE.select(["struct"]))
    assert "none of its columns can be used: 'struct'" in millrace("data", "head", tmp_path / "s.parquet", code=1).stderr


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".arrows"])
def test_damaged_files_are_refused_or_read(binary, tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    write(path, TABLE, compression="zstd")
    whole = path.read_bytes()
    rng = random.Random(2)
    changed = [whole[:size] for size in rng.sample(range(1, len(whole)), 10)]
    for at in rng.sample(range(len(whole)), 40):
        changed.append(whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :])
    for content in changed:
        path.write_bytes(content)
        result = subprocess.run([binary, "data", "head", path, "--json"], capture_output=True, text=True, timeout=60)
        assert result.returncode in (0, 1), result.stderr
        assert result.returncode == 0 or "x." in result.stderr


def test_parquet_of_others(millrace, data):
    path = data / "formats/tiny.parquet"
    assert head(millrace, path)["head"] == pa.parquet.read_table(path).to_pylist()


@pytest.mark.parametrize("suffix,form", [(".parquet", "parquet"), (".arrow", "arrow"), (".arrows", "arrow")])
def test_written_tables_are_read_by_pyarrow(millrace, tmp_path, suffix, form):
    source, written = tmp_path / "source.parquet", tmp_path / f"written{suffix}"
    write(source, TABLE)
    millrace("data", "convert", source, written, "--format", form)
    columns = {name: values for name, values in SEEN.items() if name not in ("raw", "nothing")}
    read = read_back(written).to_pydict()
    assert read.pop("raw") == [b"\0\1", b"", None]
    assert read.pop("nothing") == [None, None, None]
    assert read == columns


def test_many_row_groups_in_any_order(millrace, data, tmp_path):
    """Adult through Parquet and back is Adult."""
    millrace("data", "convert", data / "tabular/adult-train.csv", tmp_path / "x.parquet", "--format", "parquet")
    table = pa.parquet.read_table(tmp_path / "x.parquet")
    assert table.to_pylist() == judged(data / "tabular/adult-train.csv", names=[f"c{i}" for i in range(15)])
    write(tmp_path / "y.parquet", table, rows=1000)
    assert head(millrace, tmp_path / "y.parquet")["head"] == table.to_pylist()
    count = millrace("data", "query", tmp_path / "y.parquet", "c0 > 60 and c14 = '>50K'", "--count").stdout
    assert int(count) == sum(1 for row in table.to_pylist() if row["c0"] > 60 and row["c14"] == ">50K")
