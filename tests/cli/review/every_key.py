"""Every key of ``yolofs review``, and what is to be seen after it: for any terminal."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.cli.review.reviewing import LINES
from tests.support.program import Program

EDITOR = "sed -i s/first/FIRST/"


class Step(NamedTuple):
    """Keys, and what is to be seen after them."""

    keys: tuple[str, ...]
    """By their names in the model; what stands behind ``text:`` is typed, and no key."""
    shown: tuple[str, ...] = ()
    gone: str | None = None


STEPS = (
    Step(("down", "j", "j"), ("+line two",)),
    Step(("up", "k", "k"), ("-precious",)),
    Step(("end",), ("+first",)),
    Step(("home", "j"), ("-precious",)),
    Step(("G",), ("+first",)),
    Step(("g", "j"), ("-precious",)),
    Step((">",), ("+first",)),
    Step(("<", "j"), ("-precious",)),
    Step(("pagedown",), ("+first",)),
    Step(("pageup", "j"), ("-precious",)),
    Step(("/", "text:src\r"), ("2 changes",)),
    Step(("n",), ("+line two",)),
    Step(("n",), ("+first",)),
    Step(("N",), ("+line two",)),
    Step(("right", " "), ("x┃+line two", "~   M a.py")),
    Step(("left", "l", "J", "y"), ("x   M a.py", "1 accepted")),
    Step(("u",), ("~   M a.py",)),
    Step(("K", " "), (), "~   M a.py"),
    Step(("L",), ("+line two",)),
    Step(("H",), ("+line two",)),
    Step(("h", "tab", " "), ("x┃+line two",)),
    Step(("tab", "escape"), ("2 changes",), "x┃+line two"),
    Step(("-",), ("+src/ (2)",)),
    Step(("=",), ("A new.txt",)),
    Step(("a",), ("3 accepted",)),
    Step(("c-d",), ("leave all the same?",)),
    Step(("text:n",), ("space accept",), "leave all the same?"),
    Step(("q",), ("leave all the same?",)),
    Step(("text:q",), ("space accept",), "leave all the same?"),
    Step(("enter",), ("this commit would apply 3 changes", "enter commits")),
    Step(("text:x",), ("space accept",), "enter commits"),
    Step(("a",), (), "accepted"),
    Step(("end", "s", "j", " "), ("x┃+second", "~   A new.txt")),
    Step(("d",), ("drop a line of src/new.txt?", "the agent is told")),
    Step(("text:\t",), ("the agent is not told",)),
    Step(("text:\r",), ("dropped a line of src/new.txt",), "+second"),
    Step(("u",), ("taken back", "+second")),
    Step(("e",), ("edited new.txt; u takes it back", "+FIRST")),
    Step(("u",), ("taken back: the edit of new.txt", "+first")),
    Step(("h", *"[" * 9), ("[generation 1",)),
    Step((*"]" * 9,), (), "[generation"),
    Step(("?",), ("walk the generations",)),
    Step(("text:x",), ("+first",)),
)
KEYS = frozenset(key for step in STEPS for key in step.keys if not key.startswith("text:"))


def prepare(yolofs: Program, view: Path) -> None:
    """Stage what the steps are about: a deletion, a file with two hunks, a new one; one generation
    lies before the last change.
    """
    (view / "src/a.py").write_text(LINES.replace("line 2\n", "line two\n").replace("line 20\n", "line twenty\n"))
    (view / "gone.txt").unlink(missing_ok=True)
    (view / "src/new.txt").write_text("first\nsecond\nthird\n")
    yolofs("snapshot", "one")
    (view / "src/new.txt").write_text("first\nsecond\n")
