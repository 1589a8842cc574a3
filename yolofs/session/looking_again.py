"""Looking at a state while a program goes on in the view."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from yolofs.errors import MissingInodeError
from yolofs.session.session import Session

T = TypeVar("T")
_MOST_LOOKS = 20


def look_again_if_gone(session: Session, look: Callable[[], T]) -> T:
    """Return what ``look`` returns.  If a file of the state is gone meanwhile, ``look`` is called
    again with the state of then.

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
