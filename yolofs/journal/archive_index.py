"""The store inodes that ended commits name, noted in ``commits/numbers``: each archived journal is
read once only.  Such a journal does not change, and so the note stays right. The note counts for a
commit as long as its journal is the file that was read: size, time and inode number.  The note may
be deleted; then all are read once more.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping

import msgspec

from yolofs.system.cache_files import read_cache, write_cache

_NAME = b"numbers"
_MOST_BYTES = 1 << 30


class _KnownJournal(msgspec.Struct, frozen=True, array_like=True):
    """What is known of one ended commit, by its journal."""

    size: int
    mtime_ns: int
    inode: int
    ranges: list[tuple[int, int]]
    """All numbers that it names, as ranges: first and last."""

    def is_of(self, st: os.stat_result) -> bool:
        """Tell whether the journal that was read has these attributes."""
        return (self.size, self.mtime_ns, self.inode) == (st.st_size, st.st_mtime_ns, st.st_ino)


def numbers_of(
    commits: bytes,
    journals: Mapping[int, bytes],
    read: Callable[[int], tuple[set[int], bool]],
    *,
    may_note: bool = True,
) -> set[int]:
    """Return what all ended commits name, given their journals by the number of the commit.

    ``read`` returns what one names, and whether that stays so.  One call of the system for each
    that is known already.  ``commits`` is the directory that the note is in; it is written if
    anything had to be read, ``may_note`` says so, and that is permitted.
    """
    path = os.path.join(commits, _NAME)
    before = read_cache(path, dict[int, _KnownJournal], _MOST_BYTES)
    known: dict[int, _KnownJournal] = {}
    named: set[int] = set()
    for number, journal in journals.items():
        try:
            st = os.lstat(journal)
        except (FileNotFoundError, NotADirectoryError):
            st = None
        noted = before.get(number)
        if st is None or noted is None or not noted.is_of(st):
            numbers, stays = read(number)
            named |= numbers
            if st is not None and stays:
                known[number] = _KnownJournal(st.st_size, st.st_mtime_ns, st.st_ino, ranges_of(numbers))
            continue
        known[number] = noted
        for first, last in noted.ranges:
            named.update(range(first, last + 1))
    if may_note and known != before:
        with contextlib.suppress(OSError):
            write_cache(path, known)
    return named


def ranges_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return numbers as ranges, each from its first to its last, in order."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        elif not ranges or number > ranges[-1][1]:
            ranges.append((number, number))
    return ranges
