"""``yolofs review`` where base has changed, too: what settles a conflict."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.cli.review.reviewing import LINES, at, page_of, review
from tests.support.program import Program, wait_until

pytestmark = pytest.mark.mount


@pytest.mark.usefixtures("conflicts")
@pytest.mark.parametrize(
    ("key", "said", "after"),
    [
        ("M", "both sides changed the same in", None),
        ("O", "enter commits", ["staged"] * 3),
        ("T", "base's version is taken", ["the user's"] * 3),
    ],
)
def test_each_capital_letter_settles_all_conflicts(
    yolofs: Program, view: Path, key: str, said: str, after: list[str] | None
) -> None:
    with review(yolofs, size=(120, 30)) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("a\r")
        terminal.wait_for_screen("M O T: everywhere")
        terminal.type(key)
        terminal.wait_for_screen(said)
    marked = [(view / name).read_text().startswith("<<<<<<<") for name in ("src/a.py", "src/b.py", "top")]
    assert marked == [True] * 3 if after is None else contents(view) == after


def test_a_commit_where_base_has_changed_too_has_to_be_asked_for(yolofs: Program, view: Path) -> None:
    (yolofs.project / "src/a.py").write_text("the user's\n")
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "a.py")
        terminal.type(" \r")
        terminal.wait_for_screen("[changed in base, too]", "o takes what is staged")
        terminal.type("\r")
        terminal.wait_for_screen("1 accepted", "space accept")
        assert (yolofs.project / "src/a.py").read_text() == "the user's\n"
        terminal.type("\r")
        terminal.wait_for_screen("o takes what is staged")
        terminal.type("o")
        terminal.wait_for_screen("enter commits")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done")
    assert "line twenty" in (yolofs.project / "src/a.py").read_text()


def conflict(yolofs: Program, view: Path, line: str) -> None:
    """Have the user change a line of base, too."""
    text = LINES.replace(f"{line}\n", f"{line}, the user's\n")
    (yolofs.project / "src/a.py").write_text(text)


def test_m_merges_what_base_has_changed_too_and_shows_it_before_it_is_committed(yolofs: Program, view: Path) -> None:
    conflict(yolofs, view, "line 10")
    with review(yolofs, size=(120, 30)) as terminal:
        terminal.wait_for_screen("-precious")
        page_of(terminal, "a.py")
        terminal.wait_for_screen("src/a.py: base ", "it merges", "m merges", "m o t: where the cursor is")
        terminal.type("m")
        terminal.wait_for_screen(
            "merged with base: a.py; look, and accept it; u takes it back", "+line twenty", gone="user's"
        )
        text = (view / "src/a.py").read_text()
        assert "line 10, the user's\n" in text
        assert "line twenty\n" in text
        assert "accepted" not in terminal.screen.splitlines()[0]
        terminal.type(" \r")
        terminal.wait_for_screen("this commit would apply 1 change: 1 modified", "enter commits")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done")
    assert (yolofs.project / "src/a.py").read_text() == text


@pytest.fixture
def conflicts(yolofs: Program, view: Path) -> None:
    """Have both sides change three files, two of them in one directory."""
    names = "src/a.py", "src/b.py", "top"
    for name in names:
        (view / name).write_text(f"{name}, staged\n")
    yolofs("status")  # a tick of the kernel's clock lies between
    for name in names:
        (yolofs.project / name).write_text(f"{name}, the user's\n")


def contents(place: Path) -> list[str]:
    return [(place / name).read_text().partition(", ")[2].strip() for name in ("src/a.py", "src/b.py", "top")]


@pytest.mark.usefixtures("conflicts")
def test_a_small_letter_settles_the_conflict_that_the_cursor_is_on(yolofs: Program, view: Path) -> None:
    with review(yolofs, size=(120, 30)) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("a\r")
        terminal.wait_for_screen("this commit would apply 5 changes", "src/  (2)")
        rows = [line.split(":")[0].strip() for line in terminal.screen.splitlines()[2:8]]
        assert rows == ["base has changed, too", "./  (3)", "src/  (2)", "src/a.py", "src/b.py", "top"]
        terminal.type("jjjo")
        terminal.wait_for_line("  src/b.py: .*what is staged is taken")
        assert terminal.screen.count("what is staged is taken") == 1
        terminal.type("jt")
        terminal.wait_for_screen("base's version is taken: top; u takes it back", "4 changes")
        assert contents(view) == ["staged", "staged", "the user's"]
        terminal.wait_for_screen("4 accepted")
        terminal.type("\r")
        terminal.wait_for_line("  src/b.py: .*what is staged is taken")
        assert "top" not in terminal.screen
        terminal.type("jo")
        terminal.wait_for_screen("enter commits", "what is staged replaces what base has there")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done")
    assert contents(yolofs.project) == ["staged", "staged", "the user's"]


@pytest.mark.usefixtures("conflicts")
def test_the_page_of_conflicts_names_keys_that_scroll_to_its_end(yolofs: Program, view: Path) -> None:
    with review(yolofs, size=(40, 8)) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("a\r")
        terminal.wait_for_screen("more lines: space, pageup scroll")
        terminal.type("   ")
        terminal.wait_for_screen("nothing else is staged", gone="more lines")
        terminal.type("\x1b[5~" * 3)
        terminal.wait_for_screen("base has changed, too:", "more lines: space, pageup scroll")


@pytest.mark.usefixtures("conflicts")
def test_a_small_letter_on_a_directory_settles_all_conflicts_in_it(yolofs: Program, view: Path) -> None:
    with review(yolofs, size=(60, 15)) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("a\r")
        terminal.wait_for_screen("src/  (2)", "m o t: where the cursor is, M O T: everywhere")
        terminal.type("jt")
        terminal.wait_for_screen("base's version is taken: a.py, b.py")
    assert contents(view) == ["the user's", "the user's", "staged"]


@pytest.mark.usefixtures("conflicts")
def test_a_capital_letter_settles_all_and_leaving_the_page_forgets(yolofs: Program, view: Path) -> None:
    with review(yolofs, size=(120, 30)) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("a\r")
        terminal.wait_for_screen("src/  (2)")
        terminal.type("Gjjjjo")
        terminal.wait_for_line("  top: .*what is staged is taken")
        terminal.type("x\r")
        terminal.wait_for_screen("src/  (2)", gone="what is staged is taken")
        terminal.type("O")
        terminal.wait_for_screen("enter commits")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done")
    assert contents(yolofs.project) == ["staged"] * 3


def test_the_page_says_when_a_change_was_staged_of_which_one_hunk_is_accepted(yolofs: Program, view: Path) -> None:
    conflict(yolofs, view, "line 10")
    staged_s = (view / "src/a.py").stat().st_ctime
    wait_until(lambda: time.time() - staged_s > 2, "what is staged is two seconds old")
    with review(yolofs, size=(120, 30)) as terminal:
        terminal.wait_for_screen("-precious")
        at(terminal, "a.py")
        terminal.type("l ")
        terminal.wait_for_screen("1 accepted", "x┃+line two")
        terminal.type("\r")
        terminal.wait_for_screen("src/a.py: base ", " s ago, staged ", "it merges")
        assert "staged just now" not in terminal.screen


def test_t_takes_bases_version_and_u_takes_that_back_with_the_conflict(yolofs: Program, view: Path) -> None:
    conflict(yolofs, view, "line 2")
    with review(yolofs, size=(120, 30)) as terminal:
        terminal.wait_for_screen("-precious")
        page_of(terminal, "a.py")
        terminal.wait_for_screen("t takes base's version")
        terminal.type("t")
        terminal.wait_for_screen("base's version is taken: a.py; u takes it back", "2 changes", gone="M a.py")
        assert (view / "src/a.py").read_text() == (yolofs.project / "src/a.py").read_text()
        terminal.type("u")
        terminal.wait_for_screen("taken back: taking base's version", "3 changes", "M a.py")
        assert "line two\n" in (view / "src/a.py").read_text()
        terminal.wait_for_screen("1 accepted")
        terminal.type("\r")
        terminal.wait_for_screen("changed in base, too")


def test_marks_of_a_merge_are_shown_and_o_takes_what_was_staged_before(yolofs: Program, view: Path) -> None:
    conflict(yolofs, view, "line 2")
    with review(yolofs, size=(120, 30)) as terminal:
        terminal.wait_for_screen("-precious")
        page_of(terminal, "a.py")
        terminal.wait_for_screen("merged, it has marks in 1 place")
        terminal.type("m")
        terminal.wait_for_screen("both sides changed the same in a.py: take the marks out (e)", "+<<<<<<< staged")
        page_of(terminal, "a.py")
        terminal.wait_for_screen("[marks of a merge]", "o takes what was staged before the merge")
        terminal.type("\r")
        terminal.wait_for_screen("1 accepted", "space accept")
        terminal.type("\r")
        terminal.wait_for_screen("o takes what was staged before the merge")
        terminal.type("o")
        terminal.wait_for_screen("as before the merge: a.py", gone="<<<<<<<")
        assert (view / "src/a.py").read_text() == LINES.replace("line 2\n", "line two\n").replace(
            "line 20\n", "line twenty\nand more\n"
        )
        page_of(terminal, "a.py")
        terminal.wait_for_screen("enter commits")


def test_u_does_not_take_a_settled_conflict_back_once_the_agent_has_changed_more(yolofs: Program, view: Path) -> None:
    conflict(yolofs, view, "line 2")
    with review(yolofs, size=(120, 30)) as terminal:
        terminal.wait_for_screen("-precious")
        page_of(terminal, "a.py")
        terminal.wait_for_screen("t takes base's version")
        terminal.type("t")
        terminal.wait_for_screen("base's version is taken", "2 changes")
        (view / "later.txt").write_text("later\n")
        terminal.wait_for_screen("3 changes", "later.txt")
        terminal.type("u")
        terminal.wait_for_screen("something was staged since")
        assert (view / "later.txt").read_text() == "later\n"
