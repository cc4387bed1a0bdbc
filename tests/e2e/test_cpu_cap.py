"""MILLRACE_CPU caps the instructions that are used, so that what smaller CPUs run is tested on larger
ones."""
import json

import numpy as np
import onnx
import pytest
from conftest import write_samples

RECIPE = """
[data]
train = "photos"
test_share = 0.2
[input]
resize = 32
[model]
kind = "lenet"
[train]
epochs = 1
batch = 32
"""


def test_a_cap_is_kept(millrace):
    whole = json.loads(millrace("machine", "--json").stdout)
    told = json.loads(millrace("machine", "--json", env={"MILLRACE_CPU": "avx2"}).stdout)
    assert told["cpu"] == whole["cpu"] + ", avx2 at most"
    assert not any(word.startswith(("avx512", "bf16", "amx", "vnni")) for word in told["instructions"].split())
    assert told["bf16_gflops"] == 0


@pytest.mark.parametrize("cap", ["sse4", "AVX2", "avx"])
def test_no_other_cap_goes(millrace, cap):
    result = millrace("machine", code=1, env={"MILLRACE_CPU": cap})
    assert f"MILLRACE_CPU is '{cap}', but caps at avx2, avx512 or avx512_bf16 only; CPUs without AVX2 are not supported" in result.stderr


def test_a_capped_training_gives_the_same_curve(millrace, tmp_path):
    write_samples(tmp_path)
    (tmp_path / "recipe.toml").write_text(RECIPE)
    losses = {}
    for cap in ("", "avx2", "avx512"):
        out = tmp_path / f"run{cap}"
        millrace("train", "recipe.toml", "--out", out, cwd=tmp_path, env={"MILLRACE_CPU": cap})
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        losses[cap] = [line["train/loss"] for line in lines if "train/loss" in line][-1]
        predicted = millrace("predict", out, tmp_path / "photos/cat/1.png", env={"MILLRACE_CPU": cap})
        assert "cat" in predicted.stdout
    assert losses["avx2"] == pytest.approx(losses[""], rel=0.05)
    assert losses["avx512"] == pytest.approx(losses[""], rel=0.05)


@pytest.mark.parametrize("cap", ["avx2", "avx512"])
@pytest.mark.parametrize("pads,width", [([1, 1, 1, 1], 9), ([0, 0, 1, 1], 9), ([1, 1, 0, 1], 8)])
def test_nothing_beyond_the_edge_is_pooled(millrace, tmp_path, cap, pads, width):
    size = 3 if pads[0] == pads[3] else 2
    node = onnx.helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[size, size], pads=pads, count_include_pad=1)
    x, y = (onnx.helper.make_tensor_value_info(name, 1, ["batch", 1, None, None]) for name in "xy")
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([node], "pool", [x], [y]), opset_imports=[onnx.helper.make_opsetid("", 17)]), tmp_path / "pool.onnx")
    pictures = np.random.default_rng(3).random([2, 1, width, width], np.float32)
    np.save(tmp_path / "x.npy", pictures)
    millrace("predict", "pool.onnx", "x.npy", "-o", "y.npy", cwd=tmp_path, env={"MILLRACE_CPU": cap})
    padded = np.pad(pictures, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(2, 3))
    assert np.load(tmp_path / "y.npy") == pytest.approx(windows.mean(axis=(-2, -1)), abs=1e-6)
