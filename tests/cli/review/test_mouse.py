"""The mouse in ``yolofs review``: what terminals report of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.review.reviewing import review
from tests.support.program import Program

pytestmark = pytest.mark.mount

LEFT, WHEEL_UP, WHEEL_DOWN = 0, 64, 65
_ROWS = 30


def _report(button: int, column: int, row: int) -> str:
    """Return a press of a button as terminals report it; column and row count from 0."""
    return f"\x1b[<{button};{column + 1};{row + 1}M" + (f"\x1b[<0;{column + 1};{row + 1}m" if not button else "")


def test_a_click_moves_the_cursor_and_another_one_on_a_directory_closes_it(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("deleted (1)", "-precious", gone="comparing")
        lines = terminal.screen.splitlines()
        new = next(at for at, line in enumerate(lines) if "A new.txt" in line)
        terminal.type(_report(LEFT, 8, new))
        terminal.wait_for_screen("+first")
        terminal.type(_report(LEFT, 60, 2) + " ")  # the lines: only the hunk there is accepted
        terminal.wait_for_screen("x┃+first", "1 accepted")
        source = next(at for at, line in enumerate(lines) if "src/" in line)
        terminal.type(_report(LEFT, 8, source))
        terminal.wait_for_screen("2 changes")
        terminal.type(_report(LEFT, 8, source))
        terminal.wait_for_screen("+src/ (2)", gone="a.py")
        terminal.type(_report(LEFT, 8, source))
        terminal.wait_for_screen("M a.py", gone="+src/")
        terminal.type("?")
        terminal.wait_for_screen("any other key goes back")
        terminal.type(_report(LEFT, 8, source) + "x")
        terminal.wait_for_screen("M a.py")


def test_the_wheel_scrolls_the_side_that_it_is_over_and_keys_go_on_from_there(yolofs: Program, view: Path) -> None:
    for number in range(_ROWS):
        (view / f"wheel-{number:02}").write_text("".join(f"{number} line {line}\n" for line in range(_ROWS)))
    with review(yolofs, size=(60, 15)) as terminal:
        terminal.wait_for_screen("deleted (1)", "-precious", gone="comparing")
        terminal.type(_report(WHEEL_DOWN, 5, 5) * 2)
        terminal.wait_for_screen("wheel-", gone="deleted (1)")
        terminal.type(_report(WHEEL_DOWN, 5, 5) * 50)
        terminal.wait_for_screen("wheel-29")
        terminal.type(
            _report(LEFT, 5, next(at for at, line in enumerate(terminal.screen.splitlines()) if "-29" in line))
        )
        terminal.wait_for_screen("29 line 0")
        terminal.type(_report(WHEEL_DOWN, 50, 5) * 3)
        terminal.wait_for_screen("29 line 9", "wheel-29", gone="29 line 0")
        terminal.type(_report(WHEEL_UP, 50, 5) * 3)
        terminal.wait_for_screen("29 line 0")
        terminal.type(_report(WHEEL_UP, 5, 5) * 50)
        terminal.wait_for_screen("deleted (1)")


def test_a_page_scrolls_and_odd_reports_do_nothing_and_the_mouse_is_given_back(yolofs: Program, view: Path) -> None:
    with review(yolofs, size=(60, 15)) as terminal:
        terminal.wait_for_screen("-precious", gone="comparing")
        terminal.type("?")
        terminal.wait_for_screen("accept what the cursor is on")
        terminal.type(_report(WHEEL_DOWN, 50, 5) * 2)
        terminal.wait_for_screen("m o t M O T", gone="accept what the cursor is on")
        terminal.type("x")
        terminal.wait_for_screen("-precious")
        terminal.type("\x1b[<2;3;4M\x1b[<35;9;9M\x1b[<0;900;900M\x1b[<65;1;1M\x1b[M\x20\x21\x21\x1b[<0;0;0M")
        terminal.type("/new\r")
        terminal.wait_for_screen("+first")
        terminal.type("q")
        assert terminal.wait() == 0
        assert "\x1b[?1000h" in terminal.seen
        assert "\x1b[?1003h" not in terminal.seen  # each movement would be reported
        assert terminal.seen.rindex("\x1b[?1000l") > terminal.seen.rindex("\x1b[?1000h")
