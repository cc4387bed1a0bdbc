"""Refuses comments that reach beyond 110 columns: those of Python (docstrings too), CMake, shell, TOML and
.inc files (clang-format holds those of C++).

Run from the repository root: python tools/lint_comments.py. Prints one line a finding; exits 1 if there is
one. Code may be wider; so may what a tool reads (noqa, fmt).
"""

import ast
import re
import subprocess
import sys
import tokenize

MOST = 110
FILES = re.compile(r"\.(py|cmake|sh|toml|supp|txt|inc)$|(^|/)(dev|run)$")
# A comment that begins a line, or stands behind code in which no quote or $ could make something else of the
# sign.
COMMENT = re.compile(r"^[^\"'$#]*(?:\"[^\"]*\"[^\"'$#]*)*#(?: |$)")


# The same in C++.
C_COMMENT = re.compile(r"^[^\"]*(?:\"[^\"]*\"[^\"]*)*//")


def docstring_lines(file):
    """The numbers and the text of the lines of its docstrings."""
    with open(file, encoding="utf-8") as source:
        text = source.read()
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False):
            for number in range(node.body[0].lineno, node.body[0].end_lineno + 1):
                yield number, lines[number - 1]


def long_comments(file):
    """The numbers of its lines with such comments."""
    if file.endswith(".py"):
        yield from (number for number, line in docstring_lines(file) if len(line) > MOST)
        with open(file, "rb") as source:
            for token in tokenize.tokenize(source.readline):
                if token.type == tokenize.COMMENT and token.end[1] > MOST and not re.match(r"# (noqa|fmt):", token.string):
                    yield token.start[0]
        return
    comment = C_COMMENT if file.endswith(".inc") else COMMENT
    with open(file, encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            if len(line.rstrip("\n")) > MOST and comment.match(line):
                yield number


def main():
    files = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.splitlines()
    found = [(file, number) for file in files if FILES.search(file) for number in long_comments(file)]
    for file, number in found:
        print(f"{file}:{number}: the comment reaches beyond {MOST} columns")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
