"""RNN, GRU and LSTM of ONNX files, in all directions, with lengths and states of their own, beside ONNX Runtime;
of any number of steps when they are built."""

import json

import numpy as np
import pytest
from test_predict_model import node, save

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
HIDDEN, WIDE = 6, 5
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def saved(path, op, direction, **attributes):
    random = np.random.default_rng(7)
    directions = 2 if direction == "bidirectional" else 1
    draw = lambda *shape: (random.standard_normal(shape) / 2).astype(np.float32)
    constants = [("w", draw(directions, GATES[op] * HIDDEN, WIDE)), ("r", draw(directions, GATES[op] * HIDDEN, HIDDEN)), ("b", draw(directions, 2 * GATES[op] * HIDDEN))]
    words = ["x", "w", "r", "b", "lengths", "h"] + (["c", "p"] if op == "LSTM" else [])
    inputs = [("x", 1, ["steps", "batch", WIDE]), ("lengths", 6, ["batch"]), ("h", 1, [directions, "batch", HIDDEN])]
    if op == "LSTM":
        inputs.append(("c", 1, [directions, "batch", HIDDEN]))
        constants.append(("p", draw(directions, 3 * HIDDEN)))
    outputs = ["y", "last"] + (["cell"] if op == "LSTM" else [])
    made = node(op, words, outputs, hidden_size=HIDDEN, direction=direction, **attributes)
    return save(path, [made], inputs, [(name, 1, None) for name in outputs], constants)


@pytest.mark.parametrize("op,direction,attributes", [
    ("RNN", "bidirectional", {}),
    ("GRU", "reverse", {"linear_before_reset": 1}),
    ("GRU", "bidirectional", {}),
    ("LSTM", "forward", {"clip": 0.4}),
    ("LSTM", "bidirectional", {}),
])
def test_recurrent_layers_say_what_onnx_runtime_says(millrace, tmp_path, op, direction, attributes):
    path = saved(tmp_path / "m.onnx", op, direction, **attributes)
    said = millrace("build", path, "-o", tmp_path / "m.mill", "--sizes", "steps=4,batch=2").stdout
    assert "other sizes will be compiled" in said
    session, random = onnxruntime.InferenceSession(path), np.random.default_rng(8)
    for steps, batch in ((4, 2), (1, 3), (9, 1)):
        directions = 2 if direction == "bidirectional" else 1
        arrays = {"x": random.standard_normal((steps, batch, WIDE)).astype(np.float32), "lengths": random.integers(1, steps + 1, batch).astype(np.int32)}
        for name in ["h", "c"][: 2 if op == "LSTM" else 1]:
            arrays[name] = random.standard_normal((directions, batch, HIDDEN)).astype(np.float32)
        np.savez(tmp_path / "x.npz", **arrays)
        right = dict(zip([o.name for o in session.get_outputs()], session.run(None, arrays)))
        for model in (path, tmp_path / "m.mill"):
            got = json.loads(millrace("predict", model, tmp_path / "x.npz", "--json").stdout)
            for name, values in right.items():
                assert np.allclose(got[name], values, atol=1e-5), (name, steps, batch)
