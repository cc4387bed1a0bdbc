"""Every format by the same verbs: what is written is what was read, for folders, IDX, LIBSVM and text,
too."""

import gzip
import json

import pytest


def head(millrace, path, *more):
    return json.loads(millrace("data", "head", path, "-n", 10**9, "--json", *more).stdout)


def test_mnist_comes_back_byte_for_byte(millrace, data, tmp_path):
    source = data / "mnist/t10k-images-idx3-ubyte.gz"
    out = tmp_path / "t10k-images-idx3-ubyte"
    millrace("data", "convert", source, out, "--format", "idx")
    for name in ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
        assert (tmp_path / name).read_bytes() == gzip.open(data / "mnist" / f"{name}.gz").read()
    assert millrace("data", "query", out, "label = 7", "--count").stdout == "1028\n"
    millrace("data", "index", out)
    assert "10,000 of them with a checksum" in millrace("data", "verify", out).stdout


def test_rankings_come_back_with_their_queries(millrace, data, tmp_path):
    source, out = data / "ranking/rank.test", tmp_path / "rank.test"
    millrace("data", "convert", source, out, "--format", "libsvm")
    assert (tmp_path / "rank.test.query").read_bytes() == (data / "ranking/rank.test.query").read_bytes()
    assert head(millrace, out) == head(millrace, source)


def test_a_folder_is_a_data_set(millrace, data, tmp_path):
    millrace("data", "convert", data / "photos/photos.tar", tmp_path / "photos", "--format", "folder")
    tar, folder = head(millrace, data / "photos/photos.tar"), head(millrace, tmp_path / "photos")
    assert folder["samples"] == tar["samples"] == 250
    millrace("data", "convert", tmp_path / "photos", tmp_path / "photos.tar", "--format", "webdataset")
    assert head(millrace, tmp_path / "photos.tar")["samples"] == 250
    sounds = tmp_path / "sounds"
    millrace("data", "convert", data / "audio/spoken-digits.tar", sounds, "--format", "folder")
    assert len(list(sounds.glob("*.wav"))) == 2500
    assert "2,500 samples" in millrace("data", "stat", sounds).stdout
    audio = next(c for c in json.loads(millrace("data", "stat", sounds, "--json").stdout)["columns"] if c["kind"] == "audio")
    assert audio["bad"] == 0 and 0.1 < audio["seconds"]["least"] < audio["seconds"]["mean"] < audio["seconds"]["most"] < 3
    millrace("data", "convert", sounds, tmp_path / "sounds.tar", "--format", "webdataset")
    again = head(millrace, tmp_path / "sounds.tar")
    assert again == head(millrace, data / "audio/spoken-digits.tar")


def test_texts_and_names_of_columns(millrace, tmp_path):
    text = tmp_path / "a.txt"
    text.write_text("one\n\n two \n")
    millrace("data", "convert", text, tmp_path / "b.txt", "--format", "text")
    assert (tmp_path / "b.txt").read_bytes() == text.read_bytes()
    table = tmp_path / "t.csv"
    table.write_text("a,b\nc,d\n")
    assert head(millrace, table, "--header", "no")["samples"] == 2
    assert head(millrace, table, "--header", "yes")["head"] == [{"a": "c", "b": "d"}]
    assert "takes yes or no" in millrace("data", "head", table, "--header", "maybe", code=1).stderr


def test_an_index_beside_parquet_answers_queries(millrace, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table({"a": list(range(100)), "b": ["x", "y"] * 50}), tmp_path / "t.parquet")
    before = millrace("data", "query", tmp_path / "t.parquet", "a >= 90 and b = 'y'").stdout
    millrace("data", "index", tmp_path / "t.parquet")
    assert millrace("data", "query", tmp_path / "t.parquet", "a >= 90 and b = 'y'").stdout == before
    assert before.count("\n") == 5
