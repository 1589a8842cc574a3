"""Ctrl-C while base is being changed: it is never in the middle of a step."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

from yolofs.errors import CommitError

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


def stopped_by_user(what: str, directory: bytes) -> CommitError:
    """Return what is to be said where Ctrl-C has ended what brings an interrupted commit to its end."""
    error = CommitError(
        f"{what} was interrupted, so base is still partly what the view was; nothing is lost",
        directory=directory,
        hint="yolofs commit --continue, or yolofs commit --roll-back",
    )
    error.exit_code = INTERRUPTED
    return error


@contextlib.contextmanager
def interrupted_between() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C do nothing at once, in the main thread; give what raises KeyboardInterrupt if it was pressed.

    So no step stays half done by it, and a commit whose steps are all done is closed.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # a shell's "&" ignores it
        yield lambda: None
        return
    pressed = False

    def note(*_: object) -> None:
        nonlocal pressed
        pressed = True

    def check() -> None:
        if pressed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def no_interrupt() -> Iterator[None]:
    """Let Ctrl-C do nothing meanwhile, in the main thread: what is being done is not to stay half done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
