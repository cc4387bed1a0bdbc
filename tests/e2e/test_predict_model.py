"""`millrace predict model.onnx`: pictures, .npy, .npz and JSON for models that have no recipe; docs/predict.md's commands for them."""

import json
import re

import numpy as np
import pytest
from conftest import ROOT
from PIL import Image

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
    done = millrace("predict", means, tmp_path / "all.npy", tmp_path / "one.npy", tmp_path / "one.json", "--json", "-o", tmp_path / "out.npy")
    expected = pictures.mean((2, 3))[[0, 1, 2, 0, 0]]
    assert np.allclose([row["means"] for row in results(done)], expected, atol=1e-5)
    assert np.allclose(np.load(tmp_path / "out.npy"), expected, atol=1e-5)
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
        (["-o", tmp_path / "out.txt"], ".npy or .jsonl"),
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
