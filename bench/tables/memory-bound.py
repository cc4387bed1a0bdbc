"""What memory bounds, beside PyTorch compiled: GB/s of what must be read and written at least."""
from measure import PYTHON, PYTORCH, ROOT, built, output

NEEDS = [PYTORCH]
MINUTES = 3


def table():
    built("memory_bound", "0", "none")  # builds it: there is no such operation
    lines = output(PYTHON, ROOT / "bench/peers/memory_bound.py", ROOT / "build/release/memory_bound").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")][:5] for line in lines if line.startswith("| ")]
