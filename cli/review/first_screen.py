"""The first screen of a review, written without prompt_toolkit: to import that takes as long as to
read the changes.

What is typed meanwhile waits in the terminal, which shows nothing of it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import termios
from collections.abc import Iterable
from typing import Any, Self

from yolofs.cli.review.drawing import Line, draw_review
from yolofs.cli.review.effects import Load
from yolofs.cli.review.keys import ReviewModel
from yolofs.cli.review.worker import Worker
from yolofs.errors import YolofsError
from yolofs.system import stop_signals

_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?1049l\x1b[?25h"
_UNKNOWN = 80, 24
_MOST_BYTES = 256 << 10
"""Larger versions of a file are read when the screen is there."""
_ATTRIBUTES = {"bold": 1, "underline": 4, "reverse": 7}
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "gray")
_CODES = {
    **_ATTRIBUTES,
    **{f"ansi{name}": 30 + number for number, name in enumerate(_COLOURS)},
    **{f"ansibright{name}": 90 + number for number, name in enumerate(_COLOURS)},
}


def begun(worker: Worker) -> ReviewModel:
    """Return a model with what can be shown first; blocks while that is read.

    Raises:
        YolofsError: there is nothing to be shown.
    """
    model = ReviewModel()
    comparison = worker.begin()
    effect = model.compared(comparison) if comparison is not None else None
    if isinstance(effect, Load):
        sides = (effect.change.old, effect.change.new)
        if all(side is None or side.size <= _MOST_BYTES for side in sides):
            with contextlib.suppress(YolofsError, OSError):  # it is tried again, and told then
                model.loaded(effect.change, worker.load(effect.change))
    return model


class FirstScreen:
    """Shows a model on the terminal's other screen, until another one takes over; whatever happens
    before that, the terminal is given back.
    """

    def __init__(self, model: ReviewModel) -> None:
        self._model = model
        self._stream = sys.stdout if sys.stdout.isatty() else sys.stderr
        self._before = termios.tcgetattr(sys.stdin.fileno())
        self._is_shown = False

    def __enter__(self) -> Self:
        stop_signals.catch()
        text = as_text(draw_review(self._model, *self._size()), has_colours=not os.environ.get("NO_COLOR"))
        self._is_shown = True
        silent = [*self._before]
        silent[0] &= ~termios.ICRNL  # an enter that waits is one, and no end of a line
        silent[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        self._set(silent)
        self._write(_ENTER + text)
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            self._write(_LEAVE)
        self._set(self._before)

    def hand_over(self) -> None:
        """Let go of the screen, which stays until somebody writes over it.

        The terminal goes on to show nothing of what is typed, until the end: keys may come before
        somebody listens.
        """
        self._is_shown = False

    def _set(self, attributes: list[Any]) -> None:
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, attributes)

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._stream.write(text)
            self._stream.flush()

    def _size(self) -> tuple[int, int]:
        try:
            columns, rows = os.get_terminal_size(self._stream.fileno())
        except OSError:
            columns = rows = 0
        return (columns, rows) if columns and rows else _UNKNOWN


def as_text(lines: Iterable[Line], *, has_colours: bool) -> str:
    """Return lines as a terminal takes them, each in its row."""
    rows = ["".join(_piece(style, text, has_colours=has_colours) for style, text in line) for line in lines]
    return "".join(f"\x1b[{number};1H{row}" for number, row in enumerate(rows, 1))


def _piece(style: str, text: str, *, has_colours: bool) -> str:
    known = _CODES if has_colours else _ATTRIBUTES
    codes = ";".join(str(known[word]) for word in style.split() if word in known)
    return f"\x1b[{codes}m{text}\x1b[m" if codes else text
