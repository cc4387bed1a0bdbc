"""Runs clang-tidy (the checks of .clang-tidy) over src/ and remembers what was clean.

python tools/lint_tidy.py [--jobs N] [--seconds S] BUILD_FOLDER [FILE…]: BUILD_FOLDER has
compile_commands.json. A file is checked again only when it, or one of our headers that it includes, or
.clang-tidy has changed since it was last clean. The files of the newest commits come first; those that are
not reached within S seconds are counted, and are no failure.
"""

import argparse
import concurrent.futures
import hashlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(rb'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.M)


def contents(path, seen):
    """The bytes of a file and of all headers of ours that it reaches."""
    if path in seen:
        return
    seen[path] = text = path.read_bytes()
    for name in INCLUDE.findall(text):
        for folder in (ROOT / "src", ROOT / "include", path.parent):
            header = folder / name.decode()
            if header.is_file():
                contents(header, seen)
                break


def fingerprint(path):
    seen = {}
    contents(path, seen)
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    for name in sorted(seen):
        digest.update(seen[name])
    return digest.hexdigest()


def check(path, build):
    command = ["clang-tidy-19", "--quiet", "-p", str(build), str(path)]
    result = subprocess.run(command, capture_output=True, text=True)
    findings = [line for line in result.stdout.splitlines() if line.strip()]
    if result.returncode != 0 and not findings:
        findings = result.stderr.splitlines()[-5:]
    return findings


def by_age(files):
    """The files in the order of their newest commits, newest first; those in no commit before all."""
    log = subprocess.run(["git", "log", "--format=", "--name-only"], capture_output=True, text=True, cwd=ROOT).stdout
    age = {}
    for name in log.splitlines():
        age.setdefault(ROOT / name, len(age))
    return sorted(files, key=lambda file: (age.get(file, -1), file))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("build", type=Path)
    parser.add_argument("files", nargs="*", type=Path)
    arguments = parser.parse_args()

    commands = json.loads((arguments.build / "compile_commands.json").read_text())
    known = {Path(entry["file"]).resolve() for entry in commands}
    files = {file.resolve() for file in arguments.files} or {f for f in known if ROOT / "src" in f.parents}
    memory = arguments.build / "lint_clean.json"
    clean = json.loads(memory.read_text()) if memory.exists() else {}
    todo = {}
    for file in by_age(files & known):
        mark = fingerprint(file)
        if clean.get(str(file.relative_to(ROOT))) != mark:
            todo[file] = mark
    print(f"{len(todo)} of {len(files & known)} files to check", flush=True)

    dirty, unreached, seconds = 0, 0, {}
    end = time.monotonic() + arguments.seconds

    def timed(file):
        start = time.monotonic()
        if start > end:
            return None
        findings = check(file, arguments.build)
        seconds[file] = time.monotonic() - start
        return findings

    printed = set()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for file, findings in zip(todo, pool.map(timed, todo)):
            if findings is None:
                unreached += 1
            elif findings:
                dirty += 1
                text = "\n".join(findings)
                if text not in printed:  # a header's finding comes once for each file that includes it
                    print(text.replace(f"{ROOT}/", ""), flush=True)
                printed.add(text)
            else:
                clean[str(file.relative_to(ROOT))] = todo[file]
    memory.write_text(json.dumps(clean, indent=0, sort_keys=True))
    if seconds:
        slowest = max(seconds, key=seconds.get)
        print(f"{sum(seconds.values()):.0f} s of clang-tidy, the slowest {slowest.name} {seconds[slowest]:.0f} s")
    if unreached:
        print(f"{unreached} files not reached within {arguments.seconds:.0f} s")
    return 1 if dirty else 0


if __name__ == "__main__":
    sys.exit(main())
