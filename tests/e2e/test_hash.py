"""Hashed categories: the same ids in training, prediction and for who serves the exported model; rows that no
batch reads stay."""

import csv
import io
import json

import numpy as np
import onnxruntime
import pytest
from safetensors.numpy import load_file


def murmur3_32(text):
    """MurmurHash3_x86_32 with seed 0, written anew: what others would serve the model with."""
    data, hash_, mask = text.encode(), 0, 0xFFFFFFFF
    mix = lambda k: ((k * 0xCC9E2D51 & mask) << 15 | (k * 0xCC9E2D51 & mask) >> 17) * 0x1B873593 & mask  # noqa: E731
    whole = len(data) // 4 * 4
    for i in range(0, whole, 4):
        hash_ ^= mix(int.from_bytes(data[i : i + 4], "little"))
        hash_ = ((hash_ << 13 | hash_ >> 19) & mask) * 5 + 0xE6546B64 & mask
    if len(data) > whole:
        hash_ ^= mix(int.from_bytes(data[whole:], "little"))
    hash_ ^= len(data)
    hash_ = (hash_ ^ hash_ >> 16) * 0x85EBCA6B & mask
    hash_ = (hash_ ^ hash_ >> 13) * 0xC2B2AE35 & mask
    return hash_ ^ hash_ >> 16


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    """300 rows of two columns of many values, of which one decides."""
    folder = tmp_path_factory.mktemp("hash")
    draw = np.random.default_rng(1)
    rows = [f"u{draw.integers(100)},{'' if i % 50 == 0 else f'page {i % 40}'},{draw.normal():.3f},{'yes' if i % 40 < 15 else 'no'}" for i in range(300)]
    (folder / "rows.csv").write_text("\n".join(["user,page,x,clicked", *rows]) + "\n")
    path = folder / "hash.toml"
    path.write_text(
        f'[data]\ntrain = "{folder}/rows.csv"\n[input]\nkind = "table"\nhash = 5000\n[output]\ncolumn = "clicked"\n'
        '[model]\nkind = "fm"\nfactors = 3\n[train]\nepochs = 30\nbatch = 30\noptimizer = { kind = "adagrad", lr = 0.1 }\n'
    )
    return path


@pytest.mark.parametrize("kind", ["fm", "dlrm", "linear"])
def test_the_exported_model_takes_the_ids_that_anybody_can_hash(millrace, recipe, tmp_path, kind):
    assert murmur3_32("hello") == 0x248BFA47
    run = tmp_path / "run"
    millrace("train", recipe, f"model={{kind={kind}}}", "--out", run)
    rows = list(csv.DictReader(io.StringIO((recipe.parent / "rows.csv").read_text())))[:60]
    rows.append({"user": "nobody yet", "page": "", "x": "0.5", "clicked": "no"})
    (tmp_path / "new.csv").write_text("\n".join([",".join(rows[0]), *[",".join(row.values()) for row in rows]]) + "\n")
    told = [json.loads(line)["probabilities"]["yes"] for line in millrace("predict", run, tmp_path / "new.csv", "--json").stdout.splitlines()]
    session = onnxruntime.InferenceSession(run / "model.onnx")
    assert {each.name: each.type for each in session.get_inputs()} == {"numbers": "tensor(double)", "ids": "tensor(int64)"}
    ids = [[1 + murmur3_32(row[name]) % 4999 if row[name] else 0 for name in ("user", "page")] for row in rows]
    served = session.run(["probabilities"], {"numbers": np.array([[float(row["x"])] for row in rows]), "ids": np.array(ids)})[0]
    np.testing.assert_allclose(served[:, 1], told, atol=1e-5)
    right = [(p > 0.5) == (row["clicked"] == "yes") for p, row in zip(told, rows)]
    assert np.mean(right) > 0.9


def test_rows_that_no_batch_reads_stay_as_they_were_drawn(millrace, recipe, tmp_path):
    run = tmp_path / "run"
    millrace("train", recipe, "train.epochs=1", "train.keep_checkpoints=100", "--out", run)
    steps = sorted((run / "checkpoints").glob("step-*"))
    before, after = load_file(steps[0]), load_file(steps[-1])
    users = {row["user"] for row in csv.DictReader(io.StringIO((recipe.parent / "rows.csv").read_text()))}
    read = {1 + murmur3_32(user) % 4999 for user in users}
    name = "model.category0.weight"
    moved = set(np.flatnonzero((before[name] != after[name]).any(1)))
    assert moved and moved <= read and len(before[name]) == 5000


def test_wrong_sizes_are_refused(millrace, recipe):
    assert "no id is left for values" in millrace("train", recipe, "input.hash=1", code=1).stderr
    assert "input.hash must be" in millrace("train", recipe, "input.hash=-5", code=1).stderr
    text = millrace("train", recipe, "model={kind=dlrm}", "input.columns=[x]", "input.hash=0", "--no-check", code=1).stderr
    assert "dlrm is for tables with categories" in text


@pytest.mark.parametrize("model", ["fm", "dlrm"])
def test_clicks_of_criteo(millrace, data, tmp_path, model):
    found = json.loads(millrace("train", f"examples/criteo-{model}.toml", "--out", tmp_path / "run", "--json").stdout)["test"]
    # What is known without looking: a log loss of 0.524.
    assert found["log-loss"] < 0.52 and found["roc-auc"] > 0.62
