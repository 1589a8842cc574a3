"""Starting ``yolofs review`` at a terminal, and moving about in it."""

from __future__ import annotations

from tests.support.program import Program
from tests.support.terminal import Terminal

LINES = "".join(f"line {number}\n" for number in range(1, 31))


def review(yolofs: Program, *words: str, size: tuple[int, int] = (100, 24), editor: str = "false") -> Terminal:
    return Terminal(yolofs.project, ["review", *words], size=size, EDITOR=editor)


def at(terminal: Terminal, name: str) -> None:
    """Move the cursor to a row of the list by searching for it."""
    terminal.type(f"/{name}\r")


def page_of(terminal: Terminal, name: str) -> None:
    """Accept a file, and go to the page before a commit."""
    at(terminal, name)
    terminal.wait_for_line(rf"\S?\s+M {name}")
    terminal.type(" ")
    terminal.wait_for_screen("1 accepted")
    terminal.type("\r")
