"""``yolofs review`` while other commands commit, abort and collect."""

from __future__ import annotations

import pytest

from tests.support.program import Program
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount


def test_the_review_follows_a_commit_an_abort_and_a_gc_of_other_commands(yolofs: Program) -> None:
    """The review has the session open, and holds nothing of it."""
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("first\n")
        with Terminal(yolofs.project, ["review"], size=(80, 15)) as terminal:
            terminal.wait_for_screen("+first")
            terminal.type(" ")
            terminal.wait_for_screen("1 accepted")
            yolofs("commit", "--yes")
            terminal.wait_for_screen("nothing is staged")
            (view / "b.txt").write_text("second\n")
            terminal.wait_for_screen("b.txt")
            yolofs("abort", "--yes")
            terminal.wait_for_screen("nothing is staged")
            for name in ("c.txt", "d.txt"):
                (view / name).write_text(f"{name}\n")
                yolofs("snapshot")
            yolofs("travel", "1")
            yolofs("gc", "--generations")
            terminal.wait_for_screen("c.txt", gone="d.txt")
            terminal.type("a")
            terminal.wait_for_screen("1 accepted")
            terminal.type("\r")
            terminal.wait_for_screen("enter commits")
            terminal.type("\r")
            terminal.wait_for_screen("commit 2 done")
            terminal.type("q")
            assert terminal.wait() == 0
    assert (yolofs.project / "c.txt").read_text() == "c.txt\n"
    assert not (yolofs.project / "d.txt").exists()


def test_what_the_host_changes_in_base_is_followed_too(yolofs: Program) -> None:
    """The lines are those between base as it is now and the view."""
    (yolofs.project / "a.txt").write_text("old\nmiddle\n")
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("new\nmiddle\n")
        with Terminal(yolofs.project, ["review"], size=(80, 15)) as terminal:
            terminal.wait_for_screen("+new")
            terminal.type(" ")
            terminal.wait_for_screen("1 accepted")
            (yolofs.project / "a.txt").write_text("old\nthe host's\n")
            terminal.wait_for_screen("-the host's", gone="1 accepted")
            assert "! M a.txt" in terminal.screen
            (yolofs.project / "a.txt").unlink()
            terminal.wait_for_screen("A a.txt")
