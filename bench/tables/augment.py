"""Random changes by loops and by the loop-nest compiler, microseconds a picture on one thread."""
import re

from measure import built

NEEDS = []
MINUTES = 1


def table():
    rows, heads = {}, [""]
    for size, batch in ((32, 64), (224, 32)):
        heads += [f"{size}×{size}, batch {batch}: loops", "compiled"]
        for line in built("augment_fused", size, batch).splitlines():
            name, loops, compiled = re.match(r"\d+x\d+ (.+): loops ([\d.]+) µs a picture, compiled ([\d.]+) µs", line).groups()
            rows.setdefault(name, []).extend(f"{float(t):.{2 if float(t) < 2 else 1 if float(t) < 11 else 0}f}" for t in (loops, compiled))
    return [heads, *([name, *cells] for name, cells in rows.items())]
