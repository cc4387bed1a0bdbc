"""predict -o: the file has what evaluation sees, whatever stops it on the way."""

import csv
import json
import os
import signal
import subprocess
import time

import numpy as np
import pyarrow.parquet as parquet
import pytest
from conftest import write_samples, write_texts
from test_docs import blocks


@pytest.fixture(scope="module")
def desk(binary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    write_texts(folder)
    write_samples(folder)
    for page, name in (("pictures", "photos"), ("tables", "customers")):
        (folder / f"{name}.toml").write_text(blocks(f"docs/{page}.md", "toml")[0])
    (folder / "messages.toml").write_text(next(text for text in blocks("docs/text.md", "toml") if 'kind      = "text"' in text))
    for name, changes in (("photos", []), ("customers", []), ("messages", ["input.length=48", "train.steps=20"])):
        subprocess.run([binary, "train", f"{name}.toml", *changes, "--out", f"runs/{name}"], cwd=folder, check=True, capture_output=True)
    return folder


def rows_of(path):
    if path.suffix == ".csv":
        return list(csv.DictReader(path.open()))
    if path.suffix == ".parquet":
        return parquet.read_table(path).to_pylist()
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("name, data", [("photos", "photos"), ("customers", "customers.csv"), ("messages", "messages.tsv")])
def test_all_formats_have_what_predict_prints(millrace, desk, name, data):
    printed = [json.loads(line) for line in millrace("predict", f"runs/{name}", data, "--json", "--top", 3, cwd=desk).stdout.splitlines()]
    dense = None
    for end in ("jsonl", "csv", "parquet", "npy"):
        out = desk / f"told-{name}.{end}"
        said = millrace("predict", f"runs/{name}", data, "-o", out, cwd=desk).stdout
        assert f"{len(printed):,} samples" in said and not out.with_name(out.name + ".partial").exists()
        if end == "npy":
            dense = np.load(out)
            continue
        rows = rows_of(out)
        assert [row["input"] for row in rows] == [row["input"] for row in printed]
        assert [int(row["sample"]) for row in rows] == list(range(len(printed)))
        for row, told in zip(rows, printed):
            # Folded and packed, the model rounds otherwise.
            best = max(told["probabilities"].values())
            assert float(row["probability"]) == pytest.approx(best, abs=2e-3)
            assert row["class"] == told["class"] or best < 0.51
            assert float(row["probability"]) >= float(row["probability_2"])
    logits = np.array([row["logits"] for row in printed])
    expected = np.exp(logits - logits.max(1, keepdims=True))
    assert dense.dtype == np.float32 and np.abs(dense - expected / expected.sum(1, keepdims=True)).max() < 2e-3


def test_what_is_left_out_and_added(millrace, desk):
    millrace("predict", "runs/customers", "customers.csv", "-o", "sure.csv", "--top", 1, "--threshold", 0.9, cwd=desk)
    millrace("predict", "runs/customers", "customers.csv", "-o", "all.csv", "--all", cwd=desk)
    millrace("predict", "runs/customers", "customers.csv", "-o", "half.npy", "--f16", cwd=desk)
    sure, everything, half = rows_of(desk / "sure.csv"), rows_of(desk / "all.csv"), np.load(desk / "half.npy")
    assert half.dtype == np.float16 and len(half) == len(sure) == len(everything)
    for row, full, dense in zip(sure, everything, half):
        assert (row["class"] != "") == (float(full["probability"]) >= 0.9) and "class_2" not in row
        assert [float(full["p.no"]), float(full["p.yes"])] == pytest.approx(list(dense.astype(float)), abs=1e-3)
    error = lambda *words: millrace("predict", "runs/customers", "customers.csv", "-o", *words, cwd=desk, code=1).stderr
    assert "predictions are written as .csv" in error("out.docx")
    assert "--threshold 2" in error("out.csv", "--threshold", 2)
    assert "--f16 is for .npy" in error("out.csv", "--f16")
    assert "sure.csv" in error("sure.csv")  # it is there
    millrace("predict", "runs/customers", "customers.csv", "-o", "sure.csv", "--force", cwd=desk)


def test_bad_samples_are_listed_and_the_order_is_kept(millrace, desk, tmp_path):
    pictures = sorted((desk / "photos/cat").iterdir())[:40]
    for i, picture in enumerate(pictures):
        (tmp_path / f"{i:03}.png").write_bytes(b"no picture" if i in (0, 7, 39) else picture.read_bytes())
    said = millrace("predict", desk / "runs/photos", tmp_path, "-o", "out.jsonl", cwd=desk, code=1).stderr
    assert "3 of 40 could not be predicted: out.jsonl.bad.jsonl lists them" in said
    bad = [json.loads(line) for line in (desk / "out.jsonl.bad.jsonl").read_text().splitlines()]
    assert [row["sample"] for row in bad] == [0, 7, 39] and all(row["why"] for row in bad)
    assert [row["sample"] for row in rows_of(desk / "out.jsonl")] == [i for i in range(40) if i not in (0, 7, 39)]
    millrace("predict", desk / "runs/photos", tmp_path, "-o", "out.npy", cwd=desk, code=1)
    assert list(np.isnan(np.load(desk / "out.npy")).any(1).nonzero()[0]) == [0, 7, 39]


def test_a_stopped_prediction_goes_on(binary, millrace, desk, tmp_path):
    """Stopped by Ctrl-C, killed, and with a record half written: the file is that of one that was not."""
    lines = (desk / "customers.csv").read_text().splitlines()
    (tmp_path / "many.csv").write_text("\n".join([lines[0], *lines[1:] * 400]) + "\n")
    command = ["predict", desk / "runs/customers", "many.csv", "-o"]
    millrace(*command, "whole.csv", cwd=tmp_path)
    partial = tmp_path / "out.csv.partial"
    for how in (signal.SIGINT, signal.SIGKILL):
        process = subprocess.Popen([binary, *map(str, command), "out.csv"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        before = partial.stat().st_size if partial.exists() else 0
        while process.poll() is None and not (partial.exists() and partial.stat().st_size > before + 20_000):
            time.sleep(0.002)
        process.send_signal(how)
        _, said = process.communicate()
        if process.returncode == 0:
            pytest.skip("it was done before it could be stopped")
        assert partial.exists() and not (tmp_path / "out.csv").exists()
        if how == signal.SIGINT:
            assert "the same command goes on from there" in said
    with partial.open("ab") as file:
        file.write(os.urandom(100))
    assert "of them from before" in millrace(*command, "out.csv", cwd=tmp_path).stdout
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert not partial.exists()


def test_a_partial_file_of_something_else_is_begun_anew(millrace, desk, tmp_path):
    (tmp_path / "out.csv.partial").write_bytes(b"of another program")
    said = millrace("predict", desk / "runs/customers", desk / "customers.csv", "-o", "out.csv", cwd=tmp_path)
    assert "begun anew" in said.stderr and len(rows_of(tmp_path / "out.csv")) == 600


@pytest.mark.parametrize("end", ["jsonl", "csv", "parquet"])
def test_what_is_predicted_may_be_called_as_columns_of_the_file_are(millrace, tmp_path, end):
    lines = [f"{i % 7},{i % 5},{i % 7 + 2 * (i % 5)},{i % 3}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["x,input,sample,input_2", *lines]) + "\n")
    (tmp_path / "r.toml").write_text('[data]\ntrain = "t.csv"\n[output]\nkind = "number"\ncolumns = ["input", "sample", "input_2"]\n'
                                     '[model]\nkind = "linear"\n[train]\nepochs = 1\nbatch = 20\n')
    millrace("train", "r.toml", "--out", "run", cwd=tmp_path)
    out = tmp_path / f"told.{end}"
    millrace("predict", "run", "t.csv", "-o", out, cwd=tmp_path)
    rows = rows_of(out)
    assert list(rows[0]) == ["sample", "input", "input_3", "sample_2", "input_2"]
    assert [int(row["sample"]) for row in rows] == list(range(60)) and rows[3]["input"].endswith("t.csv#3")
    printed = [json.loads(line)["numbers"] for line in millrace("predict", "run", "t.csv", "--json", cwd=tmp_path).stdout.splitlines()]
    for row, told in zip(rows, printed):
        for column, number in (("input_3", "input"), ("sample_2", "sample"), ("input_2", "input_2")):
            assert float(row[column]) == pytest.approx(told[number], abs=1e-3)


def test_outputs_may_be_called_as_what_is_printed_of_each_sample(millrace, tmp_path):
    lines = [f"{i % 7},{i % 5},{i % 7 + 2 * (i % 5)}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["x,a,b", *lines]) + "\n")
    (tmp_path / "r.toml").write_text('[data]\ntrain = "t.csv"\n[outputs.input]\nkind = "number"\ncolumn = "a"\n[outputs.rows]\nkind = "number"\n'
                                     'column = "b"\n[model]\nkind = "linear"\n[train]\nepochs = 1\nbatch = 20\n')
    millrace("train", "r.toml", "--out", "run", cwd=tmp_path)
    told = json.loads(millrace("predict", "run", "t.csv", "--json", cwd=tmp_path).stdout.splitlines()[3])
    assert told["input"].endswith("t.csv#3") and set(told) == {"input", "input_2", "rows"}
