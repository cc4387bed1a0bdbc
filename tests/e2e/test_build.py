"""Models that are built ahead of time: docs/mill.md's commands, results, what is refused."""

import json
import os
import re
import shlex
import subprocess

import numpy as np
import pytest
from conftest import ROOT
from test_predict_model import node, save

onnx = pytest.importorskip("onnx")


@pytest.fixture
def desk(tmp_path):
    """A folder with a small network and a batch for it."""
    random = np.random.default_rng(2)
    arrays = {"w": random.standard_normal((8, 3, 3, 3)), "b": random.standard_normal(8), "m": random.standard_normal((8 * 36, 10))}
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"]),
        node("Relu", ["c"], ["r"]),
        node("Flatten", ["r"], ["f"]),
        node("MatMul", ["f", "m"], ["z"]),
        node("Softmax", ["z"], ["y"]),
    ]
    initialisers = [(name, array.astype(np.float32)) for name, array in arrays.items()]
    save(tmp_path / "model.onnx", nodes, [("x", 1, ["batch", 3, 8, 8])], [("y", 1, ["batch", 10])], initialisers)
    np.save(tmp_path / "batch.npy", random.standard_normal((4, 3, 8, 8)).astype(np.float32))
    return tmp_path


def predicted(millrace, desk, model):
    return np.array([json.loads(line)["y"] for line in millrace("predict", model, "batch.npy", "--json", cwd=desk).stdout.splitlines()])


def test_commands_of_the_page_run_and_say_what_the_model_says(millrace, desk):
    page = (ROOT / "docs/mill.md").read_text()
    lines = [line for block in re.findall(r"^```\n(.*?)^```", page, re.M | re.S) for line in block.splitlines()]
    assert len(lines) == 4
    printed = {line: millrace(*shlex.split(line)[1:], cwd=desk).stdout for line in lines}
    assert "compiles for other sizes" in printed["millrace inspect model.mill"]
    assert "compiled for batch=4" in printed["millrace inspect model.mill"] and "section weights" in printed["millrace inspect model.mill"]
    assert "every byte is as it was written" in printed["millrace inspect model.mill --verify"]
    assert np.allclose(predicted(millrace, desk, "model.mill"), predicted(millrace, desk, "model.onnx"), atol=1e-6)
    np.save(desk / "more.npy", np.random.default_rng(1).standard_normal((5, 3, 8, 8)).astype(np.float32))
    rows = [millrace("predict", model, "more.npy", "--json", cwd=desk).stdout for model in ("model.mill", "model.onnx")]
    five = [np.array([json.loads(line)["y"] for line in text.splitlines()]) for text in rows]
    assert five[0].shape == (5, 10) and np.allclose(five[0], five[1], atol=1e-6)
    # Nothing was built for so many, nor for what they are filled up to.
    np.save(desk / "many.npy", np.random.default_rng(3).standard_normal((21, 3, 8, 8)).astype(np.float32))
    many = [millrace("predict", model, "many.npy", "--json", cwd=desk).stdout.splitlines() for model in ("model.mill", "model.onnx")]
    both = [np.array([json.loads(line)["y"] for line in lines]) for lines in many]
    assert both[0].shape == (21, 10) and np.allclose(both[0], both[1], atol=1e-6)
    for verb in ("profile", "explain"):
        assert "inference, batch=4" in millrace(verb, "model.mill", "--sizes", "batch=4", cwd=desk).stdout
    # Nothing comes from the cache: an empty one does as well.
    empty = {"MILLRACE_CACHE": str(desk / "empty")}
    assert millrace("predict", "model.mill", "batch.npy", cwd=desk, env=empty).stdout
    kernels = desk / "empty/kernels"
    assert not kernels.exists() or not any(kernels.iterdir())


def test_what_cannot_be_built_or_opened_is_said(millrace, desk):
    build = lambda *words, code=1: millrace("build", "model.onnx", *words, cwd=desk, code=code).stderr
    assert "-o is missing" in build()
    assert "they have batch" in build("-o", "m.mill", "--sizes", "rows=3")
    assert "NAME=SIZE" in build("-o", "m.mill", "--sizes", "batch")
    assert "NAME=SIZE" in build("-o", "m.mill", "--sizes", "batch=1|x")
    assert "there twice" in build("-o", "m.mill", "--sizes", "batch=1,batch=2")
    assert "no precision" in build("-o", "m.mill", "--precision", "fp7")
    assert not (desk / "m.mill").exists()
    # Rows that see each other.
    save(desk / "mixed.onnx", [node("Softmax", ["x"], ["y"], axis=0)], [("x", 1, ["batch", 3])], [("y", 1, ["batch", 3])])
    said = millrace("build", "mixed.onnx", "-o", "m.mill", "--fill", "batch", cwd=desk, code=1).stderr
    assert "depends on what stands beside" in said and not (desk / "m.mill").exists()
    millrace("build", "model.onnx", "-o", "m.mill", cwd=desk)
    assert "is built already" in millrace("build", "m.mill", "-o", "n.mill", cwd=desk, code=1).stderr
    # Nodes that depend on the batch.
    save(desk / "odd.onnx", [node("Shape", ["x"], ["s"]), node("Mod", ["s", "k"], ["m"]), node("Cast", ["m"], ["f"], to=1), node("Mul", ["x", "f"], ["y"])], [("x", 1, ["batch", 2])], [("y", 1, ["batch", 2])], [("k", np.array([3, 3], np.int64))])
    built = millrace("build", "odd.onnx", "-o", "odd.mill", cwd=desk).stdout
    assert "other sizes cannot be run" in built and "depends on the node that gives 'm' (Mod)" in built
    # Of a table that is computed of it the beginning is said.
    save(desk / "table.onnx", [node("Shape", ["x"], ["s"]), node("Gather", ["s", "first"], ["n"]), node("Range", ["none", "n", "one"], ["r"]), node("Add", ["r", "n"], ["b"]), node("Mod", ["b", "n3"], ["m"]),
                               node("Cast", ["m"], ["f"], to=1), node("Unsqueeze", ["f", "axis"], ["c"]), node("Mul", ["x", "c"], ["y"])], [("x", 1, ["batch", 2])],
         [("y", 1, ["batch", 2])], [("first", np.int64(0)), ("none", np.int64(0)), ("one", np.int64(1)), ("n3", np.int64(3)), ("axis", np.array([1], np.int64))])
    (said,) = [line for line in millrace("build", "table.onnx", "-o", "table.mill", cwd=desk).stdout.splitlines() if "other sizes" in line]
    assert "gives 'm' (Mod)" in said and "37 38 39" in said and said.endswith(" …") and len(said) < 300, said
    np.save(desk / "four.npy", np.ones([4, 2], np.float32))
    assert "was not built for batch=4; it was for batch=1" in millrace("predict", "odd.mill", "four.npy", cwd=desk, code=1).stderr
    assert "built for fp32" in millrace("predict", "m.mill", "batch.npy", "--precision", "bf16", cwd=desk, code=1).stderr
    whole = (desk / "m.mill").read_bytes()
    for damaged, error in (
        (whole[:-1], "cut short"),
        (whole[: len(whole) // 2], "cut short"),
        (whole[:8] + b"\x01" + whole[9:], "is of version 1, but only version 4 can be read: make it again"),
        (whole.replace(b"millrace graph 1", b"millrace graph 2", 1), "'graphs'"),
    ):
        assert damaged != whole
        (desk / "bad.mill").write_bytes(damaged)
        for words in (("predict", "bad.mill", "batch.npy"), ("inspect", "bad.mill"), ("inspect", "bad.mill", "--verify")):
            message = millrace(*words, cwd=desk, code=1).stderr
            assert "bad.mill" in message and error in message, message
    # Weights are looked at by --verify alone.
    at = 4096 + 40
    (desk / "bad.mill").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    assert "'weights'" in millrace("inspect", "bad.mill", "--verify", cwd=desk, code=1).stderr
    assert "no built model" in millrace("inspect", "model.onnx", "--verify", cwd=desk, code=1).stderr


@pytest.mark.parametrize("decides", ["Min", "Equal", "Less", "Floor", "ReduceMax"])
def test_models_that_decide_by_their_sizes_run_for_those_that_they_were_built_for(millrace, tmp_path, decides):
    # At none of the sizes that the graph for others is learnt from it is another one.
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["n"], axis=0), node("Cast", ["n"], ["f"], to=1)]
    if decides == "Min":
        nodes += [node("Min", ["f", "limit"], ["by"])]
    elif decides == "ReduceMax":  # of numbers that are made up as the size says
        nodes += [node("Range", ["zero", "n", "one"], ["r"]), node("ReduceMax", ["r"], ["top"], keepdims=0), node("Cast", ["top"], ["t"], to=1), node("Min", ["t", "limit"], ["by"])]
    elif decides == "Floor":
        nodes += [node("Div", ["f", "limit"], ["part"]), node("Floor", ["part"], ["whole"]), node("Add", ["whole", "limit"], ["by"])]
    else:
        nodes += [node(decides, ["f", "limit"], ["c"]), node("Where", ["c", "f", "limit"], ["by"])]
    constants = [("one", np.array(1, np.int64)), ("zero", np.array(0, np.int64)), ("limit", np.array(7 if decides == "Less" else 140, np.float32))]
    save(tmp_path / "m.onnx", [*nodes, node("Mul", ["x", "by"], ["y"])], [("x", 1, ["batch", "n"])], [("y", 1, ["batch", "n"])], constants)
    said = millrace("build", "m.onnx", "-o", "m.mill", "--sizes", "batch=1,n=140", cwd=tmp_path).stdout
    assert f"({decides}), given" in said
    for size, built in ((140, True), (150, False)):
        np.save(tmp_path / "x.npy", np.ones([1, size], np.float32))
        right = millrace("predict", "m.onnx", "x.npy", "--json", cwd=tmp_path).stdout
        if built:
            assert millrace("predict", "m.mill", "x.npy", "--json", cwd=tmp_path).stdout == right
        else:
            assert "was not built for" in millrace("predict", "m.mill", "x.npy", "--json", cwd=tmp_path, code=1).stderr


def test_what_is_made_of_sums_and_products_of_sizes_is_for_any(millrace, tmp_path):
    # As exporters write it: −1 where a size is to stay, a share of a size that has nothing to round.
    nodes = [
        node("Shape", ["x"], ["s"]), node("Equal", ["s", "minus"], ["same"]), node("Where", ["same", "ones", "s"], ["to"]), node("Expand", ["bias", "to"], ["wide"]),
        node("Gather", ["s", "one"], ["n"], axis=0), node("Mul", ["n", "four"], ["m"]), node("Div", ["m", "two"], ["d"]), node("Cast", ["d"], ["f"], to=1),
        node("Add", ["x", "wide"], ["z"]), node("Mul", ["z", "f"], ["y"]),
    ]
    numbers = {"minus": [-1, -1], "ones": [1, 1], "one": 1, "four": 4, "two": 2}
    constants = [(name, np.array(value, np.int64)) for name, value in numbers.items()] + [("bias", np.ones([1, 1], np.float32))]
    save(tmp_path / "m.onnx", nodes, [("x", 1, ["batch", "n"])], [("y", 1, ["batch", "n"])], constants)
    assert "other sizes will be compiled" in millrace("build", "m.onnx", "-o", "m.mill", "--sizes", "batch=2,n=8", cwd=tmp_path).stdout
    most = re.search(r"batch from 1 to (\d+), n from 1 to (\d+)", millrace("inspect", "m.mill", cwd=tmp_path).stdout)
    assert all(int(size) >= 70001 for size in most.groups())
    for shape in ((1, 1), (1, 9), (7, 300)):
        np.save(tmp_path / "x.npy", np.ones(shape, np.float32))
        assert np.all(np.array(json.loads(millrace("predict", "m.mill", "x.npy", "--json", cwd=tmp_path).stdout.splitlines()[0])["y"]) == 4 * shape[1])


def test_tables_of_which_a_size_cuts_the_beginning_are_for_any_up_to_their_end(millrace, tmp_path):
    # As exporters write the positions of BERT and GPT-2, and the mask of what comes later.
    random = np.random.default_rng(4)
    words, places = random.standard_normal((30, 8)).astype(np.float32), random.standard_normal((200, 8)).astype(np.float32)
    nodes = [
        node("Gather", ["words", "x"], ["e"]), node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["n"], axis=0), node("Unsqueeze", ["n", "first"], ["end"]),
        node("Slice", ["numbers", "first", "end", "second"], ["p"]), node("Gather", ["places", "p"], ["pe"]), node("Add", ["e", "pe"], ["z"]),
        node("Transpose", ["z"], ["t"], perm=[0, 2, 1]), node("MatMul", ["z", "t"], ["q"]),
        node("Range", ["zero", "n", "one"], ["r"]), node("Unsqueeze", ["r", "second"], ["c"]), node("GreaterOrEqual", ["c", "r"], ["before"]),
        node("Where", ["before", "q", "nothing"], ["m"]), node("MatMul", ["m", "z"], ["y"]),
    ]
    constants = [(name, np.array(value, np.int64)) for name, value in {"one": 1, "zero": 0, "first": [0], "second": [1], "numbers": np.arange(200)[None]}.items()]
    constants += [("words", words), ("places", places), ("nothing", np.float32(0))]
    save(tmp_path / "m.onnx", nodes, [("x", 7, ["batch", "n"])], [("y", 1, ["batch", "n", 8])], constants)
    assert "other sizes will be compiled" in millrace("build", "m.onnx", "-o", "m.mill", "--sizes", "batch=1,n=16", cwd=tmp_path).stdout
    assert "n from 1 to 200" in millrace("inspect", "m.mill", cwd=tmp_path).stdout
    for shape in ((1, 16), (1, 1), (3, 7), (2, 130), (1, 200)):
        x = random.integers(0, 30, shape)
        np.save(tmp_path / "x.npy", x)
        millrace("predict", "m.mill", "x.npy", "-o", "y.npy", "--force", cwd=tmp_path)
        z = words[x] + places[: shape[1]]
        np.testing.assert_allclose(np.load(tmp_path / "y.npy"), np.tril(z @ z.transpose(0, 2, 1)) @ z, rtol=1e-4, atol=1e-3)
    np.save(tmp_path / "x.npy", np.zeros((1, 201), np.int64))
    assert "was tried for 'n' from 1 to 200" in millrace("predict", "m.mill", "x.npy", cwd=tmp_path, code=1).stderr


def test_why_there_is_no_graph_for_other_sizes_names_the_node(millrace, tmp_path):
    nodes = [node("Relu", ["x"], ["r"]), node("MaxPool", ["r"], ["half"], kernel_shape=[2, 2], strides=[2, 2]), node("Relu", ["half"], ["y"])]
    save(tmp_path / "m.onnx", nodes, [("x", 1, ["batch", 3, "h", "w"])], [("y", 1, None)])
    assert "how large 'half' is, follows" in millrace("build", "m.onnx", "-o", "m.mill", "--sizes", "batch=1,h=8,w=8", cwd=tmp_path).stdout


def test_what_exporters_write_for_pictures_and_short_texts_is_for_any_sizes(millrace, tmp_path):
    random = np.random.default_rng(5)
    # ViT's first token, for each picture: −1 where a size is to stay.
    nodes = [
        node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["b"], axis=0), node("Concat", ["b", "stays"], ["to"], axis=0),
        node("Shape", ["to"], ["rank"]), node("ConstantOfShape", ["rank"], ["ones"], value=onnx.helper.make_tensor("one", 7, [1], [1])), node("Mul", ["ones", "minus"], ["negative"]),
        node("Equal", ["to", "negative"], ["same"]), node("Where", ["same", "ones", "to"], ["shape"]), node("Expand", ["cls", "shape"], ["first"]), node("Concat", ["first", "x"], ["y"], axis=1),
    ]
    numbers = {"zero": [0], "stays": [-1, -1], "minus": [-1]}
    constants = [(name, np.array(value, np.int64)) for name, value in numbers.items()] + [("cls", random.standard_normal((1, 1, 8)).astype(np.float32))]
    save(tmp_path / "vit.onnx", nodes, [("x", 1, ["batch", 4, 8])], [("y", 1, ["batch", 5, 8])], constants)
    # CLIP's texts have 77 places, and a mask of them stands in each layer.
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["n"], axis=0), node("Concat", ["n", "n"], ["nn"], axis=0), node("Slice", ["places", "zero", "n", "zero"], ["p"]), node("Add", ["x", "p"], ["h0"])]
    for layer in range(2):
        nodes += [node("Slice", ["mask", "zeros", "nn", "axes"], [f"m{layer}"]), node("Transpose", [f"h{layer}"], [f"t{layer}"], perm=[0, 2, 1]), node("MatMul", [f"h{layer}", f"t{layer}"], [f"q{layer}"]),
                  node("Where", [f"m{layer}", f"q{layer}", "nothing"], [f"w{layer}"]), node("MatMul", [f"w{layer}", f"h{layer}"], [f"h{layer + 1}"])]
    numbers = {"zero": [0], "one": [1], "zeros": [0, 0], "axes": [0, 1]}
    constants = [(name, np.array(value, np.int64)) for name, value in numbers.items()]
    constants += [("places", random.standard_normal((77, 8)).astype(np.float32) / 8), ("mask", np.tril(np.ones((77, 77), bool))), ("nothing", np.float32(0))]
    save(tmp_path / "clip.onnx", nodes, [("x", 1, ["batch", "n", 8])], [("h2", 1, ["batch", "n", 8])], constants)
    for name, shapes in (("vit", [(1, 4, 8), (7, 4, 8)]), ("clip", [(1, 77, 8), (3, 5, 8), (2, 76, 8)])):
        assert "other sizes will be compiled" in millrace("build", f"{name}.onnx", "-o", f"{name}.mill", cwd=tmp_path).stdout
        for shape in shapes:
            np.save(tmp_path / "x.npy", random.standard_normal(shape).astype(np.float32) / 8)
            for kind in ("onnx", "mill"):
                millrace("predict", f"{name}.{kind}", "x.npy", "-o", f"{kind}.npy", "--force", cwd=tmp_path)
            np.testing.assert_allclose(np.load(tmp_path / "mill.npy"), np.load(tmp_path / "onnx.npy"), rtol=1e-5, atol=1e-6)
    assert "n from 1 to 77" in millrace("inspect", "clip.mill", cwd=tmp_path).stdout


def test_run_folders_are_built_too(millrace, tmp_path):
    millrace("letters", tmp_path / "letters", "--train", 300, "--test", 100)
    (tmp_path / "r.toml").write_text('[data]\ntrain = "letters/train"\n[output]\nkind = "class"\n[model]\nkind = "lenet"\n')
    millrace("train", "r.toml", "train.steps=3", "train.batch=20", "--out", "run", cwd=tmp_path)
    millrace("build", "run", "-o", "run.mill", "--sizes", "batch=1|2", cwd=tmp_path)
    shown = json.loads(millrace("inspect", "run.mill", "--json", cwd=tmp_path).stdout)
    assert shown["format"] == "a built model" and shown["parameters"] > 1000
    name, shape = re.match(r"(\w+)\[(.*)\]", shown["inputs"][0]["type"]).groups()
    assert name == "u8" and shape.startswith("batch, ")
    np.save(tmp_path / "x.npy", np.ones([2, *map(int, shape.split(", ")[1:])], np.uint8))
    assert len(millrace("predict", "run.mill", "x.npy", cwd=tmp_path).stdout.splitlines()) == 2
