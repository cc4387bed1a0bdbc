"""Draws a terminal session as SVG: python tools/terminal_svg.py OUT.svg 'COMMAND' …

Each COMMAND runs in a pseudo-terminal of 110 columns; what it leaves on the screen is drawn, so that of a
progress line that rewrites itself the last state shows. '# text' instead of a command is drawn as it stands.
"""

import html
import os
import pty
import re
import sys

COLUMNS, LONGEST = 110, 16  # lines of one command; the middle of a longer one is left out
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
ROW, CHARACTER, MARGIN = 18, 7.83, 16


def run(command):
    """The screen after the command: its lines, carriage returns and erasures applied."""
    written = []

    def read(descriptor):
        data = os.read(descriptor, 65536)
        written.append(data)
        return data

    status = pty.spawn(["env", f"COLUMNS={COLUMNS}", "sh", "-c", f"stty cols {COLUMNS}; {command}"], read)
    if status:
        sys.exit(f"{command}: exit {os.waitstatus_to_exitcode(status)}")
    text = b"".join(written).decode(errors="replace").replace("\r\n", "\n")
    lines = [[part for part in line.split("\r") if ESCAPE.sub("", part).strip()][-1:] for line in text.split("\n")]
    return [ESCAPE.sub("", line[0])[:COLUMNS].rstrip() if line else "" for line in lines]


def draw(lines):
    width, height = COLUMNS * CHARACTER + 2 * MARGIN, (len(lines) + 1) * ROW + 2 * MARGIN + 14
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" font-size="13" '
        f'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace">',
        '<rect width="100%" height="100%" rx="8" fill="#1b1f27"/>',
        *(f'<circle cx="{20 + 18 * i}" cy="18" r="5" fill="{c}"/>' for i, c in enumerate(["#e5695e", "#e9bd4f", "#6cc05b"])),
    ]
    for row, (kind, line) in enumerate(lines):
        colour = {"command": "#8fd3ff", "text": "#d5d9e0", "note": "#8b93a1"}[kind]
        y = MARGIN + 32 + row * ROW
        out.append(f'<text x="{MARGIN}" y="{y}" fill="{colour}" xml:space="preserve">{html.escape(line)}</text>')
    return "\n".join([*out, "</svg>", ""])


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    drawn = []
    for command in sys.argv[2:]:
        if command.startswith("#"):
            drawn.append(("note", command))
            continue
        lines = run(command)
        while lines and not lines[-1]:
            lines.pop()
        if len(lines) > LONGEST:
            lines = lines[: LONGEST // 2] + ["…"] + lines[-LONGEST // 2 :]
        drawn += [("command", f"$ {command}"), *(("text", line) for line in lines), ("text", "")]
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(draw(drawn[:-1]))


if __name__ == "__main__":
    main()
