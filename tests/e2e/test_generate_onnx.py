"""Models of the next token from ONNX files go on with texts as ONNX Runtime says they do."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, WIDTH, HEADS, PLACES = 256, 24, 3, 90


def write_model(path, past=True, bias=False, causal=True, threshold=False):
    """One layer as exporters write it: a table of what may be seen is cut by sizes, scores are replaced where
    it says so, padding is added, and keys and values of tokens before are inputs."""
    draw = np.random.default_rng(3)
    matrix = lambda *shape: draw.normal(0, 0.4, shape).astype(np.float32)
    weights = {"words": matrix(VOCABULARY, WIDTH), "places": matrix(PLACES, WIDTH), "head": matrix(WIDTH, VOCABULARY)}
    weights |= {f"{name}.weight": matrix(WIDTH, WIDTH) for name in ("q", "k", "v", "o")}
    weights["scale"] = np.float32(0.35)
    weights["lowest"] = np.array(np.finfo(np.float32).min, np.float32)
    weights["seen"] = np.tril(np.ones((1, 1, PLACES, PLACES), bool)) if causal else np.ones((1, 1, PLACES, PLACES), bool)
    numbers = {"heads": [0, 0, HEADS, -1], "flat": [0, 0, WIDTH], "zero": [0], "two": [2], "three": [3], "inner": [1, 2], "only": 2}
    init = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    init += [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in numbers.items()]
    node = helper.make_node
    nodes = [
        node("Gather", ["words", "input_ids"], ["word"], axis=0),
        node("Gather", ["places", "position_ids"], ["place"], axis=0),
        node("Add", ["word", "place"], ["x"]),
    ]
    for name in ("q", "k", "v"):
        nodes += [
            node("MatMul", ["x", f"{name}.weight"], [f"{name}.rows"]),
            node("Reshape", [f"{name}.rows", "heads"], [f"{name}.split"]),
            node("Transpose", [f"{name}.split"], [f"{name}.own"], perm=[0, 2, 1, 3]),
        ]
    for name, long in (("k", "key"), ("v", "value")):
        nodes.append(node("Concat", [f"past_key_values.0.{long}", f"{name}.own"], [f"present.0.{long}"], axis=2) if past
                     else node("Identity", [f"{name}.own"], [f"present.0.{long}"]))
    nodes += [
        node("Transpose", ["present.0.key"], ["turned"], perm=[0, 1, 3, 2]),
        node("MatMul", ["q.own", "turned"], ["products"]),
        node("Mul", ["products", "scale"], ["scaled"]),
        node("Shape", ["present.0.key"], ["all.sizes"]),
        node("Slice", ["all.sizes", "two", "three"], ["all"]),
        node("Shape", ["q.own"], ["own.sizes"]),
        node("Slice", ["own.sizes", "two", "three"], ["own"]),
        node("Sub", ["all", "own"], ["first"]),
        node("Slice", ["seen", "first", "all", "two"], ["seen.rows"]),
        node("Slice", ["seen.rows", "zero", "all", "three"], ["seen.here"]),
        node("Where", ["seen.here", "scaled", "lowest"], ["looking.back"]),
        node("Cast", ["attention_mask"], ["there"], to=TensorProto.FLOAT),
        node("Sub", ["one", "there"], ["missing"]),
        node("Mul", ["missing", "lowest"], ["hidden"]),
        node("Unsqueeze", ["hidden", "inner"], ["padding"]),
        node("Add", ["looking.back", "padding"], ["scores"]),
    ]
    init.append(numpy_helper.from_array(np.array(1, np.float32), "one"))
    if bias:  # nearer keys count more
        init.append(numpy_helper.from_array(-np.abs(np.subtract.outer(np.arange(PLACES), np.arange(PLACES))).astype(np.float32)[None, None] / 9, "slopes"))
        nodes += [node("Slice", ["slopes", "first", "all", "two"], ["slopes.rows"]), node("Slice", ["slopes.rows", "zero", "all", "three"], ["slopes.here"]),
                  node("Add", ["scores", "slopes.here"], ["sloped"])]
    nodes += [
        node("Softmax", ["sloped" if bias else "scores"], ["shares"], axis=-1),
        node("MatMul", ["shares", "present.0.value"], ["mixed"]),
        node("Transpose", ["mixed"], ["by.place"], perm=[0, 2, 1, 3]),
        node("Reshape", ["by.place", "flat"], ["joined"]),
        node("MatMul", ["joined", "o.weight"], ["out"]),
        node("Add", ["x", "out"], ["y"]),
    ]
    if threshold:  # short texts are done otherwise
        init += [numpy_helper.from_array(np.array(20, np.int64), "twenty"), numpy_helper.from_array(np.array(-2, np.float32), "reverse")]
        nodes += [node("Greater", ["own", "twenty"], ["long"]), node("Where", ["long", "one", "reverse"], ["factor"]), node("Mul", ["y", "factor"], ["scaled.y"])]
    nodes.append(node("MatMul", ["scaled.y" if threshold else "y", "head"], ["logits"]))
    info = helper.make_tensor_value_info
    kept = ["batch", HEADS, "past" if past else 0, WIDTH // HEADS]
    inputs = [info("input_ids", TensorProto.INT64, ["batch", "length"]), info("attention_mask", TensorProto.INT64, ["batch", "total"]),
              info("position_ids", TensorProto.INT64, ["batch", "length"])]
    outputs = [info("logits", TensorProto.FLOAT, ["batch", "length", VOCABULARY])]
    for long in ("key", "value"):
        if past:
            inputs.append(info(f"past_key_values.0.{long}", TensorProto.FLOAT, kept))
        outputs.insert(0, info(f"present.0.{long}", TensorProto.FLOAT, ["batch", HEADS, "total", WIDTH // HEADS]))
    graph = helper.make_graph(nodes, "next", inputs, outputs, init)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), path)


def followed(session, ids, count):
    """The most probable tokens, through ONNX Runtime, which is given keys and values of those before."""
    empty = np.zeros((1, HEADS, 0, WIDTH // HEADS), np.float32)
    kept, new, found = {"key": empty, "value": empty}, list(ids), []
    length = 0
    for _ in range(count):
        length += len(new)
        logits, key, value = session.run(["logits", "present.0.key", "present.0.value"], {
            "input_ids": np.array([new]), "attention_mask": np.ones((1, length), np.int64),
            "position_ids": np.arange(length - len(new), length)[None],
            "past_key_values.0.key": kept["key"], "past_key_values.0.value": kept["value"]})
        kept = {"key": key, "value": value}
        new = [int(logits[0, -1].argmax())]
        found += new
    return found


def generated(millrace, folder, *arguments):
    return [json.loads(line) for line in millrace("generate", *arguments, "--json", cwd=folder).stdout.splitlines()]


@pytest.mark.parametrize("bias", [False, True])
def test_a_model_with_keys_and_values_of_its_own_is_followed(millrace, tmp_path, bias):
    write_model(tmp_path / "next.onnx", bias=bias)
    session = onnxruntime.InferenceSession(tmp_path / "next.onnx")
    texts = ["the king", "no", "of his horse and the land, all of it", "x"]
    rows = generated(millrace, tmp_path, "next.onnx", *texts, "--tokenizer", "byte", "--tokens", 40, "--batch", 3)
    assert [row["prompt"] for row in rows] == texts
    for row in rows:
        assert row["tokens"] == followed(session, row["prompt"].encode(), 40) and row["end"] == "length"
    # As many places as the table has; a text that becomes longer goes on from its last half.
    assert len(generated(millrace, tmp_path, "next.onnx", "the king", "--tokenizer", "byte", "--tokens", 150)[0]["tokens"]) == 150
    short = generated(millrace, tmp_path, "next.onnx", "the king", "--tokenizer", "byte", "--tokens", 8, "--length", 16)[0]
    assert short["tokens"] == rows[0]["tokens"][:8]
    said = millrace("generate", "next.onnx", "x", "--tokenizer", "byte", "--length", PLACES + 1, cwd=tmp_path, code=1).stderr
    assert "next.onnx: it cannot go on with texts" in said and f"{PLACES}" in said
    narrow = generated(millrace, tmp_path, "next.onnx", "the king", "--tokenizer", "byte", "--precision", "bf16", "--tokens", 3)[0]
    assert len(narrow["tokens"]) == 3


def test_weights_in_a_file_of_their_own_say_the_same(millrace, tmp_path):
    write_model(tmp_path / "next.onnx")
    (tmp_path / "apart").mkdir()
    onnx.save_model(onnx.load(tmp_path / "next.onnx"), tmp_path / "apart/next.onnx", save_as_external_data=True, location="next.data", size_threshold=0)
    one, other = (generated(millrace, tmp_path, path, "the king", "--tokenizer", "byte", "--tokens", 40) for path in ("next.onnx", "apart/next.onnx"))
    assert one == other


def test_a_file_that_is_not_there_is_said(millrace, tmp_path):
    assert "none.onnx: there is no such file" in millrace("generate", "none.onnx", "x", "--tokenizer", "byte", cwd=tmp_path, code=1).stderr


def test_the_tokenizer_beside_it_is_taken(millrace, tmp_path):
    write_model(tmp_path / "next.onnx")
    said = millrace("generate", "next.onnx", "x", cwd=tmp_path, code=1).stderr
    assert "what are its tokens?" in said and "--tokenizer tokenizer.json" in said
    vocabulary = {chr(97 + i): i for i in range(26)} | {"</s>": 26}
    (tmp_path / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "pre_tokenizer": None, "decoder": None,
        "added_tokens": [{"id": 26, "content": "</s>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}],
        "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "</s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                           "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                           "special_tokens": {"</s>": {"id": "</s>", "ids": [26], "tokens": ["</s>"]}}},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "vocab": vocabulary, "merges": []}}))
    session = onnxruntime.InferenceSession(tmp_path / "next.onnx")
    # What the tokenizer puts in front of a text is there, also where nothing else is.
    for row, ids in zip(generated(millrace, tmp_path, "next.onnx", "king", "--tokens", 5), [[26, 10, 8, 13, 6]]):
        tokens = followed(session, ids, 5)
        assert row["tokens"] == tokens[:len(row["tokens"])] and (len(row["tokens"]) == 5 or tokens[len(row["tokens"])] == 26)
    assert generated(millrace, tmp_path, "next.onnx", "--tokens", 5)[0]["tokens"][:1] == followed(session, [26], 1)


@pytest.mark.parametrize("change, message", [
    ({"causal": False}, "later tokens"),
    ({"threshold": True}, "depends on how long the whole text is")])
def test_what_cannot_be_done_token_by_token_is_said(millrace, tmp_path, change, message):
    write_model(tmp_path / "next.onnx", **change)
    said = millrace("generate", "next.onnx", "x", "--tokenizer", "byte", cwd=tmp_path, code=1).stderr
    assert "next.onnx: it cannot go on with texts" in said and message in said, said


def test_a_run_goes_on_as_its_exported_file_and_so_does_what_is_trained_on_from_that(millrace, tmp_path):
    (tmp_path / "corpus.txt").write_text("the king and the sea and of his horse and the land sings of no man.\n" * 800)
    recipe = ('[data]\ntrain = "corpus.txt"\n[input]\nkind = "tokens"\nlength = 64\n[output]\nkind = "tokens"\n'
              '[model]\n{model}\n[train]\nsteps = {steps}\nbatch = 16\noptimizer = {{ kind = "adamw", lr = 3e-3 }}\n')
    (tmp_path / "recipe.toml").write_text(recipe.format(model='kind = "gpt"\nwidth = 32\ndepth = 2\nheads = 2', steps=60))
    millrace("train", "recipe.toml", "--out", "run", cwd=tmp_path)
    texts = ["the king", "of his horse and", "s"]
    own = generated(millrace, tmp_path, "run", *texts, "--tokens", 30)
    millrace("export", "run", "model.onnx", cwd=tmp_path)
    assert generated(millrace, tmp_path, "model.onnx", *texts, "--tokenizer", "byte", "--tokens", 30) == own
    (tmp_path / "on.toml").write_text(recipe.format(model='kind = "model.onnx"', steps=3))
    millrace("train", "on.toml", "--out", "on", cwd=tmp_path)
    trained = generated(millrace, tmp_path, "on", *texts, "--tokens", 30)
    millrace("export", "on", "on.onnx", cwd=tmp_path)
    session = onnxruntime.InferenceSession(tmp_path / "on.onnx")
    name = session.get_inputs()[0].name
    for row in trained:
        ids = list(row["prompt"].encode())
        for token in row["tokens"]:
            padded = np.array([ids + [0] * (64 - len(ids))], np.int64)
            logits = session.run(None, {name: padded})[0][0, len(ids) - 1]
            assert logits[token] >= logits.max() - 1e-3 * np.abs(logits).max()
            ids.append(token)
