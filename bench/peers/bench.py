#!/usr/bin/env python3
"""Times the peers on this machine: bench.py infer|train MODEL BATCH
[--with torch,script,compile,ort,openvino,millrace] [--dtype fp32,bf16,int8] [--bound] [--ahead]

One line of JSON per peer: median, best and spread over rounds that interleave the peers, so that a noisy
machine hits all of them alike, and the peak memory that model and peer added to the process (`rss_mb`: with
one peer and one dtype a call). millrace: the library of build/release (or MILLRACE_LIBRARY) as
examples/python/millrace.py calls it, numpy in and numpy out. `--bound`: ort, openvino and millrace are told
their arrays once, before. int8 is ONNX Runtime's static quantisation and OpenVINO with NNCF, on random
calibration data. `--vs 'COMMAND'` runs COMMAND in the same rounds; the last word that it prints must be items
per second. `--export DIR` writes MODEL.onnx there and stops. `--dump DIR` writes what another engine needs to
prove that it trains the same network: MODEL.safetensors (initial parameters and buffers), MODEL.inputs.npz
and MODEL.losses.json (the loss of 20 steps in fp32 on that one batch), and stops.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile, time
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch
from models import build


def export(model, inputs, path):
    if not os.path.exists(path):
        names = [f"x{i}" for i in range(len(inputs))]
        batch = torch.export.Dim("batch", min=1, max=4096)
        import logging
        logging.disable(logging.WARNING)
        torch.onnx.export(model, inputs, path, input_names=names, output_names=["y"], opset_version=18, dynamo=True,
                          external_data=False, dynamic_shapes=tuple({0: batch} for _ in inputs), verbose=False)
    return path


def torch_infer(model, inputs, dtype, how):
    model = model.eval()
    if inputs[0].dim() == 4:
        model = model.to(memory_format=torch.channels_last)
        inputs = tuple(x.to(memory_format=torch.channels_last) for x in inputs)
    if how == "compile":
        torch._inductor.config.freezing = True
        model = torch.compile(model)
    if how == "script":
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bf16", cache_enabled=False):
            model = torch.jit.freeze(torch.jit.trace(model, inputs))
    def run():
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bf16"):
            model(*inputs)
    return run


class Optimizers(list):
    def zero_grad(self, set_to_none):
        for o in self:
            o.zero_grad(set_to_none)

    def step(self):
        for o in self:
            o.step()


def make_optimizer(model, opt):
    sparse = [m.weight for m in model.modules() if isinstance(m, torch.nn.Embedding) and m.sparse]
    dense = [p for p in model.parameters() if all(p is not s for s in sparse)]
    if opt == "adamw":
        # SparseAdam knows no decay: without it there is none for the rest either, as in --optimizer
        # lazy-adam.
        made = [torch.optim.AdamW(dense, 1e-4, fused=True, weight_decay=0 if sparse else 0.01)]
        return Optimizers(made + ([torch.optim.SparseAdam(sparse, 1e-4)] if sparse else []))
    made = [torch.optim.SGD(dense, 1e-3, momentum=0.9, fused=True)]
    return Optimizers(made + ([torch.optim.SGD(sparse, 1e-3)] if sparse else []))


def torch_train(model, inputs, loss_of, dtype, compiled, opt):
    model = model.train()
    if inputs[0].dim() == 4:
        model = model.to(memory_format=torch.channels_last)
        inputs = tuple(x.to(memory_format=torch.channels_last) for x in inputs)
    optim = make_optimizer(model, opt)
    step_model = torch.compile(model) if compiled else model
    def run():
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bf16"):
            loss = loss_of(step_model(*inputs))
        optim.zero_grad(set_to_none=True)
        loss.backward()
        optim.step()
    return run


def millrace_infer(path, inputs, dtype, bound):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    os.environ.setdefault("MILLRACE_LIBRARY", os.path.join(root, "build/release/libmillrace.so"))
    sys.path.insert(0, os.path.join(root, "examples/python"))
    import millrace
    s = millrace.Session(path, precision=dtype)
    given = [x.numpy() for x in inputs]
    return s.bind(*given, out=s.run(*given)) if bound else lambda: s.run(*given)


def ort_infer(path, inputs, threads, bound):
    import onnxruntime as ort
    o = ort.SessionOptions()
    o.intra_op_num_threads = threads
    s = ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])
    feed = {f"x{i}": x.numpy() for i, x in enumerate(inputs)}
    if bound:
        b, results = s.io_binding(), s.run(None, feed)
        for name, x in feed.items():
            b.bind_cpu_input(name, x)
        for y, x in zip(s.get_outputs(), results):
            b.bind_ortvalue_output(y.name, ort.OrtValue.ortvalue_from_numpy(x))
        return lambda: s.run_with_iobinding(b)
    return lambda: s.run(None, feed)


def int8_onnx(path, make):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process
    class Reader(CalibrationDataReader):
        def __init__(self):
            self.left = [{f"x{i}": x.numpy() for i, x in enumerate(make(2))} for _ in range(8)]
        def get_next(self):
            return self.left.pop() if self.left else None
    out = path.replace(".onnx", ".int8.onnx")
    if not os.path.exists(out):
        quant_pre_process(path, out + ".pre", skip_symbolic_shape=True)
        quantize_static(out + ".pre", out, Reader(), quant_format=QuantFormat.QDQ, per_channel=True)
    return out


def ov_infer(path, inputs, dtype, threads, make, bound):
    import openvino as ov
    core = ov.Core()
    m = core.read_model(path)
    m.reshape({f"x{i}": list(x.shape) for i, x in enumerate(inputs)})
    if dtype == "int8":
        import nncf
        n = inputs[0].shape[0]
        data = [[x.numpy() for x in make(n)] for _ in range(max(1, 16 // n))]
        m = nncf.quantize(m, nncf.Dataset(data), subset_size=len(data),
                          model_type=nncf.ModelType.TRANSFORMER if inputs[0].dim() == 2 else None)
    c = core.compile_model(m, "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                                      "INFERENCE_PRECISION_HINT": "bf16" if dtype == "bf16" else "f32"})
    feed = [x.numpy() for x in inputs]
    r = c.create_infer_request()
    if bound:
        for i, x in enumerate(feed):
            r.set_input_tensor(i, ov.Tensor(x, shared_memory=True))
        return lambda: (r.start_async(), r.wait())
    return lambda: r.infer(feed, share_inputs=True)


def memory(field, reset=False):
    """Megabytes of this process; VmHWM is the peak since the last reset."""
    if reset:
        open("/proc/self/clear_refs", "w").write("5")
    return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith(field)) // 1024


def dump(name, batch, opt, where):
    import numpy as np
    from safetensors.torch import save_file
    torch.manual_seed(0)
    model, make, loss_of = build(name)
    inputs = make(batch)
    os.makedirs(where, exist_ok=True)
    path = os.path.join(where, name)
    save_file({k: v.detach().clone().contiguous() for k, v in model.state_dict().items()}, path + ".safetensors")
    np.savez(path + ".inputs.npz", **{f"x{i}": x.numpy() for i, x in enumerate(inputs)})
    optim, losses = make_optimizer(model.train(), opt), []
    for _ in range(20):
        loss = loss_of(model(*inputs))
        optim.zero_grad(set_to_none=True)
        loss.backward()
        optim.step()
        losses.append(loss.item())
    json.dump({"model": name, "batch": batch, "optimizer": opt, "losses": losses}, open(path + ".losses.json", "w"))
    print(path + ".losses.json", losses[0], losses[-1])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("mode", choices=["infer", "train"])
    p.add_argument("model")
    p.add_argument("batch", type=int)
    p.add_argument("--with", dest="peers", default=None)
    p.add_argument("--dtype", default="fp32")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--opt", default="adamw")
    p.add_argument("--seconds", type=float, default=2.0, help="of each peer in each round")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--export", metavar="DIR")
    p.add_argument("--dump", metavar="DIR")
    p.add_argument("--bound", action="store_true")
    p.add_argument("--ahead", action="store_true", help="measure at a priority before all other programs (root)")
    p.add_argument("--vs", metavar="COMMAND")
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    model, make, loss_of = build(a.model)
    inputs = make(a.batch)
    if a.export:
        os.makedirs(a.export, exist_ok=True)
        print(export(model.eval(), make(2), os.path.join(a.export, a.model + ".onnx")))
        return
    if a.dump:
        dump(a.model, a.batch, a.opt, a.dump)
        return
    peers = (a.peers or ("torch,compile,ort,openvino" if a.mode == "infer" else "torch,compile")).split(",")
    path = os.path.join(tempfile.gettempdir(), a.model + ".onnx")
    before, rss = memory("VmRSS", reset=True), {}
    runs = {}
    for dtype in a.dtype.split(","):
        for peer in peers:
            if peer in ("torch", "script", "compile") and dtype != "int8":
                m, _, _ = build(a.model)
                runs[f"{peer}/{dtype}"] = (torch_infer(m, inputs, dtype, peer) if a.mode == "infer" else
                                           torch_train(m, inputs, loss_of, dtype, peer == "compile", a.opt))
            elif peer == "ort" and dtype != "bf16":
                onnx = export(model.eval(), make(2), path)
                runs[f"ort/{dtype}"] = ort_infer(int8_onnx(onnx, make) if dtype == "int8" else onnx, inputs, a.threads, a.bound)
            elif peer == "openvino":
                runs[f"openvino/{dtype}"] = ov_infer(export(model.eval(), make(2), path), inputs, dtype, a.threads, make, a.bound)
            elif peer == "millrace" and dtype != "int8":
                runs[f"millrace/{dtype}"] = millrace_infer(export(model.eval(), make(2), path), inputs, dtype, a.bound)
    for name, run in list(runs.items()):
        try:
            for _ in range(3):
                run()
            rss[name] = memory("VmHWM") - before
        except Exception as e:  # a peer that cannot run a model is reported, not fatal
            print(json.dumps({"peer": name, "error": str(e)[:200]}))
            del runs[name]
    if a.ahead:
        subprocess.run(["chrt", "--all-tasks", "--fifo", "--pid", "50", str(os.getpid())], check=True)
    rates = {name: [] for name in runs}
    if a.vs:
        rates["vs"] = []
    for _ in range(a.rounds):
        for name, run in runs.items():
            n, t0 = 0, time.perf_counter()
            while True:
                run()
                n += 1
                dt = time.perf_counter() - t0
                if dt > a.seconds:
                    break
            rates[name].append(n * a.batch / dt)
        if a.vs:
            rates["vs"].append(float(subprocess.run(a.vs, shell=True, check=True, capture_output=True,
                                                    text=True).stdout.split()[-1]))
    for name, r in rates.items():
        print(json.dumps({"mode": a.mode, "model": a.model, "batch": a.batch, "peer": name,
                          "items_per_s": round(statistics.median(r), 2), "best": round(max(r), 2),
                          "worst": round(min(r), 2), "rss_mb": rss.get(name)}))


if __name__ == "__main__":
    main()
