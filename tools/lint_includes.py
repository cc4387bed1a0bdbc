"""Checks that includes point only downward, that files stay short, and that no tracked file names a machine's paths.

Run from the repository root: python tools/lint_includes.py. Prints one line a finding; exits 1 if there is an error.
"""

import re
import subprocess
import sys
from pathlib import Path

# Folders of src/, lowest first. A folder may include those of the rows above it and itself, never one beside it.
LAYERS = [
    ["base"],
    ["ir"],
    ["ops"],
    ["autodiff"],
    ["target"],
    ["passes"],
    ["plan"],
    ["backend"],
    ["runtime"],
    ["trace"],
    ["nn", "optim"],
    ["data"],
    ["eval", "track", "onnx"],
    ["train"],
    ["cli"],
]
RANK = {folder: rank for rank, row in enumerate(LAYERS) for folder in row}
# Back ends are handed to passes and plans, and know neither of them.
FORBIDDEN = {"backend": {"passes", "plan"}}
LONGEST = 600

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)
# A path of somebody's machine: home folders and the like. System paths (/usr, /etc, /dev, /proc, /sys, /bin) are fine.
MACHINE_PATH = re.compile(r"(?<![\w.~\]})*-])/(?:work|home|root|tmp|Users|mnt|media)/[\w.+-]+")
TEXT = {".cpp", ".h", ".inc", ".py", ".sh", ".md", ".txt", ".toml", ".cmake", ".in", ".json", ".yml", ".svg", ""}


def includes(path):
    return [(quote, name) for quote, name in INCLUDE.findall(path.read_text(encoding="utf-8"))]


def check_source(path):
    """Findings of a file under src/: what it includes from folders above or beside its own."""
    folder = path.parts[1] if len(path.parts) > 2 else None
    if folder not in RANK:
        yield f"{path}: the folder is not in LAYERS of tools/lint_includes.py"
        return
    for quote, name in includes(path):
        if quote == "<":
            continue
        if not (Path("src") / name).exists():
            if "/" not in name or name.split("/")[0] in RANK or name.startswith("millrace/"):
                yield f'{path}: "{name}" is not a file under src/ (public headers: <millrace/…>)'
            continue
        other = name.split("/")[0]
        if other == folder:
            continue
        if RANK.get(other, len(LAYERS)) >= RANK[folder]:
            yield f"{path}: src/{folder} may not include upward or sideways: {name}"
        elif other in FORBIDDEN.get(folder, ()):
            yield f"{path}: src/{folder} may not know src/{other}: {name}"


def check_public(path):
    """Findings of a public header: it includes public and standard headers only."""
    for quote, name in includes(path):
        if quote == '"':
            yield f'{path}: a public header includes <millrace/…>, not "{name}"'
        elif "/" in name and not name.startswith("millrace/"):
            yield f"{path}: a public header may not need other libraries: <{name}>"
        elif name.startswith("millrace/") and not (Path("include") / name).exists():
            yield f"{path}: no such public header: <{name}>"


def tracked():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
    return [Path(line) for line in listed.stdout.splitlines() if Path(line).is_file()]


def main():
    errors, warnings = [], []
    for path in tracked():
        if path.suffix in (".cpp", ".h"):
            if path.parts[0] == "src":
                errors += check_source(path)
            elif path.parts[0] == "include":
                errors += check_public(path)
            length = path.read_text(encoding="utf-8").count("\n")
            if length > LONGEST:
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
