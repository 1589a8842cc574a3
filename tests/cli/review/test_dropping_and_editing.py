"""Dropping and editing what is staged, in ``yolofs review``."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.cli.review.reviewing import LINES, at, review
from tests.support.program import Program

pytestmark = pytest.mark.mount


def test_d_drops_a_file_with_a_note_and_u_takes_that_back(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("d")
        terminal.wait_for_screen("drop gone.txt? enter drops, escape does not")
        terminal.type("I need it\r")
        terminal.wait_for_screen("dropped gone.txt; u takes it back", "2 changes")
        assert (view / "gone.txt").read_text() == "precious\n"
        terminal.type("u")
        terminal.wait_for_screen("taken back: gone.txt", "3 changes")
        assert not (view / "gone.txt").exists()


def test_drops_that_are_taken_back_leave_a_rename_a_rename(yolofs: Program, view: Path) -> None:
    (view / "src/b.py").rename(view / "src/renamed.py")
    before = yolofs("status").out.partition("\n\n")[2]
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious", "4 changes")
        for name in ("renamed.py", "new.txt"):
            at(terminal, name)
            terminal.type("d\r")
            terminal.wait_for_screen(f"dropped src/{name}")
        for name, count in (("new.txt", 3), ("renamed.py", 4)):
            at(terminal, "gone.txt")
            terminal.wait_for_screen("-precious")
            terminal.type("u")  # the cursor goes to what has come back
            terminal.wait_for_screen(f"taken back: src/{name}", f"{count} changes", gone="-precious")
    assert yolofs("status").out.partition("\n\n")[2] == before
    assert "R  src/b.py -> src/renamed.py" in before


def test_escape_drops_nothing(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("d")
        terminal.wait_for_screen("enter drops")
        terminal.type("\x1b")
        terminal.wait_for_screen("nothing dropped")
        assert not (view / "gone.txt").exists()


@pytest.mark.parametrize("is_kept", [False, True], ids=["written in place", "written after a snapshot"])
def test_a_drop_of_what_has_changed_meanwhile_is_refused_by_the_path_that_the_list_shows(
    yolofs: Program, view: Path, is_kept: bool
) -> None:
    if is_kept:
        yolofs("snapshot")
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "a.py")
        terminal.wait_for_screen("+line two")
        terminal.type("d")
        terminal.wait_for_screen("drop src/a.py? enter drops")
        (view / "src/a.py").write_text("written by the agent\n")
        terminal.type("\r")
        terminal.wait_for_line(r"src/a\.py has changed since it was looked at")
    assert (view / "src/a.py").read_text() == "written by the agent\n"


def test_d_drops_a_hunk_and_a_line(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "a.py")
        terminal.type("lJd\r")
        terminal.wait_for_screen("dropped text of src/a.py")
        assert (view / "src/a.py").read_text() == LINES.replace("line 2\n", "line two\n")
        terminal.type("h")
        at(terminal, "new.txt")
        terminal.wait_for_screen("+first")
        terminal.type("sjd\r")
        terminal.wait_for_screen("dropped a line of src/new.txt")
        assert (view / "src/new.txt").read_text() == "first\nthird\n"


def test_an_accepted_hunk_stays_accepted_when_another_hunk_of_the_file_is_dropped(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "a.py")
        terminal.type("l Jd\r")
        terminal.wait_for_screen("dropped text of src/a.py", "x┃+line two", "1 accepted", gone="line twenty")
        terminal.type("\r")
        terminal.wait_for_screen("this commit would apply 1 change")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done")
    assert (yolofs.project / "src/a.py").read_text() == LINES.replace("line 2\n", "line two\n")


def test_e_edits_a_hunk_in_the_users_editor(yolofs: Program, view: Path) -> None:
    with review(yolofs, editor="sed -i s/two/TWO/") as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "a.py")
        terminal.type("le")
        terminal.wait_for_screen("edited a.py; u takes it back", "+line TWO")
        assert (view / "src/a.py").read_text().splitlines()[1] == "line TWO"
        terminal.type("u")
        terminal.wait_for_screen("taken back: the edit of a.py", "+line two")
        assert (view / "src/a.py").read_text().splitlines()[1] == "line two"


@pytest.mark.parametrize(
    ("editor", "said"),
    [
        ("false", "the editor false ended with exit code 1"),
        ("rm", "what the editor rm has left cannot be read"),
        ("f() { rm $1; mkfifo $1; }; f", "has left cannot be read: it is not a regular file"),
    ],
)
def test_an_editor_that_fails_is_told_on_the_screen(yolofs: Program, view: Path, editor: str, said: str) -> None:
    with review(yolofs, editor=editor) as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "a.py")
        terminal.type("le")
        terminal.wait_for_screen(said)


def test_a_change_that_d_cannot_drop_names_the_command_that_does(yolofs: Program, view: Path) -> None:
    shutil.rmtree(view / "src")
    (view / "src").write_text("a file\n")
    with review(yolofs, size=(140, 24)) as terminal:
        terminal.wait_for_screen("D b.py")
        at(terminal, "b.py")
        terminal.wait_for_screen("-b = 1")
        terminal.type("d\r")
        terminal.wait_for_screen("src/b.py stays (yolofs restore src/b.py drops it): it goes together with type src")
    yolofs("restore", "src/b.py")
    assert (view / "src/b.py").read_text() == "b = 1\n"


def test_a_hunk_of_which_a_line_was_dropped_stays_split_and_its_other_lines_accepted(
    yolofs: Program, view: Path
) -> None:
    (view / "src/new.txt").write_text("first\nsecond\nthird\nfourth\n")
    with review(yolofs) as terminal:
        at(terminal, "new.txt")
        terminal.wait_for_screen("+fourth")
        terminal.type("s ")
        terminal.wait_for_line(r".*│x┃\+first")
        terminal.type("jd\r")
        terminal.wait_for_screen("dropped a line of src/new.txt", "1 accepted", gone="+second")
        terminal.wait_for_line(r".*│x┃\+first")
        terminal.type(">")
        terminal.type(" ")
        terminal.wait_for_line(r".*│x┃\+fourth")
        assert re.search(r"│ ┃\+third", terminal.screen)
        terminal.type("\r")
        terminal.wait_for_screen("enter commits")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done")
    assert (yolofs.project / "src/new.txt").read_text() == "first\nfourth\n"
    assert (view / "src/new.txt").read_text() == "first\nthird\nfourth\n"


def test_a_drop_that_is_taken_back_leaves_accepted_what_was(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        at(terminal, "a.py")
        terminal.wait_for_screen("+line two")
        terminal.type("l ")
        terminal.wait_for_line(r".*│x┃\+line two")
        terminal.type("Jd\r")
        terminal.wait_for_screen("dropped text of src/a.py", gone="+line twenty")
        terminal.type("u")
        terminal.wait_for_screen("taken back: text of src/a.py", "+line twenty", "1 accepted")
        terminal.wait_for_line(r".*│x.\+line two")
        terminal.type("h d\r")
        terminal.wait_for_screen("dropped src/a.py", gone="M a.py")
        terminal.type("u")
        terminal.wait_for_screen("taken back: src/a.py", "M a.py", "1 accepted")
        terminal.wait_for_line(r"x +M a.py")
        assert "has changed since" not in terminal.text
