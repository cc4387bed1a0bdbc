"""Models whose operands are of odd types, ranks or numbers give what ONNX Runtime gives; and what is handed
to `millrace predict MODEL.onnx` arrives as it was written."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

draw = np.random.default_rng(7)
TYPES = {np.dtype(t): v for t, v in ((np.float32, 1), (np.uint8, 2), (np.int8, 3), (np.int32, 6), (np.int64, 7), (bool, 9), (np.uint64, 13))}


def model_of(path, nodes, inputs, output, constants=None, opset=18):
    graph = helper.make_graph(
        nodes, "odd", [helper.make_tensor_value_info(name, TYPES[value.dtype], value.shape) for name, value in inputs.items()],
        [helper.make_tensor_value_info("y", *output)], [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)


def int8(*shape):
    return draw.integers(-128, 128, shape).astype(np.int8)


def grid(*places):
    """Indices of what lies at these places along the first axes."""
    return np.stack(np.meshgrid(*places, indexing="ij"), -1)


def scattered(places, *updates, **attributes):
    """ScatterND into [4, 5, 6] at places that are known."""
    return ([("ScatterND", ["x", "at", "new"], attributes)],
            {"x": draw.normal(0, 1, (4, 5, 6)).astype(np.float32), "new": draw.normal(0, 1, updates).astype(np.float32)}, {"at": places})


CASES = {
    # As Transformers writes the last layer of an EfficientNet.
    **{f"a window larger than the picture, {op} {more}": ([(op, ["x"], {"kernel_shape": [40, 9], "strides": [40, 5], "ceil_mode": 1, **more})],
                                                        {"x": draw.normal(0, 1, (2, 3, 5, 6)).astype(np.float32)})
       for op, more in (("AveragePool", {}), ("AveragePool", {"pads": [1, 2, 1, 0]}), ("MaxPool", {}), ("MaxPool", {"pads": [1, 2, 1, 0]}))},
    # As exporters write x[:, 1:, 2:5] = y.
    "scatter of a block": scattered(grid(range(4), range(1, 5), range(2, 5)), 4, 4, 3),
    "scatter of rows from the end": scattered(grid(range(4), range(-2, 0)), 4, 2, 6),
    "scatter of all": scattered(grid(range(4), range(5)), 4, 5, 6),
    "scatter of a block that is added": scattered(grid(range(1, 3)), 2, 5, 6, reduction="add"),
    "scatter of every other row": scattered(grid(range(0, 4, 2)), 2, 5, 6),
    "scatter of rows in another order": scattered(grid([0, 2, 1, 3], range(5)), 4, 5, 6),
    "scatter of columns beside rows": scattered(grid(range(4), range(5))[..., [0, 1]].swapaxes(0, 1), 5, 4, 6),
    # Of two updates of one place the last one counts.
    "scatter, the same place twice": ([("ScatterElements", ["x", "at", "new"], {"axis": 0})],
                                      {"x": np.float32([10, 10, 10]), "at": np.int64([1, 1, 2]), "new": np.float32([1, 2, 7])}),
    "scatter of truth values": ([("ScatterND", ["x", "at", "new"], {})],
                                {"x": np.zeros((3, 4), bool), "at": np.int64([[0, 1], [2, 3]]), "new": np.array([True, True])}),
    "regions of three pictures": ([("RoiAlign", ["x", "regions", "which"], {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.5})],
                                  {"x": draw.normal(0, 1, (3, 4, 9, 7)).astype(np.float32), "which": np.int64([2, 0, 2, 1, 1]),
                                   "regions": np.float32([[0, 0, 5, 6], [2, 3, 13, 17], [1, 1, 2, 2], [4, 0, 20, 30], [-3, -2, 4, 4]])}),
    # As layers of graphs of nodes take the largest of their neighbours: pairs of all with all would be 4e8.
    **{f"scatter of the {how}": ([("ScatterElements", ["x", "at", "new"], {"axis": 0, "reduction": how})],
                                 {"x": draw.normal(0, 1, (5000, 4)).astype(np.float32), "at": draw.integers(-5000, 5000, (5000, 4)),
                                  "new": draw.normal(0, 1, (5000, 4)).astype(np.float32)}) for how in ("max", "min")},
    "scatter of the max of whole numbers": ([("ScatterND", ["x", "at", "new"], {"reduction": "max"})],
                                            {"x": draw.integers(-9, 9, (5, 3)), "at": np.int64([[0], [3], [0]]), "new": draw.integers(-9, 9, (3, 3))}),
    # As point clouds are laid into pictures: whole columns, of which the last one counts.
    "scatter of columns, some twice": ([("ScatterND", ["x", "at", "new"], {})],
                                       {"x": draw.normal(0, 1, (2, 9, 8, 7)).astype(np.float32), "at": np.stack([draw.integers(0, 2, 40), draw.integers(-9, 9, 40)], 1),
                                        "new": draw.normal(0, 1, (40, 8, 7)).astype(np.float32)}),
    **{f"scatter of rows by {how}": ([("ScatterND", ["x", "at", "new"], {"reduction": how})],
                                     {"x": draw.normal(0, 1, (6, 5)).astype(np.float32), "at": draw.integers(0, 6, (20, 1)), "new": draw.normal(0, 1, (20, 5)).astype(np.float32)})
       for how in ("add", "max", "min", "mul")},
    "MatMulInteger of a batch": ([("MatMulInteger", ["a", "b"], {})], {"a": int8(2, 3, 4), "b": int8(4, 5)}),
    "MatMulInteger with points": ([("MatMulInteger", ["a", "b", "p", "q"], {})],
                                  {"a": int8(2, 3, 4), "b": int8(4, 5), "p": np.array(3, np.int8), "q": int8(5)}),
    "QLinearMatMul of a batch": ([("QLinearMatMul", ["a", "s", "p", "b", "s", "p", "t", "p"], {})],
                                 {"a": int8(2, 3, 4), "b": int8(4, 5), "s": np.array(0.02, np.float32), "p": np.array(1, np.int8), "t": np.array(0.1, np.float32)}),
    "MatMul of i64": ([("MatMul", ["a", "b"], {})], {"a": draw.integers(-2**40, 2**40, (2, 3, 4)), "b": draw.integers(-1000, 1000, (4, 5))}),
    "MatMul of i32": ([("MatMul", ["a", "b"], {})], {"a": draw.integers(-90, 90, (3, 4)).astype(np.int32), "b": draw.integers(-90, 90, (4,)).astype(np.int32)}),
    "Resize of bytes": ([("Resize", ["x", "", "", "sizes"], {"mode": "linear", "antialias": 1, "axes": [2, 3]})],
                        {"x": draw.integers(0, 256, (1, 3, 40, 50)).astype(np.uint8)}, {"sizes": np.int64([24, 30])}),
    "Resize of bytes by cubes": ([("Resize", ["x", "", "", "sizes"], {"mode": "cubic", "antialias": 1, "axes": [2, 3]})],
                                 {"x": (draw.integers(0, 2, (1, 3, 40, 50)) * 255).astype(np.uint8)}, {"sizes": np.int64([24, 30])}),
    "300 pieces": ([("Split", ["x"], {"axis": 0, "num_outputs": 300}), *[("Neg" if i % 2 else "Exp", [f"p{i}"], {}) for i in range(300)],
                    ("Concat", [f"q{i}" for i in range(300)], {"axis": 0})], {"x": draw.normal(0, 1, (300, 4)).astype(np.float32)}),
    "ReduceMean of i64": ([("ReduceMean", ["x"], {"keepdims": 0})], {"x": np.int64([-7, 2, -3, 1])}),
    "ReduceL2 of i32": ([("ReduceL2", ["x", "axes"], {"keepdims": 0})], {"x": draw.integers(-90, 90, (3, 4)).astype(np.int32)}, {"axes": np.int64([1])}),
    **{f"GridSample by cubes, {outside}": ([("GridSample", ["x", "at"], {"mode": "bicubic", "padding_mode": outside})],
                                           {"x": draw.normal(0, 1, (2, 3, 5, 6)).astype(np.float32), "at": draw.uniform(-1.8, 1.8, (2, 4, 7, 2)).astype(np.float32)})
       for outside in ("zeros", "border", "reflection")},
    "Nothing to resize": ([("Resize", ["x", "", "scales"], {"mode": "linear"})], {"x": np.zeros((0, 3, 4, 5), np.float32)}, {"scales": np.float32([1, 1, 2, 2])}),
    # A third is none in f32, and 0.7 of 20 would be 13.
    **{f"{mode} by {scale:.2f}": ([("Resize", ["x", "", "scales"], {"mode": mode, "coordinate_transformation_mode": places, "nearest_mode": "floor"})],
                                  {"x": draw.normal(0, 1, (1, 2, 18, 20)).astype(np.float32)}, {"scales": np.float32([1, 1, scale, scale])})
       for mode, places in (("nearest", "asymmetric"), ("linear", "half_pixel")) for scale in (1 / 3, 0.7, 0.9, 1.4)},
    "linear, of infinity": ([("Resize", ["x", "", "scales"], {"mode": "linear"}), ("Clip", ["q-1", "least"], {})],
                            {"x": np.float32([[[-np.inf, 1, 2, 3, 4, 5]]])}, {"scales": np.float32([1, 1, 3]), "least": np.float32(-9)}),
    "linear, corners aligned": ([("Resize", ["x", "", "scales"], {"mode": "linear", "coordinate_transformation_mode": "align_corners"})],
                                {"x": draw.normal(0, 1, (1, 2, 5, 7)).astype(np.float32)}, {"scales": np.float32([1, 1, 1.5, 0.7])}),
    "a maximum of two windows": ([("MaxUnpool", ["x", "at"], {"kernel_shape": [3], "strides": [2]})],
                                 {"x": np.float32([[[5, 5]]]), "at": np.int64([[[2, 2]]])}),
    "an odd number of places is cut off": ([("ConvTranspose", ["x", "w"], {"strides": [2], "output_shape": [9]})],
                                           {"x": draw.normal(0, 1, (1, 2, 4)).astype(np.float32)}, {"w": draw.normal(0, 1, (2, 3, 4)).astype(np.float32)}),
    "nearest to 112": ([("Resize", ["x", "", "", "sizes"], {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"})],
                       {"x": draw.normal(0, 1, (1, 2, 48, 3)).astype(np.float32)}, {"sizes": np.int64([1, 2, 112, 3])}),
    "past of no tokens": ([("Concat", ["a", "b"], {"axis": 1})], {"a": np.zeros((1, 0, 3), np.float32), "b": np.ones((1, 2, 3), np.float32)}),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_onnx_runtime(millrace, tmp_path, name):
    steps, inputs, *constants = CASES[name]
    nodes = []
    for i, (op, operands, attributes) in enumerate(steps):
        outputs = ["y"] if i == len(steps) - 1 else [f"p{k}" for k in range(300)] if op == "Split" else [f"q{i - 1}"]
        nodes.append(helper.make_node(op, operands, outputs, **attributes))
    path = tmp_path / "odd.onnx"
    first = next(iter(inputs.values()))
    of_y = {"MatMulInteger": 6, "QLinearMatMul": 3}.get(steps[-1][0], TYPES[first.dtype])
    model_of(path, nodes, inputs, (of_y, None), *constants)
    expected = onnxruntime.InferenceSession(path).run(None, inputs)[0]
    model_of(path, nodes, inputs, (of_y, expected.shape), *constants)
    np.savez(tmp_path / "in.npz", **inputs)
    [row] = [json.loads(line) for line in millrace("predict", path, tmp_path / "in.npz", "--json").stdout.splitlines()]
    found = np.array(row["y"]).reshape(expected.shape)
    if name.startswith("Resize"):  # at .5 sums in other steps are rounded to the other side
        assert np.abs(found.astype(int) - expected).max() <= 1 and (found != expected).mean() < 0.1
    elif expected.dtype == np.float32:
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-5 if name.startswith(("GridSample", "linear")) else 1e-6)
    else:
        assert (found == expected).all()


def test_random_numbers_are_those_of_their_law_and_the_same_in_each_run(millrace, tmp_path):
    def told(op, x=None, dtype=np.float32, **attributes):
        x = np.zeros((4, 25000), np.float32) if x is None else x
        nodes = [helper.make_node(op, ["x"] if op == "Bernoulli" or op.endswith("Like") else [], ["r"], **attributes),
                 helper.make_node("Identity", ["x"], ["same"]), helper.make_node("Identity", ["r"], ["y"])]
        model_of(tmp_path / "r.onnx", nodes, {"x": x}, (TYPES[np.dtype(dtype)], list(x.shape)))
        np.save(tmp_path / "x.npy", x)
        runs = [json.loads(millrace("predict", tmp_path / "r.onnx", tmp_path / "x.npy", "--json").stdout)["y"] for _ in range(2)]
        assert runs[0] == runs[1]
        return np.reshape(runs[0], x.shape)

    normal, other = told("RandomNormalLike", mean=2.0, scale=3.0), told("RandomNormal", shape=[4, 25000], seed=5.0)
    assert abs(normal.mean() - 2) < 0.06 and abs(normal.std() - 3) < 0.06 and abs(other.mean()) < 0.02
    assert abs(np.corrcoef(normal.ravel(), other.ravel())[0, 1]) < 0.02
    even = told("RandomUniformLike", low=-1.0, high=3.0)
    assert -1 <= even.min() < -0.99 and 2.99 < even.max() <= 3 and abs(even.mean() - 1) < 0.03
    chances = np.tile(np.float32([0, 0.25, 0.5, 1]), (25000, 1)).T
    hits = told("Bernoulli", chances)
    assert set(np.unique(hits)) == {0, 1} and np.abs(hits.mean(1) - chances[:, 0]).max() < 0.015


def test_norms_of_several_results_go_by_the_batch_before_opset_14(millrace, tmp_path):
    # As torch writes standardised weights at opset 11.
    x = draw.normal(2, 3, (4, 3, 5, 6)).astype(np.float32)
    constants = {"s": np.float32([1, 2, 3]), "b": np.float32([0, 1, 2]), "m": np.float32([0, 0, 0]), "v": np.float32([1, 1, 1])}
    node = helper.make_node("BatchNormalization", ["x", *constants], ["y", "m1", "v1", "m2", "v2"], epsilon=1e-3)
    model_of(tmp_path / "norm.onnx", [node], {"x": x}, (1, x.shape), constants, opset=11)
    expected = onnxruntime.InferenceSession(tmp_path / "norm.onnx").run(None, {"x": x})[0]
    np.save(tmp_path / "x.npy", x)
    told = json.loads(millrace("predict", tmp_path / "norm.onnx", tmp_path / "x.npy", "--json").stdout)
    np.testing.assert_allclose(np.reshape(told["y"], x.shape), expected, rtol=1e-4, atol=1e-5)
    assert abs(expected[:, 0].mean()) < 1e-5


def test_nodes_of_a_function_have_the_attributes_of_its_call(millrace, tmp_path):
    def refers(node, name, to, kind):
        node.attribute.append(onnx.AttributeProto(name=name, ref_attr_name=to, type=kind))
        return node

    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    leaky = refers(helper.make_node("LeakyRelu", ["a"], ["b"]), "alpha", "slope", onnx.AttributeProto.FLOAT)
    inner = helper.make_function("own", "Bent", ["a"], ["b"], [leaky], opsets[:1], ["slope"])
    call = refers(helper.make_node("Bent", ["c"], ["d"], domain="own"), "slope", "steep", onnx.AttributeProto.FLOAT)
    outer = helper.make_function("own", "Twice", ["c"], ["e"], [call, helper.make_node("Add", ["d", "d"], ["e"])], opsets, ["steep"])
    nodes = [helper.make_node("Bent", ["x"], ["p"], domain="own", slope=0.5), helper.make_node("Twice", ["p"], ["q"], domain="own", steep=0.25),
             helper.make_node("Bent", ["q"], ["y"], domain="own")]  # with the operator's own slope
    x = draw.normal(0, 1, (3, 4)).astype(np.float32)
    values = [helper.make_tensor_value_info(name, 1, x.shape) for name in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "calls", values[:1], values[1:]), opset_imports=opsets, ir_version=8, functions=[inner, outer])
    onnx.save(model, tmp_path / "calls.onnx")
    np.save(tmp_path / "x.npy", x)
    told = json.loads(millrace("predict", tmp_path / "calls.onnx", tmp_path / "x.npy", "--json").stdout)
    expected = onnxruntime.InferenceSession(tmp_path / "calls.onnx").run(None, {"x": x})[0]
    np.testing.assert_allclose(expected, np.where(x < 0, x * 0.5 * 0.25 * 2 * 0.01, 2 * x), rtol=1e-5)
    np.testing.assert_allclose(np.reshape(told["y"], x.shape), expected, rtol=1e-5)


def test_sums_of_products_of_bytes_are_exact(millrace, tmp_path):
    # Larger than f32 holds; ONNX Runtime's differ where a CPU adds up pairs in 16 bits.
    a, b = (255 - draw.integers(0, 3, (2, 3, 1000))).astype(np.uint8), (draw.integers(0, 4, (1000, 7)) - 128).astype(np.int8)
    points = {"p": np.array(0, np.uint8), "q": np.array(127, np.int8)}
    model_of(tmp_path / "m.onnx", [helper.make_node("MatMulInteger", ["a", "b", "p", "q"], ["y"])], {"a": a}, (6, [2, 3, 7]), {"b": b, **points})
    np.savez(tmp_path / "a.npz", a=a)
    told = json.loads(millrace("predict", tmp_path / "m.onnx", tmp_path / "a.npz", "--json").stdout)
    expected = a.astype(np.int64) @ (b.astype(np.int64) - 127)
    assert np.abs(expected).max() > 2**25 and (np.reshape(told["y"], expected.shape) == expected).all()


def test_whole_numbers_arrive_and_are_told_as_they_are(millrace, tmp_path):
    model_of(tmp_path / "i64.onnx", [helper.make_node("Identity", ["x"], ["y"])], {"x": np.zeros(3, np.int64)}, (7, [3]))
    told = json.loads(millrace("predict", tmp_path / "i64.onnx", "[9007199254740993, -1, 9223372036854775807]", "--json").stdout)
    assert told["y"] == [9007199254740993, -1, 9223372036854775807]
    model_of(tmp_path / "u64.onnx", [helper.make_node("Sub", ["zero", "x"], ["y"])], {"x": np.zeros(2, np.uint64)}, (13, [2]), {"zero": np.zeros(2, np.uint64)})
    assert millrace("predict", tmp_path / "u64.onnx", "[1, 2]").stdout.split()[-2:] == [str(2**64 - 1), str(2**64 - 2)]
    assert json.loads(millrace("predict", tmp_path / "u64.onnx", "[1, 2]", "--json").stdout)["y"] == [2**64 - 1, 2**64 - 2]
    said = millrace("predict", tmp_path / "u64.onnx", "[1, 2]", "-o", tmp_path / "y.csv", code=None)
    assert said.returncode != 0 and "more than 2^63 - 1" in said.stdout + said.stderr
    # A list in brackets is one argument, and so is a file that is called so.
    (tmp_path / "[ab]").write_text("[4, 5, 6]")
    assert millrace("predict", "i64.onnx", "[1,2,3]", "[ab]", cwd=tmp_path).stdout.split()[-3:] == ["4", "5", "6"]


def test_names_of_results_are_as_many_as_these(millrace, tmp_path):
    model_of(tmp_path / "m.onnx", [helper.make_node("Identity", ["x"], ["y"])], {"x": np.zeros((1, 3), np.float32)}, (1, [1, 3]))
    (tmp_path / "labels.txt").write_text("background\ncat\ndog\nowl\n")
    said = millrace("predict", "m.onnx", "[[1,2,3]]", "--labels", "labels.txt", cwd=tmp_path, code=1).stderr
    assert "--labels: 4 names, and 'y' is a row of 3 numbers" in said
    (tmp_path / "labels.txt").write_text("cat\ndog\nowl\n")
    assert "owl" in millrace("predict", "m.onnx", "[[1,2,3]]", "--labels", "labels.txt", cwd=tmp_path).stdout


def test_what_a_file_says_of_its_outputs(millrace, tmp_path):
    """A shape that is not said is found; a type that is wrong is an error."""
    node = helper.make_node("Mul", ["x", "x"], ["y"])
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", 1, ["n", 3])], [helper.make_tensor_value_info("y", 1, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), tmp_path / "m.onnx")
    assert "f32[n, 3]" in millrace("inspect", "m.onnx", cwd=tmp_path).stdout.split("y", 1)[1]
    millrace("predict", "m.onnx", "[[1,2,3],[4,5,6]]", "-o", "y.csv", cwd=tmp_path)
    assert len((tmp_path / "y.csv").read_text().splitlines()) == 3
    graph.output[0].type.tensor_type.elem_type = 7
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), tmp_path / "m.onnx")
    assert "its output 'y' is of f32, and the file says i64" in millrace("predict", "m.onnx", "[[1,2,3]]", cwd=tmp_path, code=1).stderr


def test_building_loses_no_file(millrace, tmp_path):
    model_of(tmp_path / "m.onnx", [helper.make_node("Identity", ["x"], ["y"])], {"x": np.zeros((1, 3), np.float32)}, (1, [1, 3]))
    before = (tmp_path / "m.onnx").read_bytes()
    assert "is the model itself" in millrace("build", "m.onnx", "-o", "m.onnx", cwd=tmp_path, code=1).stderr
    (tmp_path / "notes.txt").write_text("mine")
    assert "--force replaces it" in millrace("build", "m.onnx", "-o", "notes.txt", cwd=tmp_path, code=1).stderr
    assert (tmp_path / "m.onnx").read_bytes() == before and (tmp_path / "notes.txt").read_text() == "mine"
    for _ in range(2):  # one of its own it replaces
        millrace("build", "m.onnx", "-o", "m.mill", cwd=tmp_path)
    millrace("build", "m.onnx", "-o", "notes.txt", "--force", cwd=tmp_path)
