"""Which store inodes the journals of ended commits name: noted in ``commits/numbers``, so that each is read once.

Each of these journals stays as it is, so what it names does, too.  The note counts for a journal as long as that is the
file that was read: size, time and inode number.  It may be deleted; then they are read once more.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping

import msgspec

from yolofs.system.plain_files import open_plain, read_plain

_NAME = b"numbers"
_MOST_BYTES = 1 << 30


class _Known(msgspec.Struct, frozen=True, array_like=True):
    """What is known of one journal."""

    size: int
    mtime_ns: int
    inode: int
    ranges: list[tuple[int, int]]
    """All numbers that it names, as ranges: first and last."""


def numbers_of(commits: bytes, journals: Mapping[int, bytes], read: Callable[[bytes], set[int]]) -> set[int]:
    """Return what all journals name, given by the number of their commit; ``read`` reads one.

    ``commits`` is the directory that the note is in; it is written if anything had to be read and that is permitted.
    """
    before = _read(os.path.join(commits, _NAME))
    known: dict[int, _Known] = {}
    for number, journal in journals.items():
        try:
            st = os.lstat(journal)
        except (FileNotFoundError, NotADirectoryError):
            continue
        noted = before.get(number)
        if noted is None or (noted.size, noted.mtime_ns, noted.inode) != (st.st_size, st.st_mtime_ns, st.st_ino):
            noted = _Known(st.st_size, st.st_mtime_ns, st.st_ino, ranges_of(read(journal)))
        known[number] = noted
    if known != before:
        with contextlib.suppress(OSError):
            _write(os.path.join(commits, _NAME), known)
    return {one for noted in known.values() for first, last in noted.ranges for one in range(first, last + 1)}


def ranges_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return numbers as ranges, each from its first to its last, in order."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        elif not ranges or number > ranges[-1][1]:
            ranges.append((number, number))
    return ranges


def _read(path: bytes) -> dict[int, _Known]:
    try:
        return msgspec.msgpack.decode(read_plain(path, _MOST_BYTES), type=dict[int, _Known])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _write(path: bytes, known: dict[int, _Known]) -> None:
    with open(open_plain(path + b".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.write(msgspec.msgpack.encode(known))
    os.rename(path + b".new", path)
