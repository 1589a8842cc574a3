"""Ctrl-C, SIGTERM and SIGHUP while something must not be left half done: they are noted, and
handled afterwards.

A command that changes base catches them (:func:`catch`) to its end.  All of this is for the main
thread; in others nothing is heard of signals anyway.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

_ORDINARY = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
"""What is done on them if nobody has said anything else; nohup(1) and a shell's "&" have, and are
obeyed.
"""


class StoppedError(KeyboardInterrupt):
    """SIGTERM or SIGHUP, where that is the same as Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def exit_code_of(stopped: BaseException) -> int:
    """Return the exit code of what Ctrl-C or a :class:`StoppedError` has ended, as shells have
    it.
    """
    return 128 + (stopped.number if isinstance(stopped, StoppedError) else signal.SIGINT)


class _Signals:
    def __init__(self) -> None:
        self.before: dict[int, Any] = {}
        """How those that are caught were handled before."""
        self.is_command = False
        self.postponed = 0
        """How many blocks postpone them now."""
        self.deaf = 0
        """How many of these do not even ask."""
        self.stays = False
        """Whether they wait for the end of the command."""
        self.noted: int | None = None

    def handle(self, number: int, _: object) -> None:
        if self.noted is None:
            self.noted = number
        if not (self.postponed or self.stays):
            self.raise_noted()

    def raise_noted(self) -> None:
        number, self.noted = self.noted, None
        if number is not None:
            raise KeyboardInterrupt if number == signal.SIGINT else StoppedError(number)


_signals = _Signals()


def catch() -> None:
    """Have SIGTERM and SIGHUP raise :class:`StoppedError`, as Ctrl-C raises KeyboardInterrupt, to
    the command's end.
    """
    if _catch():
        _signals.is_command = True


def _catch() -> bool:
    """Catch the signals; return False if they are caught already, or not ours to catch."""
    if _signals.before or threading.current_thread() is not threading.main_thread():
        return False
    for number, ordinary in _ORDINARY.items():
        if signal.getsignal(number) == ordinary:
            _signals.before[number] = signal.signal(number, _signals.handle)
    return bool(_signals.before)


def restore() -> None:
    """Have all signals do again what they did before, at the end of a command."""
    for number, handler in _signals.before.items():
        signal.signal(number, handler)
    vars(_signals).update(vars(_Signals()))


def is_postponed() -> bool:
    """Tell whether the signals wait, as something is not to be left half done."""
    return bool(_signals.postponed)


def hear() -> None:
    """End :func:`postpone_to_the_end`, as something begins that may be stopped.

    Raises:
        KeyboardInterrupt: that was asked for meanwhile.
    """
    _signals.stays = False
    if not _signals.postponed:
        _signals.raise_noted()


def postpone_to_the_end() -> None:
    """Let the signals wait until the command ends, or :func:`hear`: what was done is to be told
    first.
    """
    _signals.stays = _signals.is_command


@contextlib.contextmanager
def postponed(*, is_deaf: bool = False) -> Iterator[Callable[[], None]]:
    """Let the signals wait for the end of the block; give a function that raises KeyboardInterrupt
    if one came, but never if deaf.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    is_ours = _catch()
    _signals.postponed += 1
    _signals.deaf += is_deaf

    def check() -> None:
        if not _signals.deaf:
            _signals.raise_noted()

    try:
        yield check
    finally:
        _signals.postponed -= 1
        _signals.deaf -= is_deaf
        if is_ours:
            restore()
