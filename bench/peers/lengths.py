#!/usr/bin/env python3
"""Texts a second of one session that is asked for texts of any length:
lengths.py MODEL [--rounds 3] [--texts 200] [--most 128]

Texts of 8 to `most` random tokens come one at a time, in fp32. `first_per_s`: the session is new, and most
lengths are, too; `later_per_s`: the same texts once more. Each number is of a process of its own, in turns;
medians. Millrace compiles for a length when it first comes: of the ONNX file, or ("mill") of one built for 64
tokens, whose graph stands for all lengths. ONNX Runtime compiles for none; OpenVINO's model has a dimension
of any size.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile, time
import numpy
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from opening import BUILT, millrace_module, openvino_model, ort_session

ENGINES = ["millrace", "mill", "ort", "openvino"]


def export(name, path):
    """The network for any length and batch."""
    import logging
    import torch
    from models import build
    logging.disable(logging.WARNING)
    model, _, _ = build(name)
    ids = torch.zeros((2, 16), dtype=torch.int64)
    shapes = ({0: torch.export.Dim("batch", min=1, max=4096), 1: torch.export.Dim("length", min=2, max=512 if "bert" in name or name == "minilm" else 256)},)
    torch.onnx.export(model.eval(), (ids,), path, input_names=["x0"], output_names=["y"], opset_version=18, dynamo=True,
                      external_data=False, dynamic_shapes=shapes, verbose=False)


def opened(engine, path):
    """What runs the model once."""
    if engine in ("millrace", "mill"):
        return millrace_module().Session(path).run
    if engine == "ort":
        session = ort_session(path)
        return lambda ids: session.run(None, {"x0": ids})
    request = openvino_model(path).create_infer_request()
    return lambda ids: request.infer([ids], share_inputs=True)


def once(engine, path, texts, most):
    random = numpy.random.default_rng(1)
    asked = [random.integers(0, 256, (1, length)) for length in random.integers(8, most + 1, texts)]
    run = opened(engine, path)
    spent = []
    for _ in range(2):
        began = time.perf_counter()
        for ids in asked:
            run(ids)
        spent.append(texts / (time.perf_counter() - began))
    print(json.dumps({"first_per_s": spent[0], "later_per_s": spent[1]}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--most", type=int, default=128)
    parser.add_argument("--engine", help=argparse.SUPPRESS)  # within: this one, of the file `model`
    given = parser.parse_args()
    if given.engine:
        once(given.engine, given.model, given.texts, given.most)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"{given.model}.onnx")
        export(given.model, path)
        built = f"{path}.mill"
        subprocess.run([os.path.join(BUILT, "millrace"), "build", path, "-o", built], check=True, stdout=sys.stderr)
        lines = {engine: [] for engine in ENGINES}
        for _ in range(given.rounds):
            for engine in ENGINES:
                told = subprocess.run([sys.executable, __file__, built if engine == "mill" else path, "--engine", engine, "--texts", str(given.texts), "--most", str(given.most)],
                                      check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}).stdout
                lines[engine].append(json.loads(told.splitlines()[-1]))
        for engine, found in lines.items():
            print(json.dumps({"peer": engine, **{key: round(statistics.median(line[key] for line in found), 2) for key in found[0]}}))


if __name__ == "__main__":
    main()
