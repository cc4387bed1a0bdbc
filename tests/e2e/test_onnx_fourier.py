"""Fourier transforms of ONNX models of any length, judged by NumPy, and as PyTorch's exporters write them."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

draw = np.random.default_rng(11)


def said(millrace, tmp_path, nodes, x, constants, opset=20):
    graph = helper.make_graph(
        nodes, "fourier", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(value, name) for name, value in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", x)
    return np.array(json.loads(millrace("predict", tmp_path / "m.onnx", tmp_path / "x.npy", "--json").stdout)["y"])


def pairs(z):
    return np.stack([z.real, z.imag], -1)


@pytest.mark.parametrize("length", [64, 1000, 4096, 6000, 16384, 2 * 1009])
def test_transforms_are_those_of_numpy(millrace, tmp_path, length):
    z = draw.normal(0, 1, (2, length)) + 1j * draw.normal(0, 1, (2, length))
    whole = pairs(z).astype(np.float32)
    real = whole[..., :1]
    half = np.fft.rfft(real[..., 0].astype(np.float64))
    asked = {"n": np.array(length + 48, np.int64), "axis": np.array(1, np.int64)}
    dft = lambda inputs, **how: [helper.make_node("DFT", inputs, ["y"], **how)]  # noqa: E731
    for nodes, x, expected in (
        (dft(["x", "", "axis"]), whole, pairs(np.fft.fft(z))),
        (dft(["x", "", "axis"], inverse=1), whole, pairs(np.fft.ifft(z))),
        (dft(["x", "", "axis"], onesided=1), real, pairs(half)),
        (dft(["x", "n", "axis"], onesided=1), real, pairs(np.fft.rfft(real[..., 0].astype(np.float64), length + 48))),
        (dft(["x", "", "axis"], inverse=1, onesided=1), pairs(half).astype(np.float32), np.fft.irfft(half)[..., None]),
    ):
        found = said(millrace, tmp_path, nodes, x, asked).reshape(expected.shape)
        assert np.abs(found - expected).max() < 2e-6 * np.abs(expected).max()


def test_what_is_too_long_says_why(millrace, tmp_path):
    model = helper.make_model(helper.make_graph(
        [helper.make_node("DFT", ["x"], ["y"], axis=1)], "fourier", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 20011, 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]), opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.zeros((1, 20011, 1), np.float32))
    assert "its length has a large prime factor" in millrace("predict", tmp_path / "m.onnx", tmp_path / "x.npy", code=1).stderr


@pytest.mark.parametrize("shape", [(2, 3000), (2, 3000, 1)])
@pytest.mark.parametrize("length", [64, 2048])
def test_frames_are_those_of_onnx_runtime(millrace, tmp_path, shape, length):
    x = draw.normal(0, 1, shape).astype(np.float32)
    constants = {"step": np.array(100, np.int64), "window": np.hanning(length).astype(np.float32), "length": np.array(length, np.int64)}
    found = said(millrace, tmp_path, [helper.make_node("STFT", ["x", "step", "window", "length"], ["y"])], x, constants, opset=17)
    expected = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": x})[0]
    assert np.abs(found.reshape(expected.shape) - expected).max() < 1e-5 * np.abs(expected).max()
