"""RNN, GRU and LSTM of ONNX files in all directions, with lengths and states, beside ONNX Runtime; built
ones run for any number of steps."""

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
    ("LSTM", "forward", {"input_forget": 1}),
    # Numbers go to the functions that take one, in their order.
    ("LSTM", "bidirectional", {"activations": ["HardSigmoid", "Affine", "leakyrelu", "HardSigmoid", "Elu", "ThresholdedRelu"], "activation_alpha": [0.3, 0.5, 0.1, 0.25, 0.7, 0.2], "activation_beta": [0.4, 0.1, 0.45]}),
    ("GRU", "bidirectional", {"activations": ["HardSigmoid", "Tanh", "HardSigmoid", "ScaledTanh"], "activation_alpha": [0.3, 0.25, 0.9], "activation_beta": [0.4, 0.6, 0.8]}),
    ("RNN", "bidirectional", {"activations": ["LeakyRelu", "HardSigmoid"]}),
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


def test_operands_that_do_not_fit_each_other_are_refused(millrace, tmp_path):
    weights = {"w": (1, 4 * HIDDEN, WIDE), "r": (1, 4 * HIDDEN, HIDDEN), "b": (1, 8 * HIDDEN)}
    np.save(tmp_path / "x.npy", np.zeros((3, 2, WIDE), np.float32))
    for wrong, direction, error in (
        ({}, "backward", "the direction backward is not known"),
        ({}, "bidirectional", "its weights of the input are [1, 24, 5], not [2, 24, 5]"),
        ({"r": (1, 4 * HIDDEN, 5)}, "forward", "its weights of the input are [1, 24, 5], not [1, 20, 5]"),
        ({"w": (1, 5 * HIDDEN, WIDE)}, "forward", "its weights of the input are [1, 30, 5], not [1, 24, 5]"),
        ({"b": (1, 9 * HIDDEN)}, "forward", "its biases are [1, 54], not [1, 48]"),
    ):
        made = node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=HIDDEN, direction=direction)
        constants = [(name, np.zeros(shape, np.float32)) for name, shape in {**weights, **wrong}.items()]
        save(tmp_path / "m.onnx", [made], [("x", 1, ["steps", 2, WIDE])], [("y", 1, None)], constants)
        assert error in millrace("predict", "m.onnx", "x.npy", "--json", cwd=tmp_path, code=1).stderr
