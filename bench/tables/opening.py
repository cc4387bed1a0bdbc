"""How much later the first result of a process comes than a second one would, opening the model included,
beside ONNX Runtime and OpenVINO; milliseconds."""
from measure import PYTORCH, peers

NEEDS = [PYTORCH, "onnxruntime", "openvino", "onnxscript"]
MINUTES = 6
NETWORKS = [("ResNet-50", "resnet50"), ("BERT base, 128 tokens", "bert_base")]
PEERS = ["ort", "ort-optimised", "openvino", "openvino-cached"]
BATCHES = {1: "1", 4: "4", 2: "2, not built for"}


def table():
    rows = [["ms", "batch", "Millrace", "the slowest process", "a later run", "ONNX Runtime", "its optimised file", "OpenVINO", "its cache filled"]]
    for name, network in NETWORKS:
        found = {(line["peer"], line["batch"]): line for line in peers("opening.py", network)}
        for batch, said in BATCHES.items():
            ours = found["millrace", batch]
            theirs = [f"{found[peer, batch]['more_ms']:.0f}" if (peer, batch) in found else None for peer in PEERS]
            rows.append([name if batch == 1 else None, said, f"{ours['more_ms']:.0f}", f"{ours['most_ms']:.0f}",
                         f"{ours['later_ms']:.0f}", *theirs])
    return rows
