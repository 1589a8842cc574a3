"""A checkpoint: the present state and the markers of a journal's beginning, so that it need not be
replayed.

It says nothing that the journal does not say, and the journal keeps all that it said.  A checkpoint
holds for one beginning of one journal, byte for byte (length and CRC-32).  If it does not fit, or
cannot be read, it counts as missing, and the journal is replayed.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from yolofs.journal.archive_index import ranges_of
from yolofs.journal.journal import KnownBeginning, MarkerAt
from yolofs.journal.records import Fingerprint, Snapshot, Travel
from yolofs.paths import Generation, RelPath, StoreIno
from yolofs.state.tree import Entry, Staged, Tree
from yolofs.system.plain_files import read_plain

FILE_NAME = b"checkpoint"
_FORMAT = 9
"""In the one before, fingerprints had no ctime."""
_NONE = -1
_MOST_BYTES = 1 << 30
"""Of millions of entries."""


class _Marker(msgspec.Struct, frozen=True, array_like=True):
    offset_bytes: int
    end_bytes: int
    generation: int
    """Where a travel went; -1 for a snapshot."""
    time_ns: int
    name: bytes
    extra: tuple[tuple[str, bytes], ...]


_Fingerprint: TypeAlias = tuple[int, int, int, tuple[int, int, int] | None, int, int]


class _Staged(msgspec.Struct, frozen=True, array_like=True):
    ino: int
    origin: bytes | None
    key: bytes | int
    base: _Fingerprint | None
    home: bytes | None
    links: int


class _Entries(msgspec.Struct, frozen=True, array_like=True):
    """The entries of a tree column by column, parents before children; the root is the first."""

    parents: list[int]
    names: list[bytes]
    bases: list[bytes | None]
    staged: list[int]
    """Indices into the staged files, -1 where nothing is staged."""
    touched_ns: list[int]
    since_ns: list[int]
    had_base: list[bool]


class Checkpoint(msgspec.Struct, frozen=True, array_like=True):
    """What was known of a session when the first ``size`` bytes of its journal were there."""

    format: int
    size: int
    crc: int
    record_count: int
    counts_before: list[int]
    marker_lines: list[_Marker]
    live: tuple[int, ...]
    """The segments that the state is built from; the last was open."""
    fresh_from: StoreIno
    numbers: list[tuple[int, int]]
    """All store inodes that the journal names, as ranges: first and last."""
    staged: list[_Staged]
    linked: list[int]
    """Indices of those staged files that base has several names for and that all of these show."""
    unlinked: list[tuple[int, int]]
    """:attr:`Tree.unlinked`."""
    was: list[tuple[bytes, _Fingerprint | None]]
    """:attr:`Tree.was`."""
    entries: _Entries

    @property
    def known(self) -> KnownBeginning:
        """What is known of the journal."""
        markers = [
            MarkerAt(
                line.offset_bytes,
                line.end_bytes,
                Snapshot(line.time_ns, line.name, line.extra)
                if line.generation == _NONE
                else Travel(line.time_ns, Generation(line.generation), line.name, line.extra),
            )
            for line in self.marker_lines
        ]
        return KnownBeginning(self.size, self.crc, self.record_count, markers, self.counts_before)

    def tree(self) -> Tree:
        """Build the tree of the state."""
        files = [
            Staged(
                StoreIno(row.ino),
                RelPath(row.origin) if row.origin is not None else None,
                row.key,
                Fingerprint(*row.base) if row.base is not None else None,
                home=RelPath(row.home) if row.home is not None else None,
                links=row.links,
            )
            for row in self.staged
        ]
        tree = Tree()
        tree.staged.update((staged.ino, staged) for staged in files)
        tree.linked.update((staged.base.ino, staged) for staged in map(files.__getitem__, self.linked) if staged.base)
        tree.unlinked.update(self.unlinked)
        tree.was.update((RelPath(path), Fingerprint(*was) if was is not None else None) for path, was in self.was)
        columns = self.entries
        entries: list[Entry] = []
        facts = zip(columns.touched_ns, columns.since_ns, columns.had_base, strict=True)
        rows = zip(columns.parents, columns.names, columns.bases, columns.staged, facts, strict=True)
        for parent_index, name, base, file_index, (touched_ns, since_ns, had_base) in rows:
            if parent_index == _NONE:
                entry = tree.root
                entry.base = RelPath(base) if base is not None else None
            else:
                parent = entries[parent_index]
                entry = Entry(parent, name, base=RelPath(base) if base is not None else None)
                if parent.children is None:
                    parent.children = {}
                parent.children[name] = entry
            entry.touched_ns, entry.since_ns, entry.had_base = touched_ns, since_ns, had_base
            if file_index != _NONE:
                entry.staged = staged = files[file_index]
                staged.names.append(entry)
            entries.append(entry)
        return tree


def make(
    known: KnownBeginning, tree: Tree, *, live: tuple[int, ...], fresh_from: StoreIno, numbers: Iterable[int]
) -> Checkpoint:
    """Return the checkpoint of a state."""
    columns = _Entries([], [], [], [], [], [], [])
    index_of = {staged: index for index, staged in enumerate(tree.staged.values())}
    stack: list[tuple[int, Entry]] = [(_NONE, tree.root)]
    while stack:
        parent_index, entry = stack.pop()
        staged = entry.staged
        index = len(columns.names)
        columns.parents.append(parent_index)
        columns.names.append(entry.name)
        columns.bases.append(entry.base)
        columns.staged.append(index_of[staged] if staged is not None else _NONE)
        columns.touched_ns.append(entry.touched_ns)
        columns.since_ns.append(entry.since_ns)
        columns.had_base.append(entry.had_base)
        if entry.children:
            stack.extend((index, below) for below in reversed(entry.children.values()))
    markers = [
        _Marker(
            at.offset_bytes,
            at.end_bytes,
            at.marker.generation if isinstance(at.marker, Travel) else _NONE,
            at.marker.time_ns,
            at.marker.name,
            at.marker.extra,
        )
        for at in known.markers
    ]
    return Checkpoint(
        _FORMAT,
        known.size,
        known.crc,
        known.record_count,
        known.counts_before,
        markers,
        live,
        fresh_from,
        ranges_of(numbers),
        [_row(staged) for staged in tree.staged.values()],
        [index_of[staged] for staged in tree.linked.values()],
        list(tree.unlinked.items()),
        [(path, _columns_of(was)) for path, was in tree.was.items()],
        columns,
    )


def _row(staged: Staged) -> _Staged:
    return _Staged(staged.ino, staged.origin, staged.key, _columns_of(staged.base), staged.home, staged.links)


def _columns_of(base: Fingerprint | None) -> _Fingerprint | None:
    if base is None:
        return None
    return base.mtime_ns, base.size, base.ino, base.owner, base.ctime_ns, base.nlink


def read(directory: bytes) -> Checkpoint | None:
    """Return the checkpoint of the session in ``directory``, None if there is none of use."""
    try:
        data = read_plain(os.path.join(directory, FILE_NAME), _MOST_BYTES)
        checkpoint = msgspec.msgpack.decode(data[4:], type=Checkpoint)
    except (OSError, msgspec.DecodeError):
        return None
    is_whole = zlib.crc32(data[4:]) == int.from_bytes(data[:4])
    return checkpoint if is_whole and checkpoint.format == _FORMAT else None


def write(directory: bytes, checkpoint: Checkpoint) -> None:
    """Write the checkpoint of the session in ``directory``, in the place of an older one.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    data = msgspec.msgpack.encode(checkpoint)
    path = os.path.join(directory, FILE_NAME)
    fd = os.open(path + b".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(zlib.crc32(data).to_bytes(4))
            file.write(data)
        os.rename(path + b".new", path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path + b".new")
        raise


def remove(directory: bytes) -> None:
    """Remove the checkpoint of the session in ``directory``: its journal has ended."""
    for name in (FILE_NAME, FILE_NAME + b".new"):  # the second is left by a process that was killed while writing
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, name))
