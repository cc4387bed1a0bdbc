"""Says what part of small faults drawn at random the tests notice: of faults that nobody chose.

Run from the repository root: .venv/bin/python tools/draw_faults.py [--seed N] [--each N] [--folder DIR]. From
each floor of src/ so many places are drawn, two a file, and a comparison, an operator, a constant, a
condition, an index or a statement of them is made wrong. What compiles is planted as tools/plant_faults.py
does it, all in one copy of the tree. Each file of unit tests is run once without a fault and says which
faults it reaches; each fault is then tried with those tests alone, the nearest and quickest first. --e2e does
the same for what is left with end-to-end tests. Whether what nobody noticed is a fault at all, or changes
only speed or nothing, is for a person to say. DIR keeps what is done: the same command goes on, and with
--again it tries what was not noticed with the tests as they are now.
"""

import argparse
import hashlib
import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import plant_faults

ROOT = plant_faults.ROOT
# Benchmarks, progress and choices by measurement have no results; other machines run the others.
LEFT_OUT = re.compile(r"/cli/(bench|progress|main|verbs|command)|/plan/fastest|/target/tuning_cache|_(avx2|amx|baseline)\.cpp$")
MESSAGES = re.compile(r"\b(?:fail<\w+>|fmt::(?:format|print)|error|wrong\w*|refuse|damaged|MILLRACE_CHECK|static_assert|assert)\(")
NO_RESULT = re.compile(r"\b(reserve|shrink_to_fit|set_origin|notify_\w+|MILLRACE_CHECK)\(|^\(void\)")
TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*(?:(?<=[eE])[-+]\d+)?|\"+|->|\+\+|--|::|<=>|&&|\|\||[-+*/%&|^!=]=|(?<=\s)(?:<=|>=|<<|>>)(?=\s)|\S")
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}", "t<": "t>"}, {")", "]", "}", "t>"}
ENDS = {",", ";", "=", "+=", "-=", "*=", "/=", "|=", "&=", "?", ":", "return", "else", "case", "co_return", "throw"}
LOGICAL, COMPARISONS = {"&&", "||"}, {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*"}
NO_STATEMENT = set("return using throw delete case default if for while switch do goto typedef static const constexpr auto struct enum".split())


def blank(found):
    return re.sub(r"[^\n]", " ", found[0])


def masked(text):
    """The text without comments and directives, its strings as rows of quotes, and what messages are made of
    left out."""
    kept = lambda m: re.sub(r"[^\n]", '"', m[0]) if m[0][0] in "\"'R" else blank(m)
    text = re.sub(r'R"(\w*)\((?s:.*?)\)\1"|//[^\n]*|/\*(?s:.*?)\*/|"(?:\\.|[^"\\\n])*"|(?<!\d)\'(?:\\[^\n\']+|\\\'|[^\'\\\n])\'|^[ \t]*#[^\n]*', kept, text,
                  flags=re.M)
    for found in MESSAGES.finditer(text):
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        text = text[:found.end()] + re.sub(r"[^\n]", " ", text[found.end():end - 1]) + text[end - 1:]
    return text


class Source:
    """The tokens of a file, which bracket each is in, and whether that is inside of a function."""

    def __init__(self, text):
        self.text, mask = text, masked(text)
        self.tokens, self.begins, self.ends = [], [], []
        for found in TOKEN.finditer(mask):
            token, a, b = found[0], found.start(), found.end()
            if token in "<>" and not (mask[a - 1].isspace() and mask[b:b + 1].isspace()):
                token = "t" + token
            self.tokens.append(token), self.begins.append(a), self.ends.append(b)
        self.partner, self.around, self.inside, self.template, self.fixed = {}, [], [], [], []
        # Open brackets: (token, whether it is in a function, whether it is in a template's list).
        stack, head = [], 0
        for k, token in enumerate(self.tokens):
            if token in CLOSING and stack and OPENING[self.tokens[stack[-1][0]]] == token:
                self.partner[k] = stack[-1][0]
                self.partner[stack.pop()[0]] = k
            self.around.append(stack[-1][0] if stack else -1)
            self.inside.append(bool(stack) and stack[-1][1])
            self.template.append(bool(stack) and stack[-1][2])
            self.fixed.append(token in ("constexpr", "case", "static_assert") or bool(k) and self.fixed[-1] and self.tokens[k - 1] not in ";{}:")
            if token in OPENING:
                outer = stack[-1] if stack else (0, False, False)
                stack.append((k, outer[1] or token == "{" and self.is_body(head, k), outer[2] or token == "t<"))
            if token in ";{}":
                head = k + 1

    def is_body(self, head, k):
        words = self.tokens[head:k]
        if not words or {"namespace", "struct", "class", "enum", "union"} & set(words[:3]) or not self.text[self.begins[k] - 1].isspace():
            return False
        return words[-1] in {")", "const", "noexcept", "override"} or "->" in words[-6:]

    def binary(self, k):
        return self.text[self.begins[k] - 1].isspace() and self.text[self.ends[k]].isspace()

    def around_operator(self, k, ends):
        """First and last token of the expression around an operator, up to what binds looser."""
        a = k
        while a > 0 and self.tokens[a - 1] not in ends and self.tokens[a - 1] not in OPENING:
            a = self.partner.get(a - 1, a - 1) if self.tokens[a - 1] in CLOSING else a - 1
        b = k
        while b + 1 < len(self.tokens) and self.tokens[b + 1] not in ends and self.tokens[b + 1] not in CLOSING:
            b = self.partner.get(b + 1, b + 1) if self.tokens[b + 1] in OPENING else b + 1
        return a, b

    def piece(self, a, b):
        return self.text[self.begins[a]:self.ends[b]]

    def changed(self, a, b, k, new):
        """The expression a … b with another token k."""
        return self.text[self.begins[a]:self.begins[k]] + new + self.text[self.ends[k]:self.ends[b]]


def expressions(s, k):
    """(kind, first token, last token, what it becomes) of faults in an expression, with token k in the
    middle."""
    token, binary = s.tokens[k], s.binary(k)
    if token in COMPARISONS and binary:
        a, b = s.around_operator(k, ENDS | LOGICAL)
        yield "comparison", a, b, s.changed(a, b, k, COMPARISONS[token])
    elif token in LOGICAL and binary:
        a, b = s.around_operator(k, ENDS | (LOGICAL - {token} if token == "&&" else set()))
        yield "operand", a, b, f"bool({s.piece(a, k - 1)})"
        yield "operand", a, b, f"bool({s.piece(k + 1, b)})"
    elif token in ARITHMETIC and binary:
        a, b = s.around_operator(k, ENDS | LOGICAL | set(COMPARISONS) | {"<<", ">>"})
        if '"' not in s.piece(a, b) and a < k < b:
            yield "arithmetic", a, b, s.changed(a, b, k, ARITHMETIC[token])
    elif token in ("min", "max") and s.tokens[k - 2:k] == ["std", "::"]:
        open_at = s.partner.get(k + 1, k) + 1 if s.tokens[k + 1] == "t<" else k + 1
        if s.tokens[open_at] == "(" and open_at in s.partner:
            b = s.partner[open_at]
            yield "min or max", k - 2, b, s.changed(k - 2, b, k, {"min": "max", "max": "min"}[token])
    elif token in ("true", "false"):
        yield "flag", k, k, {"true": "false", "false": "true"}[token]
    elif re.fullmatch(r"\d+", token):
        for other in {int(token) + 1, max(int(token) - 1, 0)} - {int(token)}:
            yield "constant", k, k, str(other)
    elif re.fullmatch(r"\d+\.\d*|\d+(\.\d*)?e-?\d+", token):
        yield "constant", k, k, f"{token} + 1"
    elif token == "[" and s.partner.get(k) == k + 2 and re.match(r"[\w\])]", s.tokens[k - 1][-1]) and s.tokens[k + 1].isidentifier() and s.tokens[k - 1] != "return":
        yield "index", k + 1, k + 1, s.tokens[k + 1] + " + 1"
    elif token == "if" and s.tokens[k + 1] == "(" and k + 1 in s.partner:
        a, b = k + 2, s.partner[k + 1] - 1
        if not {";", "="} & set(s.tokens[a:b + 1]):
            yield "condition", a, b, f"!({s.piece(a, b)})"


def statement(s, k):
    """The last token of a statement that begins at token k and is a call, an assignment or a jump; None where
    it is not."""
    before = s.tokens[k - 1]
    header = before == ")" and s.tokens[s.partner.get(k - 1, 0) - 1] in ("if", "for", "while")
    if not (before in ";{}" and s.tokens[s.around[k]] == "{" or before == "else" or header) or s.tokens[k] in NO_STATEMENT | CLOSING:
        return None
    end, outer = k, []
    while s.tokens[end] != ";":
        outer.append(s.tokens[end])
        end = s.partner.get(end, end) + 1 if s.tokens[end] in OPENING else end + 1
        if end >= len(s.tokens) or s.tokens[end] in CLOSING:
            return None
    declares = any((a.isidentifier() or a in ("t<", "*", "&")) and b.isidentifier() for a, b in zip(outer, outer[1:]))
    if declares or "{" in outer or NO_RESULT.search(s.piece(k, end)):
        return None
    jumps = outer in (["continue"], ["break"])
    return end if jumps or "(" in outer[1:] or {"=", "+=", "-=", "*=", "|=", "++", "--"} & set(outer) else None


def sites(text):
    """All faults that a file could be given: (kind, from, to, what stands there then)."""
    s, found = Source(text), []
    for k in range(2, len(s.tokens) - 2):
        if not s.inside[k] or s.template[k] or s.fixed[k]:
            continue
        here = list(expressions(s, k))
        if (end := statement(s, k)) is not None:
            here.append(("statement", k, end, ""))
        for kind, a, b, wrong in here:
            right = s.piece(a, b)
            if right.count("\n") < 4 and "//" not in right and (kind == "statement" or ";" not in right):
                found.append((kind, s.begins[a], s.ends[b], " ".join(wrong.split("\n"))))
    return found


def floor_of(name):
    parts = name.split("/")[1:-1]
    return "/".join(parts[:{"data": 2, "backend": 3}.get(parts[0], 1)])


def fault_at(name, text, site):
    """The fault as tools/faults.toml has it: with so much around it that the file has it once."""
    kind, begin, end, wrong = site
    a, b = text.rfind("\n", 0, begin) + 1, text.find("\n", end)
    while text.count(text[a:b]) > 1 and a > 0:
        a = text.rfind("\n", 0, a - 1) + 1
    line = text.count("\n", 0, begin) + 1
    return {"kind": kind, "what": f"line {line}", "file": name, "right": f"{text[a:begin]}«{text[begin:end]}»{text[end:b]}", "wrong": wrong,
            "span": (a, b), "lines": (line + 1, text.count("\n", 0, end) + 2)}


def draw(seed, each):
    """Faults of all floors."""
    floors = {}
    for path in sorted((ROOT / "src").rglob("*.cpp")):
        name = str(path.relative_to(ROOT))
        if not LEFT_OUT.search("/" + name):
            text = path.read_text(encoding="utf-8")
            if found := sites(text):
                floors.setdefault(floor_of(name), []).append((name, text, found))
    faults = []
    for floor, files in sorted(floors.items()):
        drawn, chance = [], random.Random(f"{seed} {floor}")
        for _ in range(20 * each):
            if len(drawn) >= each:
                break
            name, text, found = chance.choices(files, [len(found) for _, _, found in files])[0]
            if any(f["file"] == name for f in drawn) and len(files) > 2:
                continue
            for _ in range(2):
                kind = chance.choice(sorted({site[0] for site in found}))
                fault = fault_at(name, text, chance.choice([site for site in found if site[0] == kind]))
                apart = all(f["file"] != name or f["span"][1] <= fault["span"][0] or fault["span"][1] <= f["span"][0] for f in drawn)
                if apart and "«" not in fault["right"].replace("«", "", 1) and len(drawn) < each:
                    drawn.append({"floor": floor, **fault})
        faults += drawn
    return [{"number": number, **fault} for number, fault in enumerate(faults, 1)]


def build(tree, faults, jobs):
    """Plants and builds; returns the faults that compile."""
    while True:
        plant_faults.make_tree(tree, faults)
        plant_faults.configure(tree)
        done = subprocess.run(["ninja", "-k", "0", "-C", tree / "build/release", "-j", str(jobs)], stdout=subprocess.PIPE, text=True, errors="replace")
        if done.returncode == 0:
            return faults
        for errors in (r"(src/[\w/.]+\.cpp):(\d+):\d+: (?:fatal )?error", r"(src/[\w/.]+\.cpp):(\d+)[:,]"):
            named = {(name, int(line)) for name, line in re.findall(errors, done.stdout)}
            bad = [f["number"] for f in faults if any(name == f["file"] and f["lines"][0] <= line <= f["lines"][1] for name, line in named)]
            if bad:
                break
        if not bad:
            sys.exit(done.stdout[-6000:])
        print(f"do not compile: {bad}", flush=True)
        faults = [fault for fault in faults if fault["number"] not in bad]


class Trial:
    """What is known so far, kept in a file."""

    def __init__(self, folder):
        self.path, self.tree = folder / "state.json", folder / "tree"
        self.state = json.loads(self.path.read_text()) if self.path.exists() else {
            "digests": {}, "times": {}, "reach": {}, "failing": [], "noticed": {}, "tried": {}}
        self.log = folder / "log"
        self.log.mkdir(parents=True, exist_ok=True)

    def save(self):
        self.path.write_text(json.dumps(self.state, indent=1, ensure_ascii=False))

    def logged(self):
        """(fault, test) of what was reached since the last call."""
        path = self.log / "reached"
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [(int(line.split("\t")[0]), line.partition("\t")[2]) for line in lines]

    def units(self, name):
        return [self.tree / "build/release/millrace_tests", f"-sf={name}", "--abort-after=1"]

    def pytest(self, *nodes):
        return [sys.executable, "-m", "pytest", "-q", "-vv", "--durations=0", "-p", "no:cacheprovider", *nodes]

    def reach_units(self, runner):
        for path in sorted((self.tree / "tests").rglob("*_test.cpp")):
            name, digest = f"*{path.relative_to(self.tree)}", hashlib.sha256(path.read_bytes()).hexdigest()
            if self.state["digests"].get(name) == digest:
                continue
            self.state["digests"][name] = digest
            self.logged()
            begin = time.monotonic()
            passed, output = runner.run(self.units(name), more={"MILLRACE_FAULT_LOG": str(self.log)})
            if not passed:
                print(f"fails without a fault: {name}\n{output[-1500:]}", flush=True)
                self.state["failing"].append(name)
            else:
                self.state["times"][name] = time.monotonic() - begin
                self.state["reach"][name] = sorted({fault for fault, _ in self.logged()})
            self.save()

    def reach_e2e(self, runner, names):
        for path in sorted((self.tree / "tests/e2e").glob("test_*.py"), key=lambda path: path.stat().st_size):
            name = str(path.relative_to(self.tree))
            if name in self.state["times"] or names and path.stem not in names:
                continue
            self.logged()
            begin = time.monotonic()
            _, output = runner.run(self.pytest(name), more={"MILLRACE_FAULT_LOG": str(self.log)})
            self.state["times"][name] = time.monotonic() - begin
            self.state["failing"] += re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.M)
            for seconds, node in re.findall(r"^([\d.]+)s \w+ +(tests/e2e/.*)$", output, re.M):
                self.state["times"][node] = self.state["times"].get(node, 0) + float(seconds)
            for fault, test in self.logged():
                node, _, phase = test.rpartition(" (")
                reached = self.state["reach"].setdefault(node if phase.startswith("call") else name, [])
                if fault not in reached:
                    reached.append(fault)
            print(f"{name}: {self.state['times'][name]:.0f} s", flush=True)
            self.save()

    def groups(self, fault, e2e, most):
        """Lists of tests that reach a fault: those of its folder, then the quickest; no more seconds of
        others than `most`."""
        tests = [t for t, numbers in self.state["reach"].items() if fault["number"] in numbers and (t[0] != "*") == e2e and t not in self.state["failing"]]
        folder = fault["file"].rpartition("/")[0].removeprefix("src/")
        named = f"/{folder.rpartition('/')[2]}_test.cpp"  # the tests of a folder of kernels are one file
        near = sorted(t for t in tests if t.startswith(f"*tests/{folder}/") or t.endswith(named))
        if near:
            yield near
        group, seconds, all_seconds = [], 0, 0
        for test in sorted(set(tests) - set(near), key=lambda t: self.state["times"].get(t, 1)):
            seconds += self.state["times"].get(test, 1)
            if all_seconds + seconds > most:
                break
            group.append(test)
            if seconds > 4 + all_seconds:
                yield group
                all_seconds, group, seconds = all_seconds + seconds, [], 0
        if group:
            yield group

    def attempt(self, runner, fault, e2e, most):
        number = str(fault["number"])
        tried = self.state["tried"].setdefault(number, {})
        if number in self.state["noticed"] or tried.get("e2e" if e2e else "unit", 0) >= most:
            return
        for group in self.groups(fault, e2e, most):
            command = self.pytest("-x", *group) if e2e else self.units(",".join(group))
            limit = 60 + 10 * sum(self.state["times"].get(test, 1) for test in group)
            passed, output = runner.run(command, fault, limit)
            if not passed:
                # Of unit tests the last one that is named before an error: some only say that they are
                # skipped.
                named = re.findall(r"^(?:TEST CASE:\s*|FAILED |ERROR )(.*)", output if e2e else output.partition("ERROR:")[0], re.M)
                what = (named[0] if e2e else named[-1]) if named else output[-100:]
                self.state["noticed"][number] = f"{'e2e' if e2e else 'unit'}: {what}"
                break
        tried["e2e" if e2e else "unit"] = most
        self.save()
        print(f"{number:>4} {fault['file']} {fault['what']} {fault['kind']}: {self.state['noticed'].get(number, 'NOT NOTICED')}", flush=True)

    def report(self, drawn, faults):
        reached = {number for numbers in self.state["reach"].values() for number in numbers}
        print(f"{'floor':24} drawn compiled reached unit e2e")
        for floor in sorted({fault["floor"] for fault in drawn}) + [""]:
            mine = [fault["number"] for fault in faults if fault["floor"] == floor or not floor]
            how = [self.state["noticed"].get(str(number), "") for number in mine]
            print(f"{floor or 'all':24} {sum(not floor or fault['floor'] == floor for fault in drawn):5} {len(mine):8} "
                  f"{sum(number in reached for number in mine):7} {sum(h.startswith('unit') for h in how):4} {sum(h.startswith('e2e') for h in how):3}")
        for fault in faults:
            if str(fault["number"]) not in self.state["noticed"]:
                print(f"\n{'NOT NOTICED' if fault['number'] in reached else 'not reached'}: {fault['number']} {fault['file']} {fault['what']}, "
                      f"{fault['kind']}\n{fault['right']}\nbecomes: {fault['wrong'] or 'nothing'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=4, help="faults of a floor")
    parser.add_argument("--jobs", type=int, default=2, help="for the build")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/drawn", help="where the copy is built, and what is done is kept")
    parser.add_argument("--seconds", type=float, default=300, help="the most that tests far from a fault take, without it")
    parser.add_argument("--list", action="store_true", help="draw and print, no more")
    parser.add_argument("--again", action="store_true", help="bring the copy up to date and try again what was not noticed")
    parser.add_argument("--e2e", nargs="*", metavar="NAME", help="end-to-end tests too: all, or those of these files (test_run)")
    options = parser.parse_args()
    folder = options.folder.resolve()
    trial = Trial(folder)
    state = trial.state
    drawn = state["drawn"] if "drawn" in state else draw(options.seed, options.each)
    if options.list:
        for fault in drawn:
            print(f"{fault['number']} {fault['file']} {fault['what']} {fault['kind']}\n{fault['right']}\nbecomes: {fault['wrong'] or 'nothing'}\n")
        return 0
    if state.setdefault("seed", options.seed) != options.seed:
        sys.exit(f"{folder} is of the seed {state['seed']}: name another --folder, or remove it")
    faults = [fault for fault in drawn if fault["number"] in state.get("compiled", [fault["number"]])]
    if "compiled" not in state or options.again:
        trial.tree.mkdir(parents=True, exist_ok=True)
        there = [f for f in faults if (ROOT / f["file"]).exists() and (ROOT / f["file"]).read_text().count(re.sub("[«»]", "", f["right"])) == 1]
        planted = build(trial.tree, there, options.jobs)
        state |= {"drawn": drawn, "tried": {}, "gone": [f["number"] for f in faults if f not in there]}
        state.setdefault("compiled", [fault["number"] for fault in planted])
        trial.save()
    faults = [fault for fault in drawn if fault["number"] in state["compiled"] and fault["number"] not in state["gone"]]
    runner = plant_faults.Runner(trial.tree)
    trial.reach_units(runner)
    for fault in faults:
        trial.attempt(runner, fault, False, options.seconds)
    if options.e2e is not None:
        trial.reach_e2e(runner, options.e2e)
        for fault in faults:
            trial.attempt(runner, fault, True, options.seconds)
    trial.report(drawn, faults)
    return 0


if __name__ == "__main__":
    sys.exit(main())
