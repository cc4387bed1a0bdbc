"""The letters after two epochs, seeds 1 to 3, in each precision: accuracy, memory, size of a checkpoint."""
import statistics

from measure import letters, planned_mb, trained

NEEDS = []
MINUTES = 8


def table():
    rows = [["", "accuracy, %", "log-loss", "step", "checkpoint"]]
    for precision in ("fp32", "bf16", "bf16-pure", "fp16"):
        runs = [trained("examples/letters.toml", *letters(), "train.epochs=2", f"train.precision={precision}", f"train.seed={seed}")
                for seed in (1, 2, 3)]
        last = [lines[-1] for lines, _, _ in runs]
        _, text, size = runs[0]
        rows.append([precision, ", ".join(f"{100 * line['test/accuracy']:.2f}" for line in last),
                     f"{statistics.mean(line['test/log-loss'] for line in last):.4f}", f"{planned_mb(text):.1f} MB", f"{size / 1e6:.2f} MB"])
    return rows
