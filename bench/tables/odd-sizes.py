"""Matrix products of odd sizes beside round ones, GFLOP/s."""
import re

from measure import built

NEEDS = []
MINUTES = 1


def table():
    rows = {}
    for precision in ("fp32", "bf16"):
        for line in built("odd_sizes", precision).splitlines():
            odd, slow, even, fast = re.match(r"\w+ (.+): (\d+) GFLOP/s, (.+): (\d+) GFLOP/s", line).groups()
            other = next(e for o, e in zip(odd.split(" × "), even.split(" × ")) if o != e)
            names = [f"{int(size):,}" if len(size) > 4 else size for size in odd.split(" × ")]
            rows.setdefault(f"{' × '.join(names)}, beside {int(other):,}", []).extend([slow, fast])
    return [["", "fp32: odd", "fp32: round", "bf16: odd", "bf16: round"], *([name, *cells] for name, cells in rows.items())]
