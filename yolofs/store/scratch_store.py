"""A store for what is only shown: what is made in it goes with it, and beside that it has all that
the session's own store has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from yolofs.store.store import Store


def scratch_store(directory: bytes, beside: Store) -> Store:
    """Return a new store that gives out numbers which the session's has not given out, so that what
    is made here and what is staged there are not taken for each other.

    ``beside``: the session's store, which is only read.

    Raises:
        OSError: the directory cannot be made or listed.
    """
    store = Store(directory, next_ino=beside.next_ino)
    store.elsewhere = _Below(store.next_ino, beside)
    store.owners.of.update(beside.owners.of)
    return store


class _Below(Mapping[int, bytes]):
    """The paths of all store inodes of a store, by their numbers, which are below ``end``."""

    def __init__(self, end: int, store: Store) -> None:
        self._end = end
        self._store = store

    def __contains__(self, ino: object) -> bool:
        return isinstance(ino, int) and 0 < ino < self._end

    def __getitem__(self, ino: int) -> bytes:
        if ino not in self:
            raise KeyError(ino)
        return self._store.path(ino)

    def __iter__(self) -> Iterator[int]:
        return iter(self._store)

    def __len__(self) -> int:
        return sum(1 for _ in self)
