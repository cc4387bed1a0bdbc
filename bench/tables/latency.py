"""Milliseconds of one sample: ResNet-18 on 1×3×224×224 and BERT base on 14 tokens, beside PyTorch eager,
TorchScript, torch.compile, ONNX Runtime and OpenVINO."""
import re

from measure import MILLRACE, PYTORCH, peers, times

NEEDS = [PYTORCH, "onnxruntime", "openvino", "onnxscript"]
MINUTES = 6
PEERS = {"torch": "PyTorch eager", "script": "TorchScript", "compile": "torch.compile", "ort": "ONNX Runtime", "openvino": "OpenVINO"}
ROWS = [("ResNet-18, 1×3×224×224", "resnet18"), ("BERT base, 14 tokens", "bert_base_14")]


def beside(network, precision):
    """Milliseconds by name; a peer that cannot is absent. Medians of rounds in turns."""
    lines = peers("bench.py", "infer", network, 1, "--dtype", precision, "--with", ",".join(PEERS), "--rounds", "3", "--seconds", "1",
                  "--vs", f"{MILLRACE} bench infer {network} 1 --precision {precision} --seconds 1")
    return {re.sub("/.*", "", line["peer"]): 1e3 / line["items_per_s"] for line in lines if "items_per_s" in line}


def table():
    rows = [["ms", *PEERS.values(), "Millrace", "the fastest of the others to Millrace"]]
    for name, network in ROWS:
        for precision in ("fp32", "bf16"):
            spent = beside(network, precision)
            ours = spent.pop("vs")
            rows.append([f"{name}, {precision}", *(f"{spent[peer]:.2f}" if peer in spent else "–" for peer in PEERS), f"{ours:.2f}",
                         times(min(spent.values()) / ours)])
    return rows
