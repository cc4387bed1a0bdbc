"""Proves that the tests notice faults: plants those of tools/faults.toml, one at a time, and runs the tests
that should fail.

Run from the repository root: .venv/bin/python tools/plant_faults.py [--jobs N] [WORD…]. A copy of the tree in
build/faults is rewritten so that all faults are compiled at once, and MILLRACE_FAULT=17 switches number 17
on. Its tests must pass without a fault. What the tests named for a fault do not notice is tried with all unit
tests, unless none of them reaches it: it may be code of other CPUs. Prints a line a fault; exits 1 where
fewer than 95 % of those that are reached are noticed. WORDs choose faults: numbers, or parts of their kind,
file or description.
"""

import argparse
import concurrent.futures
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENOUGH = 0.95
# A fault that takes more for itself is noticed.
MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
HEADER = """#pragma once

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

/// Whether a fault is switched on. Where MILLRACE_FAULT_LOG names a folder, its file `reached` gets each number that is asked
/// for, and the test of pytest that runs.
static inline bool planted_fault(int number) {
  static const int planted = std::getenv("MILLRACE_FAULT") ? std::atoi(std::getenv("MILLRACE_FAULT")) : 0;
  static const char* const log = std::getenv("MILLRACE_FAULT_LOG");
  static std::atomic<bool> asked[4096];
  if (log && !asked[number].load(std::memory_order_relaxed) && !asked[number].exchange(true)) {
    const char* const test = std::getenv("PYTEST_CURRENT_TEST");
    const std::string line = std::to_string(number) + "\\t" + (test ? test : "") + "\\n";
    if (std::FILE* const file = std::fopen((std::string(log) + "/reached").c_str(), "ae")) {
      std::fputs(line.c_str(), file);
      std::fclose(file);
    }
  }
  return number == planted;
}
"""


def read_faults():
    """The list, numbered from 1."""
    kinds = tomllib.loads((ROOT / "tools/faults.toml").read_text(encoding="utf-8"))
    faults = [{"kind": kind, **fault} for kind, list_of in kinds.items() for fault in list_of]
    return [{"number": number, "unit": "", "e2e": "", **fault} for number, fault in enumerate(faults, 1)]


def is_list(text):
    """Whether a comma stands outside of all brackets."""
    open_ones = 0
    for c in text:
        open_ones += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(c, 0)
        if c == "," and open_ones == 0:
            return True
    return False


def planted(text, fault):
    """The text of a file with a fault in it."""
    before, mark, rest = fault["right"].partition("«")
    right, _, after = rest.partition("»") if mark else (fault["right"], "", "")
    before = before if mark else ""
    if text.count(before + right + after) != 1:
        sys.exit(f"tools/faults.toml is stale: {fault['file']} does not have this exactly once:\n{before}{right}{after}")
    test = f"planted_fault({fault['number']})"
    statements = right.endswith(";")
    if not statements and (is_list(right) or is_list(fault["wrong"])):
        sys.exit(f"tools/faults.toml: a list is no expression, its last alone would be its value: {fault['what']}")
    if fault["wrong"] == " ".join(f"!({right})".split("\n")):
        return text.replace(before + right + after, f"{before}({test} != bool({right})){after}")
    new = f"{{ if ({test}) {{ {fault['wrong']} }} else {{ {right} }} }}" if statements else f"({test} ? ({fault['wrong']}) : ({right}))"
    return text.replace(before + right + after, before + new + after)


def planted_texts(faults):
    """The files that have faults, with all of theirs."""
    texts = {}
    for fault in faults:
        text = texts.get(fault["file"]) or '#include "planted_fault.h"\n' + (ROOT / fault["file"]).read_text(encoding="utf-8")
        texts[fault["file"]] = planted(text, fault)
    return texts


def check_tests(faults):
    """That each fault names tests that there are."""
    tests = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("*_test.cpp")]
    for fault in faults:
        for part in fault["unit"].split():
            if not any(part in name for name in tests):
                sys.exit(f"tools/faults.toml is stale: no file of tests is called {part} ({fault['what']})")


def make_tree(tree, faults):
    """Brings the copy up to date, and leaves alone what has not changed."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    wanted = {name: None for name in listed.stdout.splitlines() if (ROOT / name).is_file()}
    wanted.update(planted_texts(faults))
    wanted["src/planted_fault.h"] = HEADER
    if not (tree / ".venv").exists():
        (tree / ".venv").symlink_to((ROOT / ".venv").resolve())
    for path in tree.rglob("*"):
        name = path.relative_to(tree)
        if path.is_file() and name.parts[0] != "build" and str(name) not in wanted:
            path.unlink()
    for name, text in wanted.items():
        content = (ROOT / name).read_bytes() if text is None else text.encode()
        path = tree / name
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            shutil.copymode(ROOT / name if text is None or name in listed.stdout else ROOT / "dev", path)


def configure(tree):
    where = tree / "build/release"
    if not (where / "build.ninja").exists():
        subprocess.run(["cmake", "-S", tree, "-B", where, "-G", "Ninja"], check=True, stdout=subprocess.DEVNULL)


def build(tree, jobs):
    configure(tree)
    subprocess.run(["ninja", "-k", "0", "-C", tree / "build/release", "-j", str(jobs)], check=True)


class Runner:
    """Runs tests of the copy. The user's home is an empty folder, in which they must leave nothing."""

    def __init__(self, tree):
        self.tree, self.home = tree, tree.parent / "home"
        self.home.mkdir(exist_ok=True)
        self.cache = tree / "build/release/test-cache"
        self.limit = None  # seconds: a fault that makes tests hang is noticed
        self.reached = set()  # the faults that some test asks for
        data = os.environ.get("MILLRACE_DATA", ROOT.parent / "shared/data")
        self.environment = {**os.environ, "HOME": str(self.home), "MILLRACE_DATA": str(data), "MILLRACE": str(tree / "build/release/millrace")}
        cases = next((tree / ".venv/lib").glob("python3*/site-packages/onnx/backend/test/data"), None)
        if cases:
            self.environment.setdefault("MILLRACE_ONNX_CASES", str(cases))
        for name in ("MILLRACE_CACHE", "MILLRACE_FAULT", "MILLRACE_TEST_CACHE", "XDG_CACHE_HOME"):
            self.environment.pop(name, None)

    def commands(self, fault):
        """The fault's own tests: those in a filter each."""
        if fault["unit"]:
            files = ",".join(f"*tests/{part}*" for part in fault["unit"].split())
            yield [self.tree / "build/release/millrace_tests", f"-sf={files}", "--abort-after=1"]
        if fault["e2e"]:
            yield [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *shlex.split(fault["e2e"])]

    def run(self, command, fault=None, limit=None, more=()):
        """Whether the tests pass within so many seconds, and what they said; `more` joins their
        environment."""
        # Tests mount disks.
        with tempfile.TemporaryDirectory(dir=self.tree.parent, ignore_cleanup_errors=True) as own:
            environment = {**self.environment, "TMPDIR": own, **dict(more)}
            if fault:
                # Compiled code is found by what it computes, not by how it was emitted: of a fault there,
                # none is right.
                cache = Path(own) / "cache"
                if self.cache.exists() and "/codegen/" not in fault["file"]:
                    # What is compiled is never written to again, only replaced.
                    shutil.copytree(self.cache, cache, copy_function=lambda a, b: os.link(a, b) if "/kernels/" in a else shutil.copy2(a, b))
                environment |= {"MILLRACE_FAULT": str(fault["number"]), "MILLRACE_TEST_CACHE": str(cache)}
            try:
                done = subprocess.run(list(map(str, command)), cwd=self.tree, env=environment, timeout=limit or self.limit, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY)) if fault else None)
            except subprocess.TimeoutExpired:
                return False, "took too long"
        if done.returncode == 5 and "pytest" in command or re.search(r"test cases:\s+0 ", done.stdout):
            sys.exit(f"tools/faults.toml is stale: no test is chosen by {shlex.join(map(str, command))}")
        return done.returncode == 0, done.stdout

    def check_right(self, faults):
        """Without a fault all pass. How long they take says how long is too long."""
        begin = time.monotonic()
        commands = {shlex.join(map(str, command)): command for fault in faults for command in self.commands(fault)}
        every = [[self.tree / "build/release/millrace_tests"]] + [command for command in commands.values() if "pytest" in command]
        with tempfile.TemporaryDirectory(dir=self.tree.parent) as log:
            for command in every:
                passed, output = self.run(command, more={"MILLRACE_FAULT_LOG": log})
                if not passed:
                    sys.exit(f"{output[-4000:]}\nwithout a fault this fails: {shlex.join(map(str, command))}")
            lines = (Path(log) / "reached").read_text(errors="replace").splitlines()
        self.reached = {int(line.split("\t")[0]) for line in lines}
        self.limit = 300 + 5 * (time.monotonic() - begin)

    def notices(self, fault):
        """How a fault was noticed; "" when it was not."""
        for command in self.commands(fault):
            if not self.run(command, fault)[0]:
                return "noticed"
        if fault["number"] not in self.reached:
            return ""
        passed, output = self.run([self.tree / "build/release/millrace_tests", "--abort-after=1"], fault)
        failed = re.search(r"TEST CASE:\s*(.*)", output)
        return "" if passed else f"noticed elsewhere: {failed[1] if failed else output[-200:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--jobs", type=int, default=max(1, len(os.sched_getaffinity(0)) // 2), help="faults tried at the same time")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/faults", help="where the copy is built")
    parser.add_argument("--build-only", action="store_true", help="try no fault yet")
    parser.add_argument("--check", action="store_true", help="only whether all faults can be planted, and their tests are there")
    options = parser.parse_args()
    faults = read_faults()
    planted_texts(faults)
    check_tests(faults)
    if options.check:
        return 0
    tree = options.folder.resolve() / "tree"
    tree.mkdir(parents=True, exist_ok=True)
    make_tree(tree, faults)
    build(tree, 2 * options.jobs)
    if options.build_only:
        return 0
    texts = {fault["number"]: f"{fault['kind']} {fault['file']} {fault['what']}" for fault in faults}
    chosen = [f for f in faults if not options.words or any(w == str(f["number"]) or not w.isdigit() and w in texts[f["number"]] for w in options.words)]
    runner = Runner(tree)
    runner.check_right(chosen)
    # ONNX Runtime's package keeps a device's number there.
    left = sorted(str(path.relative_to(runner.home)) for path in runner.home.rglob("*") if path.is_file() and "Microsoft" not in path.parts)
    if left:
        sys.exit(f"the tests wrote into the user's home: {', '.join(left[:5])}")
    unnoticed, unreached = [], []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for fault, how in zip(chosen, pool.map(runner.notices, chosen)):
            reached = fault["number"] in runner.reached
            print(f"{fault['number']:4} {fault['kind']:14} {fault['what']}: {how or ('NOT NOTICED' if reached else 'not reached')}", flush=True)
            if not how:
                (unnoticed if reached else unreached).append(fault)
    tried = len(chosen) - len(unreached)
    noticed = tried - len(unnoticed)
    print(f"{noticed} of {tried} noticed; {len(unreached)} not reached on this CPU")
    for how, faults_of in (("not reached", unreached), ("not noticed", unnoticed)):
        for fault in faults_of:
            print(f"{how}: {fault['number']} {fault['file']}: {fault['what']}")
    return 0 if noticed >= ENOUGH * tried else 1


if __name__ == "__main__":
    sys.exit(main())
