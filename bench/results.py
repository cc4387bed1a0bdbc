#!/usr/bin/env python3
"""Makes the tables of docs/results.md: results.py [--list] [--write] [TABLE…]; without a TABLE all of them.

A table is a file of bench/tables: its first line says what it shows, NEEDS what must be there, MINUTES about
how long it takes, table() gives its rows, the first of them the heads. On the page `<!-- ./dev bench TABLE
-->` stands above it and a line on the machine below. Where the same table is there of several machines, one
says `on NAME`: a part of the CPU's name.
"""
import argparse
import importlib.util
import re
import sys

import measure

PAGE = measure.ROOT / "docs/results.md"
MARKED = re.compile(r"<!-- \./dev bench (?P<name>\S+)(?: on (?P<cpu>[^>]+?))? -->\n(?P<table>(?:\|.*\n)+)(?:\n(?P<machine>\*.+\*)\n)?")


def tables():
    found = {}
    for path in sorted((measure.ROOT / "bench/tables").glob("*.py")):
        spec = importlib.util.spec_from_file_location("table_" + path.stem, path)
        found[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found[path.stem])
    return found


def markdown(rows):
    """Rows as a table; a `None` cell is empty."""
    lines = ["| " + " | ".join(cell or "" for cell in row) + " |" for row in rows]
    lines = [re.sub(r"^\|  \|", "| |", line) for line in lines]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]) + "\n"


def write(name, text, machine):
    """Replaces a table of the page: of those that are marked `name` the one of this CPU, else the one of no
    CPU's."""
    page = PAGE.read_text()
    marked = [match for match in MARKED.finditer(page) if match["name"] == name]
    own = [match for match in marked if match["cpu"] and match["cpu"] in machine]
    for match in (own or [match for match in marked if not match["cpu"]])[:1]:
        head = match[0].splitlines()[0]
        PAGE.write_text(page[: match.start()] + f"{head}\n{text}\n{machine}\n" + page[match.end():])
        return
    sys.exit(f"{PAGE.name} has no place for {name}: <!-- ./dev bench {name} -->")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE")
    parser.add_argument("--list", action="store_true", help="name the tables, what they need and how long they take")
    parser.add_argument("--write", action="store_true", help="replace them in docs/results.md")
    arguments = parser.parse_args()
    known = tables()
    if arguments.list:
        for name, module in known.items():
            needs = f"; needs {', '.join(module.NEEDS)}" if module.NEEDS else ""
            print(f"{name:<18} {' '.join(module.__doc__.split())} ({module.MINUTES} min{needs})")
        return
    for name in arguments.tables:
        if name not in known:
            sys.exit(f"there is no table '{name}'; ./dev bench --list names them")
    for name in arguments.tables or known:
        lacks = [why for why in map(measure.missing, known[name].NEEDS) if why]
        if lacks:
            print(f"{name}: skipped, as it needs {' and '.join(lacks)}\n", flush=True)
            continue
        text, machine = markdown(known[name].table()), measure.machine()
        print(f"{name}\n\n{text}\n{machine}\n", flush=True)
        if arguments.write:
            write(name, text, machine)


if __name__ == "__main__":
    main()
