"""`millrace predict model.onnx`: pictures, .npy, .npz and JSON for models that have no recipe;
docs/predict.md's commands for them."""

import csv
import json
import os
import re
import signal
import subprocess
import time

import numpy as np
import pytest
from conftest import ROOT
from PIL import Image

pq = pytest.importorskip("pyarrow.parquet")
onnx = pytest.importorskip("onnx")
MEANS, DEVIATIONS = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def save(path, nodes, inputs, outputs, initialisers=()):
    helper = onnx.helper
    info = [[helper.make_tensor_value_info(*one) for one in each] for each in (inputs, outputs)]
    graph = helper.make_graph(nodes, "small", *info, [onnx.numpy_helper.from_array(array, name) for name, array in initialisers])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def node(*words, **attributes):
    return onnx.helper.make_node(*words, **attributes)


@pytest.fixture
def means(tmp_path):
    """The mean of each channel of pictures of 8×8."""
    nodes = [node("GlobalAveragePool", ["x"], ["p"]), node("Flatten", ["p"], ["means"])]
    return save(tmp_path / "model.onnx", nodes, [("x", 1, ["batch", 3, 8, 8])], [("means", 1, ["batch", 3])])


@pytest.fixture
def sums(tmp_path):
    """a + b, whose rows are 12 wide, and the ids' double."""
    nodes = [node("Add", ["a", "b"], ["sum"]), node("Add", ["ids", "ids"], ["twice"])]
    ports = [("a", 1, ["batch", 12]), ("b", 1, [12]), ("ids", 7, ["batch", 2])]
    return save(tmp_path / "sums.onnx", nodes, ports, [("sum", 1, ["batch", 12]), ("twice", 7, ["batch", 2])])


def results(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_pictures_are_resized_and_normalised_as_stated(millrace, means, tmp_path):
    Image.new("RGB", (20, 10), (255, 0, 128)).save(tmp_path / "plain.png")
    share = np.array([255, 0, 128]) / 255
    for options, expected, word in (
        ([], (share - MEANS) / DEVIATIONS, "ImageNet"),
        (["--normalise", "unit"], share, "0 to 1"),
        (["--normalise", "signed", "--resize", "stretch"], 2 * share - 1, "resized to 8×8"),
        (["--normalise", "none"], 255 * share, "0 to 255"),
    ):
        done = millrace("predict", means, tmp_path / "plain.png", "--json", *options)
        assert np.allclose(results(done)[0]["means"], expected, atol=1e-5)
        assert word in done.stderr
    # The middle of a wide picture is white.
    wide = np.zeros((40, 120, 3), np.uint8)
    wide[:, 30:90] = 255
    Image.fromarray(wide).save(tmp_path / "wide.png")
    crop, stretch = (results(millrace("predict", means, tmp_path / "wide.png", "--json", "--normalise", "unit", "--resize", how))[0] for how in ("crop", "stretch"))
    assert np.allclose(crop["means"], 1) and np.allclose(stretch["means"], 1 / 2, atol=0.05)
    # Grey becomes colour; channels may come last, and integers stay as they are.
    Image.fromarray(wide[:, :, 0]).save(tmp_path / "grey.png")
    nodes = [node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]), node("Cast", ["t"], ["f"], to=1), node("GlobalAveragePool", ["f"], ["y"])]
    last = save(tmp_path / "last.onnx", nodes, [("x", 2, [1, 8, 8, 3])], [("y", 1, [1, 3, 1, 1])])
    done = millrace("predict", last, tmp_path / "grey.png", "--json")
    assert np.allclose(results(done)[0]["y"], 255) and "0 to 255" in done.stderr
    assert "the model takes u8" in millrace("predict", last, tmp_path / "grey.png", "--normalise", "unit", code=1).stderr


def test_arrays_and_json_are_taken_by_their_names(millrace, sums, means, tmp_path):
    random = np.random.default_rng(3)
    a, b, ids = random.standard_normal((2, 12)), random.standard_normal(12), np.array([[1, 2], [3, 2**40]])
    np.savez(tmp_path / "batch.npz", a=a, b=b, ids=ids)
    text = json.dumps({"a": a[0].tolist(), "b": b.tolist(), "ids": ids[0].tolist()})
    (tmp_path / "rows.jsonl").write_text(text + "\n\n" + text.replace("12", "12") + "\n")
    rows = results(millrace("predict", sums, tmp_path / "batch.npz", tmp_path / "rows.jsonl", text, "--json"))
    assert [len(row) for row in rows] == [3] * 5
    assert [row["input"].rpartition("#")[2] for row in rows[:4]] == ["0", "1", "0", "1"]
    for row, number in zip(rows, (0, 1, 0, 0, 0)):
        assert np.allclose(row["sum"], a[number] + b, atol=1e-5)
        assert row["twice"] == (2 * ids[number]).tolist()
    # Of one input the array itself, also of another type, with or without the batch.
    pictures = random.random((3, 3, 8, 8))
    np.save(tmp_path / "all.npy", pictures)
    np.save(tmp_path / "one.npy", np.asfortranarray(pictures[0]))
    (tmp_path / "one.json").write_text(json.dumps(pictures[0].tolist()))
    files = [tmp_path / name for name in ("all.npy", "one.npy", "one.json")]
    done = millrace("predict", means, *files, "--json")
    expected = pictures.mean((2, 3))[[0, 1, 2, 0, 0]]
    assert np.allclose([row["means"] for row in results(done)], expected, atol=1e-5)
    millrace("predict", means, *files, "-o", tmp_path / "out.npy")
    assert np.allclose(np.load(tmp_path / "out.npy"), expected, atol=1e-5)
    millrace("predict", means, *files, "-o", tmp_path / "half.npy", "--f16")
    half = np.load(tmp_path / "half.npy")
    assert half.dtype == np.float16 and np.allclose(half, expected, atol=1e-3)
    millrace("predict", sums, tmp_path / "batch.npz", "-o", tmp_path / "out.jsonl")
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert written == rows[:2]


def test_what_cannot_be_used_is_named_and_the_rest_goes_on(millrace, sums, means, tmp_path):
    np.save(tmp_path / "good.npy", np.ones((1, 3, 8, 8), np.float32))
    np.save(tmp_path / "flat.npy", np.ones((2, 5)))
    (tmp_path / "bad.json").write_text("[[1, 2], [3]]")
    (tmp_path / "text.txt").write_text("hello")
    (tmp_path / "half.png").write_bytes(b"\x89PNG\r\n\x1a\nhalf")
    (tmp_path / "deep.json").write_text("[" * 100000 + "]" * 100000)
    names = ["flat.npy", "bad.json", "text.txt", "half.png", "deep.json", "absent.npy", "good.npy"]
    done = millrace("predict", means, *[tmp_path / name for name in names], code=1)
    assert done.stdout == f"{tmp_path / 'good.npy'}: means 1 1 1\n"
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 6 and all(name in line for name, line in zip(names, errors)), errors
    np.savez(tmp_path / "less.npz", a=np.ones((1, 12)))
    assert "'ids'" in millrace("predict", sums, '{"a": [[1]], "b": [2]}', code=1).stderr
    assert "less.npz" in millrace("predict", sums, tmp_path / "less.npz", code=1).stderr
    assert "the model has 3 inputs (a, b, ids)" in millrace("predict", sums, tmp_path / "good.npy", code=1).stderr
    assert "'ids' takes i64, and 1.5 is none" in millrace("predict", sums, json.dumps({"a": [0] * 12, "b": [0] * 12, "ids": [1, 1.5]}), code=1).stderr
    for words, error in (
        (["--resize", "smaller"], "choose crop or stretch"),
        (["--normalise", "much"], "choose imagenet"),
        (["--tokens", "3"], "only a run folder"),
        (["-o", tmp_path / "out.txt"], ".parquet, .arrow or .npy"),
        (["-o", tmp_path / "good.npy"], "would be lost"),
        (["-o", tmp_path / "out.csv", "--f16"], "--f16 is for .npy"),
        (["-o", tmp_path / "out.csv", "--json"], "-o writes a file"),
        (["--threshold", "0.5"], "goes with -o FILE"),
        (["-o", tmp_path / "out.csv", "--threshold", "nan"], "nan is no limit"),
    ):
        assert error in millrace("predict", means, tmp_path / "good.npy", *words, code=1).stderr


def test_the_largest_numbers_are_told_with_their_labels(millrace, tmp_path):
    nodes = [node("Identity", ["x"], ["y"])]
    model = save(tmp_path / "same.onnx", nodes, [("x", 1, ["batch", 10])], [("y", 1, ["batch", 10])])
    np.save(tmp_path / "x.npy", np.array([[0, 1, 9, 3, 4, 5, 6, 7, 8, 2.5]] * 2))
    (tmp_path / "labels.txt").write_text("\n".join("abcdefgh"))
    done = millrace("predict", model, tmp_path / "x.npy", "--labels", tmp_path / "labels.txt", "--top", 2)
    assert done.stdout == "".join(f"{tmp_path / 'x.npy'}#{row}: y c 9, 8 8\n" for row in (0, 1))


def test_commands_of_the_page_run(millrace, means, tmp_path):
    page = (ROOT / "docs/predict.md").read_text().split("## A model without a recipe")[1].split("\n## ")[0]
    lines = [line for block in re.findall(r"^```\n(.*?)^```", page, re.M | re.S) for line in block.splitlines()]
    Image.new("RGB", (20, 10), (255, 0, 128)).save(tmp_path / "cat.jpg")
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (20, 10), (1, 0, 128)).save(tmp_path / "photos/dog.png")
    np.save(tmp_path / "batch.npy", np.ones((2, 3, 8, 8)))
    np.savez(tmp_path / "inputs.npz", x=np.ones((1, 3, 8, 8)))
    (tmp_path / "labels.txt").write_text("red\ngreen\nblue\n")
    (tmp_path / "inputs.json").write_text(json.dumps({"x": np.ones((3, 8, 8)).tolist()}))
    assert len(lines) >= 4
    means.rename(tmp_path / "net.onnx")
    for line in lines:
        assert millrace(*line.split()[1:], cwd=tmp_path).stdout, line


def test_results_become_tables(millrace, sums, tmp_path):
    """Few numbers have a column each, of many the largest; a damaged line of many has no row, and is
    listed."""
    random = np.random.default_rng(4)
    a, b = random.standard_normal((5, 12)), random.standard_normal(12)
    lines = [json.dumps({"a": [row.tolist()], "b": b.tolist(), "ids": [[i, 2**40]]}) for i, row in enumerate(a)]
    (tmp_path / "rows.jsonl").write_text("\n".join([*lines[:2], "{no", *lines[2:]]) + "\n")
    np.savez(tmp_path / "batch.npz", a=a[:2], b=b, ids=np.array([[7, 8], [9, 10]]))
    sum_ = np.concatenate([a, a[:2]]) + b
    names = [f"{tmp_path}/rows.jsonl#{i}" for i in (0, 1, 3, 4, 5)] + [f"{tmp_path}/batch.npz#{i}" for i in (0, 1)]
    command = ["predict", sums, tmp_path / "rows.jsonl", tmp_path / "batch.npz", "--top", 2, "-o"]

    def rows(path):
        if path.suffix == ".csv":
            with open(path, newline="") as file:
                return list(csv.DictReader(file))
        return pq.read_table(path).to_pylist()

    for path in (tmp_path / "out.csv", tmp_path / "out.parquet"):
        done = millrace(*command, path, code=1)
        assert "1 of 8 could not be predicted" in done.stderr and "7 samples" in done.stdout
        bad = [json.loads(line) for line in (tmp_path / f"{path.name}.bad.jsonl").read_text().splitlines()]
        assert [(line["sample"], line["input"]) for line in bad] == [(2, f"{tmp_path}/rows.jsonl#2")] and "no JSON" in bad[0]["why"]
        table = rows(path)
        assert list(table[0]) == ["sample", "input", "sum", "sum_value", "sum_2", "sum_value_2", "twice.0", "twice.1"]
        assert [row["input"] for row in table] == names and [int(row["sample"]) for row in table] == [0, 1, 3, 4, 5, 6, 7]
        for row, expected in zip(table, sum_):
            best = np.argsort(-expected)
            assert [int(row["sum"]), int(row["sum_2"])] == best[:2].tolist()
            assert np.allclose([float(row["sum_value"]), float(row["sum_value_2"])], expected[best[:2]], atol=1e-5)
        assert [int(row["twice.0"]) for row in table] == [0, 2, 4, 6, 8, 14, 18] and int(table[0]["twice.1"]) == 2**41
        assert not (tmp_path / f"{path.name}.partial").exists()
    assert "--force replaces it" in millrace(*command, tmp_path / "out.csv", code=1).stderr
    (tmp_path / "labels.txt").write_text("\n".join("abcdefghijkl"))
    millrace(*command, tmp_path / "out.csv", "--force", "--all", "--threshold", 1, "--labels", tmp_path / "labels.txt", code=1)
    for row, expected in zip(rows(tmp_path / "out.csv"), sum_):
        best = "abcdefghijkl"[int(expected.argmax())]
        assert row["sum"] == (best if expected.max() >= 1 else "")
        assert np.allclose([float(row[f"sum.{name}"]) for name in "abcdefghijkl"], expected, atol=1e-5)


def test_a_prediction_into_a_file_goes_on_where_it_was_stopped(binary, millrace, means, tmp_path):
    """Stopped by Ctrl-C, and killed: results are those of one that was not."""
    random = np.random.default_rng(5)
    folder = tmp_path / "many"
    folder.mkdir()
    for i in range(3000):
        np.save(folder / f"{i:04}.npy", random.random((2, 3, 8, 8)).astype(np.float32))
    for end in ("jsonl", "csv", "npy"):
        out, partial = tmp_path / f"out.{end}", tmp_path / f"out.{end}.partial"
        command = [str(word) for word in ("predict", means, folder, "-o")]
        millrace(*command, tmp_path / f"whole.{end}")
        for how in (signal.SIGINT, signal.SIGKILL):
            process = subprocess.Popen([binary, *command, out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            before = partial.stat().st_size if partial.exists() else 0
            while process.poll() is None and not (partial.exists() and partial.stat().st_size > before + 10_000):
                time.sleep(0.002)
            process.send_signal(how)
            _, stderr = process.communicate()
            if process.returncode == 0:
                pytest.skip("it was done before it could be stopped")
            assert partial.exists() and not out.exists()
            if how == signal.SIGINT:
                assert "the same command goes on from there" in stderr
        assert re.search(r"[\d,]+ of them from before", millrace(*command, out).stdout)
        assert out.read_bytes() == (tmp_path / f"whole.{end}").read_bytes()
        assert not partial.exists()
    # Other options: what was kept is of no use.
    partial.write_bytes(b"of another program")
    assert "begun anew" in millrace(*command, out, "--force").stderr


def test_weights_in_a_file_of_their_own(millrace, tmp_path):
    generator = np.random.default_rng(3)
    weights = [("w", generator.standard_normal((48, 64), np.float32)), ("t", generator.standard_normal((100, 48), np.float32)), ("b", np.ones(3, np.float32))]
    nodes = [node("Gather", ["t", "i"], ["e"]), node("MatMul", ["e", "w"], ["p"]), node("Slice", ["p", "from", "to"], ["q"]), node("Add", ["q", "b"], ["y"])]
    sizes = [("from", np.array([0, 0])), ("to", np.array([1 << 40, 3]))]
    inside = save(tmp_path / "inside.onnx", nodes, [("i", 7, ["batch"])], [("y", 1, ["batch", 3])], weights + sizes)
    outside = tmp_path / "outside.onnx"
    onnx.save_model(onnx.load(inside), outside, save_as_external_data=True, location="weights.bin", size_threshold=0)
    np.save(tmp_path / "i.npy", np.array([5, 99, 0]))
    said = [[json.loads(line)["y"] for line in millrace("predict", model, tmp_path / "i.npy", "--json").stdout.splitlines()] for model in (inside, outside)]
    assert said[0] == said[1]
    table, product = (array for _, array in weights[1::-1])
    np.testing.assert_allclose(np.array(said[1]), (table[[5, 99, 0]] @ product)[:, :3] + 1, rtol=1e-4)
