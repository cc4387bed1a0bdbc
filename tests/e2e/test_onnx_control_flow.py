"""If, Loop and Scan whose course only the data say, and functions that a model defines, answer as in ONNX
Runtime: in one session, which is asked for all courses."""
import importlib
import re
import sys

import numpy as np
import pytest
from conftest import ROOT

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
HEADER = '<ir_version: 8, opset_import: ["": 17, "own": 1]>\n'


@pytest.fixture
def agree(binary, tmp_path, monkeypatch):
    """Runs a model on each of some inputs, in one session. Sessions give no tensors whose size depends on
    data; those of `sized` models come from the runner of onnx's cases."""
    library, runner = binary.parent / "libmillrace.so", binary.parent / "millrace_onnx_runner"
    if not library.exists() or not runner.exists():
        pytest.skip("libmillrace.so and millrace_onnx_runner are not built")
    monkeypatch.setenv("MILLRACE_RUNNER", str(runner))
    monkeypatch.syspath_prepend(str(ROOT / "tests/onnx"))
    monkeypatch.setenv("MILLRACE_LIBRARY", str(library))
    monkeypatch.syspath_prepend(str(ROOT / "examples/python"))
    millrace = importlib.import_module("millrace")

    backend = importlib.import_module("backend")

    def run(text, feeds, arrays=(), sized=True):
        model = onnx.parser.parse_model(HEADER + text)
        model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in dict(arrays).items())
        onnx.checker.check_model(model)
        path = tmp_path / "model.onnx"
        onnx.save(model, path)
        theirs = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        ours = millrace.Session(str(path)) if sized else None
        seen = []
        for feed in feeds:
            got = ours.run(*feed.values()) if sized else backend.Prepared(model).run(list(feed.values()))
            want = theirs.run(None, feed)
            assert len(got) == len(want)
            for a, b in zip(got, want):
                assert a.shape == b.shape and a.dtype == b.dtype
                assert np.allclose(a, b, rtol=1e-4, atol=1e-5)
            seen.append(want)
        return seen

    yield run
    sys.modules.pop("millrace", None)


def test_nested_branches_are_taken_as_their_inputs_say(agree):
    text = """nested (float[40,40] x) => (float[40,40] y) {
      s = ReduceSum<keepdims=0>(x)
      zero = Constant<value = float {0}>()
      c = Greater(s, zero)
      y = If (c) <
        then_branch = then () => (float[40,40] a) {
          m = ReduceMax<keepdims=0>(x)
          d = Greater(m, limit)
          a = If (d) <
            then_branch = inner () => (float[40,40] p) { q = Sin(x) r = MatMul(q, w) p = Add(r, s) },
            else_branch = other () => (float[40,40] p2) { p2 = MatMul(x, w) }>
        },
        else_branch = otherwise () => (float[40,40] b) { b = Mul(x, s) }>
    }"""
    random = np.random.default_rng(1)
    x = random.standard_normal((40, 40)).astype(np.float32)
    arrays = {"w": random.standard_normal((40, 40)).astype(np.float32), "limit": np.array(9, np.float32)}
    seen = agree(text, [{"x": x - x.mean() + by} for by in (1, -1, 8, 0.5)], arrays)
    assert np.abs(seen[0][0] - seen[2][0]).max() > 1


def test_branches_of_different_lengths_are_bounded(agree):
    text = """lengths (float[6] x) => (float[n] y) {
      s = ReduceSum<keepdims=0>(x)
      zero = Constant<value = float {0}>()
      c = Greater(s, zero)
      y = If (c) <
        then_branch = then () => (float[6] a) { a = Neg(x) },
        else_branch = otherwise () => (float[2] b) { from = Constant<value_ints = [1]>() to = Constant<value_ints = [3]>() b = Slice(x, from, to) }>
    }"""
    x = np.arange(1, 7, dtype=np.float32)
    seen = agree(text, [{"x": x}, {"x": -x}], sized=False)
    assert [len(each[0]) for each in seen] == [6, 2]


def test_a_branch_that_does_not_fit_is_refused_only_where_it_is_taken(agree):
    # As optimum merges decoders, whose first run has a cache of any length beside a mask without it.
    text = """merged (bool[1] cached, float[batch,length] x, float[batch,past] before, float[batch,total] mask) => (float[p,q] y) {
      y = If (cached) <
        then_branch = then () => (float[p,q] a) { k = Concat<axis = 1>(before, x) a = Add(k, mask) },
        else_branch = otherwise () => (float[p,q] b) { b = Add(x, mask) }>
    }"""

    def feed(cached, length, past, total):
        sizes = {"x": length, "before": past, "mask": total}
        return {"cached": np.array([cached]), **{name: np.random.rand(1, size).astype(np.float32) for name, size in sizes.items()}}

    agree(text, [feed(False, 5, 1, 5), feed(True, 1, 5, 6), feed(False, 4, 3, 4)])
    with pytest.raises(sys.modules["millrace"].Error, match="Add"):
        agree(text, [feed(True, 5, 1, 5)])


def test_a_branch_of_nothing_may_stand_beside_any(agree):
    text = """merged (bool[1] cached, float[batch,2,length,4] x) => (float[p,q,r,s] y) {
      y = If (cached) <
        then_branch = then () => (float[p,q,r,s] a) { a = Constant<value = float[0,2,1,4] {}>() },
        else_branch = otherwise () => (float[p,q,r,s] b) { b = Neg(x) }>
    }"""
    x = np.random.rand(3, 2, 5, 4).astype(np.float32)
    agree(text, [{"cached": np.array([False]), "x": x}])
    agree(text, [{"cached": np.array([True]), "x": x[:, :, :1]}])
    # Whatever its other sizes are, the other branch is as large as it is, which may be nothing, too.
    for sizes in ("0,2,1,4", "0,8,1,64", "0,1,9,2"):
        own = text.replace("0,2,1,4", sizes)
        agree(own, [{"cached": np.array([False]), "x": x}, {"cached": np.array([False]), "x": x[:1, :, :0]}])


def test_a_branch_that_needs_a_step_s_number_is_written_out_with_the_steps(agree):
    text = """steps (float[3,2] x, bool c) => (int64 last, int64[3] sums) {
      zero = Constant<value = int64 {0}>()
      last, sums = Scan <num_scan_inputs = 1,
        body = each (int64 i, float[2] row) => (int64 next, int64 sum) {
          one = Constant<value = int64 {1}>()
          next = Add(i, one)
          sum = If (c) <
            then_branch = then () => (int64 a) { r = Range(zero, next, one) a = ReduceSum<keepdims = 0>(r) },
            else_branch = otherwise () => (int64 b) { b = Neg(next) }>
        }> (zero, x)
    }"""
    x = np.zeros((3, 2), np.float32)
    seen = agree(text, [{"x": x, "c": np.array(True)}, {"x": x, "c": np.array(False)}])
    assert seen[0][1].tolist() == [0, 1, 3] and seen[1][1].tolist() == [-1, -2, -3]


def test_a_loop_ends_when_its_condition_says_so(agree):
    text = """newton (float[3] a) => (float[3] root, int64 steps) {
      none = Constant<value = int64 {0}>()
      yes = Constant<value = bool {1}>()
      root, steps = Loop (, yes, a, none) <body = step (int64 i, bool going, float[3] x, int64 n) => (bool more, float[3] next, int64 count) {
        half = Constant<value = float {0.5}>()
        small = Constant<value = float {0.0001}>()
        one = Constant<value = int64 {1}>()
        ratio = Div(a, x)
        sum = Add(x, ratio)
        next = Mul(sum, half)
        square = Mul(next, next)
        off = Sub(square, a)
        size = Abs(off)
        worst = ReduceMax<keepdims=0>(size)
        more = Greater(worst, small)
        count = Add(n, one)
      }>
    }"""
    feeds = [{"a": np.array(a, np.float32)} for a in ([1, 1, 1], [2, 3, 4], [900, 2, 100])]
    seen = agree(text, feeds)
    assert [int(each[1]) for each in seen] == sorted({int(each[1]) for each in seen})


def test_greedy_decoding_stops_at_the_end_of_the_sequence(agree):
    text = """greedy (float[1,16] h) => (float[1,16] last, int64[n,1] tokens) {
      most = Constant<value = int64 {24}>()
      yes = Constant<value = bool {1}>()
      first = Constant<value = int64[1] {1}>()
      last, token, tokens = Loop (most, yes, h, first) <body = step (int64 i, bool going, float[1,16] state, int64[1] t) => (bool more, float[1,16] state2, int64[1] t2, int64[1] given) {
        e = Gather(table, t)
        r = MatMul(state, hidden)
        sum = Add(e, r)
        state2 = Tanh(sum)
        logits = MatMul(state2, head)
        t2 = ArgMax<axis=1, keepdims=0>(logits)
        given = Identity(t2)
        end = Constant<value = int64 {19}>()
        stop = Equal(t2, end)
        on = Not(stop)
        shape = Constant<value = int64[0] {}>()
        more = Reshape(on, shape)
      }>
    }"""
    random = np.random.default_rng(5)
    arrays = {"table": (30, 16), "hidden": (16, 16), "head": (16, 30)}
    arrays = {name: random.standard_normal(shape).astype(np.float32) for name, shape in arrays.items()}
    arrays["hidden"] *= 0.2  # rounding must not grow from step to step
    feeds = [{"h": random.standard_normal((1, 16)).astype(np.float32)} for _ in range(12)]
    seen = agree(text, feeds, arrays, sized=False)
    assert len({len(each[1]) for each in seen}) > 2


def test_the_number_of_steps_may_be_an_input(agree):
    text = """times (int64 n, float[2,3] x) => (float[2,3] y) {
      y = Loop (n, , x) <body = step (int64 i, bool going, float[2,3] v) => (bool more, float[2,3] w) {
        f = Cast<to = 1>(i)
        u = Add(v, f)
        w = Tanh(u)
        more = Identity(going)
      }>
    }"""
    x = np.ones((2, 3), np.float32)
    agree(text, [{"n": np.array(n, np.int64), "x": x} for n in (0, 1, 5, 2000)])


def test_a_scan_is_a_loop_of_the_graph(agree):
    text = """running (float[4] start, float[4,50] x) => (float[4] last, float[4,50] sums) {
      last, sums = Scan<num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1], scan_input_directions = [1], scan_output_directions = [1],
        body = step (float[4] state, float[4] slice) => (float[4] next, float[4] out) {
          half = Mul(state, decay)
          next = Add(half, slice)
          out = Tanh(next)
        }>(start, x)
    }"""
    random = np.random.default_rng(2)
    feed = {"start": random.standard_normal(4).astype(np.float32), "x": random.standard_normal((4, 50)).astype(np.float32)}
    agree(text, [feed], {"decay": np.array(0.5, np.float32)})


@pytest.mark.parametrize("opset", [8, 9])
def test_sequences_of_a_scan_have_one_length(millrace, tmp_path, opset):
    batch, rows = ("1,", " ,") if opset == 8 else ("", "")
    model = onnx.parser.parse_model(f"""<ir_version: 4, opset_import: ["": {opset}]>
    uneven (float[{batch}4] start, float[{batch}3,4] a, float[{batch}5,4] b) => (float[{batch}4] last) {{
      last = Scan<num_scan_inputs = 2, body = step (float[4] state, float[4] p, float[4] q) => (float[4] next) {{
        t = Add(state, p)
        next = Add(t, q)
      }}>({rows} start, a, b)
    }}""")
    onnx.save(model, tmp_path / "uneven.onnx")
    assert "its sequences have different lengths" in millrace("inspect", tmp_path / "uneven.onnx", code=1).stderr


def test_tensors_of_different_ranks_are_not_stacked(millrace, tmp_path):
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
    stacks (float[3] a, float[1,1,3] b) => (float y) {
      both = SequenceConstruct(a, b)
      y = ConcatFromSequence<axis = -1, new_axis = 1>(both)
    }""")
    onnx.save(model, tmp_path / "ranks.onnx")
    assert "it stacks tensors of different ranks" in millrace("inspect", tmp_path / "ranks.onnx", code=1).stderr


def test_functions_of_a_model_are_inlined(agree):
    # Nested, with attributes by reference and by default, and names that the caller and both functions use.
    text = """calls (float[3] x) => (float[3] y, float[3] t) {
      t = own.outer <alpha = 2.0>(x)
      u = own.outer (t)
      y = own.inner <alpha = 0.25>(u, t)
    }
    <opset_import: ["": 17], domain: "own">
    inner <alpha: float = 3.0>(x, t) => (y) {
      a = Constant<value_float: float = @alpha>()
      u = Mul(x, a)
      y = Add(u, t)
    }
    <opset_import: ["": 17, "own": 1], domain: "own">
    outer <alpha: float = 5.0>(t) => (y) {
      x = Neg(t)
      u = LeakyRelu<alpha: float = @alpha>(x)
      s = ReduceSum<keepdims=0>(t)
      zero = Constant<value = float {0}>()
      c = Greater(s, zero)
      v = If (c) <then_branch = then () => (float[3] p) { p = own.inner<alpha: float = @alpha>(u, t) },
                  else_branch = otherwise () => (float[3] q) { k = Constant<value_float: float = @alpha>() q = Mul(u, k) }>
      y = own.inner(v, x)
    }"""
    agree(text, [{"x": np.array(x, np.float32)} for x in ([1, -2, 3], [-1, 2, -3])])


def test_every_operator_that_the_standard_defines_by_a_function_is_known():
    sources = "".join(path.read_text() for folder in ("src/onnx/import", "src/ops") for path in (ROOT / folder).glob("*.cpp"))
    schemas = [each for each in onnx.defs.get_all_schemas_with_history() if each.has_function or each.has_context_dependent_function]
    names = {f"{each.domain}.{each.name}" if each.domain else each.name for each in schemas}
    told = set(re.findall(r'MILLRACE_ONNX_IMPORT\((\w+)\)|op\.onnx = {"(\w+)"}|ScalarOp::\w+, "(\w+)"\)', sources))
    known = {name for name in names if any(name.replace(".", "_") in each for each in told)}
    assert len(names) > 40 and names == known
