"""Small networks, one sample at a time, called from Python with numpy's arrays beside PyTorch's compiler,
ONNX Runtime and OpenVINO."""
import re

from measure import PYTORCH, count, peers, times

NEEDS = [PYTORCH, "onnxruntime", "openvino", "onnxscript"]
MINUTES = 6
NETWORKS = ["mlp", "lenet", "dlrm", "lstm"]
ROWS = [(network, 1, "fp32", bound) for network in NETWORKS for bound in (False, True)]


def beside(network, batch, precision, bound):
    """Calls per second by name; a peer that cannot is absent. Medians of rounds in turns."""
    lines = peers("bench.py", "infer", network, batch, "--dtype", precision, "--with",
                  "ort,openvino,millrace" if bound else "compile,ort,openvino,millrace", "--rounds", "5", "--seconds", "0.5",
                  *(["--bound"] if bound else []))
    return {re.sub("/.*", "", line["peer"]): line["items_per_s"] for line in lines if "items_per_s" in line}


def table():
    rows = [["calls/s", "torch.compile", "ONNX Runtime", "OpenVINO", "Millrace", "to the fastest", "µs a call"]]
    for network, batch, precision, bound in ROWS:
        speed = beside(network, batch, precision, bound)
        ours = speed.pop("millrace")
        rows.append([f"{network}{', arrays bound' if bound else ''}",
                     *(count(speed[peer]) if peer in speed else "–" for peer in ("compile", "ort", "openvino")), count(ours),
                     times(ours / max(speed.values())), f"{1e6 / ours:.1f}"])
    return rows
