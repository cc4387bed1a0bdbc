"""What the tables of bench/tables share: programs run, data found, the machine named, numbers written."""
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MILLRACE = ROOT / "build/release/millrace"
PYTHON = ROOT / ".venv/bin/python"
PYTORCH = "torch"  # what NEEDS may name beside data: a module of .venv


def output(*command, **environment):
    """What a command prints. CalledProcessError when it fails; its messages go to the terminal."""
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT,
                          env={**os.environ, **environment}).stdout


def millrace(line, **environment):
    return output(MILLRACE, *shlex.split(line), **environment)


def built(target, *arguments, **environment):
    """Builds a program of bench/ and gives what it prints."""
    output("ninja", "-C", ROOT / "build/release", target)
    return output(ROOT / "build/release" / target, *arguments, **environment)


def last_number(line, **environment):
    """Of `millrace bench`: items per second."""
    return float(millrace(line, **environment).split()[-1])


def peers(script, *arguments):
    """The JSON lines of a script of bench/peers."""
    text = output(PYTHON, ROOT / "bench/peers" / script, *arguments)
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def in_turns(runs, rounds=3):
    """The median of each run's numbers; `runs`: by name, functions that give a number."""
    numbers = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            numbers[name].append(run())
    return {name: statistics.median(each) for name, each in numbers.items()}


def data(name=""):
    """A folder of the data that examples use. None when it is not there."""
    path = Path(os.environ.get("MILLRACE_DATA", ROOT / "data")) / name
    return path if path.exists() else None


def missing(need):
    """Why a need of a table is not met; None when it is. A path is one below $MILLRACE_DATA, "root" a user,
    else a module."""
    if need == "root":
        return None if os.geteuid() == 0 and shutil.which("debootstrap") else "root and debootstrap"
    if "/" in need:
        return None if data(need) else f"$MILLRACE_DATA/{need}"
    if PYTHON.exists() and subprocess.run([PYTHON, "-c", f"import {need}"], capture_output=True).returncode == 0:
        return None
    return f"the Python package {need} (./dev bench --peers installs what is compared with)"


def letters():
    """The data set of letters, packed, made when it is not there."""
    packed = ROOT / "data/letters-packed"
    if not (packed / "test.json").exists():
        millrace("letters data/letters")
        millrace("pack data/letters data/letters-packed")
    return ["data.train=data/letters-packed/train-*.tar", "data.test=data/letters-packed/test-*.tar"]


def trained(recipe, *changes):
    """Trains in a folder that goes again: lines of metrics.jsonl of each epoch, what was printed, bytes of a
    checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        text = output(MILLRACE, "train", recipe, *changes, "--out", run)
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        size = max(file.stat().st_size for file in (run / "checkpoints").iterdir())
    return [line for line in lines if "train/loss" in line], text, size


def epochs(recipe):
    """The table of a training: of a long one every second epoch."""
    lines, _, _ = trained(recipe)
    rows = [["Epoch", "Train loss", "Train accuracy", "Test accuracy", "Test log-loss", "Seconds"]]
    for number, line in enumerate(lines, 1):
        if len(lines) <= 10 or number == 1 or number % 2 == 0 or number == len(lines) - 1:
            rows.append([str(number), f"{line['train/loss']:.4f}", percent(line["train/accuracy"]), percent(line["test/accuracy"]),
                         f"{line['test/log-loss']:.4f}", f"{line['seconds']:.1f}"])
    return rows


def planned_mb(text):
    """Of `millrace bench train`, or of `train`: the memory of a step."""
    return float(re.search(r"memory (?:of a step: )?([\d.]+) MB", text)[1])


def measured_mb(line):
    """Of `millrace bench …`: megabytes planned, and the most anonymous memory that its process has."""
    process = subprocess.Popen([MILLRACE, *shlex.split(line)], stdout=subprocess.PIPE, text=True)
    most = 0
    while process.poll() is None:
        found = re.search(r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text(), re.M)
        most = max(most, int(found[1]) * 1024e-6 if found else 0)
        try:
            process.wait(0.01)
        except subprocess.TimeoutExpired:
            pass
    return planned_mb(process.stdout.read()), most


def percent(share):
    return f"{100 * share:.2f} %"


def count(number):
    """Three digits or so, thousands apart: 9.87, 98.7, 987, 9,870."""
    return f"{number:,.{2 if number < 10 else 1 if number < 100 else 0}f}"


def times(ratio):
    return f"{ratio:.2f}×"


def machine_figures():
    """What `millrace machine` measured, anew where others were at work then."""
    found = json.loads(millrace("machine --json"))
    return json.loads(millrace("machine --refresh --json")) if found["disturbed"] else found


def generation():
    """Of AMD's server CPUs, which all call themselves the same when they are lent by parts: " (Zen 3)" and
    the like; else nothing.

    Families and models: AMD, Processor Programming References.
    """
    found = dict(re.findall(r"^(vendor_id|cpu family|model)\s*: (\S+)$", Path("/proc/cpuinfo").read_text(), re.M))
    family, model = int(found.get("cpu family", 0)), int(found.get("model", 0))
    if found.get("vendor_id") != "AuthenticAMD":
        return ""
    zen = {23: "Zen 2" if model >= 0x30 else "Zen", 25: "Zen 4" if 0x10 <= model <= 0x1f or model >= 0x60 else "Zen 3", 26: "Zen 5"}
    return f" ({zen[family]})" if family in zen else ""


def machine():
    """The line below a table: where its figures are from."""
    here = machine_figures()
    commit = output("git", "describe", "--always").strip()
    # What measures may have changed.
    if output("git", "status", "--porcelain", "src", "include", "cmake", "CMakeLists.txt"):
        commit += ", with changes"
    bf16 = f"{here['bf16_gflops']:,.0f}" if here["bf16_gflops"] else "none"
    return (f"*{here['cpu']}{generation()}, {here['threads']} threads, {here['instructions']}; {here['fp32_gflops']:,.0f} GFLOP/s in fp32, "
            f"{bf16} in bf16, {here['memory_gb_per_s']:.1f} GB/s copied in RAM; commit {commit}*")
