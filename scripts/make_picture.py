"""Writes the picture of a terminal session that README.md shows: ``make_picture.py FILE.svg``.

The session is real: this program runs in a pseudo-terminal, in a new project in a temporary
directory, and what the terminal shows at the end is drawn.  Only the agent is a shell script, as
its work must be the same each time.  What depends on the machine (paths, process numbers) is
replaced, so a second run writes the same file.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from html import escape
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pyte
from pyte.screens import Char

PROGRAM = (sys.executable, "-P", "-m", "yolofs.cli.main")
COLUMNS, ROWS = 100, 100

AGENT = """\
#!/bin/sh
case $1 in
fix*)
    sed -i 's/sum(prices)$/round(sum(prices), 2)/' cart.py
    echo "agent: fixed" ;;
*)
    rm -r tests
    cat key.pem ~/.aws/credentials
    echo "agent: cleaned up" ;;
esac
"""
FILES = {
    "shop/cart.py": 'CURRENCY = "EUR"\n\n\ndef total(prices):\n    return sum(prices)\n',
    "shop/tests/test_cart.py": "from cart import total\n\nassert total([1.5]) == 1.5\n",
    "shop/key.pem": "secret\n",
    ".aws/credentials": "secret\n",
}


class Step(NamedTuple):
    """A command line as the picture shows it, and what is typed while it runs."""

    line: str
    """What stands behind # is a remark."""
    question: str = ""
    """What is waited for before ``answer`` is typed."""
    answer: str = ""


SESSION = (
    Step("yolofs run -- agent 'fix the rounding'"),
    Step("yolofs run -- agent 'clean up'"),
    Step("ls                      # the real files: nothing has happened to them"),
    Step("yolofs travel 1         # the view as it was after run 1"),
    Step("yolofs diff"),
    Step("yolofs commit", "[y/N]", "y\n"),
)


def main() -> int:
    """Run the session and write the picture."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: make_picture.py FILE.svg\n")
        return 2
    Path(sys.argv[1]).write_text(draw(record()), encoding="utf-8")
    return 0


def record() -> list[list[Char]]:
    """Run the session in a temporary directory and return the lines that the terminal shows in the
    end.
    """
    scratch = Path(tempfile.mkdtemp(prefix="yolofs-picture."))
    home = scratch / "you"
    project = home / "shop"
    environment = prepare(scratch, home)
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    try:
        yolofs(project, environment, "init")
        for step in SESSION:
            command, _, remark = step.line.partition("#")
            remark = f"\x1b[90m#{remark}\x1b[m" if remark else ""
            stream.feed(f"\x1b[92m$\x1b[m \x1b[1m{command}\x1b[m{remark}\r\n".encode())
            output = run(step, project, environment).replace(os.fsencode(home), b"/home/you")
            stream.feed(re.sub(rb"\bcat \d+:", b"cat 4711:", output))
            stream.feed(b"\r\n")
    finally:
        if os.path.lexists(project / ".yolofs"):
            yolofs(project, environment, "unmount", "--force")
        shutil.rmtree(scratch)
    lines = [[screen.buffer[row][column] for column in range(COLUMNS)] for row in range(screen.cursor.y)]
    while lines and not text_of(lines[-1]).strip():
        lines.pop()
    return lines


def prepare(scratch: Path, home: Path) -> dict[str, str]:
    """Make home, project and agent, and return the environment of the session."""
    for name, text in FILES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    programs = home / ".local/bin"
    programs.mkdir(parents=True)
    (programs / "agent").write_text(AGENT)
    (programs / "agent").chmod(0o755)
    (scratch / "run").mkdir(mode=0o700)
    return {
        "COLUMNS": str(COLUMNS),
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "PATH": f"{programs}:/usr/bin:/bin",
        "TERM": "xterm-256color",
        "XDG_RUNTIME_DIR": str(scratch / "run"),
        "XDG_STATE_HOME": str(scratch / "state"),
    }


def yolofs(project: Path, environment: Mapping[str, str], *words: str) -> None:
    """Run a command that the picture does not show."""
    subprocess.run([*PROGRAM, *words], cwd=project, env=environment, check=True, capture_output=True)


def run(step: Step, project: Path, environment: Mapping[str, str]) -> bytes:
    """Run a command in a terminal of its own and return all that it shows."""
    script = f'yolofs() {{ {" ".join(PROGRAM)} "$@"; }}\n{step.line}'
    master, slave = pty.openpty()
    with subprocess.Popen(
        ["/bin/sh", "-c", script],
        cwd=project,
        env=environment,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    ) as process:
        os.close(slave)
        seen, is_answered = b"", not step.answer
        while data := read(master):
            seen += data
            if not is_answered and step.question.encode() in seen:
                os.write(master, step.answer.encode())
                is_answered = True
    os.close(master)
    if process.returncode:
        raise SystemExit(f"{step.line}: exit code {process.returncode}\n{seen.decode()}")
    return seen


def read(master: int) -> bytes:
    """Return some of what a terminal shows; nothing at its end."""
    try:
        return os.read(master, 65536)
    except OSError:  # EIO: the last program has closed its end
        return b""


CELL, LINE, EDGE, BAR = 8.4, 19, 18, 34
"""Width of a character, height of a line, the margin, and the height of the title bar."""
BACKGROUND, FOREGROUND = "#1b1f27", "#d8dee9"
COLOURS = {
    "black": "#5c6370",
    "red": "#f0717b",
    "green": "#98c379",
    "brown": "#e5c07b",
    "blue": "#6cb6ff",
    "magenta": "#d291e4",
    "cyan": "#56c7d1",
    "white": "#d8dee9",
    "brightblack": "#8b95a5",
    "brightred": "#ff8f98",
    "brightgreen": "#b5e890",
}


def draw(lines: list[list[Char]]) -> str:
    """Return a picture of a terminal that shows these lines.

    It is dark on any page.  Each piece of text has its place and its length, so it looks the same
    in all fonts.
    """
    width, height = round(COLUMNS * CELL + 2 * EDGE), BAR + len(lines) * LINE + EDGE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        "<title>A session with yolofs in a terminal</title>",
        "<style>text{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}.b{font-weight:bold}</style>",
        f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="9" fill="{BACKGROUND}" stroke="#59616e"/>',
        *(f'<circle cx="{20 + 18 * i}" cy="18" r="5.5" fill="{fill}"/>' for i, fill in enumerate(DOTS)),
    ]
    for row, line in enumerate(lines):
        parts += pieces(line, BAR + LINE * row + 14)
    return "\n".join([*parts, "</svg>", ""])


DOTS = ("#f0717b", "#e5c07b", "#98c379")


def pieces(line: list[Char], y: int) -> Iterator[str]:
    """Yield the elements of one line: one for each stretch of characters that look alike."""
    column = 0
    for (colour, bold), group in groupby(line, key=lambda char: (char.fg, char.bold)):
        text = "".join(char.data for char in group)
        start, column = column + len(text) - len(text.lstrip()), column + len(text)
        text = text.strip()
        if text:
            fill = FOREGROUND if colour == "default" else COLOURS[colour]
            place = f'x="{EDGE + start * CELL:.1f}" y="{y}" textLength="{len(text) * CELL:.1f}"'
            weight = ' class="b"' if bold else ""
            letters = escape(text, quote=False).replace(" ", "\N{NO-BREAK SPACE}")  # else several become one
            yield f'<text {place} fill="{fill}"{weight}>{letters}</text>'


def text_of(line: list[Char]) -> str:
    """Return the characters of a line."""
    return "".join(char.data for char in line)


if __name__ == "__main__":
    sys.exit(main())
