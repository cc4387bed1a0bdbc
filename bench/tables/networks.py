"""Training of known networks beside PyTorch, items per second; the share of the peak counts the model's
FLOPs."""
import json
import re

from measure import MILLRACE, PYTORCH, count, last_number, machine_figures, millrace, missing, peers, times

NEEDS = []  # without PyTorch its columns stay empty
MINUTES = 30
# What a row is called, network, batch, optimizer, precision; of the model's FLOPs an item those of
# convolutions computed directly, where they are most of it.
ROWS = [("ResNet-18 for 32×32, batch 128, SGD, fp32", "resnet18_cifar", 128, "sgd", "fp32"),
        ("… bf16", "resnet18_cifar", 128, "sgd", "bf16"),
        ("ResNet-50, batch 16, SGD, fp32", "resnet50", 16, "sgd", "fp32"),
        ("… bf16", "resnet50", 16, "sgd", "bf16"),
        ("MobileNetV2, batch 16, SGD, fp32", "mobilenet_v2", 16, "sgd", "fp32"),
        ("… bf16", "mobilenet_v2", 16, "sgd", "bf16"),
        ("GPT mini, batch 16, fp32", "gpt_mini", 16, "adamw", "fp32"),
        ("… bf16", "gpt_mini", 16, "adamw", "bf16"),
        ("BERT base, batch 8, fp32", "bert_base", 8, "adamw", "fp32"),
        ("… bf16", "bert_base", 8, "adamw", "bf16"),
        ("multilayer perceptron, batch 256", "mlp", 256, "adamw", "fp32"),
        ("LeNet, batch 64", "lenet", 64, "adamw", "fp32"),
        ("LSTM, batch 32", "lstm", 32, "adamw", "fp32"),
        ("DLRM, batch 1,024, exact dense updates", "dlrm", 1024, "adamw", "fp32"),
        ("DLRM, by rows (`--optimizer lazy-adam`; PyTorch: SparseAdam)", "dlrm", 1024, "lazy-adam", "fp32")]


def beside(mode, network, batch, optimizer, precision):
    """Items per second: PyTorch eager, compiled (None: it cannot be, or is not here), Millrace; medians of
    rounds in turns."""
    rows = optimizer == "lazy-adam"  # PyTorch's sparse embeddings, which are eager only
    ours = f"{MILLRACE} bench {mode} {network} {batch} --optimizer {optimizer} --precision {precision}"
    if missing(PYTORCH):
        return None, None, last_number(ours.removeprefix(f"{MILLRACE} "))
    lines = peers("bench.py", mode, f"{network}_sparse" if rows else network, batch, "--opt", "adamw" if rows else optimizer,
                  "--dtype", precision, "--with", "torch" if rows else "torch,compile", "--rounds", "3", "--vs", ours)
    speed = {line["peer"].split("/")[0]: line["items_per_s"] for line in lines if "items_per_s" in line}
    return speed["torch"], speed.get("compile"), speed["vs"]


def of_the_peak(network, batch, optimizer, precision, items):
    """The model's FLOPs as a share of the machine's peak. None where other things bind."""
    if network in ("mobilenet_v2", "dlrm"):
        return None
    text = millrace(f"explain --model {network} --batch {batch} --optimizer {optimizer} --precision {precision} --json")
    flops = sum(launch["flops"] for launch in json.loads(text)["launches"])
    peak = machine_figures()[f"{re.sub('-.*', '', precision)}_gflops"] * 1e9
    return items / batch * flops / peak if peak else None


def table():
    rows = [["items/s", "PyTorch eager", "PyTorch compiled", "Millrace", "to the better", "of the peak"]]
    for name, network, batch, optimizer, precision in ROWS:
        if precision == "bf16" and not machine_figures()["bf16_gflops"]:
            continue  # Millrace then computes in fp32
        eager, compiled, ours = beside("train", network, batch, optimizer, precision)
        share = of_the_peak(network, batch, optimizer, precision, ours)
        best = max(eager or 0, compiled or 0)
        rows.append([name, count(eager) if eager else "–", count(compiled) if compiled else "–", count(ours),
                     times(ours / best) if best else "–", f"{share:.2f}" if share else "–"])
        print(*rows[-1], sep=" | ", flush=True)  # (half an hour may be interrupted)
    return rows
