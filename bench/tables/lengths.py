"""Texts a second of one session that is asked for texts of 8 to 128 tokens, one at a time: while most lengths
are new to it, and afterwards; of the ONNX file and of a .mill, beside ONNX Runtime and OpenVINO."""
from measure import PYTORCH, peers, times

NEEDS = [PYTORCH, "onnxruntime", "openvino", "onnxscript"]
MINUTES = 5
NETWORKS = [("MiniLM", "minilm"), ("BERT base", "bert_base")]


def table():
    rows = [["texts/s", "ONNX Runtime", "OpenVINO", "Millrace", "to the faster", "Millrace, .mill", "to the faster"]]
    for name, network in NETWORKS:
        found = {line["peer"]: line for line in peers("lengths.py", network)}
        for key, when in (("first_per_s", "lengths new to the session"), ("later_per_s", "the same texts once more")):
            theirs = [found[peer][key] for peer in ("ort", "openvino")]
            ours = [text for form in ("millrace", "mill") for text in (f"{found[form][key]:.1f}", times(found[form][key] / max(theirs)))]
            rows.append([f"{name}, {when}", *(f"{rate:.1f}" for rate in theirs), *ours])
    return rows
