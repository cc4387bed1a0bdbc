"""Tokens a second of a network as large as GPT-2 in an ONNX file that takes keys and values, beside ONNX
Runtime and OpenVINO, and the bytes of weights that this reads."""
from measure import peers, times

NEEDS = ["onnx", "onnxruntime", "openvino"]
MINUTES = 8


def table():
    rows = [["tokens/s", "ONNX Runtime", "OpenVINO", "Millrace", "to the faster", "weights read", "Millrace, bf16"]]
    for batch in (1, 4, 8):
        found = {line["peer"]: line for line in peers("decode.py", "--batch", batch, "--rounds", "3")}
        (narrow,) = peers("decode.py", "--batch", batch, "--rounds", "3", "--engines", "millrace", "--dtype", "bf16")
        theirs, ours = [found[peer]["tokens_per_s"] for peer in ("ort", "openvino")], found["millrace"]
        rows.append([f"batch {batch}", *(f"{rate:.0f}" for rate in theirs), f"{ours['tokens_per_s']:.0f}",
                     times(ours["tokens_per_s"] / max(theirs)), f"{ours['gb_per_s']:.0f} GB/s", f"{narrow['tokens_per_s']:.0f}"])
    return rows
