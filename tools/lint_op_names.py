"""Counts comparisons with names of operators outside of src/backend/ref, and refuses new ones.

Passes and back ends ask an operator for what it declares (include/millrace/operator.h), so that a program's
own operator is treated like the library's. What remains is listed here with its reason. Run from the
repository root: python tools/lint_op_names.py. Prints one line a finding; exits 1 if there is one. With --all
it lists every comparison.
"""

import re
import sys
from pathlib import Path

MOST = 15
# (file, operator): why it is asked for by name.
ALLOWED = {
    ("src/passes/rules/concat_of_many.cpp", "concat"): "a rewrite of concat",
    ("src/passes/rules/log_of_softmax.cpp", "softmax"): "a rewrite of softmax",
    ("src/passes/rules/stable_log_sum_exp.cpp", "log_softmax"): "what that rule itself leads to, not to be rewritten again",
    ("src/passes/rules/gather_of_cast.cpp", "gather"): "a rewrite of gather",
    ("src/passes/recognise_attention.cpp", "softmax"): "attention is recognised by its form",
    ("src/passes/recognise_attention.cpp", "slice"): "the thirds of a merged projection are recognised by their form",
    ("src/passes/recognise_attention.cpp", "is_nan"): "the guard of an exporter is recognised by its form",
    ("src/ops/norm_form.cpp", "square"): "norms are recognised by their form",
    ("src/ops/norm_form.cpp", "rsqrt"): "norms are recognised by their form",
    ("src/ops/norm_form.cpp", "reciprocal"): "norms are recognised by their form",
    ("src/ops/fused_conv2d.cpp", "clamp"): "ReLU and its relatives behind a convolution are recognised by their form",
    ("src/passes/store_bf16.cpp", "square"): "the bell curve exp(-x²) is recognised by its form",
    ("src/runtime/profile.cpp", "fused("): "a launch is told by its name, as it is shown",
    ("src/runtime/compare.cpp", "copy"): "copies into other layouts at the edges of a form do not count",
    ("src/backend/cpu/kernels/layer_norm.cpp", "layer_norm"): "one builder makes the kernels of the norm and of its gradient",
}
# What only looks like one.
OTHERS = {("src/cli/zoo.cpp", "adamw")}  # an optimiser
# Operators that a pass or kernel is about are told by a function of the operator's own header, which may also
# be asked.
ROLES = re.compile(r"\bops::(matmul_of|convolution_part|pooled_by|attention_form|row_sum)\(")

# Folders that know graphs: what is compared there with an operator's name, whatever the variable is called,
# is an operator.
COMPILER = ("ir", "autodiff", "target", "passes", "plan", "backend", "runtime", "session", "capi", "trace", "optim", "model_formats", "cli")

NAME = r'"([a-z0-9_]+)"'
COMPARED = [
    re.compile(r"[!=]=\s*" + NAME),
    re.compile(NAME + r"\s*[!=]="),
    re.compile(r"\bis\([^;\"]*,\s*" + NAME + r"\)"),
    re.compile(r"\.(?:compare|find|contains|count)\(" + NAME + r"\)"),
    # Of an operator made for this: its address is as good as its name.
    re.compile(r"[!=]=\s*&?(?:get|find)_operator\(" + NAME + r"\)"),
    re.compile(r"\bconst Operator\*? ?(?:const )?\*?&? ?\w+ = &?(?:get|find)_operator\(" + NAME + r"\);[^}]*[!=]="),
]
# Elsewhere words mean other things: there the variable says that it is one.
COMPARED_ELSEWHERE = [re.compile(r"(?:op|name|operation)(?:\(\))?\s*[!=]=\s*" + NAME), *COMPARED[2:3], *COMPARED[4:]]
# A part of a name tells several operators.
PREFIX = re.compile(r"\b(?:op->name|name|operation)\.(?:starts_with|ends_with|find|contains)\(" + r'"([a-z0-9_(]+)"')
# The operator of a name that stands in a list.
LOOKED_UP = re.compile(r"[!=]=\s*&?(?:get|find)_operator\(([^\"()]+)\)")
TABLE = re.compile(r"(?:set|map|unordered_set|unordered_map|array|vector)<std::string_view[^;=]*=\s*(\{[^;]*\});", re.S)


def operators(root):
    names = set()
    for path in (root / "src/ops").glob("*.cpp"):
        names.update(re.findall(r"^MILLRACE_OPERATOR\(([a-z0-9_]+)\)", path.read_text(encoding="utf-8"), re.M))
    return names


def comparisons(root, names):
    """(file, line, operator) of every comparison, tables of names included: one for each name in them."""
    for path in sorted((root / "src").rglob("*")):
        file = path.relative_to(root).as_posix()
        if path.suffix not in (".cpp", ".h", ".inc") or file.startswith(("src/backend/ref/", "src/data/", "src/task/")):
            continue
        text = path.read_text(encoding="utf-8")
        for pattern in COMPARED if file.split("/")[1] in COMPILER else COMPARED_ELSEWHERE:
            for found in pattern.finditer(text):
                if found.group(1) in names:
                    yield file, text.count("\n", 0, found.start()) + 1, found.group(1)
        for found in PREFIX.finditer(text) if file.split("/")[1] in COMPILER else ():
            yield file, text.count("\n", 0, found.start()) + 1, found.group(1)
        for found in LOOKED_UP.finditer(text):
            yield file, text.count("\n", 0, found.start()) + 1, found.group(1)
        for table in TABLE.finditer(text):
            for found in re.finditer(r"[{,]\s*" + NAME, table.group(1)):
                if found.group(1) in names:
                    yield file, text.count("\n", 0, table.start() + found.start()) + 1, found.group(1)


def main():
    root = Path(sys.argv[-1]) if len(sys.argv) > 1 and not sys.argv[-1].startswith("--") else Path(".")
    found = [(file, line, name) for file, line, name in comparisons(root, operators(root)) if (file, name) not in OTHERS]
    if "--all" in sys.argv:
        for file, line, name in found:
            print(f"{file}:{line}: {name}")
        roles = sum(len(ROLES.findall(p.read_text(encoding="utf-8"))) for p in (root / "src").rglob("*.cpp")
                    if not p.as_posix().startswith("src/ops/"))
        print(f"{len(found)} comparisons with names; {roles} questions for a role")
        return 0
    errors = [f'{file}:{line}: compares with the operator "{name}": ask for a property (include/millrace/operator.h)'
              for file, line, name in found if (file, name) not in ALLOWED]
    seen = {(file, name) for file, _, name in found}
    errors += [f"tools/lint_op_names.py: {file} no longer asks for {name}" for file, name in ALLOWED if (file, name) not in seen]
    if len(found) > MOST:
        errors.append(f"{len(found)} comparisons with names of operators, at most {MOST} are allowed")
    print(*errors, sep="\n", end="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
