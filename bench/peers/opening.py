#!/usr/bin/env python3
"""How much later a process has its first result than it would have a second one, opening the model included:
opening.py MODEL [--rounds 5] [--dtype fp32]

Each number is of a process of its own, in turns, from a warm page cache; libraries are loaded before the
clock starts, and numpy's BLAS has one thread (a second one spins on the CPUs that are measured while it is
new). Millrace opens a .mill, built for batches of 1 and 4, and runs 1, 4, and 2, for which it was not
built; ONNX Runtime opens the ONNX file, and one that it wrote after its own optimisations; OpenVINO the ONNX
file, and that with its cache filled. One line of JSON each: medians in milliseconds.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile, time
import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILT = os.path.join(ROOT, "build/release")
THREADS = os.cpu_count()
RUNS = [("millrace", 1), ("millrace", 4), ("millrace", 2), ("ort", 1), ("ort-optimised", 1), ("openvino", 1), ("openvino-cached", 1)]


def ort_session(path, optimised=None, again=False):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3  # that a file with optimisations is for this CPU is known
    if optimised:
        options.optimized_model_filepath = optimised
    if again:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def millrace_module():
    os.environ.setdefault("MILLRACE_LIBRARY", os.path.join(BUILT, "libmillrace.so"))
    sys.path.insert(0, os.path.join(ROOT, "examples/python"))
    import millrace
    return millrace


def openvino_model(path):
    """In f32, with the sizes that the file has, whatever they are."""
    import openvino
    return openvino.Core().compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": THREADS, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})


def opened(engine, stem, arrays, dtype):
    """What opens the model, with the engine's library loaded, and gives what runs it once."""
    if engine == "millrace":
        millrace = millrace_module()
        def open_it():
            session = millrace.Session(f"{stem}.mill", precision=dtype)
            return lambda: session.run(*arrays)
    elif engine.startswith("ort"):
        import onnxruntime
        feed = {f"x{i}": array for i, array in enumerate(arrays)}
        again = engine == "ort-optimised"
        def open_it():
            session = ort_session(f"{stem}.ort.onnx" if again else f"{stem}.onnx", again=again)
            return lambda: session.run(None, feed)
    else:
        import openvino
        def open_it():
            core = openvino.Core()
            if engine == "openvino-cached":
                core.set_property({"CACHE_DIR": f"{stem}.openvino"})
            model = core.read_model(f"{stem}.onnx")
            model.reshape({f"x{i}": list(array.shape) for i, array in enumerate(arrays)})
            request = core.compile_model(model, "CPU", {
                "INFERENCE_NUM_THREADS": THREADS, "PERFORMANCE_HINT": "LATENCY",
                "INFERENCE_PRECISION_HINT": "bf16" if dtype == "bf16" else "f32"}).create_infer_request()
            return lambda: request.infer(arrays, share_inputs=True)
    return open_it


def one(engine, stem, batch, dtype):
    """Milliseconds in this process: of opening and the first result, less a later one's."""
    with numpy.load(f"{stem}.{batch}.npz") as file:
        arrays = [file[name] for name in sorted(file.files)]
    open_it = opened(engine, stem, arrays, dtype)
    begin = time.perf_counter()
    run = open_it()
    run()
    first, later = time.perf_counter() - begin, []
    for _ in range(5):
        begin = time.perf_counter()
        run()
        later.append(time.perf_counter() - begin)
    return {"more_ms": 1e3 * (first - statistics.median(later)), "later_ms": 1e3 * statistics.median(later)}


def prepare(model, dtype, folder):
    """Writes what the engines open, and inputs of each batch; gives the files' common stem."""
    import torch
    from bench import export
    from models import build
    torch.manual_seed(0)
    module, make, _ = build(model)
    stem = os.path.join(folder, model)
    export(module.eval(), make(2), f"{stem}.onnx")
    for batch in sorted({batch for _, batch in RUNS}):
        numpy.savez(f"{stem}.{batch}.npz", *(array.numpy() for array in make(batch)))
    subprocess.run([os.path.join(BUILT, "millrace"), "build", f"{stem}.onnx", "-o", f"{stem}.mill", "--sizes", "batch=1|4",
                    "--fill", "batch", "--precision", dtype], check=True, stdout=subprocess.DEVNULL)
    ort_session(f"{stem}.onnx", optimised=f"{stem}.ort.onnx")
    return stem


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--dtype", default="fp32")
    p.add_argument("--one", nargs=3, metavar=("ENGINE", "STEM", "BATCH"), help="measure in this process; what the others are made of")
    a = p.parse_args()
    if a.one:
        print(json.dumps(one(a.one[0], a.one[1], int(a.one[2]), a.dtype)))
        return
    runs = [run for run in RUNS if a.dtype == "fp32" or run[0] in ("millrace", "openvino", "openvino-cached")]
    with tempfile.TemporaryDirectory() as folder:
        stem = prepare(a.model, a.dtype, folder)
        spent = {run: [] for run in runs}
        for turn in range(a.rounds + 1):
            for engine, batch in runs:
                text = subprocess.run([sys.executable, __file__, a.model, "--dtype", a.dtype, "--one", engine, stem, str(batch)],
                                      check=True, capture_output=True, text=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}).stdout
                if turn > 0:  # the first reads files and fills caches
                    spent[engine, batch].append(json.loads(text.splitlines()[-1]))
    for (engine, batch), found in spent.items():
        print(json.dumps({"model": a.model, "dtype": a.dtype, "peer": engine, "batch": batch,
                          **{key: round(statistics.median(each[key] for each in found), 1) for key in found[0]},
                          "most_ms": round(max(each["more_ms"] for each in found), 1)}))


if __name__ == "__main__":
    main()
