"""Looking at a state while a program goes on in the view."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from yolofs.errors import MissingInodeError
from yolofs.session.session import Session

T = TypeVar("T")
_MOST_LOOKS = 20


def steadily(session: Session, look: Callable[[], T]) -> T:
    """Return what ``look`` does; it is done again with what has come since, where a file has gone
    meanwhile that the state before still showed.

    Raises:
        MissingInodeError: a file is missing, and nothing has come since: that is damage.
    """
    for _ in range(_MOST_LOOKS):
        size = session.journal.size
        try:
            return look()
        except MissingInodeError:
            if not session.refresh() or session.journal.size == size:
                raise
    return look()
