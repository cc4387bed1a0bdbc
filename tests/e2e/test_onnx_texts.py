"""ONNX files of models that read texts go on being trained."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import write_texts
from onnx import TensorProto, helper, numpy_helper
from test_fine_tuning import newest, tensors
from test_train import assert_same_run

RECIPE = """
[data]
train = "messages.tsv"
test_share = 0.2
[input]
kind = "text"
column = "message"
tokenizer = "byte"
sequences = "{sequences}"
length = 60
[output]
kind = "class"
column = "label"
[model]
kind = "texts.onnx"
[train]
steps = 240
batch = 16
optimizer = {{ kind = "adamw", lr = 0.05 }}
checkpoint_steps = 80
log_every = 1
"""

ROWS, WIDTH = 256, 12


def write_model(path, inputs=("input_ids", "attention_mask", "token_type_ids"), rows=ROWS, mask=TensorProto.INT64, places=64, head=True, looked_up=False, places_by=None):
    """As exporters write it: numbers of places are a buffer that is cut by the length, hidden states are
    averaged where the mask says so, and scores of places by a Reshape of sizes. `looked_up`: the mask is
    found by the numbers of the row and of the place, as Transformers does. `places_by`: places are counted
    where that input is not 0, as RoBERTa does."""
    draw = np.random.default_rng(5)
    weights = {
        "words": draw.normal(0, 0.5, (rows, WIDTH)),
        "places": draw.normal(0, 0.5, (places, WIDTH)),
        "types": draw.normal(0, 0.5, (2, WIDTH)),
        "inner": draw.normal(0, 0.5, (WIDTH, WIDTH)),
        "head.weight": draw.normal(0, 0.5, (2, WIDTH)),
        "head.bias": draw.normal(0, 0.1, 2),
    }
    init = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()]
    for name, value in {"numbers": np.arange(places)[None], "zero": [0], "one": [1], "two": [2], "heads": [3], "rest": [-1]}.items():
        init.append(numpy_helper.from_array(np.array(value, np.int64), name))
    node = helper.make_node
    nodes = [
        node("Shape", ["input_ids"], ["sizes"]),
        node("Gather", ["sizes", "one"], ["length"], axis=0),
        node("Gather", ["sizes", "zero"], ["count"], axis=0),
        node("Slice", ["numbers", "zero", "length", "one"], ["own"]),
        node("Gather", ["words", "input_ids"], ["w"]),
        node("Gather", ["places", "counted" if places_by else "own"], ["p"]),
        node("Add", ["w", "p"], ["wp"]),
        node("Concat", ["count", "length", "heads", "rest"], ["split"], axis=0),
    ]
    if places_by:
        init.append(numpy_helper.from_array(np.array(1, np.int64), "along"))
        counting = [
            node("Equal", [places_by, "zero"], ["is padding"]),
            node("Not", ["is padding"], ["is there"]),
            node("Cast", ["is there"], ["one each"], to=TensorProto.INT64),
            node("CumSum", ["one each", "along"], ["sums"]),
            node("Mul", ["sums", "one each"], ["counted"]),
        ]
        nodes = counting + nodes
    last = "wp"
    if "token_type_ids" in inputs:
        nodes += [node("Gather", ["types", "token_type_ids"], ["t"]), node("Add", ["wp", "t"], ["wpt"])]
        last = "wpt"
    nodes += [
        node("MatMul", [last, "inner"], ["mixed"]),
        node("Reshape", ["mixed", "split"], ["split_heads"]),  # a head's four numbers by themselves
        node("Softmax", ["split_heads"], ["soft"], axis=-1),
        node("Concat", ["count", "length", "rest"], ["flat"], axis=0),
        node("Reshape", ["soft", "flat"], ["x"]),
    ]
    result = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 2])
    if not head:
        result = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "n", WIDTH])
        init = [each for each in init if "head." not in each.name]
    elif "attention_mask" in inputs:
        if looked_up:
            init += [numpy_helper.from_array(np.array(number, np.int64), name) for name, number in (("nought", 0), ("step", 1))]
            nodes.append(node("Concat", ["count", "length"], ["all"], axis=0))
            for axis, name in enumerate(("count", "length")):
                nodes += [
                    node("Squeeze", [name, "zero"], [f"{name}.end"]),
                    node("Range", ["nought", f"{name}.end", "step"], [f"{name}.all"]),
                    node("Unsqueeze", [f"{name}.all", "zero" if axis else "one"], [f"{name}.along"]),
                    node("Expand", [f"{name}.along", "all"], [f"{name}.each"]),
                    node("Unsqueeze", [f"{name}.each", "two"], [f"{name}.index"]),
                ]
            nodes += [node("Concat", ["count.index", "length.index"], ["index"], axis=2), node("GatherND", ["attention_mask", "index"], ["found"])]
        nodes += [
            node("Cast", ["found" if looked_up else "attention_mask"], ["m"], to=TensorProto.FLOAT),
            node("Unsqueeze", ["m", "two"], ["m3"]),
            node("Mul", ["x", "m3"], ["there"]),
            node("ReduceSum", ["there", "one"], ["sum"], keepdims=0),
            node("ReduceSum", ["m3", "one"], ["tokens"], keepdims=0),
            node("Div", ["sum", "tokens"], ["mean"]),
        ]
    else:
        nodes.append(node("ReduceMean", ["x"], ["mean"], axes=[1], keepdims=0))
    if head:
        nodes.append(node("Gemm", ["mean", "head.weight", "head.bias"], ["logits"], transB=1))
    given = [helper.make_tensor_value_info(name, mask if name == "attention_mask" else TensorProto.INT64, ["batch", "n"]) for name in inputs]
    graph = helper.make_graph(nodes, "texts", given, [result], init)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def prepare(folder, sequences="buckets 2", **model):
    write_texts(folder)
    write_model(folder / "texts.onnx", **model)
    (folder / "recipe.toml").write_text(RECIPE.format(sequences=sequences))


def tokens_of(text):
    """[1, length]; of an empty text the padding's number."""
    return np.frombuffer((text or "\0").encode(), np.uint8).astype(np.int64)[None]


def with_weights(path, weights, out):
    """The file with other numbers in its initialisers."""
    model = onnx.load(path)
    changed = 0
    for each in model.graph.initializer:
        found = next((value for name, value in weights.items() if name == f"model.{each.name}"), None)
        if found is not None:
            changed += not np.array_equal(found, numpy_helper.to_array(each))
            each.CopyFrom(numpy_helper.from_array(found.astype(np.float32), each.name))
    onnx.save(model, out)
    return changed


TEXTS = ["the king sings", "", "no land never sleeps win a prize", "horse", "of the king to his horse and his land never"]


@pytest.mark.parametrize("mask", [TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL])
def test_texts_of_several_lengths(millrace, tmp_path, mask):
    """What was trained, read by ONNX Runtime from the file with the trained numbers in it, gives the same
    logits for texts of any length: the mask is that of the text, its types are zeros."""
    prepare(tmp_path, mask=mask)
    out = millrace("train", "recipe.toml", "--out", "run", cwd=tmp_path).stdout
    assert "takes no mask" not in out
    assert with_weights(tmp_path / "texts.onnx", tensors(newest(tmp_path / "run")), tmp_path / "trained.onnx") >= 6
    session = onnxruntime.InferenceSession(tmp_path / "trained.onnx")
    dtype = {TensorProto.INT64: np.int64, TensorProto.FLOAT: np.float32, TensorProto.BOOL: bool}[mask]
    lines = millrace("predict", "run", *TEXTS, "--json", cwd=tmp_path).stdout.splitlines()
    assert len(lines) == len(TEXTS)
    for text, line in zip(TEXTS, lines, strict=True):
        ids = tokens_of(text)
        given = {"input_ids": ids, "attention_mask": np.ones(ids.shape, dtype), "token_type_ids": np.zeros_like(ids)}
        np.testing.assert_allclose(json.loads(line)["logits"], session.run(None, given)[0][0], rtol=1e-5, atol=1e-5)
    assert json.loads(millrace("eval", "run", "--json", cwd=tmp_path).stdout)["accuracy"] > 0.9


def test_places_may_be_counted_by_the_tokens(millrace, tmp_path):
    """The table of places has fewer rows than there are tokens, and is not taken for theirs."""
    prepare(tmp_path, places_by="input_ids")
    millrace("train", "recipe.toml", "--out", "run", cwd=tmp_path)
    with_weights(tmp_path / "texts.onnx", tensors(newest(tmp_path / "run")), tmp_path / "trained.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "trained.onnx")
    lines = millrace("predict", "run", *TEXTS, "--json", cwd=tmp_path).stdout.splitlines()
    for text, line in zip(TEXTS, lines, strict=True):
        ids = tokens_of(text)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        np.testing.assert_allclose(json.loads(line)["logits"], session.run(None, given)[0][0], rtol=1e-5, atol=1e-5)


def test_features_of_tokens_get_a_head_behind_their_mean(millrace, tmp_path):
    prepare(tmp_path, head=False)
    result = millrace("train", "recipe.toml", "--out", "run", cwd=tmp_path)
    assert "the head behind the mean over tokens of 'x' is new" in result.stdout + result.stderr
    weights = tensors(newest(tmp_path / "run"))
    with_weights(tmp_path / "texts.onnx", weights, tmp_path / "trained.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "trained.onnx")
    lines = millrace("predict", "run", *TEXTS, "--json", cwd=tmp_path).stdout.splitlines()
    for text, line in zip(TEXTS, lines, strict=True):
        ids = tokens_of(text)
        given = {"input_ids": ids, "token_type_ids": np.zeros_like(ids)}
        given = {each.name: given.get(each.name, np.ones_like(ids)) for each in session.get_inputs()}
        mean = session.run(None, given)[0][0].mean(0) if text else np.zeros(WIDTH)
        np.testing.assert_allclose(json.loads(line)["logits"], weights["model.head.weight"] @ mean + weights["model.head.bias"], rtol=1e-4, atol=1e-5)
    assert json.loads(millrace("eval", "run", "--json", cwd=tmp_path).stdout)["accuracy"] > 0.9


def test_masked_tokens(millrace, tmp_path):
    """Padded rows of one text each; several in a row are refused, as the file would see them as one."""
    prepare(tmp_path, head=False, rows=257)  # the last one is the mask
    recipe = RECIPE.format(sequences="padded").replace("checkpoint_steps = 80", "checkpoint_steps = 240")
    recipe = recipe.replace('kind = "text"', 'kind = "tokens"\nmasked = "0.15 3"').replace('kind = "class"\ncolumn = "label"', 'kind = "tokens"')
    (tmp_path / "recipe.toml").write_text(recipe.replace('kind = "texts.onnx"', 'kind = "texts.onnx"\noutput_value = "x"'))
    millrace("train", "recipe.toml", "--out", "run", cwd=tmp_path)
    assert json.loads(millrace("eval", "run", "--json", cwd=tmp_path).stdout)["log-loss"] < 3.2
    refused = millrace("train", "recipe.toml", "input.sequences=packed", "--out", "packed", cwd=tmp_path, code=1)
    assert "rows of several texts" in refused.stderr


@pytest.mark.parametrize("form", [{}, {"looked_up": True, "mask": TensorProto.BOOL}, {"places_by": "input_ids"}], ids=["plain", "mask looked up", "places counted"])
def test_it_is_resumed_and_exported_as_any_model(millrace, tmp_path, form):
    prepare(tmp_path, **form)
    millrace("train", "recipe.toml", "--out", "whole", cwd=tmp_path)
    millrace("train", "recipe.toml", "--out", "part", cwd=tmp_path)
    for file in (tmp_path / "part/checkpoints").iterdir():
        if int(file.name[5:-12]) > 80:
            file.unlink()
    (tmp_path / "texts.onnx").unlink()  # the run has its own
    millrace("train", "--resume", "part", cwd=tmp_path)
    assert_same_run(tmp_path / "part", tmp_path / "whole")
    millrace("export", "whole", "out.onnx", cwd=tmp_path)
    session = onnxruntime.InferenceSession(tmp_path / "out.onnx")
    length = session.get_inputs()[0].shape[1]
    lines = millrace("predict", "whole", *TEXTS, "--json", cwd=tmp_path).stdout.splitlines()
    for text, line in zip(TEXTS, lines, strict=True):
        tokens = np.zeros((1, length), np.int64)
        tokens[0, : len(text)] = np.frombuffer(text.encode(), np.uint8)
        segments = (np.arange(length) < len(text)).astype(np.int64)[None]
        logits = session.run(["logits"], {"tokens": tokens, "segments": segments})[0][0]
        np.testing.assert_allclose(json.loads(line)["logits"], logits, rtol=1e-5, atol=1e-5)


def test_a_file_of_one_length_wants_all_padded(millrace, tmp_path):
    """Its places are a table of just that length."""
    prepare(tmp_path, places=60)
    model = onnx.load(tmp_path / "texts.onnx")
    for node in model.graph.node:
        node.input[:] = ["numbers" if name == "own" else name for name in node.input]
    onnx.save(model, tmp_path / "texts.onnx")
    refused = millrace("train", "recipe.toml", "--out", "run", cwd=tmp_path, code=1)
    assert 'input.sequences = "padded"' in refused.stderr
    millrace("train", "recipe.toml", "input.sequences=padded", "--out", "padded", cwd=tmp_path)


def test_a_file_without_a_mask_says_what_that_means(millrace, tmp_path):
    prepare(tmp_path, inputs=("input_ids",))
    result = millrace("train", "recipe.toml", "--out", "run", cwd=tmp_path)
    assert "takes no mask" in result.stdout + result.stderr


@pytest.mark.parametrize("form", ["large numbers", "triangle"])
def test_the_next_token(millrace, tmp_path, form):
    """A file with logits for each place, whose causal mask is a buffer that is cut to the length, and no
    weight."""
    write_texts(tmp_path)
    draw = np.random.default_rng(6)
    init = [
        numpy_helper.from_array(draw.normal(0, 0.3, shape).astype(np.float32), name)
        for name, shape in {"words": (256, WIDTH), "q": (WIDTH, WIDTH), "head": (WIDTH, 256)}.items()
    ]
    triangle = np.tril(np.ones((64, 64), np.float32))
    init.append(numpy_helper.from_array(triangle if form == "triangle" else (1 - triangle) * np.float32(-1e9), "causal"))
    init += [numpy_helper.from_array(np.array(value, np.float32), name) for name, value in (("whole", 1), ("much", 1e9))]
    for name, value in {"zero": [0], "one": [1], "axes": [0, 1], "start": [0, 0]}.items():
        init.append(numpy_helper.from_array(np.array(value, np.int64), name))
    node = helper.make_node
    nodes = [
        node("Gather", ["words", "ids"], ["x"]),
        node("MatMul", ["x", "q"], ["query"]),
        node("Transpose", ["x"], ["turned"], perm=[0, 2, 1]),
        node("MatMul", ["query", "turned"], ["scores"]),
        node("Shape", ["ids"], ["sizes"]),
        node("Gather", ["sizes", "one"], ["n"], axis=0),
        node("Concat", ["n", "n"], ["end"], axis=0),
        node("Slice", ["causal", "start", "end", "axes"], ["cut"]),
        *(
            [
                node("Sub", ["cut", "whole"], ["off"]),
                node("Mul", ["off", "much"], ["down"]),
                node("Mul", ["scores", "cut"], ["kept"]),
                node("Add", ["kept", "down"], ["masked"]),
            ]
            if form == "triangle"
            else [node("Add", ["scores", "cut"], ["masked"])]
        ),
        node("Softmax", ["masked"], ["soft"], axis=-1),
        node("MatMul", ["soft", "x"], ["seen"]),
        node("MatMul", ["seen", "head"], ["logits"]),
    ]
    given = [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "n"])]
    graph = helper.make_graph(nodes, "next", given, [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "n", 256])], init)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "next.onnx")
    recipe = RECIPE.format(sequences="windows").replace("texts.onnx", "next.onnx").replace("messages.tsv", "corpus.txt")
    recipe = recipe.replace('kind = "text"\ncolumn = "message"', 'kind = "tokens"').replace('kind = "class"\ncolumn = "label"', 'kind = "tokens"')
    (tmp_path / "recipe.toml").write_text(recipe)
    millrace("train", "recipe.toml", "--out", "run", cwd=tmp_path)
    assert json.loads(millrace("eval", "run", "--json", cwd=tmp_path).stdout)["log-loss"] < 2.8
    assert with_weights(tmp_path / "next.onnx", tensors(newest(tmp_path / "run")), tmp_path / "trained.onnx") == 3
    millrace("export", "run", "out.onnx", cwd=tmp_path)
    exported, own = (onnxruntime.InferenceSession(tmp_path / name) for name in ("out.onnx", "trained.onnx"))
    ids = draw.integers(97, 123, (2, 60))
    np.testing.assert_allclose(exported.run(["logits"], {"tokens": ids})[0], own.run(None, {"ids": ids})[0], rtol=1e-4, atol=1e-4)


def test_refusals(millrace, tmp_path):
    prepare(tmp_path, rows=200)

    def refusal(*changes):
        result = millrace("train", "recipe.toml", *changes, "--out", "run", cwd=tmp_path, code=1)
        assert not (tmp_path / "run").exists()
        return result.stderr

    assert "it knows 200 tokens, and the recipe's tokenizer has 256" in refusal()
    write_model(tmp_path / "texts.onnx", places=32)
    assert "texts.onnx" in refusal()  # has places for shorter texts only
    write_model(tmp_path / "texts.onnx")
    model = onnx.load(tmp_path / "texts.onnx")
    for each in model.graph.input:
        each.type.tensor_type.shape.dim[1].dim_value = 48
    onnx.save(model, tmp_path / "texts.onnx")
    assert "input.length = 48" in refusal()
    for each in model.graph.input:
        each.type.tensor_type.shape.dim[1].dim_param = "n"
    model.graph.input[1].name = "something"
    for node in model.graph.node:
        node.input[:] = ["something" if name == "attention_mask" else name for name in node.input]
    onnx.save(model, tmp_path / "texts.onnx")
    assert "takes i64[batch, n]" in refusal()
