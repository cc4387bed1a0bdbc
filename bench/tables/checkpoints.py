"""What checkpoints cost a training that goes on while they are written, one after every so many steps."""
import json
import tempfile
from pathlib import Path

from measure import MILLRACE, ROOT, missing, output

NEEDS = []
MINUTES = 3
EXAMPLES = [("mnist", "mnist/train-images-idx3-ubyte.gz", 100, "train.epochs=2"),
            ("shakespeare", "text/tinyshakespeare.txt", 50, "train.steps=200"),
            ("spoken-digits", "audio/spoken-digits.tar", 20, "train.epochs=4")]


def table():
    rows = [["Example", "a checkpoint every", "MB each", "ms it holds up a step", "of the training"]]
    for name, needs, every, length in EXAMPLES:
        if missing(needs):
            print(f"{name}: left out, as its data is not there", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            output(MILLRACE, "train", ROOT / f"examples/{name}.toml", length, f"train.checkpoint_steps={every}", "--no-check", "--out", run)
            epochs = [line for line in map(json.loads, (run / "metrics.jsonl").read_text().splitlines()) if "seconds_saving" in line]
            saved, whole = (sum(line[key] for line in epochs) for key in ("seconds_saving", "seconds"))
            size = max(file.stat().st_size for file in (run / "checkpoints").iterdir())
            count = max(1, epochs[-1]["step"] // every)
        rows.append([f"`{name}.toml`", f"{every} steps", f"{size / 1e6:.1f}", f"{1e3 * saved / count:.1f}", f"{100 * saved / whole:.2f} %"])
    return rows
