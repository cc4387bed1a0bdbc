"""WebDataset tars against Python's tarfile, NumPy and the webdataset package: what they write is read here,
and back."""
import bz2
import gzip
import io
import json
import lzma
import tarfile

import numpy as np
import pytest

webdataset = pytest.importorskip("webdataset")


def head(millrace, path, count=1000):
    """(columns, rows) of `millrace data head`."""
    text = json.loads(millrace("data", "head", path, "-n", count, "--json").stdout)
    return {c["name"]: c["kind"] for c in text["columns"]}, text["head"]


def saved(save, *arrays, **options):
    stream = io.BytesIO()
    save(stream, *arrays, **options)
    return stream.getvalue()


def write_tar(path, members, **options):
    with tarfile.open(path, "w", **options) as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


ARRAYS = {
    dtype: (np.arange(12).reshape(3, 4) - (5 if np.dtype(dtype).kind != "u" else 0)).astype(dtype)
    for dtype in ("<f2", "<f4", "<f8", "i1", "<i2", "<i4", "<i8", "u1", "<u2", "<u4", "<u8", "?")
}


@pytest.mark.parametrize("dtype", ARRAYS)
def test_arrays_are_numpys(millrace, tmp_path, dtype):
    array = ARRAYS[dtype]
    members = {}
    for i, a in enumerate([array, np.asfortranarray(array), array[:0], array[0, 0], array.reshape(3, 2, 2).copy(order="F")]):
        members[f"{i}.npy"] = saved(np.save, a)
        members[f"{i}.npz"] = saved(np.savez_compressed if i % 2 else np.savez, x=a, y=a.ravel())
    write_tar(tmp_path / "a.tar", members)
    columns, rows = head(millrace, tmp_path / "a.tar")
    assert columns == {"__key__": "text", "npy": "array", "npz.x": "array", "npz.y": "array"}
    for i, row in enumerate(rows):
        wanted = np.load(io.BytesIO(members[f"{i}.npy"])).ravel().tolist()
        assert row["npy"] == wanted and row["npz.x"] == wanted
        assert row["npz.y"] == np.load(io.BytesIO(members[f"{i}.npz"]))["y"].tolist()


def test_members_and_tars_are_unpacked(millrace, tmp_path):
    content = "grüße\n".encode() * 1000
    members = {"0.txt": content, "0.a.txt.gz": gzip.compress(content), "0.b.txt.bz2": bz2.compress(content),
               "0.c.txt.xz": lzma.compress(content)}
    for name, mode in (("a.tar", "w"), ("a.tar.gz", "w:gz"), ("a.tar.bz2", "w:bz2"), ("a.tar.xz", "w:xz")):
        with tarfile.open(tmp_path / name, mode) as tar:
            for member, value in members.items():
                info = tarfile.TarInfo(member)
                info.size = len(value)
                tar.addfile(info, io.BytesIO(value))
        columns, rows = head(millrace, tmp_path / name)
        assert set(columns.values()) == {"text"} and len(columns) == 5
        assert all(rows[0][c] == content.decode() for c in columns if c != "__key__")


def test_a_pickle_is_refused_by_name_and_the_rest_is_shown(millrace, tmp_path):
    write_tar(tmp_path / "a.tar", {"0.pyd": b"cos\nsystem\n", "0.txt": b"hi", "1.pyd": b"", "1.txt": b"ho"})
    result = millrace("data", "head", tmp_path / "a.tar")
    assert '"hi"' in result.stdout and '"ho"' in result.stdout
    assert "0.pyd is a Python pickle" in result.stderr and result.stderr.count("note:") == 1


@pytest.mark.parametrize("layout", [tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_what_webdataset_writes_is_read(millrace, tmp_path, layout):
    key = "folder/" + "k" * (80 if layout == tarfile.USTAR_FORMAT else 180)
    array = np.arange(6, dtype="f4").reshape(2, 3)
    with webdataset.TarWriter(str(tmp_path / "raw.tar")) as sink:
        for i in range(3):
            sink.write({"__key__": f"{key}{i}", "cls": i, "txt": f"text {i}", "json": {"n": [i, None, 0.5]}, "npy": array + i,
                        "ten": [array, array[0]], "bin": b"\0\1"})
    with tarfile.open(tmp_path / "raw.tar") as tar:  # the same members in this layout
        write_tar(tmp_path / "w.tar", {m.name: tar.extractfile(m).read() for m in tar}, format=layout)
    columns, rows = head(millrace, tmp_path / "w.tar")
    assert columns["ten.0"] == "array" and len(rows) == 3
    for i, row in enumerate(rows):
        assert row["__key__"] == f"{key}{i}" and row["cls"] == i and row["txt"] == f"text {i}"
        assert json.loads(row["json"]) == {"n": [i, None, 0.5]}
        assert row["npy"] == (array + i).ravel().tolist() and row["ten.1"] == array[0].tolist()


def test_the_fixtures_read_as_webdataset_reads_them(millrace, data):
    for name in ("compressed", "mpdata", "tendata", "testgz"):
        path = data / f"formats/wds-{name}.tar"
        _, rows = head(millrace, path)
        judged = list(webdataset.WebDataset(str(path), shardshuffle=False, empty_check=False).decode())
        assert [r["__key__"] for r in rows] == [s["__key__"] for s in judged]
        for row, sample in zip(rows, judged):
            if name == "mpdata":
                assert json.loads(row["mp"]) == sample["mp"]
            elif name == "tendata":
                for column, array in zip(("ten.xs", "ten.ys"), sample["ten"]):
                    np.testing.assert_array_equal(row[column], array.ravel())
            else:
                assert row["txt.gz"] == sample["txt.gz"]


def test_packed_shards_are_read_by_webdataset(millrace, tmp_path):
    millrace("letters", tmp_path / "letters", "--train", 40, "--test", 20)
    millrace("pack", tmp_path / "letters", tmp_path / "out", "--shard-samples", 16)
    shards = str(tmp_path / "out/train-{000000..000002}.tar")
    samples = list(webdataset.WebDataset(shards, shardshuffle=False).decode("l8"))
    names = json.loads((tmp_path / "out/train.json").read_text())["classes"]
    assert len(samples) == 40 and len(names) == 10
    assert all(s["jpg"].shape == (32, 32) and 0 <= s["cls"] < 10 for s in samples)


def test_json_members_are_numbers_where_the_first_ones_are(millrace, tmp_path):
    def converted(*contents):
        write_tar(tmp_path / "x.tar", {f"s{i}.y.json": content.encode() for i, content in enumerate(contents)})
        millrace("data", "convert", tmp_path / "x.tar", tmp_path / "x.jsonl")
        (tmp_path / "x.tar.idx").unlink(missing_ok=True)
        rows = [json.loads(line).get("y.json") for line in (tmp_path / "x.jsonl").read_text().splitlines()]
        (tmp_path / "x.jsonl").unlink()
        return head(millrace, tmp_path / "x.tar")[0]["y.json"], rows

    assert converted("0.5", "null", "2") == ("real", [0.5, None, 2])
    assert converted("null", "0.25") == ("real", [None, 0.25])
    # Answers of several kinds, and numbers that a double does not hold, stay what they are.
    assert converted("2", '"red"')[0] == "json"
    kind, rows = converted("1234567890123456780", "1234567890123456781")
    assert kind == "json" and "1234567890123456781" in str(rows[1])
