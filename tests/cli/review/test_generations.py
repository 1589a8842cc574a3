"""``yolofs review`` walks the generations."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.review.reviewing import review
from tests.support.program import Program

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


def test_what_was_there_before_a_travel_stays_what_is_compared_with_when_a_drop_is_taken_back(
    yolofs: Program, view: Path
) -> None:
    yolofs("snapshot", "one")
    (view / "src/b.py").write_text("b = 2\n")
    (view / "src/c.py").write_text("c = 1\n")
    yolofs("snapshot", "two")
    yolofs("travel", "one")
    (view / "src/d.py").write_text("d = 1\n")
    with review(yolofs, "-..") as terminal:
        terminal.wait_for_screen("D c.py", "M b.py", "A d.py")
        terminal.type("/d.py\rd\r")
        terminal.wait_for_screen("dropped src/d.py", gone="A d.py")
        terminal.type("u")
        terminal.wait_for_screen("taken back: src/d.py", "A d.py")
        terminal.wait_for_screen("D c.py", "M b.py", "A d.py")
        terminal.type("/b.py\rd\r")
        terminal.wait_for_screen("dropped src/b.py", "D c.py", "A d.py", gone="M b.py")
    assert (view / "src/b.py").read_text() == "b = 2\n"
