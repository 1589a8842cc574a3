"""The signals that a process ignores or blocks, and hands down to its children.

A shell cannot set a trap for a signal that was ignored when it started.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

WATCHED = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGHUP,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCHLD,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGTSTP,
)


@contextmanager
def signals_left_alone() -> Iterator[None]:
    """Fail if a block leaves another handler, or holds back other signals than before; and put them
    back.
    """
    handlers, mask = _handlers(), signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        yield
    finally:
        left, left_mask = _handlers(), signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in handlers.items():
            if left[number] is not handler:
                signal.signal(number, handler)
        assert left == handlers, "signals have other handlers than before"
        assert left_mask == mask, "other signals are held back than before"


def _handlers() -> dict[signal.Signals, Any]:
    return {number: signal.getsignal(number) for number in WATCHED}
