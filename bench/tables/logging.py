"""What logs cost at 10,000 steps a second, microseconds of CPU a step."""
import statistics
import tempfile

from measure import built

NEEDS = []
MINUTES = 2
ROWS = [("a step's record to `metrics.jsonl` and TensorBoard", "0"),
        ("and 107 values every 100 steps (`train.log_every`)", "100"),
        ("and 107 values every 10 steps", "10"),
        ("and 107 values every step", "1"),
        ("107 values every 100 steps, and a database of runs", "100", "sqlite all.sqlite")]


def costs(*arguments):
    """Medians of five runs: of the training's thread, and of the one that writes."""
    runs = []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            runs.append([float(word) for word in built("logging", folder, *arguments).splitlines()[-1].split()])
    return [statistics.median(each) for each in zip(*runs)]


def table():
    rows = [["", "the training's thread, µs", "of a step of 100 µs", "the writing thread, µs"]]
    for name, *arguments in ROWS:
        training, writing = costs(*arguments)
        rows.append([name, f"{training:.2f}", f"{training:.2f} %", f"{writing:.1f}"])
    return rows
