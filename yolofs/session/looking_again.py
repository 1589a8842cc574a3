"""Looking at a state while a program goes on in the view."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from yolofs.changes.state_reader import ShownNode
from yolofs.errors import MissingInodeError
from yolofs.paths import RelPath
from yolofs.session.session import Session
from yolofs.session.state_files import StateFiles
from yolofs.state.tree import Tree

T = TypeVar("T")
_MOST_LOOKS = 20


class LaterState:
    """The present state as it goes on, for the files of an earlier look at it that are gone.

    A program may replace a file so often that no look at all of a state is quick enough.  So only
    that file is looked at again, and of the journal only what has come since is replayed.
    """

    def __init__(self, session: Session) -> None:
        """Look at nothing yet."""
        self._session = session
        self._tree: Tree | None = None
        self._size = session.journal.size
        self._marker_count = len(session.journal.markers)

    def look(self, path: RelPath) -> ShownNode | None:
        """Return what is at a path by now, None if nothing is, or another file at each look.

        Raises:
            MissingInodeError: a file is missing, and nothing has come since.
        """
        for _ in range(_MOST_LOOKS):
            has_come = self._go_on()
            assert self._tree is not None
            try:
                found = StateFiles(self._session, self._tree).look(path)
            except MissingInodeError:
                if not has_come:
                    raise
            else:
                return found.node if found is not None else None
        return None

    def _go_on(self) -> bool:
        """Read what has come since; return whether anything has."""
        session, before, count = self._session, self._size, self._marker_count
        is_same_journal = session.refresh()
        self._size, self._marker_count = session.journal.size, len(session.journal.markers)
        if self._tree is None or not is_same_journal or self._marker_count != count or self._size < before:
            self._tree = session.state()
        else:
            session.apply_later(self._tree, before)
        return is_same_journal and self._size != before


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
