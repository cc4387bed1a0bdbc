"""What memory bounds, out of cache and in L2, beside a copy: GB/s of what must be read and written at
least."""
import json
import tempfile

from measure import built

NEEDS = []
MINUTES = 1


def table():
    with tempfile.TemporaryDirectory() as cache:  # empty: so that copies are measured in this run
        lines = [json.loads(line) for line in built("memory_bound", MILLRACE_CACHE=cache).splitlines()]
    copy = next(line["gb_per_s"] for line in lines if line.get("limit") == "RAM")
    speeds = {}
    for line in lines:
        if "op" in line:
            speeds.setdefault(line["op"], {})[line["elements"]] = line["gb_per_s"]
    return [["Operation", "GB/s", "of the copy", "in L2, GB/s"],
            *([op, f"{each[1 << 25]:.1f}", f"{each[1 << 25] / copy:.2f}", f"{each[1 << 16]:.0f}"] for op, each in speeds.items())]
