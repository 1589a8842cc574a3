"""The first screen of a review: its imports, its output, and the terminal given back."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator

import pytest

from yolofs.cli.review.first_screen import FirstScreen, as_text
from yolofs.cli.review.keys import ReviewModel
from yolofs.system import stop_signals

_SLOW = {"prompt_toolkit", "asyncio", "pygments", "rich"}


@contextlib.contextmanager
def at_a_terminal() -> Iterator[int]:
    """Have stdin and stdout be at a terminal; give its other end."""
    master, slave = pty.openpty()
    before = sys.stdin, sys.stdout
    with open(slave, closefd=False) as sys.stdin, open(slave, "w", closefd=False) as sys.stdout:
        try:
            yield master
        finally:
            sys.stdin, sys.stdout = before
            stop_signals.restore()
            os.close(slave)
            os.close(master)


def test_the_first_screen_needs_nothing_that_takes_long_to_import() -> None:
    code = "import sys; import yolofs.cli.commands.review, yolofs.cli.review.first_screen; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not _SLOW & set(done.stdout.split())


def test_lines_are_written_in_their_rows_and_styles() -> None:
    lines = [[("bold ansired", "D"), ("", " x")], [("reverse", "y")]]
    assert as_text(lines, has_colours=True) == "\x1b[1;1H\x1b[1;31mD\x1b[m x\x1b[2;1H\x1b[7my\x1b[m"
    assert as_text(lines, has_colours=False) == "\x1b[1;1H\x1b[1mD\x1b[m x\x1b[2;1H\x1b[7my\x1b[m"


def show_and_fail(terminal: int, error: BaseException) -> None:
    with FirstScreen(ReviewModel()):
        assert not termios.tcgetattr(terminal)[3] & termios.ECHO
        assert b"\x1b[?1049h" in os.read(terminal, 65536)
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), stop_signals.StoppedError(15), OSError()])
def test_the_terminal_is_given_back_whatever_happens(error: BaseException) -> None:
    with at_a_terminal() as terminal:
        before = termios.tcgetattr(terminal)
        with pytest.raises(type(error)):
            show_and_fail(terminal, error)
        assert termios.tcgetattr(terminal) == before
        assert os.read(terminal, 65536).endswith(b"\x1b[?1049l\x1b[?25h")


def test_whoever_takes_over_finds_the_screen_there_and_gets_all_keys_as_they_were_typed() -> None:
    with at_a_terminal() as terminal:
        before = termios.tcgetattr(terminal)
        with FirstScreen(ReviewModel()) as first:
            first.hand_over()
            os.write(terminal, b"d\r\x03")
            assert os.read(sys.stdin.fileno(), 10) == b"d\r\x03"
        assert termios.tcgetattr(terminal) == before
        shown = os.read(terminal, 65536)
        assert b"\x1b[?1049l" not in shown
        assert not shown.endswith(b"d")  # an echo
