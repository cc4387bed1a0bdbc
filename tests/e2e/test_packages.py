"""What is written is read by the packages that the formats are of, where these are installed: ffcv, mxnet,
mosaicml-streaming.

None of them is needed for anything else: ffcv is built from source, mxnet wants an old NumPy (docs of
bench/peers/loaders.py).
"""

import hashlib
import json

import numpy as np
import pytest

COLUMNS = "image,label,score,raw,array,meta,name"


@pytest.fixture
def truth(data):
    return json.loads((data / "formats/cifar20.json").read_text())


def check(row, number, wanted):
    """`row`: values of a sample of the fixtures as the package gives them."""
    assert row["label"] == wanted["label"] and row["score"] == wanted["score"]
    assert hashlib.sha256(row["raw"]).hexdigest() == wanted["sha256"]
    assert row["array"].dtype == np.float32
    assert (row["array"] == np.arange(6, dtype=np.float32).reshape(2, 3) + number).all()
    assert row["meta"] == {"i": number} and row["name"] == f"s{number}"


@pytest.mark.parametrize("os_cache", [True, False])
def test_ffcv(millrace, data, truth, tmp_path, os_cache):
    pytest.importorskip("ffcv")
    from ffcv.fields.json import JSONField
    from ffcv.loader import Loader, OrderOption

    out = tmp_path / "x.beton"
    millrace("data", "convert", data / "formats/cifar20-mds", out, "--format", "beton", "--columns", COLUMNS)
    loader = Loader(str(out), batch_size=1, num_workers=1, order=OrderOption.SEQUENTIAL, os_cache=os_cache, batches_ahead=1)
    assert loader.reader.num_samples == len(truth)
    for number, (batch, wanted) in enumerate(zip(loader, truth)):  # which are gone with the next
        row = dict(zip(loader.reader.field_names, batch))
        assert row["image"].shape[1:] == (32, 32, 3)
        values = {"label": int(row["label"][0, 0]), "score": float(row["score"][0, 0])}
        values |= {name: JSONField.unpack(row[name])[0] for name in ("meta", "name")}
        values |= {"raw": bytes(row["raw"][0].numpy()[: wanted["bytes"]]), "array": row["array"][0].numpy()}
        check(values, number, wanted)


@pytest.mark.parametrize("compressed", [False, True])
def test_streaming(millrace, data, truth, tmp_path, compressed):
    reader = pytest.importorskip("streaming.base.format.mds.reader")
    out = tmp_path / "mds"
    millrace(
        "data", "convert", data / "formats/cifar20-mds", out, "--format", "mds", "--columns", COLUMNS,
        *["--zstd"] * compressed)  # fmt: skip
    rows = []
    for entry in json.loads((out / "index.json").read_text())["shards"]:
        if compressed:
            zstd = pytest.importorskip("zstd")
            packed = (out / entry["zip_data"]["basename"]).read_bytes()
            (out / entry["raw_data"]["basename"]).write_bytes(zstd.decompress(packed))
        shard = reader.MDSReader.from_json(str(out), "", entry)
        shard.validate(False)
        rows += [shard.decode_sample(shard.get_sample_data(i)) for i in range(shard.samples)]
    assert len(rows) == len(truth)
    for number, (row, wanted) in enumerate(zip(rows, truth)):
        assert row["image"].size == (32, 32)
        check(row, number, wanted)


def test_mxnet(millrace, data, truth, tmp_path):
    mxnet = pytest.importorskip("mxnet")
    out = tmp_path / "x.rec"
    millrace("data", "convert", data / "formats/cifar20.rec", out, "--format", "recordio")
    records = mxnet.recordio.MXIndexedRecordIO(str(out.with_suffix(".idx")), str(out), "r")
    theirs = mxnet.recordio.MXIndexedRecordIO(str(data / "formats/cifar20.idx"), str(data / "formats/cifar20.rec"), "r")
    assert len(records.keys) == len(truth)
    for number, wanted in enumerate(truth):
        (header, content), expected = (mxnet.recordio.unpack(file.read_idx(number)) for file in (records, theirs))
        assert content == expected[1] and header.id == number
        labels = np.atleast_1d(header.label)
        assert (labels == np.atleast_1d(expected[0].label)).all() and labels[0] == wanted["label"]
