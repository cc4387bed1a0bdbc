"""The airbench recipe beside PyTorch's implementation of it, from JPEG files to the result, two seeds of
each."""
import re
import statistics
import time

from measure import PYTHON, PYTORCH, ROOT, data, output, trained

NEEDS = [PYTORCH, "cifar10/train.tar"]
MINUTES = 40


def table():
    accuracies, seconds, epochs = ([], []), ([], []), ([], [])
    for seed in (1, 2):  # in turns
        begin = time.time()
        text = output(PYTHON, ROOT / "bench/peers/cifar10_torch.py", data("cifar10/train.tar"), data("cifar10/test.tar"),
                      "--seed", seed)
        seconds[0].append(time.time() - begin)
        accuracies[0].append(100 * float(re.findall(r"test ([\d.]+)", text)[-1]))
        ends = [float(end) for end in re.findall(r"epoch \d+ +([\d.]+) s", text)]
        epochs[0].extend(after - before for before, after in zip(ends, ends[1:]))
        begin = time.time()
        lines, _, _ = trained("examples/cifar10-airbench.toml", f"train.seed={seed}")
        seconds[1].append(time.time() - begin)
        accuracies[1].append(100 * lines[-1]["test/accuracy"])
        epochs[1].extend(line["seconds"] for line in lines[1:-1])
    ratio = statistics.mean(seconds[0]) / statistics.mean(seconds[1])
    rows = [["", "test accuracy", "Seconds in all", "an epoch of training"]]
    for who, note in ((0, ""), (1, f" ({ratio:.2f}× as fast in the mean)")):
        low, high = round(min(epochs[who])), round(max(epochs[who]))
        rows.append([("PyTorch", "Millrace")[who], ", ".join(f"{a:.2f}" for a in accuracies[who]) + " %",
                     ", ".join(f"{s:.0f}" for s in seconds[who]) + note, f"{low} to {high}" if low < high else str(low)])
    return rows
