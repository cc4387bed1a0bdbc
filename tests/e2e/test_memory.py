"""The memory that a plan announces is what the process takes."""
import os
import re
import statistics
import subprocess
import time
from pathlib import Path

import pytest


# What was freed goes back to the system at once, and no thread has a heap of its own. Else the size of a process also has what
# malloc keeps, some megabytes more or less: it depends on which thread was first, and on what compiling left behind.
NOTHING_KEPT = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536",
                "MALLOC_TOP_PAD_": "4096"}


def measure(binary, cache, *arguments, environment={}):
    """Megabytes that `millrace bench` plans, the most anonymous memory that its process has, and how much it has while it steps."""
    process = subprocess.Popen([binary, "bench", *arguments, "--seconds", "0.5"], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "MILLRACE_CACHE": str(cache), **environment})
    sizes = []
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()  # of a zombie too, then without sizes
        found = re.search(r"^RssAnon:\s+(\d+) kB", status, re.M)
        sizes.append(int(found[1]) * 1024e-6 if found else 0)
        time.sleep(0.005)
    stepping = statistics.median(sizes[len(sizes) // 2:])  # the second half of its time, of which leaving is little
    return float(re.search(r"memory ([\d.]+) MB", process.stdout.read())[1]), max(sizes), stepping


# What a plan does not count is the same for any batch (docs/results.md says what it is): 13 to 39 MB of these networks.
@pytest.mark.parametrize("what", ["resnet18_cifar 32 --optimizer sgd", "gpt_mini 2", "lenet 512"])
def test_measured_memory_is_the_planned(binary, tmp_path, what):
    for kernels in ("compiled", "from the cache"):
        planned, measured, _ = measure(binary, tmp_path, "train", *what.split())
        assert planned * 0.98 <= measured <= planned * 1.02 + 48, (kernels, planned, measured)


@pytest.mark.parametrize(
    "what, small, large, options", [("resnet18_cifar", 8, 48, "--optimizer sgd"), ("gpt_mini", 1, 6, "")])
def test_memory_grows_as_planned(binary, tmp_path, what, small, large, options):
    """What does not depend on the batch falls out: the growth is the plan's within 5 %. (Which kernels are the fastest differs
    from run to run; 2.7 to 3.1 % were seen of gpt_mini, always upwards.) Looked at is the memory while it steps: a peak that
    lasts a moment may be missed on a busy machine, of one batch and not of the other."""
    planned, measured = {}, {}
    for batch in (small, large, small, large):  # the second time without compiling
        planned[batch], _, measured[batch] = measure(binary, tmp_path, "train", what, str(batch), *options.split(),
                                                  environment=NOTHING_KEPT)
    print(f"{what}: {planned} planned, {measured} measured")
    grown, meant = measured[large] - measured[small], planned[large] - planned[small]
    assert abs(grown - meant) <= 0.05 * meant, (planned, measured)
