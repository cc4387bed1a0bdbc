"""Formats of data sets: what `millrace data convert` writes, the formats' own Python packages read back."""

import io
import json

import numpy as np
import pytest
from PIL import Image

tfrecord = pytest.importorskip("tfrecord")
from tfrecord.tools.tfrecord2idx import create_index  # noqa: E402


def jpeg(grey):
    memory = io.BytesIO()
    Image.fromarray(np.full((6, 5, 3), grey, np.uint8)).save(memory, "JPEG")
    return memory.getvalue()


SAMPLES = [
    {
        "image": (jpeg(20 * i), "byte"),
        "label": (i % 3, "int"),
        "score": (0.25 * i, "float"),
        "box": ([1.5, -2.0 * i], "float"),
        "text": (f"größe {i}".encode(), "byte"),
        "raw": (bytes(range(i * 7 % 5)), "byte"),
    }
    for i in range(12)
]


@pytest.fixture
def source(tmp_path):
    """SAMPLES, as the package tfrecord writes them."""
    path = tmp_path / "source.tfrecord"
    writer = tfrecord.TFRecordWriter(str(path))
    for sample in SAMPLES:
        writer.write(sample)
    writer.close()
    return path


def head(millrace, path):
    return json.loads(millrace("data", "head", path, "-n", 100, "--json").stdout)


def check_values(rows):
    """`rows` as data head prints them: all of SAMPLES but the bytes' content, which it does not print."""
    assert len(rows) == len(SAMPLES)
    for row, sample in zip(rows, SAMPLES):
        assert row["label"] == sample["label"][0] and row["score"] == sample["score"][0]
        assert row["box"] == sample["box"][0]
        assert row["raw"] == f"{len(sample['raw'][0])} bytes"
        assert row["image"] == f"picture, {len(sample['image'][0])} bytes"
        text = sample["text"][0].decode()
        assert row["text"] in (text, f'"{text}"')  # FFCV keeps texts as JSON


def test_tfrecord_is_read_back_by_its_package(millrace, source, tmp_path):
    out = tmp_path / "out.tfrecord"
    millrace("data", "convert", source, out, "--format", "tfrecord")
    back = list(tfrecord.tfrecord_loader(str(out), None))
    assert len(back) == len(SAMPLES)
    for values, sample in zip(back, SAMPLES):
        assert values.keys() == sample.keys()
        for name in ("image", "text", "raw"):
            assert bytes(values[name]) == sample[name][0]
        assert values["label"] == [sample["label"][0]] and values["label"].dtype == np.int64
        assert values["score"] == [np.float32(sample["score"][0])]
        assert values["box"].tolist() == sample["box"][0]


def test_an_index_of_tfrecord2idx_is_accepted_and_checked(millrace, source, tmp_path):
    create_index(str(source), str(source.with_suffix(".idx")))
    check_values(head(millrace, source)["head"])
    source.with_suffix(".idx").write_text("0 17\n")
    assert "tfrecord2idx" in millrace("data", "head", source, code=1).stderr


@pytest.mark.parametrize("options", [("beton",), ("mds",), ("mds", "--zstd"), ("tfrecord",)])
def test_every_format_keeps_every_value(millrace, source, tmp_path, options):
    name, *flags = options
    out = tmp_path / ("out" if name == "mds" else f"out.{name}")
    text = millrace("data", "convert", source, out, "--format", name, *flags).stdout
    assert "12 samples of 6 columns" in text
    check_values(head(millrace, out)["head"])
    # And back: bytes too are as they were.
    again = tmp_path / "again.tfrecord"
    millrace("data", "convert", out, again, "--format", "tfrecord")
    for values, sample in zip(tfrecord.tfrecord_loader(str(again), None), SAMPLES, strict=True):
        assert bytes(values["image"]) == sample["image"][0] and bytes(values["raw"]) == sample["raw"][0]


def test_columns_are_chosen_and_ordered(millrace, source, tmp_path):
    out = tmp_path / "out.rec"
    millrace("data", "convert", source, out, "--format", "recordio", "--columns", "label,image")
    assert [row["label"] for row in head(millrace, out)["head"]] == [i % 3 for i in range(12)]


def test_what_convert_cannot_do_is_said(millrace, source, tmp_path):
    def refused(*arguments):
        result = millrace("data", "convert", source, tmp_path / "out", *arguments, code=1)
        assert not (tmp_path / "out").exists()
        return result.stderr

    assert "--format" in refused()
    assert "did you mean 'tfrecord'" in refused("--format", "tfrecrd")
    assert "did you mean 'label'" in refused("--format", "mds", "--columns", "lable")
    assert "'text'" in refused("--format", "recordio", "--columns", "label,text,image")
    assert "mds only" in refused("--format", "beton", "--zstd")
    near = millrace("data", "convert", source, tmp_path / "out.tfrecrd", code=1).stderr
    assert "'.tfrecrd' is the ending of none; did you mean 'tfrecord'? Add --format" in near
    far = millrace("data", "convert", source, tmp_path / "out.docx", code=1).stderr
    assert "'.docx' is the ending of none. Add --format" in far
    assert not list(tmp_path.glob("out*"))


def test_the_ending_of_a_file_says_its_format(millrace, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b\n1,x\n2,y\n")
    for end, doc in [("parquet", "Parquet"), ("tsv", "CSV or TSV"), ("ndjson", "JSON lines"), ("tfrecords", "TFRecord"), ("feather", "Arrow")]:
        out = tmp_path / f"out.{end}"
        assert doc in millrace("data", "convert", rows, out).stdout
        millrace("data", "convert", out, tmp_path / f"{end}.csv")
        assert (tmp_path / f"{end}.csv").read_text().split() == rows.read_text().split()
    millrace("data", "convert", rows, tmp_path / "b.txt", "--columns", "b")
    assert (tmp_path / "b.txt").read_text() == "x\ny\n"
    # What is asked for by name goes before the ending.
    millrace("data", "convert", rows, tmp_path / "really.parquet", "--format", "jsonl")
    assert (tmp_path / "really.parquet").read_text().startswith("{")


def test_the_formats_of_others_convert_into_each_other(millrace, data, tmp_path):
    truth = json.loads((data / "formats/cifar20.json").read_text())
    path = data / "formats/cifar20-mds"
    for step, name in enumerate(("beton", "tfrecord", "mds")):
        out = tmp_path / f"{step}.{name}"
        millrace("data", "convert", path, out, "--format", name, "--columns", "image,label,score,raw")
        path = out
        rows = head(millrace, out)["head"]
        assert [(row["label"], row["score"]) for row in rows] == [(t["label"], t["score"]) for t in truth]
