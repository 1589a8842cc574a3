"""How much of the disk commits take, and how much of that is what base had before.

It is found once for each commit, and noted for all of them in ``commits/sizes``, so that looking
costs the same with any number of commits.  What a commit keeps stays as it is, except for what an
undo takes of it; then the note of that commit goes.  Nothing is noted while a commit or undo has no
end: a look half way sees what is still on its way.

The store keeps what the journals of commits name, too.  Its shards are noted in ``commits/shards``:
nobody writes to a store inode that is older than the last marker, and what is made or removed in a
shard changes its time.  So a look costs one call for each shard, and not one for each store inode.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Set as AbstractSet

import msgspec

from yolofs.session import run_tmp
from yolofs.session.archive import all_are_put_away, commit_directory, commit_numbers
from yolofs.store.shards import SHARD_BITS, list_shards, path_of_shard
from yolofs.store.store import BASES
from yolofs.system.cache_files import read_cache, write_cache
from yolofs.system.disk_usage import size_of

_NAME = b"sizes"
_SHARDS = b"shards"
_TICK_NS = 2 * 10**9
"""Two changes closer than this may leave a directory the same time, on the coarsest of disks."""
_MOST_BYTES = 1 << 26


class Size(msgspec.Struct, frozen=True, array_like=True):
    """How much of the disk a commit takes, in bytes."""

    kept: int
    """For what base had before."""
    other: int
    """For its journal, its plan and all else."""


NO_SIZE = Size(0, 0)
"""Of a commit that is not there any more."""


def sizes_of_commits(session: bytes) -> dict[int, Size]:
    """Return how much each commit of the session in a directory takes, by number.

    Blocks while those are walked that nobody has looked at before.
    """
    numbers = commit_numbers(session)
    if not numbers:
        return {}
    path = _path(session)
    noted = read_cache(path, dict[int, Size], _MOST_BYTES)
    is_lasting = noted.keys() >= set(numbers) or all_are_put_away(session)
    sizes = {number: noted.get(number) or _walk(commit_directory(session, number)) for number in numbers}
    if is_lasting and sizes != noted:
        with contextlib.suppress(OSError):
            write_cache(path, sizes)
            if not all_are_put_away(session):  # an undo has begun: it forgets after it has made its directory
                forget_sizes(session)
    return sizes


class SessionSize(msgspec.Struct, frozen=True):
    """How much of the disk a session takes, in bytes."""

    all: int
    """As ``du`` says."""
    kept: int
    """The share of the files kept for undo, which ``keep_commits.gib`` limits."""


def size_of_session(session: bytes, fresh_from: int) -> SessionSize:
    """Return how much of the disk a session takes, except for the private ``/tmp`` of its runs
    (:func:`yolofs.session.run_tmp.size`); what commits keep is not walked anew.

    ``fresh_from``: store inodes below this number are not written to any more.
    """
    sizes = sizes_of_commits(session)
    commits = os.path.join(session, b"commits")
    walked = {commit_directory(session, number) for number in sizes}
    files = os.path.join(session, b"files")
    above = size_of(session, without={commits, files, run_tmp.top_of(session)}) + _size_of_store(session, fresh_from)
    others = size_of(commits, without=walked)
    kept = sum(size.kept for size in sizes.values())
    return SessionSize(above + others + kept + sum(size.other for size in sizes.values()), kept)


def forget_sizes(session: bytes, numbers: AbstractSet[int] | None = None) -> None:
    """Drop what is noted of commits with these numbers, or of all, as something that they keep is
    being taken.

    Raises:
        OSError: the disk failed.
    """
    path = _path(session)
    rest = {
        number: size
        for number, size in read_cache(path, dict[int, Size], _MOST_BYTES).items()
        if numbers is not None and number not in numbers
    }
    if rest:
        with contextlib.suppress(OSError):  # on a full disk all are dropped
            write_cache(path, rest)
            return
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


class _Shard(msgspec.Struct, frozen=True, array_like=True):
    """A shard of the store whose inodes nobody writes to any more."""

    inode: int
    mtime_ns: int
    size: int
    """With all that is in it, in bytes of the disk."""

    def is_of(self, st: os.stat_result) -> bool:
        """Tell whether the shard that was walked has these attributes."""
        return (self.inode, self.mtime_ns) == (st.st_ino, st.st_mtime_ns)


def _size_of_store(session: bytes, fresh_from: int) -> int:
    """Return how much of the disk the store takes; shards that are noted are not walked."""
    files = os.path.join(session, b"files")
    try:
        shards = {number: path_of_shard(files, number) for number in list_shards(files)}
    except OSError:
        return 0
    total = size_of(files, without=set(shards.values()))
    path = os.path.join(session, b"commits", _SHARDS)
    before = read_cache(path, dict[int, _Shard], _MOST_BYTES)
    known: dict[int, _Shard] = {}
    for number, shard in shards.items():
        if (number + 1) << SHARD_BITS > fresh_from:
            total += size_of(shard)
            continue
        try:
            st = os.lstat(shard)
        except OSError:
            continue
        noted = before.get(number)
        if noted is None or not noted.is_of(st):
            noted = _Shard(st.st_ino, st.st_mtime_ns, size_of(shard))
        if time.time_ns() - st.st_mtime_ns > _TICK_NS:  # else what changes now may leave it the same time
            known[number] = noted
        total += noted.size
    if known != before:
        with contextlib.suppress(OSError):  # without commits there is no place, and little to note
            write_cache(path, known)
    return total


def _walk(directory: bytes) -> Size:
    before = {os.path.join(directory, name) for name in (b"replaced", BASES)}
    return Size(sum(map(size_of, before)), size_of(directory, without=before))


def _path(session: bytes) -> bytes:
    return os.path.join(session, b"commits", _NAME)
