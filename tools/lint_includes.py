"""Checks that includes point only downward and never in a circle, that files stay short, and that no tracked
file names a machine's paths.

Run from the repository root: python tools/lint_includes.py. Prints one line a finding; exits 1 if there is an
error.
"""

import re
import subprocess
import sys
from pathlib import Path

# Folders of src/, lowest first: a folder is a floor, and so is every folder in it. Files may include those of
# their own folder and of the rows above it, never one beside it. So may public headers, each of which belongs
# to a folder too.
FLOORS = [
    ["base"],
    ["ir"],
    ["ops"],
    ["autodiff"],
    ["target"],
    ["passes/rules"],
    ["passes"],
    ["plan"],
    ["backend/ref"],
    ["backend/cpu/kernels"],
    ["backend/cpu/kernels/gemm", "backend/cpu/kernels/depthwise", "backend/cpu/kernels/mel", "backend/cpu/kernels/resize"],
    ["backend/cpu/kernels/attention", "backend/cpu/kernels/winograd"],
    ["backend/cpu/kernels/decode"],
    ["backend/cpu/codegen", "backend/cpu/onednn"],
    ["backend/cpu"],
    ["runtime"],
    ["session"],
    ["capi"],
    ["trace"],
    ["nn"],
    ["nn/models"],
    ["nn/layers"],
    ["optim/schedules"],
    ["optim"],
    ["data/io"],
    ["data/codecs/arrays", "data/codecs/pictures", "data/codecs/sounds", "data/codecs/text"],
    ["data/table"],
    ["data/formats/arrow"],
    ["data/formats"],
    ["data/formats/streams"],
    ["data/encode", "data/augment", "data/order"],
    ["data/feed"],
    ["data/feed/sequences", "data/feed/streams"],
    ["data/tools/pack", "data/tools/statistics"],
    ["data/tools"],
    ["eval", "track", "onnx"],
    ["eval/metrics", "track/logs", "onnx/import"],
    ["onnx/models"],
    ["task"],
    ["task/inputs", "task/outputs", "task/losses"],
    ["train"],
    ["check", "baseline", "model_formats"],
    ["cli"],
]
# The folder of each public header: where what it declares is defined (kinds of it may be in folders of that).
HEADERS = {
    "array.h": "ir",
    "attributes.h": "ir",
    "augment.h": "data/augment",
    "cancel.h": "base",
    "check.h": "check",
    "compile.h": "trace",
    "dataset.h": "data/table",
    "decoder.h": "session",
    "decoding.h": "nn",
    "device.h": "target",
    "error.h": "base",
    "evaluation.h": "task",
    "exact_sum.h": "base",
    "feed.h": "data/feed",
    "file.h": "data/io",
    "format.h": "data/formats",
    "graph.h": "ir",
    "loss.h": "task",
    "metric.h": "eval",
    "millrace.h": "capi",
    "narrow_types.h": "ir",
    "nn.h": "nn",
    "onnx_rule.h": "ops",
    "operator.h": "ir",
    "optim.h": "optim",
    "pass.h": "passes",
    "picture.h": "data/codecs/pictures",
    "program.h": "runtime",
    "provider.h": "target",
    "random.h": "base",
    "recipe.h": "task",
    "rewrite.h": "trace",
    "run.h": "train",
    "scalar.h": "ir",
    "schedule.h": "optim/schedules",
    "session.h": "session",
    "settings.h": "base",
    "tensor.h": "trace",
    "training.h": "train",
    "type.h": "ir",
    "version.h": "base",
    "weights.h": "track",
}
# All of it is in the header itself, so no file of its folder needs it.
WHOLE = {"random.h"}
RANK = {folder: rank for rank, row in enumerate(FLOORS) for folder in row}
TOP = {folder.split("/")[0] for folder in RANK}
# Back ends are handed to passes and plans, and know neither of them.
FORBIDDEN = {"backend": {"passes", "plan"}}
# Rooms (a header and its source file are one) that need each other because they are one piece in several
# files.
ONE_PIECE = [
    # The cache of remote files, and its inside, which the plans of readers see too.
    {"src/data/io/remote_cache", "src/data/io/remote_pieces"},
    # A plan is made of the kernels of its launches, which are put down in it.
    {"src/plan/choose_kernels", "src/plan/plan"},
]
LONGEST = 600

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)
# A path of somebody's machine: home folders and the like. System paths (/usr, /etc, /dev, /proc, /sys, /bin)
# are fine.
MACHINE_PATH = re.compile(r"(?<![\w.~\]})*-])/(?:work|home|root|tmp|Users|mnt|media)/[\w.+-]+")
TEXT = {".cpp", ".h", ".inc", ".py", ".sh", ".md", ".txt", ".toml", ".cmake", ".in", ".json", ".yml", ".svg", ""}


def includes(path):
    return [(quote, name) for quote, name in INCLUDE.findall(path.read_text(encoding="utf-8"))]


def folder_of(path):
    """src/data/io/open_file.h → data/io"""
    return "/".join(path.parts[1:-1])


def upward(folder, name, other):
    """What is wrong, if anything, with including `name` of the folder `other` in `folder`; None: nothing."""
    if other == folder:
        return None
    if RANK.get(other, len(FLOORS)) >= RANK[folder]:
        return f"src/{folder} may not include upward or sideways: {name}"
    if other.split("/")[0] in FORBIDDEN.get(folder.split("/")[0], ()):
        return f"src/{folder} may not know src/{other}: {name}"
    return None


def check_source(path):
    """Findings of a file under src/: what it includes from floors above or beside its own."""
    folder = folder_of(path)
    if folder not in RANK:
        yield f"{path}: the folder is not in FLOORS of tools/lint_includes.py"
        return
    for quote, name in includes(path):
        if quote == "<":
            if name.startswith("millrace/") and (wrong := upward(folder, f"<{name}>", HEADERS.get(name[9:], folder))):
                yield f"{path}: {wrong}"
            continue
        if ".." in name:
            yield f'{path}: "{name}" is not named from src/ on'
            continue
        if not (Path("src") / name).exists():
            if "/" not in name or name.split("/")[0] in TOP or name.startswith("millrace/"):
                yield f'{path}: "{name}" is not a file under src/ (public headers: <millrace/…>)'
            continue
        if wrong := upward(folder, name, folder_of(Path("src") / name)):
            yield f"{path}: {wrong}"


def room_of(path):
    """A header, what it is made of (.inc) and its source file are one room."""
    return str(path.with_suffix(""))


def circles(paths):
    """Rooms that need each other, as sorted lists (Tarjan's strongly connected components)."""
    needs = {}
    for path in paths:
        own = needs.setdefault(room_of(path), set())
        for quote, name in includes(path):
            for base in ("src",) if quote == '"' else ("include",):
                if (Path(base) / name).exists():
                    own.add(room_of(Path(base) / name))
    number, low, stack, found = {}, {}, [], []

    def visit(room):
        number[room] = low[room] = len(number)
        stack.append(room)
        for other in needs.get(room, ()):
            if other not in number:
                visit(other)
                low[room] = min(low[room], low[other])
            elif other in stack:
                low[room] = min(low[room], number[other])
        if low[room] == number[room]:
            at = stack.index(room)
            circle = stack[at:]
            del stack[at:]
            if len(circle) > 1:
                found.append(sorted(circle))

    sys.setrecursionlimit(10_000)
    for room in sorted(needs):
        if room not in number:
            visit(room)
    return found


def check_public(path):
    """Findings of a public header: it includes public headers of no higher floor, and standard ones."""
    if path.name not in HEADERS:
        yield f"{path}: the header is not in HEADERS of tools/lint_includes.py"
        return
    for quote, name in includes(path):
        if quote == '"':
            yield f'{path}: a public header includes <millrace/…>, not "{name}"'
        elif "/" in name and not name.startswith("millrace/"):
            yield f"{path}: a public header may not need other libraries: <{name}>"
        elif name.startswith("millrace/") and not (Path("include") / name).exists():
            yield f"{path}: no such public header: <{name}>"
        elif name.startswith("millrace/"):
            folder = HEADERS[path.name]
            if wrong := upward(folder, f"<{name}>", HEADERS.get(name[9:], folder)):
                yield f"{path}: {wrong}"


def check_headers(sources):
    """Findings of HEADERS: each is there, and used in its folder, which defines what it declares."""
    used = {(folder_of(path), name) for path in sources if path.parts[0] == "src" for _, name in includes(path)}
    for header, folder in HEADERS.items():
        if not (Path("include/millrace") / header).exists():
            yield f"tools/lint_includes.py: there is no public header {header}"
        elif header not in WHOLE and (folder, f"millrace/{header}") not in used:
            yield f"include/millrace/{header}: no file of src/{folder} includes it, so it is of another folder"


def tracked():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
    return [Path(line) for line in listed.stdout.splitlines() if Path(line).is_file()]


def main():
    errors, warnings = [], []
    paths = tracked()
    sources = [path for path in paths if path.parts[0] in ("src", "include") and path.suffix in (".cpp", ".h", ".inc")]
    found = circles(sources)
    for known in ONE_PIECE:
        if not any(set(circle) <= known for circle in found):
            errors.append(f"tools/lint_includes.py: {', '.join(sorted(known))} need each other no longer")
    for circle in found:
        if not any(set(circle) <= known for known in ONE_PIECE):
            errors.append(f"a circle of includes: {', '.join(circle)}")
    errors += check_headers(sources)
    for path in paths:
        if path.parts[0] == "src" and path.suffix not in (".cpp", ".h", ".inc"):
            errors.append(f"{path}: sources are .cpp, .h and .inc")
        if path.suffix in (".cpp", ".h", ".inc"):
            if path.parts[0] == "src":
                errors += check_source(path)
            elif path.parts[0] == "include":
                errors += check_public(path)
            length = path.read_text(encoding="utf-8").count("\n")
            if length > LONGEST and path.suffix != ".inc":
                warnings.append(f"{path}: {length} lines (more than {LONGEST}): is it two files?")
        if path.suffix in TEXT and path.name != Path(__file__).name:
            for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                if found := MACHINE_PATH.search(line):
                    errors.append(f"{path}:{number}: names a path of one machine: {found.group()}")
    for line in warnings:
        print("warning:", line)
    for line in errors:
        print(line)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
