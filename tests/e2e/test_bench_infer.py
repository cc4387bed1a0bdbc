"""bench infer measures sessions: of built-in networks, ONNX files and run folders."""
import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper


def rate(text):
    assert re.search(r" items/s [\d.]+$", text.strip()), text
    return float(text.split()[-1])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Ids looked up, then a product: two inputs, whose dimensions have names."""
    path = tmp_path_factory.mktemp("bench") / "model.onnx"
    table, weights = (np.random.default_rng(1).normal(size=size).astype("float32") for size in ((10, 4), (4, 3)))
    nodes = [helper.make_node("Gather", ["table", "ids"], ["rows"]), helper.make_node("Add", ["rows", "x"], ["sum"]),
             helper.make_node("MatMul", ["sum", "weights"], ["y"])]
    graph = helper.make_graph(
        nodes, "small",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"]),
         helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "length", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "length", 3])],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(weights, "weights")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_built_in_networks(millrace):
    assert rate(millrace("bench", "infer", "mlp", 4, "--seconds", 0.05).stdout) > 0
    assert "fooo" in millrace("bench", "infer", "fooo", 4, code=1).stderr


def test_onnx_files(millrace, model):
    text = millrace("bench", "infer", model, 3, "--sizes", "length=5", "--seconds", 0.05).stdout
    assert rate(text) > 0
    assert text.startswith(f"infer {model} 3 fp32 ")
    assert f"millrace profile {model} --sizes batch=3" in millrace("bench", "infer", model, 3, "--profile", code=1).stderr
    assert "--sizes length=128" in millrace("bench", "infer", model, 3, code=1).stderr
    for wrong in ("length", "=3", "length=0", "length=x"):
        assert "--sizes" in millrace("bench", "infer", model, 3, "--sizes", wrong, code=1).stderr
    assert "--exact" in millrace("bench", "infer", model, 3, "--sizes", "length=5", "--exact", code=1).stderr


def test_run_folders(millrace, tmp_path):
    draw = np.random.default_rng(2)
    rows = "".join(f"{a:.2f},{b:.2f},{'yes' if a > b else 'no'}\n" for a, b in draw.random((200, 2)))
    (tmp_path / "t.csv").write_text("a,b,more\n" + rows)
    (tmp_path / "r.toml").write_text('[data]\ntrain = "t.csv"\n[output]\ncolumn = "more"\n[train]\nbatch = 20\nepochs = 1\n')
    millrace("train", "r.toml", "--out", "run", cwd=tmp_path)
    assert rate(millrace("bench", "infer", "run", 8, "--seconds", 0.05, cwd=tmp_path).stdout) > 0
