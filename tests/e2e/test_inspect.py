"""What a model's graph is made of (inspect), what becomes of it (explain) and how fast it is (profile), of
ONNX models and run folders."""

import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A convolution of 8 channels, relu, mean over places, a product with 5 columns, twice added to
    itself."""
    helper, path = onnx.helper, tmp_path_factory.mktemp("inspect") / "small.onnx"
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu1"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["f"], name="flat"),
        helper.make_node("MatMul", ["f", "m"], ["y"], name="head"),
        helper.make_node("Add", ["y", "y"], ["z"], name="twice"),
    ]
    arrays = {"w": np.ones((8, 3, 3, 3)), "b": np.ones(8), "m": np.ones((8, 5))}
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", 1, ["N", 3, 16, 16])],
        [helper.make_tensor_value_info("z", 1, ["N", 5])],
        [onnx.numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_the_graph_adds_up(millrace, model):
    shown = json.loads(millrace("inspect", model, "--sizes", "N=2", "--json").stdout)
    assert shown["inputs"] == [{"name": "x", "type": "f32[N, 3, 16, 16]"}] and shown["outputs"] == [{"name": "z", "type": "f32[N, 5]"}]
    assert shown["sizes"] == {"N": 2} and shown["format"] == "an ONNX model"
    assert shown["parameters"] >= 8 * 27 + 8 + 40  # constants of the operators' definitions may be more
    rows = shown["rows"]
    conv = next(row for row in rows if row["operator"] == "conv2d")
    assert conv["parameters"] == 8 * 27 and conv["inputs"] == [0] and "conv1" in conv["name"]
    # Padding is not counted: 16 of 18 in each direction for the outer taps.
    assert conv["flops"] == pytest.approx(2 * 2 * 8 * 3 * (3 * 16 - 2) ** 2)
    head = next(row for row in rows if row["operator"] == "matmul")
    assert head["flops"] == 2 * 2 * 8 * 5 and head["parameters"] == 40
    assert sum(row["flops"] for row in rows) == pytest.approx(shown["flops"])
    assert sum(row["parameters"] for row in rows) == shown["parameters"]
    assert [row["outputs"] for row in rows if row["outputs"]] == [[0]] and rows[-1]["outputs"] == [0]
    for number, row in enumerate(rows):
        assert all(0 <= read < number for read in row["reads"])
    one = json.loads(millrace("inspect", model, "--json").stdout)
    assert one["sizes"] == {"N": 1} and one["flops"] < shown["flops"] and one["parameters"] == shown["parameters"]


def test_the_graph_is_drawn_and_told(millrace, model, tmp_path):
    text = millrace("inspect", model, "--svg", tmp_path / "graph.svg").stdout
    assert "input  x: f32[N, 3, 16, 16]" in text and "(N=1)" in text
    assert "conv2d" in text and "conv1" in text and "f32[1, 8, 16, 16]" in text and "→ z" in text
    svg = ElementTree.parse(tmp_path / "graph.svg").getroot()
    drawn = ["".join(group.itertext()) for group in svg.iter("{http://www.w3.org/2000/svg}g")]
    assert any("conv2d in conv1" in text for text in drawn)
    boxes = list(svg.iter("{http://www.w3.org/2000/svg}rect"))
    assert len(boxes) >= 8
    for word, error in (("N", "NAME=SIZE"), ("N=0", "NAME=SIZE"), ("M=3", "they have N"), ("N=2x", "NAME=SIZE")):
        assert error in millrace("inspect", model, "--sizes", word, code=1).stderr
    (tmp_path / "bad.onnx").write_bytes(model.read_bytes()[:-30])
    assert "bad.onnx" in millrace("inspect", tmp_path / "bad.onnx", code=1).stderr
    (tmp_path / "bad.onnx").write_bytes(model.read_bytes()[:3])
    assert "is it damaged, or cut short?" in millrace("inspect", tmp_path / "bad.onnx", code=1).stderr
    assert "there is no such file" in millrace("bench", "infer", "absent.onnx", 1, code=1).stderr
    assert "no model that can be loaded" in millrace("inspect", __file__, code=1).stderr


def test_a_model_is_profiled_and_explained_as_a_recipe_is(millrace, model, tmp_path):
    profile = json.loads(millrace("profile", model, "--sizes", "N=4", "--steps", 3, "--json", "--trace", tmp_path / "t.json", "--html", tmp_path / "p.html").stdout)
    seconds = profile["seconds"]
    assert seconds["forward"] > 0 and seconds["backward"] == seconds["update"] == 0
    assert any(launch["flops"] > 0 for launch in profile["launches"]) and all(launch["provider"] for launch in profile["launches"])
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert "<svg" in (tmp_path / "p.html").read_text() and "N=4" in (tmp_path / "p.html").read_text()
    text = millrace("profile", model, "--steps", 2).stdout
    assert "inference, N=1, fp32" in text and "roofline" in text
    explained = millrace("explain", model, "--svg", tmp_path / "launches.svg").stdout
    assert "Providers" in explained and "declined" in explained and (tmp_path / "launches.svg").exists()
    for verb in ("profile", "explain"):
        assert "is no recipe" in millrace(verb, model, "train.epochs=1", code=1).stderr
        assert "--sizes" in millrace(verb, "--model", "lenet", "--sizes", "N=1", code=1).stderr


def test_run_folders_are_inspected_and_their_inference_profiled(millrace, tmp_path):
    millrace("letters", tmp_path / "letters", "--train", 300, "--test", 100)
    (tmp_path / "r.toml").write_text('[data]\ntrain = "letters/train"\n[output]\nkind = "class"\n[model]\nkind = "lenet"\n')
    millrace("train", "r.toml", "train.steps=3", "train.batch=20", "--out", "run", cwd=tmp_path)
    shown = json.loads(millrace("inspect", tmp_path / "run", "--json").stdout)
    assert shown["format"] == "a run folder" and shown["parameters"] > 1000 and shown["flops"] > 1e5
    assert any(row["operator"] == "conv2d" for row in shown["rows"])
    profile = json.loads(millrace("profile", "run", "--infer", "--steps", 2, "--json", cwd=tmp_path).stdout)
    assert profile["seconds"]["backward"] == 0
    assert "inference" in millrace("explain", "run", "--infer", cwd=tmp_path).stdout
