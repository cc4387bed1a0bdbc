"""Models whose results are as large as the data say: detectors, choices, places, loops that carry what grows;
as .onnx and built (.mill)."""

import json

import numpy as np
import pytest
from test_predict_model import node, save

onnx = pytest.importorskip("onnx")
F, I, B = 1, 7, 9


def number(value, kind=np.int64):
    return np.array(value, kind)


@pytest.fixture
def answers(millrace, tmp_path):
    """What a model says of arrays, read as it is and built for one size, which must agree."""

    def run(path, cases, build=True):
        models = [path]
        if build:
            millrace("build", path, "-o", tmp_path / "built.mill")
            models.append(tmp_path / "built.mill")
        said = []
        for number_, arrays in enumerate(cases):
            np.savez(tmp_path / f"{number_}.npz", **arrays)
            both = [json.loads(millrace("predict", model, tmp_path / f"{number_}.npz", "--json").stdout) for model in models]
            for one in both:
                one.pop("input")
            assert all(one == both[0] for one in both)
            said.append(both[0])
        return said

    return run


def kept(boxes, scores, most, share, least):
    """Non-max suppression of one class, as ONNX says it."""
    area = lambda b: (b[2] - b[0]) * (b[3] - b[1])
    chosen = []
    for i in np.argsort(-scores, kind="stable"):
        if len(chosen) == most or scores[i] <= least:
            break
        shared = lambda j: np.prod(np.maximum(np.minimum(boxes[i][2:], boxes[j][2:]) - np.maximum(boxes[i][:2], boxes[j][:2]), 0))
        if all(shared(j) / (area(boxes[i]) + area(boxes[j]) - shared(j)) <= share for j in chosen):
            chosen.append(i)
    return chosen


def test_a_detector_gives_the_boxes_that_it_found(answers, millrace, tmp_path):
    nodes = [
        node("NonMaxSuppression", ["boxes", "scores", "most", "share", "least"], ["found"]),
        node("Gather", ["found", "where"], ["places"], axis=1),
        node("GatherND", ["boxes", "places"], ["box"]),
        node("GatherND", ["scores", "found"], ["score"]),
        node("Slice", ["found", "zero", "two", "one"], ["what"]),
        node("Cast", ["what"], ["numbers"], to=F),
        node("Unsqueeze", ["score", "one"], ["column"]),
        node("Concat", ["numbers", "box", "column"], ["boxes_found"], axis=1),
        node("Shape", ["boxes_found"], ["shape"]),
        node("Gather", ["shape", "first"], ["count"]),
    ]
    constants = {"most": [6], "share": [0.4], "least": [0.3], "where": [0, 2], "zero": [0], "one": [1], "two": [2], "first": 0}
    save(
        tmp_path / "detector.onnx",
        nodes,
        [("boxes", F, ["batch", "n", 4]), ("scores", F, ["batch", 2, "n"])],
        [("boxes_found", F, ["found", 7]), ("count", I, [])],
        [(name, number(value, np.float32 if name in ("share", "least") else np.int64)) for name, value in constants.items()],
    )
    told = millrace("inspect", tmp_path / "detector.onnx", "--sizes", "n=9").stdout
    assert "output boxes_found: f32[found, 7]; its size along axis 0 depends on data\noutput count: i64[]\n" in told
    random = np.random.default_rng(4)
    cases = []
    for batch, n in ((1, 1), (1, 9), (3, 20)):
        corner, size = random.random((batch, n, 2)) * 8, random.random((batch, n, 2)) * 4 + 1
        cases.append({"boxes": np.concatenate([corner, corner + size], -1).astype(np.float32), "scores": random.random((batch, 2, n)).astype(np.float32)})
    cases.append({name: array * (name != "scores") for name, array in cases[0].items()})  # nothing is found
    for case, said in zip(cases, answers(tmp_path / "detector.onnx", cases)):
        rows = [
            [b, c, *case["boxes"][b, i], case["scores"][b, c, i]]
            for b in range(len(case["boxes"]))
            for c in range(2)
            for i in kept(case["boxes"][b], case["scores"][b, c], 6, 0.4, 0.3)
        ]
        assert said["count"] == len(rows)
        assert np.allclose(np.reshape(said["boxes_found"], (-1, 7)), np.reshape(rows, (-1, 7)), atol=1e-5)


def test_boxes_and_different_values_may_be_many(answers, tmp_path):
    # As many as detectors of large pictures give: pairs of all with all would be 3e8.
    random = np.random.default_rng(8)
    corner, size = random.random((1, 17000, 2)) * 600, random.random((1, 17000, 2)) * 60 + 5
    case = {"boxes": np.concatenate([corner, corner + size], -1).astype(np.float32), "scores": random.random((1, 1, 17000)).astype(np.float32)}
    constants = [("most", number([300])), ("share", number([0.3], np.float32)), ("least", number([0.97], np.float32))]
    boxes = [node("NonMaxSuppression", ["boxes", "scores", "most", "share", "least"], ["found"])]
    save(tmp_path / "boxes.onnx", boxes, [("boxes", F, [1, "n", 4]), ("scores", F, [1, 1, "n"])], [("found", I, ["k", 3])], constants)
    [said] = answers(tmp_path / "boxes.onnx", [case], build=False)
    assert said["found"] == [[0, 0, i] for i in kept(case["boxes"][0], case["scores"][0, 0], 300, 0.3, 0.97)]
    save(tmp_path / "unique.onnx", [node("Unique", ["x"], ["y", "", "which"])], [("x", I, ["n"])], [("y", I, ["k"]), ("which", I, ["n"])])
    # As many as an input says.
    save(tmp_path / "open.onnx", boxes, [("boxes", F, [1, "n", 4]), ("scores", F, [1, 1, "n"]), ("most", I, [1])], [("found", I, ["k", 3])], constants[1:])
    [few] = answers(tmp_path / "open.onnx", [{**case, "most": number([7])}], build=False)
    assert few["found"] == said["found"][:7]
    x = random.integers(-9000, 9000, 20000)
    [said] = answers(tmp_path / "unique.onnx", [{"x": x}], build=False)
    assert said["y"] == np.unique(x).tolist() and np.array_equal(np.array(said["y"])[said["which"]], x)


def test_as_many_samples_as_are_found_are_resized_and_looked_up(answers, millrace, tmp_path):
    nodes = [
        node("Greater", ["s", "limit"], ["m"]),
        node("Compress", ["x", "m"], ["a"], axis=0),
        node("Resize", ["a", "", "scales"], ["y"], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
        node("Compress", ["points", "m"], ["p"], axis=0),
        node("Unsqueeze", ["p", "first"], ["grid"]),
        node("GridSample", ["picture", "grid"], ["z"], align_corners=1),
    ]
    constants = [("limit", number(0.5, np.float32)), ("scales", number([1, 1, 2, 2], np.float32)), ("first", number([0, 1]))]
    save(tmp_path / "m.onnx", nodes, [("x", F, ["n", 1, 2, 3]), ("s", F, ["n"]), ("points", F, ["n", 2]), ("picture", F, [1, 2, 3, 3])],
         [("y", F, ["k", 1, 4, 6]), ("z", F, [1, 2, 1, "k"])], constants)
    random = np.random.default_rng(9)
    picture = random.standard_normal((1, 2, 3, 3)).astype(np.float32)
    for n in (1, 6, 11):
        case = {"x": random.standard_normal((n, 1, 2, 3)).astype(np.float32), "s": random.random(n).astype(np.float32),
                "points": random.integers(-1, 2, (n, 2)).astype(np.float32), "picture": picture}
        [said] = answers(tmp_path / "m.onnx", [case], build=n == 6)
        chosen = case["s"] > 0.5
        at = (case["points"][chosen] + 1).astype(int)
        assert np.allclose(np.reshape(said["y"], (-1, 1, 4, 6)), case["x"][chosen].repeat(2, 2).repeat(2, 3))
        assert np.allclose(np.reshape(said["z"], (1, 2, 1, -1)), picture[:, :, at[:, 1], at[:, 0]][:, :, None], atol=1e-5)
    # Samples are no pixels: their number is not resized.
    nodes[2] = node("Resize", ["a", "", "", "sizes"], ["y"], mode="nearest")
    sizes = [("limit", constants[0][1]), ("sizes", number([1, 1, 4, 6]))]
    save(tmp_path / "fixed.onnx", nodes[:3], [("x", F, ["n", 1, 2, 3]), ("s", F, ["n"])], [("y", F, ["k", 1, 4, 6])], sizes)
    np.savez(tmp_path / "x.npz", x=case["x"], s=case["s"])
    assert "(Resize)" in millrace("predict", tmp_path / "fixed.onnx", tmp_path / "x.npz", code=1).stderr


def test_what_was_found_is_filled_up_to_a_fixed_number(answers, tmp_path):
    # As detectors of TensorFlow end: pads of 20 - n.
    nodes = [
        node("Greater", ["s", "limit"], ["m"]),
        node("Compress", ["x", "m"], ["a"], axis=0),
        node("Shape", ["a"], ["shape"]),
        node("Slice", ["shape", "zero", "one"], ["n"]),
        node("Sub", ["twenty", "n"], ["rest"]),
        node("Concat", ["zero", "zero", "rest", "zero"], ["pads"], axis=0),
        node("Pad", ["a", "pads"], ["y"]),
        node("Concat", ["rest", "three"], ["more"], axis=0),
        node("ConstantOfShape", ["more"], ["none"]),
        node("Concat", ["a", "none"], ["z"], axis=0),
    ]
    constants = [("limit", number(0.5, np.float32)), ("zero", number([0])), ("one", number([1])), ("twenty", number([20])), ("three", number([3]))]
    save(tmp_path / "m.onnx", nodes, [("x", F, ["n", 3]), ("s", F, ["n"])], [("y", F, ["k", 3]), ("z", F, ["l", 3]), ("none", F, ["r", 3])], constants)
    random = np.random.default_rng(10)
    cases = [{"x": random.standard_normal((n, 3)).astype(np.float32), "s": random.random(n).astype(np.float32)} for n in (1, 7, 20)]
    for case, said in zip(cases, answers(tmp_path / "m.onnx", cases, build=False)):
        a = case["x"][case["s"] > 0.5]
        wanted = np.concatenate([a, np.zeros((20 - len(a), 3))])
        for name in ("y", "z"):
            assert np.shape(said[name]) == (20, 3) and np.allclose(said[name], wanted, atol=1e-5)
        assert np.shape(said["none"]) == (20 - len(a), 3)


def test_what_is_chosen_is_computed_with(answers, tmp_path):
    nodes = [
        node("Greater", ["s", "limit"], ["m"]),
        node("Not", ["m"], ["other"]),
        node("Compress", ["x", "m"], ["a"], axis=0),
        node("Compress", ["x", "other"], ["b"], axis=0),
        node("Neg", ["b"], ["nb"]),
        node("Concat", ["a", "nb"], ["sorted"], axis=0),
        node("MatMul", ["a", "w"], ["product"]),
        node("ReduceSum", ["a", "axis"], ["sum"], keepdims=0),
        node("ReduceMax", ["a"], ["most"], keepdims=0, axes=[0]),
        node("ReduceMean", ["a"], ["mean"], keepdims=0, axes=[0]),
        node("Softmax", ["product"], ["share"], axis=0),
        node("Slice", ["a", "from", "to"], ["last"]),
        node("Reshape", ["a", "flat"], ["line"]),
        node("Tile", ["a", "by"], ["twice"]),
        node("Shape", ["a"], ["shape"]),
        node("Gather", ["shape", "first"], ["k"]),
        node("Range", ["first", "k", "step"], ["places"]),
    ]
    constants = [("limit", number(0.5, np.float32)), ("w", np.arange(12, dtype=np.float32).reshape(4, 3) / 10), ("axis", number([0]))]
    constants += [("from", number([-2])), ("to", number([2**60])), ("flat", number([-1])), ("first", number(0)), ("step", number(1)), ("by", number([1, 2]))]
    names = ["sorted", "product", "sum", "most", "mean", "share", "last", "line", "twice"]
    outputs = [(name, F, None) for name in names] + [("places", I, None)]
    save(tmp_path / "chosen.onnx", nodes, [("x", F, ["n", 4]), ("s", F, ["n"])], outputs, constants)
    random = np.random.default_rng(5)
    cases = [{"x": random.standard_normal((n, 4)).astype(np.float32), "s": np.linspace(1, 0.2, n).astype(np.float32)} for n in (1, 2, 7, 40)]
    for case, said in zip(cases, answers(tmp_path / "chosen.onnx", cases)):
        a, b = case["x"][case["s"] > 0.5], case["x"][case["s"] <= 0.5]
        product = a @ constants[1][1]
        e = np.exp(product - product.max(0))
        wanted = [np.concatenate([a, -b]), product, a.sum(0), a.max(0), a.mean(0), e / e.sum(0), a[-2:], a.ravel(), np.tile(a, 2), np.arange(len(a))]
        for name, value in zip([*names, "places"], wanted):
            assert np.shape(said[name]) == value.shape and np.allclose(said[name], value, atol=1e-5), name


def test_places_and_unique_values(answers, tmp_path):
    nodes = [
        node("NonZero", ["x"], ["places"]),
        node("Transpose", ["places"], ["rows"]),
        node("GatherND", ["x", "rows"], ["values"]),
        node("Unique", ["values"], ["different", "firsts", "which", "counts"], sorted=1),
    ]
    outputs = [(name, I, None) for name in ("places", "values", "different", "firsts", "which", "counts")]
    save(tmp_path / "places.onnx", nodes, [("x", I, ["batch", 5])], outputs)
    random = np.random.default_rng(6)
    cases = [{"x": random.integers(0, 4, (batch, 5))} for batch in (1, 3, 12)]
    for case, said in zip(cases, answers(tmp_path / "places.onnx", cases)):
        x = case["x"]
        different = np.unique(x[x != 0], return_index=True, return_inverse=True, return_counts=True)
        for name, value in zip(said, [np.array(np.nonzero(x)), x[x != 0], *different]):
            assert np.array_equal(said[name], value), name


def test_regions_are_gathered_by_level_as_torchvision_writes_it(answers, tmp_path):
    # expand() to sizes of which none is −1; results are put at the places where their level was found.
    nodes = [
        node("NonZero", ["s"], ["nonzero"]),
        node("Reshape", ["nonzero", "flat"], ["kept"]),
        node("Gather", ["s", "kept"], ["found"], axis=0),
        node("Shape", ["found"], ["count"]),
        node("Concat", ["count", "three"], ["sizes"], axis=0),
        node("ConstantOfShape", ["sizes"], ["r0"]),
    ]
    for level, op in enumerate(("Greater", "LessOrEqual")):
        own = lambda name: f"{name}{level}"
        nodes += [
            node(op, ["found", "limit"], [own("here")]),
            node("NonZero", [own("here")], [own("nonzero")]),
            node("Reshape", [own("nonzero"), "flat"], [own("at")]),
            node("Gather", ["found", own("at")], [own("value")], axis=0),
            node("Shape", [own("at")], [own("size")]),
            node("Concat", [own("size"), "three"], [own("sizes")], axis=0),
            node("Equal", [own("sizes"), "minus"], [own("as_it_is")]),
            node("Where", [own("as_it_is"), "ones", own("sizes")], [own("to")]),
            node("Unsqueeze", [own("value"), "one"], [own("column")]),
            node("Expand", [own("column"), own("to")], [own("rows")]),
            node("Sub", [own("at"), "count"], [own("from_end")]),
            node("Unsqueeze", [own("from_end") if level else own("at"), "one"], [own("places")]),
            node("Expand", [own("places"), own("to")], [own("indices")]),
            node("ScatterElements", [f"r{level}", own("indices"), own("rows")], [f"r{level + 1}"], axis=0),
        ]
    nodes += [node("ScatterND", ["r2", "minus_column", "nines"], ["y"]), node("Equal", ["count", "two"], ["are_two"]),
              node("Equal", ["count", "below"], ["never"])]
    constants = {"two": [2], "below": -3, "flat": [-1], "three": [3], "one": [1], "minus": [-1, -1], "ones": [1, 1], "minus_column": [[-1]]}
    save(
        tmp_path / "levels.onnx", nodes, [("s", F, ["n"])], [("r2", F, ["found", 3]), ("y", F, ["found", 3]), ("are_two", B, [1]), ("never", B, [1])],
        [(name, number(value)) for name, value in constants.items()] + [("limit", number(0.5, np.float32)), ("nines", np.full((1, 3), 9, np.float32))],
    )
    cases = [{"s": np.array(s, np.float32)} for s in ([1], [0, 0.2, 0, 0.9, 0.7, 0], [0, 0.1, 0.3, 0.2], [0.6] * 9, [0.1, 0.8])]
    for case, said in zip(cases, answers(tmp_path / "levels.onnx", cases)):
        found = np.repeat(case["s"][case["s"] != 0][:, None], 3, 1)
        assert np.array_equal(np.array(said["r2"], np.float32), found) and said["are_two"] == [len(found) == 2] and said["never"] == [False]
        found[-1] = 9
        assert np.array_equal(np.array(said["y"], np.float32), found)


def test_a_loop_carries_what_grows_until_it_ends(answers, tmp_path):
    helper = onnx.helper
    body = helper.make_graph(
        [
            node("Gather", ["ids", "last"], ["before"], axis=1),
            node("Gather", ["table", "before"], ["next"], axis=0),
            node("Concat", ["ids", "next"], ["longer"], axis=1),
            node("ReduceMax", ["next"], ["largest"], keepdims=0),
            node("Greater", ["largest", "zero"], ["goes_on"]),
        ],
        "body",
        [helper.make_tensor_value_info("step", I, []), helper.make_tensor_value_info("go", B, []), helper.make_tensor_value_info("ids", I, None)],
        [helper.make_tensor_value_info("goes_on", B, []), helper.make_tensor_value_info("longer", I, None)],
    )
    table = number([0, 0, 1, 2, 3, 4, 5, 6, 7, 8])
    constants = [("most", number(5)), ("yes", number(True, bool)), ("last", number([-1])), ("table", table), ("zero", number(0))]
    loop = node("Loop", ["most", "yes", "prompt"], ["text"], body=body)
    save(tmp_path / "grows.onnx", [loop], [("prompt", I, ["batch", "length"])], [("text", I, None)], constants)
    cases = [{"prompt": number(prompt)} for prompt in ([[1]], [[7, 3]], [[4, 9, 9]], [[3], [2]])]
    for case, said in zip(cases, answers(tmp_path / "grows.onnx", cases)):
        text = case["prompt"]
        for _ in range(5):
            text = np.concatenate([text, table[text[:, -1:]]], 1)
            if text[:, -1].max() == 0:
                break
        assert np.array_equal(said["text"], text)


def test_what_is_short_is_padded_by_what_is_known_when_it_runs(answers, tmp_path):
    nodes = [
        node("Greater", ["x", "limit"], ["m"]),
        node("Compress", ["x", "m"], ["a"], axis=0),
        node("Shape", ["a"], ["k"]),
        node("Concat", ["k", "two"], ["pads"], axis=0),
        node("Pad", ["x", "pads", "nine"], ["y"]),
    ]
    constants = [("limit", number(0, np.float32)), ("two", number([2])), ("nine", number(9, np.float32))]
    save(tmp_path / "padded.onnx", nodes, [("x", F, ["n"])], [("y", F, None)], constants)
    cases = [{"x": np.array(x, np.float32)} for x in ([-1], [1, -1, 2], [3])]
    for case, said in zip(cases, answers(tmp_path / "padded.onnx", cases)):
        assert said["y"] == [9] * int((case["x"] > 0).sum()) + case["x"].tolist() + [9, 9]


def test_backwards_from_before_the_first_place_is_from_the_first(answers, tmp_path):
    # As the standard says; numpy gives nothing.
    nodes = [node("Slice", ["x", "from", "to", "axis", "back"], ["y"]), node("Compress", ["x", "m"], ["a"], axis=0), node("Slice", ["a", "from", "to", "axis", "back"], ["z"])]
    constants = [("from", number([-9])), ("to", number([-20])), ("axis", number([0])), ("back", number([-1]))]
    save(tmp_path / "back.onnx", nodes, [("x", F, ["n"]), ("m", B, ["n"])], [("y", F, None), ("z", F, None)], constants)
    x = np.arange(3, dtype=np.float32) + 5
    said = answers(tmp_path / "back.onnx", [{"x": x, "m": np.array(m, bool)} for m in ([0, 1, 1], [0, 0, 0])], build=False)
    assert [(one["y"], one["z"]) for one in said] == [([5], [6]), ([5], [])]


def test_a_result_ends_or_begins_at_a_place_that_is_computed(answers, tmp_path):
    mask = [node("Greater", ["x", "limit"], ["m"]), node("Cast", ["m"], ["ones"], to=I), node("ReduceSum", ["ones", "zero"], ["place"], keepdims=1)]
    most = [node("ArgMax", ["x"], ["place"], axis=0, keepdims=1)]
    constants = [("limit", number(0, np.float32)), ("zero", number([0])), ("all", number([2**60]))]
    cases = [{"x": np.array(x, np.float32)} for x in ([3, -1, 2, 5], [-1], [1, 1])]
    for name, nodes, place in (("count", mask, lambda x: (x > 0).sum()), ("most", most, np.argmax)):
        for size in ("n", 4):
            ends = [node("Slice", ["x", "zero", "place"], ["first"]), node("Slice", ["x", "place", "all"], ["rest"]), node("Neg", ["rest"], ["less"])]
            used = {operand for each in [*nodes, *ends] for operand in each.input}
            path = save(tmp_path / f"{name}.onnx", [*nodes, *ends], [("x", F, [size])], [("first", F, ["k"]), ("less", F, None)], [each for each in constants if each[0] in used])
            own = cases if size == "n" else cases[:1]
            for case, said in zip(own, answers(path, own)):
                at, x = place(case["x"]), case["x"].tolist()
                assert (said["first"], said["less"]) == (x[:at], [-each for each in x[at:]])


def test_what_a_mask_says_is_replaced_as_torch_writes_it(answers, tmp_path):
    # x[x < 0] = 7, whose values are as many as the mask has ones.
    nodes = [
        node("Less", ["x", "limit"], ["m"]),
        node("NonZero", ["m"], ["found"]),
        node("Transpose", ["found"], ["places"]),
        node("Reshape", ["m", "flat"], ["line"]),
        node("Cast", ["line"], ["ones"], to=I),
        node("ReduceSum", ["ones"], ["count"], keepdims=1),
        node("Expand", ["seven", "count"], ["values"]),
        node("ScatterND", ["x", "places", "values"], ["y"]),
    ]
    constants = [("limit", number(0, np.float32)), ("flat", number([-1])), ("seven", number(7, np.float32))]
    save(tmp_path / "replaced.onnx", nodes, [("x", F, [4, 3])], [("y", F, [4, 3])], constants)
    cases = [{"x": np.random.default_rng(seed).standard_normal((4, 3)).astype(np.float32)} for seed in (4, 1)]
    for case, said in zip(cases, answers(tmp_path / "replaced.onnx", cases)):
        assert np.array_equal(np.array(said["y"], np.float32), np.where(case["x"] < 0, 7, case["x"]))


def test_an_open_dimension_may_be_one_that_only_some_sizes_fit(answers, millrace, tmp_path):
    chosen = [node("ReduceMean", ["y"], ["mean"], keepdims=0, axes=[1]), node("Greater", ["mean", "limit"], ["m"]), node("Compress", ["y", "m"], ["z"], axis=0)]
    limit, weights = ("limit", number(0, np.float32)), np.arange(32, dtype=np.float32).reshape(8, 4) - 20
    wide = save(tmp_path / "wide.onnx", [node("MatMul", ["x", "w"], ["y"]), *chosen], [("x", F, ["n", "width"])], [("z", F, ["k", 4])], [limit, ("w", weights)])
    rows = save(tmp_path / "rows.onnx", [node("Reshape", ["x", "by"], ["y"]), *chosen], [("x", F, ["n"])], [("z", F, ["k", 3])], [limit, ("by", number([-1, 3]))])
    random = np.random.default_rng(6)
    for path, shapes in ((wide, [(5, 8), (20, 8)]), (rows, [(9,), (30,)])):
        cases = [{"x": random.standard_normal(shape).astype(np.float32)} for shape in shapes]
        for case, said in zip(cases, answers(path, cases, build=False)):
            y = case["x"] @ weights if path is wide else case["x"].reshape(-1, 3)
            np.testing.assert_allclose(said["z"], y[y.mean(1) > 0], rtol=1e-4, atol=1e-4)
    weights = weights[:7]  # whose sizes are none that fit
    both = save(tmp_path / "both.onnx", [node("Concat", ["a", "b"], ["x"], axis=1), node("MatMul", ["x", "w"], ["y"]), *chosen],
                [("a", F, ["n", "p"]), ("b", F, ["n", "q"])], [("z", F, ["k", 4])], [limit, ("w", weights)])
    np.savez(tmp_path / "ab.npz", a=np.ones((2, 2), np.float32), b=np.ones((2, 5), np.float32))
    said = millrace("predict", both, tmp_path / "ab.npz", code=1).stderr
    assert "none of the sizes that were tried" in said and "Give it numbers" in said


def test_what_has_no_bound_is_refused_with_node_and_reason(millrace, tmp_path):
    # Of each of the chosen ones with each.
    nodes = [node("NonZero", ["x"], ["p"]), node("Transpose", ["p"], ["t"]), node("Mul", ["t", "p"], ["y"], name="pairs")]
    save(tmp_path / "pairs.onnx", nodes, [("x", F, ["n"])], [("y", I, None)])
    np.savez(tmp_path / "x.npz", x=np.ones(3, np.float32))
    said = millrace("predict", tmp_path / "pairs.onnx", tmp_path / "x.npz", code=1).stderr
    assert "'pairs' (Mul)" in said and "two of its result's sizes depend on data" in said
    save(tmp_path / "range.onnx", [node("Range", ["a", "n", "b"], ["y"], name="steps")], [("n", I, [])], [("y", I, None)], [("a", number(0)), ("b", number(1))])
    np.savez(tmp_path / "n.npz", n=number(3))
    said = millrace("predict", tmp_path / "range.onnx", tmp_path / "n.npz", code=1).stderr
    assert "'steps' (Range)" in said and "it comes from 'n'" in said
