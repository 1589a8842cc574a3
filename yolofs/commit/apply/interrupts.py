"""Ctrl-C, SIGTERM and SIGHUP while base is being changed: never in the middle of a step, and told
at the end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from yolofs.errors import CommitError
from yolofs.system import stop_signals


def stopped_by_user(what: str, directory: bytes, stopped: KeyboardInterrupt) -> CommitError:
    """Return the error for Ctrl-C while an interrupted commit was being finished or taken back."""
    error = CommitError(
        f"{what} was interrupted, so base is still partly what the view was; nothing is lost",
        directory=directory,
        hint="yolofs commit --continue, or yolofs commit --roll-back",
    )
    error.exit_code = stop_signals.exit_code_of(stopped)
    return error


@contextlib.contextmanager
def interrupted_between() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C do nothing at once, in the main thread; give what raises KeyboardInterrupt if it
    was pressed.

    So no step stays half done by it, a commit whose steps are all done is closed, and its command
    says so.
    """
    with stop_signals.postponed() as check:
        stop_signals.postpone_to_the_end()
        yield check


@contextlib.contextmanager
def no_interrupt() -> Iterator[None]:
    """Let Ctrl-C do nothing meanwhile, in the main thread: what is being done is not to stay half
    done.
    """
    with stop_signals.postponed(is_deaf=True):
        yield
