#!/usr/bin/env python3
"""Times engines for ONNX models going on with tokens by a model whose weights are larger than any cache:
decode.py [--rounds 5] [--batch 1] [--tokens 96] [--dtype fp32]

A network as large as GPT-2 (124 million numbers, at random) in a file as exporters write it: it takes keys
and values of the tokens before and gives them with the new one's. ONNX Runtime and OpenVINO are given what
they gave, without a copy; Millrace has a decoder for such files. From a beginning of 32 tokens, the most
probable one each time. Each number is of a process of its own, in turns; medians. `gb_per_s`: bytes of the
weights of all matrices, read once a step.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile, time
import numpy
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from opening import millrace_module, openvino_model, ort_session

ENGINES = ["millrace", "ort", "openvino"]
VOCABULARY, WIDTH, HEADS, DEPTH, PLACES, PROMPT = 50257, 768, 12, 12, 1024, 32
WEIGHTS = DEPTH * 12 * WIDTH * WIDTH + VOCABULARY * WIDTH


def export(path):
    """The file: `past.*` and `present.*` by their usual names."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    random = numpy.random.default_rng(0)
    init, nodes = [], []

    def constant(name, array):
        init.append(numpy_helper.from_array(array, name))
        return name

    def matrix(name, *shape):
        return constant(name, random.standard_normal(shape, numpy.float32) * numpy.float32(0.02))

    def numbers(name, *values):
        return constant(name, numpy.array(values, numpy.int64))

    def node(op, inputs, name, **attributes):
        nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def linear(x, name, inner, outer):
        product = node("MatMul", [x, matrix(f"{name}.weight", inner, outer)], f"{name}.product")
        return node("Add", [product, matrix(f"{name}.bias", outer)], name)

    def norm(x, name):
        one = constant(f"{name}.weight", numpy.ones(WIDTH, numpy.float32))
        return node("LayerNormalization", [x, one, matrix(f"{name}.bias", WIDTH)], name, epsilon=1e-5)

    zero, two, three = numbers("zero", 0), numbers("two", 2), numbers("three", 3)
    heads, flat = numbers("heads", 0, 0, HEADS, WIDTH // HEADS), numbers("flat", 0, 0, WIDTH)
    scale = constant("scale", numpy.float32((WIDTH // HEADS) ** -0.5))
    lowest = constant("lowest", numpy.float32(-1e9))
    seen = constant("seen", numpy.tril(numpy.ones((1, 1, PLACES, PLACES), bool)))
    words = matrix("words", VOCABULARY, WIDTH)
    x = node("Add", [node("Gather", [words, "input_ids"], "word"), node("Gather", [matrix("places", PLACES, WIDTH), "position_ids"], "place")], "x")
    for i in range(DEPTH):
        kept = {}
        qkv = linear(norm(x, f"{i}.norm1"), f"{i}.qkv", WIDTH, 3 * WIDTH)
        nodes.append(helper.make_node("Split", [qkv], [f"{i}.q", f"{i}.k", f"{i}.v"], axis=-1, num_outputs=3))
        for own in "qkv":
            split = node("Reshape", [f"{i}.{own}", heads], f"{i}.{own}.split")
            kept[own] = node("Transpose", [split], f"{i}.{own}.heads", perm=[0, 2, 1, 3])
        for own, name in (("k", "key"), ("v", "value")):
            kept[own] = node("Concat", [f"past_key_values.{i}.{name}", kept[own]], f"present.{i}.{name}", axis=2)
        scores = node("MatMul", [kept["q"], node("Transpose", [kept["k"]], f"{i}.turned", perm=[0, 1, 3, 2])], f"{i}.products")
        scores = node("Mul", [scores, scale], f"{i}.scaled")
        if i == 0:
            total = node("Slice", [node("Shape", [kept["k"]], "sizes"), two, three], "total")
            first = node("Sub", [total, node("Slice", [node("Shape", [kept["q"]], "own.sizes"), two, three], "own")], "first")
            here = node("Slice", [node("Slice", [seen, first, total, two], "rows"), zero, total, three], "here")
        scores = node("Softmax", [node("Where", [here, scores, lowest], f"{i}.scores")], f"{i}.shares", axis=-1)
        mixed = node("Transpose", [node("MatMul", [scores, kept["v"]], f"{i}.mixed")], f"{i}.by_place", perm=[0, 2, 1, 3])
        x = node("Add", [x, linear(node("Reshape", [mixed, flat], f"{i}.joined"), f"{i}.proj", WIDTH, WIDTH)], f"{i}.x")
        hidden = node("Gelu", [linear(norm(x, f"{i}.norm2"), f"{i}.up", WIDTH, 4 * WIDTH)], f"{i}.gelu", approximate="tanh")
        x = node("Add", [x, linear(hidden, f"{i}.down", 4 * WIDTH, WIDTH)], f"{i}.y")
    node("MatMul", [norm(x, "norm"), node("Transpose", [words], "head", perm=[1, 0])], "logits")
    info = helper.make_tensor_value_info
    names = [f"{i}.{name}" for i in range(DEPTH) for name in ("key", "value")]
    sizes = lambda length: ["batch", HEADS, length, WIDTH // HEADS]
    inputs = [info(name, TensorProto.INT64, ["batch", "length"]) for name in ("input_ids", "position_ids")]
    inputs += [info(f"past_key_values.{name}", TensorProto.FLOAT, sizes("past")) for name in names]
    outputs = [info("logits", TensorProto.FLOAT, ["batch", "length", VOCABULARY])]
    outputs += [info(f"present.{name}", TensorProto.FLOAT, sizes("total")) for name in names]
    graph = helper.make_graph(nodes, "gpt2", inputs, outputs, init)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save_model(model, path, save_as_external_data=True, location=os.path.basename(path) + ".data")


def beginnings(batch):
    return numpy.random.default_rng(1).integers(0, VOCABULARY, (batch, PROMPT))


def millrace_steps(path, batch, dtype):
    """Gives the next tokens of all rows, again and again."""
    decoder = millrace_module().Decoder(path, rows=batch, precision=dtype)
    ids = beginnings(batch)
    while True:
        ids = decoder.step(dict(enumerate(ids))).argmax(-1)[:, None]
        yield ids[:, 0]


def followed(batch, names, tensor, run):
    """The same by what is given keys and values: run(inputs) gives logits, and keys and values. `names`: of
    the results; tensor(array) is what goes in."""
    empty = tensor(numpy.zeros((batch, HEADS, 0, WIDTH // HEADS), numpy.float32))
    past = {name.replace("present", "past_key_values"): empty for name in names[1:]}
    ids, place = beginnings(batch), 0
    while True:
        positions = numpy.arange(place, place + ids.shape[1])[None, :].repeat(batch, 0)
        place += ids.shape[1]
        logits, present = run({"input_ids": tensor(ids), "position_ids": tensor(positions), **past})
        past = dict(zip(past, present))
        ids = logits[:, -1].argmax(-1)[:, None]
        yield ids[:, 0]


def ort_steps(path, batch, _dtype):
    import onnxruntime
    session = ort_session(path)
    names = [output.name for output in session.get_outputs()]

    def run(inputs):
        logits, *present = session.run_with_ort_values(names, inputs)
        return logits.numpy(), present

    return followed(batch, names, onnxruntime.OrtValue.ortvalue_from_numpy, run)


def openvino_steps(path, batch, _dtype):
    import openvino
    compiled = openvino_model(path)
    # What one gives stays while the other reads it.
    requests = [compiled.create_infer_request() for _ in range(2)]
    names = [output.any_name for output in compiled.outputs]

    def run(inputs):
        requests.reverse()
        requests[0].infer(inputs, share_inputs=True)
        logits, *present = map(requests[0].get_tensor, names)
        return logits.data, present

    return followed(batch, names, openvino.Tensor, run)


def once(engine, path, batch, tokens, dtype):
    steps = {"millrace": millrace_steps, "ort": ort_steps, "openvino": openvino_steps}[engine](path, batch, dtype)
    found = [next(steps).tolist()]
    began = time.perf_counter()
    for _ in range(tokens):
        found.append(next(steps).tolist())
    seconds = time.perf_counter() - began
    print(json.dumps({"tokens_per_s": batch * tokens / seconds, "tokens": found}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--dtype", default="fp32", help="fp32, which all engines compute, or bf16 of Millrace")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--engine", help=argparse.SUPPRESS)  # within: this one, of the file `model`
    parser.add_argument("--model", help="a file that was written before")
    given = parser.parse_args()
    if given.engine:
        once(given.engine, given.model, given.batch, given.tokens, given.dtype)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = given.model or os.path.join(folder, "gpt2.onnx")
        if not given.model:
            export(path)
        lines = {engine: [] for engine in given.engines.split(",")}
        for _ in range(given.rounds):
            for engine, own in lines.items():
                told = subprocess.run([sys.executable, __file__, "--model", path, "--engine", engine, "--batch", str(given.batch), "--tokens", str(given.tokens), "--dtype", given.dtype],
                                      check=True, stdout=subprocess.PIPE, text=True)
                own.append(json.loads(told.stdout.splitlines()[-1]))
        first = next(iter(lines.values()))[0]["tokens"]
        for engine, own in lines.items():
            rate = statistics.median(line["tokens_per_s"] for line in own)
            alike = sum(a == b for a, b in zip(own[0]["tokens"], first)) / len(first)
            print(json.dumps({"peer": engine, "batch": given.batch, "tokens_per_s": round(rate, 1), "same_tokens": round(alike, 3),
                              "gb_per_s": round(rate / given.batch * WEIGHTS * (2 if given.dtype == "bf16" else 4) / 1e9, 1)}), flush=True)


if __name__ == "__main__":
    main()
