"""Inference of known networks beside PyTorch's compiler, ONNX Runtime and OpenVINO, items per second, with
the limit of direct convolution."""
import json
import math
import re

from measure import MILLRACE, PYTORCH, count, machine_figures, millrace, peers, times

NEEDS = [PYTORCH, "onnxruntime", "openvino", "onnxscript"]
MINUTES = 25
NETWORKS = ["resnet18", "resnet50", "mobilenet_v2", "bert_base", "minilm", "dlrm"]
SMALL = ["mlp", "lenet", "lstm"]  # in fp32, one at a time
ROWS = [(network, batch, precision) for network in NETWORKS for batch in (1, 16) for precision in ("fp32", "bf16")]
ROWS += [(network, 1, "fp32") for network in SMALL]


def limit(network, batch, precision):
    """Items per second at the machine's peak, by the FLOPs of convolutions computed directly. None where
    other things bind."""
    if network in ("dlrm", *SMALL):
        return None
    text = millrace(f"explain --model {network} --infer --batch {batch} --precision {precision} --json")
    flops = sum(launch["flops"] for launch in json.loads(text)["launches"])
    peak = machine_figures()[f"{precision}_gflops"] * 1e9
    return batch * peak / flops if peak else None


def beside(network, batch, precision):
    """Items per second by name; a peer that cannot is absent. Medians of rounds in turns."""
    lines = peers("bench.py", "infer", network, batch, "--dtype", precision, "--with", "compile,ort,openvino", "--rounds", "3",
                  "--seconds", "1", "--vs", f"{MILLRACE} bench infer {network} {batch} --precision {precision} --seconds 1")
    return {re.sub("/.*", "", line["peer"]): line["items_per_s"] for line in lines if "items_per_s" in line}


def table():
    rows = [["items/s", "torch.compile", "ONNX Runtime", "OpenVINO", "Millrace", "to the fastest", "limit", "of the limit"]]
    ratios = []
    for network, batch, precision in ROWS:
        if precision == "bf16" and not machine_figures()["bf16_gflops"]:
            continue  # Millrace then computes in fp32
        speed, most = beside(network, batch, precision), limit(network, batch, precision)
        ours = speed.pop("vs")
        ratio = ours / max(speed.values())
        if network in NETWORKS:
            ratios.append(ratio)
        rows.append([f"{network}, {batch}, {precision}",
                     *(count(speed[peer]) if peer in speed else "–" for peer in ("compile", "ort", "openvino")), count(ours), times(ratio),
                     count(most) if most else "–", f"{ours / most:.2f}" if most else "–"])
        print(*rows[-1], sep=" | ", flush=True)  # (half an hour may be interrupted)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    rows.append([f"geometric mean of the first {len(ratios)} rows", "", "", "", "", times(mean), "", ""])
    return rows
