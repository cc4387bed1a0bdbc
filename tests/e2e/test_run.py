"""A model is run from C and from Python, by what is installed; docs/run.md's commands and code are run as
they stand."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT
from test_predict_model import node, save

onnx = pytest.importorskip("onnx")


def write_model(path, bias=1.0):
    """y = relu(x @ w + bias), x: f32[batch, 3]; and the sums of its rows."""
    helper = onnx.helper
    weights = np.arange(12, dtype=np.float32).reshape(3, 4) / 10
    values = [helper.make_tensor_value_info("x", 1, ["batch", 3])]
    outputs = [helper.make_tensor_value_info("y", 1, ["batch", 4]), helper.make_tensor_value_info("sums", 1, ["batch", 1])]
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["z"]),
        helper.make_node("Relu", ["z"], ["y"]),
        helper.make_node("ReduceSum", ["y", "axes"], ["sums"]),
    ]
    given = {"w": weights, "b": np.full(4, bias, np.float32), "axes": np.array([1], np.int64)}
    initialisers = [onnx.numpy_helper.from_array(array, name) for name, array in given.items()]
    graph = helper.make_graph(nodes, "small", values, outputs, initialisers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return lambda x: np.maximum(x @ weights + bias, 0)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "prefix"
    subprocess.run(["cmake", "--install", ROOT / "build/release", "--prefix", path], check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def desk(prefix):
    """A folder with model.onnx and the examples, and what the page's PREFIX stands for."""
    folder = prefix.parent / "desk"
    folder.mkdir()
    (folder / "examples").symlink_to(ROOT / "examples")
    write_model(folder / "model.onnx")
    return folder


def blocks(language):
    page = (ROOT / "docs/run.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.M | re.S)


def shell(text, folder, prefix, **env):
    text = text.replace("PREFIX", str(prefix)).replace("python3", sys.executable)
    done = subprocess.run(["bash", "-e", "-c", text], cwd=folder, capture_output=True, text=True, env={**os.environ, **env})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def python(text, folder, prefix):
    (folder / "program.py").write_text(text)
    env = {"MILLRACE_LIBRARY": f"{prefix}/lib/libmillrace.so", "PYTHONPATH": str(ROOT / "examples/python")}
    return shell("python3 program.py", folder, prefix, **env)


def test_commands_of_the_page_run(desk, prefix):
    printed = [shell(text, desk, prefix) for text in blocks("sh")]
    assert printed[0] == "y: f32 [1, 4]\nsums: f32 [1, 1]\n", printed
    assert "takes x: float32[batch, 3]\n" in printed[1]
    assert "y float32 (1, 4) [1. 1. 1.]\n" in printed[1]


def test_code_of_the_page_runs(desk, prefix):
    for text in blocks("python"):
        assert "x: float32[batch, 3]" in python(text, desk, prefix)
    (source,) = blocks("cpp")
    head, body = source.split("using namespace millrace;")
    (desk / "page.cpp").write_text(f"#include <iostream>\n{head}using namespace millrace;\nint main() {{{body}std::cout << results[0].at(0) << '\\n';}}\n")
    command = "c++ -std=c++20 page.cpp -IPREFIX/include -LPREFIX/lib -lmillrace -Wl,-rpath,PREFIX/lib -o page && ./page"
    assert shell(command, desk, prefix) == "x: f32[batch, 3]\n2.2\n"


def test_arrays_go_in_and_come_out_without_a_copy(desk, prefix):
    program = """
import gc, millrace, numpy, threading
session = millrace.Session("model.onnx")
w = numpy.arange(12, dtype=numpy.float32).reshape(3, 4) / 10
def right(x): return numpy.maximum(x @ w + 1, 0)
random = numpy.random.default_rng(1)
for rows in (1, 2, 5, 64):
    x = random.standard_normal((rows, 3)).astype(numpy.float32)
    y, sums = session.run(x)
    assert numpy.allclose(y, right(x), atol=1e-5) and numpy.allclose(sums[:, 0], y.sum(1), atol=1e-5)
    out = [numpy.full_like(y, 9), numpy.full_like(sums, 9)]
    again = session.run(x, out=out)
    assert again[0] is out[0] and numpy.array_equal(out[0], y) and numpy.array_equal(out[1], sums)
    # What numpy has in another order or type is copied, and says the same.
    assert numpy.array_equal(session.run(numpy.asfortranarray(x))[0], y)
    assert numpy.array_equal(session.run(x.astype(float))[0], y)
    assert numpy.array_equal(session.run(numpy.repeat(x, 2, 1)[:, ::2])[0], y)
bound = session.bind(x, out=out)
x[:] = random.standard_normal(x.shape)
bound()
assert numpy.allclose(out[0], right(x), atol=1e-5)
kept = session.run(x)[0]
expected = kept.copy()
for _ in range(300):
    session.run(random.standard_normal((64, 3)).astype(numpy.float32))
gc.collect()
assert numpy.array_equal(kept, expected)  # a result lives as long as its array
wrong = []
def ask(seed):
    x = numpy.random.default_rng(seed).standard_normal((seed % 7 + 1, 3)).astype(numpy.float32)
    wrong.extend(1 for _ in range(50) if not numpy.allclose(session.run(x)[0], right(x), atol=1e-5))
threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not wrong
for bad in (numpy.zeros((2, 4), numpy.float32), numpy.zeros(3, numpy.float32)):
    try: session.run(bad)
    except millrace.Error as e: print(e)
    else: raise SystemExit("no error")
try: session.run(x, out=[numpy.zeros(3, numpy.float32), numpy.zeros(64, numpy.float32)])
except millrace.Error as e: print(e)
for wrong in ([out[0].astype(float), out[1]], [out[0].reshape(4, 64), out[1]], out[:1]):
    try: session.run(x, out=wrong)
    except millrace.Error as e: print(e)
    else: raise SystemExit("no error")
try: session.run(x.astype(complex))
except TypeError as e: print(e)
for feed in ((None, {"x": x}), ({"x": x},)):
    try: session.run(*feed)
    except TypeError as e: print(e)
try: millrace.Session("absent.onnx")
except millrace.Error as e: print(e)
"""
    printed = python(program, desk, prefix)
    assert "the array for 'y' is of float64, the result of float32" in printed
    assert "the array for 'y' is of shape (4, 64), the result of (64, 4)" in printed
    assert "1 arrays are no 2 results" in printed and "from dtype('complex128')" in printed
    assert "result 'y' is f32[64, 4], 1024 bytes, but there is room for 12" in printed
    assert "absent.onnx" in printed
    assert printed.count("run() takes arrays alone, in this order: x") == 2


def test_whole_numbers_that_do_not_fit_are_no_others(desk, prefix):
    save(desk / "bytes.onnx", [node("Identity", ["x"], ["y"])], [("x", 3, [2])], [("y", 3, [2])])
    program = """
import millrace, numpy
session = millrace.Session("bytes.onnx")
assert (session.run(numpy.array([-128, 127]))[0] == [-128, 127]).all()
for _ in range(3):  # also once such a call is prepared
    try: print(session.run(numpy.array([300, 1])))
    except TypeError as e: print(e)
"""
    assert python(program, desk, prefix).count("some of the numbers are none of int8") == 3


def test_floats_of_eight_bits_are_their_bits(desk, prefix):
    save(desk / "f8.onnx", [node("Cast", ["x"], ["h"], to=17), node("Identity", ["h"], ["y"])], [("x", 1, [3])], [("y", 17, [3])])
    save(desk / "of_f8.onnx", [node("Cast", ["x"], ["y"], to=1)], [("x", 17, [3])], [("y", 1, [3])])
    program = """
import millrace, numpy
(bits,) = millrace.Session("f8.onnx").run(numpy.array([1, -2, 0.5], numpy.float32))
assert bits.dtype == numpy.uint8 and (bits == [0x38, 0xc0, 0x30]).all()
print(millrace.Session("of_f8.onnx").run(bits)[0])
"""
    assert python(program, desk, prefix) == "[ 1.  -2.   0.5]\n"


def test_results_whose_size_depends_on_data_are_as_large_as_they_are(desk, prefix):
    save(desk / "places.onnx", [node("NonZero", ["x"], ["y"])], [("x", 1, ["n"])], [("y", 7, [1, "found"])])
    program = """
import millrace, numpy
session = millrace.Session("places.onnx")
for x in ([0, 3, 0, 4], [1], [0, 0]):
    x = numpy.array(x, numpy.float32)
    right = numpy.array(numpy.nonzero(x))
    (y,) = session.run(x)
    room = numpy.full((1, 4), 9)
    (same,) = session.run(x, out=[room])
    assert y.shape == same.shape == right.shape and (y == right).all() and (same == right).all()
    assert y.size == 0 or numpy.shares_memory(same, room)
x, room = numpy.zeros(4, numpy.float32), numpy.full((1, 4), 9)
bound = session.bind(x, out=[room])
for values in ([0, 3, 0, 4], [1, 1, 1, 1], [0, 0, 0, 5]):
    x[:] = values
    (y,) = bound()
    assert (y == numpy.array(numpy.nonzero(x))).all() and y.shape == (1, numpy.count_nonzero(x)) and numpy.shares_memory(y, room)
try: session.run(numpy.ones(4, numpy.float32), out=[numpy.zeros((1, 3), numpy.int64)])
except millrace.Error as e: print(e)
"""
    assert "result 'y' is i64[1, 4], 32 bytes, but there is room for 24" in python(program, desk, prefix)


def test_the_example_in_c_is_thirty_lines_and_compiles_without_a_warning(desk, prefix):
    source = (ROOT / "examples/c/run_model.c").read_text()
    assert len([line for line in source.splitlines() if line.strip() and not re.match(r"\s*(/\*|\*)", line)]) <= 36
    shell("cc -std=c99 -Wall -Wextra -Werror -pedantic -c examples/c/run_model.c -IPREFIX/include -o /dev/null", desk, prefix)
    # The header is C++ too.
    shell("echo '#include <millrace/millrace.h>' | c++ -std=c++11 -Wall -Werror -x c++ -c - -IPREFIX/include -o /dev/null", desk, prefix)


def test_texts_are_gone_on_with_from_python_and_c(desk, prefix):
    from test_generate_onnx import followed, write_model as write_next

    write_next(desk / "play.onnx")
    session = pytest.importorskip("onnxruntime").InferenceSession(desk / "play.onnx")
    page = (ROOT / "docs/generate.md").read_text()
    (text,) = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    first, drawn = python(text, desk, prefix).splitlines()
    right = followed(session, [116, 104, 101], 30)
    assert list(map(int, first.split())) == right[:10] and 0 <= int(drawn) < 256
    program = """
import copy, millrace, numpy
decoder = millrace.Decoder("play.onnx", rows=3, longest=64)
assert (decoder.rows, decoder.longest, decoder.capacity, decoder.vocabulary) == (3, 64, 192, 256)
both = decoder.step({2: numpy.array([116, 104, 101]), 0: (120,)})
alone = decoder.step({1: [120]})
assert both.shape == (2, 256) and both.dtype == numpy.float32 and numpy.allclose(both[1], alone[0], atol=1e-5)
assert [decoder.length(row) for row in range(3)] == [1, 1, 3]
for row in range(3): decoder.clear(row)
drawn = [list(decoder.generate([1, 2], 12, row=row, temperature=1, top_p=0.9, repetition=1.2, seed=5)) for row in (0, 1)]
assert drawn[0] == drawn[1] and len(drawn[0]) == 12, drawn
decoder.clear()
stopped = list(decoder.generate([1, 2], 12, temperature=1, top_p=0.9, repetition=1.2, seed=5, stop=(drawn[0][4],)))
assert stopped == drawn[0][:drawn[0].index(drawn[0][4]) + 1]
decoder.clear()
assert len(list(decoder.generate(range(60), 12))) == 5  # and the row is full
for wrong in ({3: [1]}, {0: []}, {0: [256]}, {0: [1] * 65}, {}, {0: [2**40]}, {0: [0.5]}, {0: [[1, 2]]}, [1], {2**64: [1]}):
    try: decoder.step(wrong)
    except (millrace.Error, TypeError, OverflowError) as e: print(type(e).__name__, e)
decoder.clear()
try: list(decoder.generate([1, 2], 3, top_k=-1))
except millrace.Error: pass
assert decoder.length() == 0 and list(decoder.generate([1, 2], 0)) == [] and decoder.length() == 0
try: millrace.sample(decoder.step({0: [1], 1: [2]}))
except TypeError as e: assert "(2, 256)" in str(e)
else: assert False
for broken in (lambda: copy.copy(decoder), lambda: copy.copy(millrace.Session("model.onnx"))):
    try: broken()
    except TypeError as e: assert "neither copied" in str(e)
    else: assert False
assert millrace.Decoder("play.onnx", rows=2, longest=64, memory=6144).capacity < 128
ids = numpy.zeros(1, numpy.int32)
for address, count in ((ids.ctypes.data, -1), (None, 1)):
    assert millrace.library.millrace_decoder_step(decoder._decoder, millrace.NewTokens(0, address, count), 1, numpy.zeros(256, numpy.float32).ctypes.data) == 1
assert millrace.library.millrace_decoder_step(decoder._decoder, None, 1, ids.ctypes.data) == 1
for wrong in (dict(path="none.onnx"), dict(path="play.onnx", precision="int4"), dict(path="play.onnx", rows=-1), dict(path="model.onnx")):
    try: millrace.Decoder(**wrong)
    except millrace.Error as e: print(e)
"""
    said = python(program, desk, prefix).splitlines()
    assert "gets no tokens" in said[1] and "there is no token 256" in said[2] and said[5].startswith("TypeError"), said
    assert [line.split()[0] for line in said[:10]] == ["Error"] * 5 + ["TypeError"] * 4 + ["OverflowError"], said
    assert "none.onnx: there is no such file" in said[10] and "no precision 'int4'" in said[11] and "-1 rows" in said[12] and "model.onnx" in said[13], said
    ids = shell("cc examples/c/generate.c -std=c99 -Wall -Wextra -Werror -pedantic -IPREFIX/include -LPREFIX/lib -lmillrace -Wl,-rpath,PREFIX/lib -o generate && "
                "./generate play.onnx 116 104 101", desk, prefix)
    assert list(map(int, ids.split())) == right[:20]


def test_the_library_exports_the_interface(prefix):
    header = (ROOT / "include/millrace/millrace.h").read_text()
    declared = set(re.findall(r"(millrace_\w+)\(", re.sub(r"/\*.*?\*/", "", header, flags=re.S)))
    symbols = subprocess.run(["nm", "-D", "--defined-only", prefix / "lib/libmillrace.so"], check=True, capture_output=True, text=True).stdout
    exported = {line.split()[-1] for line in symbols.splitlines() if re.match(r"millrace_[a-z_]+$", line.split()[-1])}
    assert exported == declared and len(declared) >= 12


def test_external_data_are_those_that_were_there_when_the_model_was_opened(desk, prefix):
    for place, factor in (("a", 1), ("b", 2), ("new", 3)):
        (desk / place).mkdir()
        w = (np.arange(12 * 400).reshape(12, 400) % 97 * factor).astype(np.float32)
        save(desk / place / "m.onnx", [node("MatMul", ["x", "w"], ["y"])], [("x", 1, ["n", 12])], [("y", 1, ["n", 400])], [("w", w)])
        onnx.save_model(onnx.load(desk / place / "m.onnx"), desk / place / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    program = """
import os, numpy, millrace
x = numpy.ones((2, 12), numpy.float32)
right = (numpy.arange(12 * 400).reshape(12, 400) % 97).sum(0).astype(numpy.float32)
os.chdir("a"); a = millrace.Session("m.onnx")
os.chdir("../b"); b = millrace.Session("m.onnx")
assert (b.run(x)[0] == 2 * right).all() and (a.run(x)[0] == right).all()
os.chdir("..")
again = millrace.Session("a/m.onnx")
for name in ("m.onnx", "m.data"): os.rename("new/" + name, "a/" + name)
assert (again.run(x)[0] == right).all() and (again.run(x[:1])[0] == right).all()
with open("b/m.data", "r+b") as file:  # in place, before a first run
    other = millrace.Session("b/m.onnx")
    file.write(b"12345678")
try: other.run(x)
except millrace.Error as e: print(e)
os.truncate("b/m.data", 4096)
try: millrace.Session("b/m.onnx")
except millrace.Error as e: print(e)
os.remove("b/m.data")
try: millrace.Session("b/m.onnx")
except millrace.Error as e: print(e)
"""
    changed, short, gone = python(program, desk, prefix).splitlines()
    assert "m.data: it was changed while it was read" in changed
    assert "'m.data' has no 19200 bytes from 0 on for it (is the file whole?)" in short
    assert "b/m.data: no such file" in gone


def test_a_data_file_that_is_changed_spoils_no_run_but_its_own(desk, prefix):
    for place in ("first", "copy"):
        (desk / place).mkdir()
        w = (np.arange(256 * 256).reshape(256, 256) % 97).astype(np.float32)
        save(desk / place / "m.onnx", [node("MatMul", ["x", "w"], ["y"])], [("x", 1, ["n", 256])], [("y", 1, ["n", 256])], [("w", w)])
        onnx.save_model(onnx.load(desk / place / "m.onnx"), desk / place / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    table = (np.arange(5000 * 64).reshape(5000, 64) % 89 + 1).astype(np.float32)
    for place in ("rows", "rows copy"):
        (desk / place).mkdir()
        save(desk / place / "m.onnx", [node("Gather", ["t", "i"], ["y"])], [("i", 7, ["n"])], [("y", 1, ["n", 64])], [("t", table + 100)])
        onnx.save_model(onnx.load(desk / place / "m.onnx"), desk / place / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    save(desk / "table.onnx", [node("Gather", ["t", "i"], ["y"])], [("i", 7, ["n"])], [("y", 1, ["n", 64])], [("t", table)])
    onnx.save_model(onnx.load(desk / "table.onnx"), desk / "table.onnx", save_as_external_data=True, location="table.data", size_threshold=0)
    save(desk / "short.onnx", [node("Slice", ["x", "b", "e"], ["z"]), node("MatMul", ["z", "w"], ["y"])], [("x", 1, ["n", 300])], [("y", 1, ["n", 256])],
         [("w", w), ("b", np.array([0, 0], np.int64)), ("e", np.array([9999, 256], np.int64))])
    program = """
import os, time, numpy, millrace
right = (numpy.arange(256 * 256).reshape(256, 256) % 97).sum(0).astype(numpy.float32)
x = lambda n: numpy.ones((n, 256), numpy.float32)
a = millrace.Session("first/m.onnx", executables=1)
for n in (1, 64): assert (a.run(x(n))[0] == right).all()
with open("first/m.data", "r+b") as file: file.write(b"1" * 256 * 256 * 4)
time.sleep(0.01)  # it is looked at once a millisecond
for n in (64, 1, 65, 2):
    try: a.run(x(n)); print("ran")
    except millrace.Error as e: print(e)
b = millrace.Session("copy/m.onnx")
for n in (1, 2, 64, 65): assert (b.run(x(n))[0] == right).all(), n
rows = numpy.arange(100) * 50
one, other = millrace.Session("rows/m.onnx"), millrace.Session("rows copy/m.onnx")
table = one.run(rows)[0]
with open("rows/m.data", "r+b") as file: file.write(b"1" * 5000 * 64 * 4)
assert (other.run(rows)[0] == table).all() and (other.run(rows[:7])[0] == table[:7]).all()
t = millrace.Session("table.onnx")
whole = t.run(rows)[0]
os.truncate("table.data", 4096)
refused = 0
for k in range(200):
    try: assert (t.run(rows)[0] == whole).all()
    except millrace.Error as e: refused += 1
print(refused)
s = millrace.Session("short.onnx")
s.run(numpy.ones((2, 300), numpy.float32))
os.truncate("short.onnx", 100)
try: s.run(numpy.ones((3, 300), numpy.float32))
except millrace.Error as e: print(e)
"""
    *changed, refused, short = python(program, desk, prefix).splitlines()
    assert len(changed) == 4 and all("m.data: it was changed while it was read" in line for line in changed)
    assert refused == "200" and "short.onnx: " in short and ("gone" in short or "changed" in short)
