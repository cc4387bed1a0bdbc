"""Names in ONNX models: of dimensions, which are any text there; of values, which must differ. Versions."""

import json

import numpy as np
import pytest
from test_predict_model import node, save

onnx = pytest.importorskip("onnx")


def test_dimensions_of_any_name_are_open(millrace, tmp_path):
    names = ["batch size", "past_sequence_length + 1", "batch-size", "N:0", "0"]
    save(
        tmp_path / "m.onnx",
        [node("ReduceSum", ["a", "axes"], ["s"], keepdims=0), node("ReduceSum", ["b.1", "axes"], ["t"], keepdims=0), node("Add", ["s", "t"], ["y"])],
        [("a", 1, names), ("b.1", 1, ["batch_size", None, 2, "batch-size", 2])],
        [("y", 1, ["batch size"])],
        [("axes", np.array([1, 2, 3, 4], np.int64))],
    )
    inputs = {one["name"]: one["type"] for one in json.loads(millrace("inspect", "m.onnx", "--json", cwd=tmp_path).stdout)["inputs"]}
    assert inputs == {"a": "f32[batch_size_2, past_sequence_length___1, batch_size_3, N_0, _0]", "b.1": "f32[batch_size, b_1_1, 2, batch_size_3, 2]"}
    np.savez(tmp_path / "x.npz", **{"a": np.ones((3, 2, 1, 1, 2), np.float32), "b.1": np.ones((3, 4, 2, 1, 2), np.float32)})
    lines = millrace("predict", "m.onnx", "x.npz", "--json", cwd=tmp_path).stdout.splitlines()
    assert [json.loads(line)["y"] for line in lines] == [20, 20, 20]


def test_values_of_one_name_are_refused(millrace, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((1, 2), np.float32))
    ports = [("x", 1, ["n", 2])], [("y", 1, ["n", 2])]
    two = np.array([2], np.float32)
    for name, nodes, constants, error in (
        ("nodes", [node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])], [], "'y' is given already"),
        ("input", [node("Relu", ["x"], ["x"]), node("Neg", ["x"], ["y"])], [], "'x' is given already"),
        ("constants", [node("Mul", ["x", "w"], ["y"])], [("w", two), ("w", two + 1)], "two initialisers are named 'w'"),
        ("beyond", [node("Gather", ["w", "i"], ["g"]), node("Mul", ["x", "g"], ["y"])], [("w", two), ("i", np.array([1], np.int64))], "index 1 is outside of the 1 places of axis 0"),
        ("before", [node("Gather", ["x", "i"], ["y"], axis=1)], [("i", np.array([1, -3], np.int64))], "index -3 is outside of the 2 places of axis 1"),
    ):
        save(tmp_path / f"{name}.onnx", nodes, *ports, constants)
        assert error in millrace("predict", f"{name}.onnx", "x.npy", cwd=tmp_path, code=1).stderr


def test_nodes_are_put_in_order(millrace, tmp_path):
    # As tools leave them that append nodes, such as onnxruntime.transformers.float16.
    inner = onnx.helper.make_graph([node("Add", ["t", "t"], ["b"])], "inner", [], [onnx.helper.make_tensor_value_info("b", 1, None)])
    other = onnx.helper.make_graph([node("Neg", ["t"], ["c"])], "other", [], [onnx.helper.make_tensor_value_info("c", 1, None)])
    nodes = [node("Relu", ["u"], ["y"]), node("If", ["yes"], ["u"], then_branch=inner, else_branch=other), node("Neg", ["x"], ["t"])]
    save(tmp_path / "m.onnx", nodes, [("x", 1, [3])], [("y", 1, [3])], [("yes", np.array(True))])
    assert json.loads(millrace("predict", tmp_path / "m.onnx", "[1, -2, 3]", "--json").stdout)["y"] == [0, 4, 0]
    save(tmp_path / "m.onnx", [node("Add", ["x", "y"], ["t"]), node("Neg", ["t"], ["y"])], [("x", 1, [3])], [("y", 1, [3])])
    assert "'y', an input, is given by no node before" in millrace("predict", tmp_path / "m.onnx", "[1, -2, 3]", code=1).stderr


def test_values_within_a_model_are_outputs_by_their_names(millrace, tmp_path):
    """As people look at these: an output is added that says nothing but what it is called."""
    model = onnx.load(save(tmp_path / "m.onnx", [node("MatMul", ["x", "w"], ["t"]), node("Shape", ["t"], ["s"]), node("Relu", ["t"], ["y"])],
                           [("x", 1, ["n", 2])], [("y", 1, ["n", 3])], [("w", np.arange(6, dtype=np.float32).reshape(2, 3) - 2)]))
    model.graph.output.extend([onnx.ValueInfoProto(name="t"), onnx.ValueInfoProto(name="s")])
    onnx.save(model, tmp_path / "m.onnx")
    outputs = {one["name"]: one["type"] for one in json.loads(millrace("inspect", "m.onnx", "--json", cwd=tmp_path).stdout)["outputs"]}
    assert outputs == {"y": "f32[n, 3]", "t": "f32[n, 3]", "s": "i64[2]"}
    told = json.loads(millrace("predict", "m.onnx", "[[1, 2]]", "--json", cwd=tmp_path).stdout)
    assert told["t"] == told["y"] == [[0, 3, 6]]
    del model.graph.node[2].input[:]
    model.graph.node[2].op_type = "Unheard"
    onnx.save(model, tmp_path / "not.onnx")
    said = millrace("inspect", "not.onnx", cwd=tmp_path, code=1).stderr
    assert "does not say the type of its output 't'" in said and "Unheard" in said


def test_newer_versions_than_are_known_are_refused(millrace, tmp_path):
    model = onnx.load(save(tmp_path / "m.onnx", [node("Relu", ["x"], ["y"])], [("x", 1, [2])], [("y", 1, [2])]))
    model.opset_import[0].version = 28
    onnx.save(model, tmp_path / "opset.onnx")
    assert "operator set 28; those to 27 are known" in millrace("inspect", "opset.onnx", cwd=tmp_path, code=1).stderr
    model.opset_import[0].version, model.ir_version = 27, 14
    onnx.save(model, tmp_path / "ir.onnx")
    assert "IR version 14; those to 13 can be read" in millrace("inspect", "ir.onnx", cwd=tmp_path, code=1).stderr
