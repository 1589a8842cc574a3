"""``yolofs review`` walks the generations."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.cli.review.reviewing import review

pytestmark = pytest.mark.mount


def test_brackets_walk_the_generations(yolofs: Program, view: Path) -> None:
    yolofs("snapshot", "one")
    (view / "src/b.py").write_text("b = 2\n")
    with review(yolofs) as terminal:
        terminal.wait_for_screen("4 changes", gone="generation")
        terminal.type("[")
        terminal.wait_for_screen("3 changes", "[generation 1: one]", gone="b.py")
        terminal.type(" ")
        terminal.wait_for_screen("only the present state can be accepted: ] leads there")
        terminal.type("[")
        terminal.wait_for_screen("this is the first generation")
        terminal.type("]")
        terminal.wait_for_screen("4 changes", "M b.py")


def test_brackets_walk_to_what_was_there_before_a_drop(yolofs: Program, view: Path) -> None:
    yolofs("snapshot", "one")
    (name,) = (one["id"] for one in yolofs("hunks", "--json", "--", "src/new.txt").json["hunks"])
    yolofs("restore", "--hunk", name)
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious", "2 changes", gone="generation")
        terminal.type("[")
        terminal.wait_for_screen("3 changes", "[generation 1: one]", "A new.txt")
