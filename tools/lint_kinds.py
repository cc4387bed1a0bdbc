"""Refuses code that names a kind of data where only the task and its inputs and outputs may be known:
src/train, src/eval, src/cli, and src/task itself, without its folders of kinds. Of src/task, that goes for
their keys too: a kind declares its own.

Kinds are the files of src/task/inputs and src/task/outputs. Verbs whose own subject is a kind of data are
listed. Run from the repository root: python tools/lint_kinds.py. Prints one line a finding; exits 1 if there
is one.
"""

import re
import sys
from pathlib import Path

# Verbs about pictures, texts or sources as such, and the drawing of sheets and files for people.
OWN_SUBJECT = {f"src/cli/{name}.cpp" for name in ("letters", "pack", "bench_data", "data_stat", "data_tokens", "data_show", "batch_files")}
# Models without a recipe: files of pictures and arrays, and a tokenizer, are all that there is to go by.
OWN_SUBJECT |= {f"src/task/{name}" for name in ("model_samples.h", "model_samples.cpp", "predict_model_file.cpp", "text_tokens.cpp")}
# What the inputs of texts share; and frames, which are part of what every input may have (Input::frame()).
TEXTS = {"src/task/token_input.h", "src/task/token_input.cpp"}
# A draft chooses: what folders show that hold no classes; dropout for tables of few rows.
NAMED = TEXTS | {"src/task/draft.cpp", "src/task/draft_target.cpp"}
OWN_SUBJECT |= TEXTS | {"src/task/input.h", "src/task/export.cpp"}

INCLUDE = re.compile(r'#include "(data/(?:codecs|augment|encode)/[^"]+|data/feed/(?:picture|sound|array)_part\.h|data/feed/sequences/[^"]+|task/token_input\.h|task/(?:inputs|outputs|losses)/[^"]+)"')

# What declares a setting: {"name", "doc" …, its usual value …}, or weights of classes.
SETTING = re.compile(r'\{\s*"([a-z0-9_]+)",\s*(?:"(?:[^"\\]|\\.)*"\s*)+,\s*[^"\s}]|class_weights_setting\(\s*"([a-z0-9_]+)"')
# Keys by which sections name columns, whatever their kind: task/settle.cpp finds kinds by them.
GENERAL = {"column", "columns"}
# Keys that are also names of something that is of any task, and may be written as such: a field of feeds, an
# entry of what is exported and printed.
WORDS = {"mix", "classes"}


def kinds(root):
    names = set()
    for folder, macro in (("inputs", "INPUT"), ("outputs", "OUTPUT")):
        for path in (root / "src/task" / folder).glob("*.cpp"):
            names.update(re.findall(rf"^MILLRACE_{macro}\(([a-z0-9_]+)\)", path.read_text(encoding="utf-8"), re.M))
    return names


def keys(root):
    """The keys of sections that kinds declare."""
    names = set()
    for folder in ("inputs", "outputs"):
        for path in (root / "src/task" / folder).glob("*.cpp"):
            names.update(name or weights for name, weights in SETTING.findall(path.read_text(encoding="utf-8")))
    return names - GENERAL


def uses_of_keys(root):
    """Finds keys of kinds in a line: as a text of their own, where one is written ("pattern = {}",
    "{}.classes"), or asked for."""
    every, own = "|".join(sorted(keys(root))), "|".join(sorted(keys(root) - WORDS))
    asked = r'\b(?:settings(?:\(\))?|items)(?:\.\w+\(|\[)|\.set\(|\btexts_of\([^"]*'
    return re.compile(rf'"(?:(?:input|output)\.)?(?:{own})"|"(?:(?:input|output)\.)?(?:{every}) = |\}}\.(?:{every})\b|(?:{asked})"(?:{every})"')


def findings(root):
    names = "|".join(sorted(kinds(root)))
    compared = re.compile(rf'(?:[!=]=\s*"(?:{names})")|(?:"(?:{names})"\s*[!=]=)|(?<!settings)(?<!settings\(\))\.(?:find|at)\("(?:{names})"\)|=\s*"(?:{names})"\s*;')
    # As the last thing that a function is told; a name that is also a word of messages and tables is left
    # out.
    told = re.compile(rf',\s*"(?:{"|".join(sorted(kinds(root) - {"text", "table", "class", "classes", "number"}))})"\s*\)')
    # By what only one kind has: a field (weights and mixing are of any task), a unit, a class.
    by_mark = re.compile(r'\bhas_field\("(?!weights"|mix")|\bunit\w*(?:\(\))?\s*[!=]=\s*"|_cast<(?:const )?(?:\w+::)*\w+(?:Input|Output)\b')
    key = uses_of_keys(root)
    for folder, files in (("train", "**/*"), ("eval", "**/*"), ("cli", "**/*"), ("task", "*")):
        for path in sorted((root / "src" / folder).glob(files)):
            if path.suffix not in (".cpp", ".h"):
                continue
            file = path.relative_to(root).as_posix()
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if file not in NAMED and (compared.search(line) or file not in OWN_SUBJECT and told.search(line)):
                    yield f"{file}:{number}: asks for a kind of input or output by name: ask the task for what it needs"
                if file not in OWN_SUBJECT and by_mark.search(line):
                    yield f"{file}:{number}: tells a kind by its field, unit or class: ask the task for what it needs"
                if folder == "task" and file not in OWN_SUBJECT and key.search(line.split("//")[0]):
                    yield f"{file}:{number}: knows a key of a kind: let the kind say what it is for (InputKind, OutputKind)"
                if file not in OWN_SUBJECT and (found := INCLUDE.search(line)):
                    yield f"{file}:{number}: knows a kind of data: {found.group(1)}"


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(".")
    errors = list(findings(root))
    print("\n".join(errors) if errors else "", end="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
