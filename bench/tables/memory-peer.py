"""What a step of training adds to the process: PyTorch's rss, and the step's memory."""
from measure import PYTORCH, millrace, peers, planned_mb, times

NEEDS = [PYTORCH]
MINUTES = 3


def table():
    rows = [["", "PyTorch, MB", "Millrace, MB", None]]
    for name, network, batch, optimizer in (("ResNet-50, batch 16", "resnet50", 16, "sgd"), ("BERT base, batch 8", "bert_base", 8, "adamw")):
        for precision in ("fp32", "bf16"):
            theirs = peers("bench.py", "train", network, batch, "--opt", optimizer, "--dtype", precision, "--with", "torch",
                           "--rounds", "1")[0]["rss_mb"]
            ours = planned_mb(millrace(f"bench train {network} {batch} --optimizer {optimizer} --precision {precision} --seconds 0.1"))
            rows.append([f"{name}, fp32" if precision == "fp32" else "… bf16", f"{theirs:,.0f}", f"{ours:,.0f}", times(ours / theirs)])
    return rows
