"""Ctrl-C, and other signals that end a command, while base is being changed: never in the middle of a step."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

from yolofs.errors import CommitError

INTERRUPTED = 130
"""The exit code after Ctrl-C."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_UNASKED = (signal.default_int_handler, signal.SIG_DFL)
_applied: list[str] = []


def exit_code_after(error: KeyboardInterrupt) -> int:
    """Return the exit code after a signal, which :func:`interrupted_between` tells, as a shell has it."""
    return 128 + error.args[0] if error.args else INTERRUPTED


def note_applied(number: str) -> None:
    """Note that this process has applied the commit with this number, and that no signal can take it back any more."""
    _applied.append(number)


def applied() -> str:
    """Return the number of the last commit that this process has applied, an empty text if there is none."""
    return _applied[-1] if _applied else ""


def stopped_by_user(what: str, directory: bytes, interrupt: KeyboardInterrupt) -> CommitError:
    """Return what is to be said where a signal has ended what brings an interrupted commit to its end."""
    error = CommitError(
        f"{what} was interrupted, so base is still partly what the view was; nothing is lost",
        directory=directory,
        hint="yolofs commit --continue, or yolofs commit --roll-back",
    )
    error.exit_code = exit_code_after(interrupt)
    return error


@contextlib.contextmanager
def interrupted_between() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C, SIGTERM and SIGHUP do nothing at once, in the main thread.

    Gives what raises KeyboardInterrupt, with the number of the signal, if one came.  So no step stays half done by it,
    and a commit whose steps are all done is closed.
    """
    is_main = threading.current_thread() is threading.main_thread()
    ours = [number for number in _ENDING if is_main and signal.getsignal(number) in _UNASKED]  # "&" ignores Ctrl-C
    came: list[int] = []

    def note(number: int, _: object) -> None:
        came.append(number)

    def check() -> None:
        if came:
            raise KeyboardInterrupt(came[0])

    before = {number: signal.signal(number, note) for number in ours}
    try:
        yield check
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def no_interrupt() -> Iterator[None]:
    """Let these signals do nothing meanwhile, in the main thread: what is being done is not to stay half done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
