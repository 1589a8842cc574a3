"""The handlers of a view without a mount: what they answer and what they leave to others, step by
step.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from yolofs.access.gate import Gate
from yolofs.fuse.cache.lifetimes import Lifetimes
from yolofs.fuse.handlers import Handlers
from yolofs.overlay import Overlay
from yolofs.rules import PathRule, RuleBook, RuleSet, RuleState
from yolofs.session.session import Session, SessionAccess


@contextlib.contextmanager
def handlers_of(base: Path, *, clock: Callable[[], float] = time.monotonic) -> Iterator[Handlers]:
    """Give handlers for the view of ``base``, without a mount; by ``clock`` the gate counts
    seconds.
    """
    root = os.fsencode(base)
    Session.create(root)
    with Session.open(root, SessionAccess.WRITE, root=root) as session:
        state = session.present()
        overlay = Overlay(session.base, session.store, session.journal, state.tree, fresh_from=state.fresh_from)
        gate = Gate(overlay, RuleBook(RuleSet((PathRule(b"/", RuleState.ALLOW, "test"),))), clock)
        yield Handlers(overlay, gate, Lifetimes(session.base, staged_s=1, base_s=1))
        overlay.close()


def open_file(handlers: Handlers, name: bytes, flags: int = os.O_RDONLY) -> int:
    """Open a file at the top and return its handle."""
    attr = handlers.lookup(1, name).attr
    assert attr is not None
    return handlers.open(attr.number, flags).handle
