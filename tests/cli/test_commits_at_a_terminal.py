"""``yolofs commits`` at a terminal: one line a commit."""

from __future__ import annotations

import os

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.program import Program
from tests.support.terminal import Terminal


def lines_at_a_terminal(yolofs: Program, columns: int) -> list[str]:
    with Terminal(yolofs.project, ["commits"], size=(columns, 24), COLUMNS=str(columns)) as terminal:
        assert terminal.wait() == 0
        assert all(len(line) <= columns for line in terminal.text.splitlines())
        return terminal.screen.splitlines()


@pytest.fixture
def undone(yolofs: Program) -> Program:
    """Return the program with a commit of changes of many kinds, and the undo of it."""
    for name in ("deleted", "type", "mode", "moved"):
        (yolofs.project / name).write_text(f"{name}\n")
    view = CoreDriver(os.fsencode(yolofs.project))
    view.append(b"a.txt", b"more\n")
    view.unlink(b"deleted")
    view.unlink(b"type")
    view.mkdir(b"type", 0o755)
    view.chmod(b"mode", 0o600)
    view.rename(b"moved", b"moved-here")
    view.create(b"new", b"new\n", 0o644)
    view.close()
    yolofs("commit", "--yes")
    yolofs("undo", "--yes")
    return yolofs


def test_a_line_that_is_too_wide_has_letters_and_still_says_that_it_is_undone(undone: Program) -> None:
    first, second = lines_at_a_terminal(undone, 80)
    assert first.endswith("  [undone by 2]  1A 1M 1D 1R 1T 1X")
    assert second.endswith("  [undoes 1]  1A 1M 1D 1R 1T 1X")


def test_at_60_columns_the_time_is_to_the_minute_and_the_state_is_there(undone: Program) -> None:
    first, second = lines_at_a_terminal(undone, 60)
    assert first[22:24] == "  "
    assert "[undone by 2]" in first
    assert "[undoes 1]" in second


def test_a_line_that_fits_and_one_for_no_terminal_have_words(undone: Program) -> None:
    words = "1 added, 1 modified, 1 deleted, 1 renamed, 1 of another type, 1 metadata only  [undone by commit 2]"
    assert words in lines_at_a_terminal(undone, 160)[0]
    assert words in undone("commits").out.splitlines()[0]
