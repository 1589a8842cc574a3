"""New commits in a ``.git``, loose or in packs; and loose objects that were packed.

The repository is not believed.  A commit counts only if its name is the hash of its content. git is
not run, as its settings and hooks are the agent's.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Collection, Mapping
from typing import Self

from yolofs.changes.changes import Change, ChangeKind, Side
from yolofs.paths import RelPath, join
from yolofs.store.interfaces import StoreFiles
from yolofs.text.git_commits import MOST_OBJECT_BYTES, is_called, is_name, parents_of, unpacked
from yolofs.text.git_packs import DamagedPackError, Pack, PackIndex, ReadingBudget

_PACKS = b"objects/pack/"
_INDEX, _PACK = b".idx", b".pack"
MOST_COMMITS = 1_000
"""At most this many are counted."""
_MOST_NAMES = 20_000
"""At most this many parents are followed: a commit may have any number."""
_MOST_PACKS = 50
_MOST_WORK_BYTES = 1 << 28
"""A pack may be made so that a look takes hours; this takes seconds."""
_MOST_ASKED = 2_000
MOST_PACKED_BYTES = 1 << 22
"""A ``packed-refs`` with more is not read."""

Read = Callable[[RelPath], bytes | None]


class NewObjects:
    """What is new in one ``.git``: commits, and packs.  Use it in a ``with``."""

    def __init__(self, top: RelPath, changes: Mapping[bytes, Change], store: StoreFiles, read: Read) -> None:
        """``changes`` are by path below ``top``, the ``.git``; ``read`` returns what either state
        has at a path that did not change.
        """
        self._top = top
        self._changes = changes
        self._store = store
        self._read = read
        self._open = contextlib.ExitStack()
        self._packs: list[Pack] | None = None
        self._work = ReadingBudget(_MOST_WORK_BYTES)
        self._asked = 0
        self._repacked: dict[bytes, bool] = {}
        """Of packs that are gone, by their paths without an ending."""
        self._gone: list[PackIndex] = []
        """The indexes of packs that are not there any more: what they had is not new."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def commits_to(self, tip: bytes, known: Collection[bytes]) -> tuple[int, set[bytes]]:
        """Return how many new commits lead to a tip, and all that they stand on, themselves among
        it.

        What is ``known`` was there before.
        """
        count = 0
        ends: set[bytes] = {tip}
        todo = [tip]
        while todo and count < MOST_COMMITS and len(ends) < _MOST_NAMES:
            name = todo.pop()
            parents = self._parents(name) if name not in known and is_name(name) else None
            if parents is not None:
                count += 1
                todo.extend(parent for parent in dict.fromkeys(parents) if parent not in ends)
                ends.update(parents)
        return count, ends

    def _parents(self, name: bytes) -> list[bytes] | None:
        """Return the parents of a new commit, None if it is no commit, or was there before."""
        path = b"objects/" + name[:2] + b"/" + name[2:]
        change = self._changes.get(path)
        if change is not None and change.kind is ChangeKind.ADDED and change.new is not None:
            if self._is_in_gone_pack(name):  # it was unpacked
                return None
            return parents_of(self._loose(name), name)
        return self._parents_in_packs(name, path) if change is None else None

    def _parents_in_packs(self, name: bytes, path: bytes) -> list[bytes] | None:
        was_there = self._is_in_gone_pack(name)
        if not self._packs or was_there or self._read(join(self._top, path)) is not None:
            return None
        return parents_of(self._packed(name), name)

    def has_packed(self, rest: bytes) -> bool:
        """Tell whether a new pack has a loose object with the same content.  Only small objects are
        compared, and only the first 2,000; of others it is False.

        ``rest`` is its path below ``objects``.
        """
        name = rest.replace(b"/", b"")
        self._asked += 1
        return self._asked <= _MOST_ASKED and is_name(name) and is_called(self._packed(name), name)

    def has_repacked(self, path: bytes) -> bool:
        """Tell whether new packs and loose files hold all objects of a removed pack, unchanged;
        ``path`` is any file of that pack.

        True only of a pack of no more than 2,000 objects, all of them small.
        """
        stem = path.rpartition(b".")[0]
        if stem not in self._repacked:
            self._repacked[stem] = self._is_repacked(stem)
        return self._repacked[stem]

    def _is_repacked(self, stem: bytes) -> bool:
        gone = self._changes.get(stem + _INDEX)
        digits = stem.rpartition(b"-")[2]
        if gone is None or gone.kind is not ChangeKind.DELETED or gone.old is None or not is_name(digits):
            return False
        try:
            index = PackIndex(self._opened(gone.old), len(digits) // 2)
            self._asked += index.count
            names = (name.hex().encode() for name in index.names())
            return self._asked <= _MOST_ASKED and all(map(self._has_come, names))
        except (DamagedPackError, OSError):
            return False

    @property
    def has_packs(self) -> bool:
        """Whether packs came."""
        return any(
            name.startswith(_PACKS) and name.endswith(_PACK) and change.kind is ChangeKind.ADDED
            for name, change in self._changes.items()
        )

    def _has_come(self, name: bytes) -> bool:
        """Tell whether an object has come, in a pack or loose."""
        return is_called(self._packed(name), name) or is_called(self._loose(name), name)

    def _loose(self, name: bytes) -> bytes:
        """Return the content of a loose object that came, as :func:`unpacked` returns it."""
        change = self._changes.get(b"objects/" + name[:2] + b"/" + name[2:])
        if change is None or change.kind is not ChangeKind.ADDED or change.new is None:
            return b""
        return unpacked(read_side(change.new, self._store, MOST_OBJECT_BYTES) or b"")

    def _packed(self, name: bytes) -> bytes:
        """Return what a pack that came has of an object, as :func:`unpacked` returns it."""
        if self._packs is None:
            self._packs = self._open_packs(len(name) // 2)
        for pack in self._packs:
            with contextlib.suppress(DamagedPackError, OSError):
                found = pack.find(bytes.fromhex(name.decode()), MOST_OBJECT_BYTES)
                if found is not None:
                    return b"%b %d\0%b" % (found.type, len(found.content), found.content)
        return b""

    def _is_in_gone_pack(self, name: bytes) -> bool:
        if self._packs is None:
            self._packs = self._open_packs(len(name) // 2)
        for index in self._gone:
            with contextlib.suppress(DamagedPackError, OSError):
                if index.offset(bytes.fromhex(name.decode())) is not None:
                    return True
        return False

    def _open_packs(self, name_bytes: int) -> list[Pack]:
        """Return the packs that came; opens the indexes of those that went, too."""
        packs: list[Pack] = []
        names = [name for name in self._changes if name.startswith(_PACKS) and name.endswith(_INDEX)]
        for name in names[:_MOST_PACKS]:
            change = self._changes[name]
            with contextlib.suppress(DamagedPackError, OSError):
                if change.kind is ChangeKind.DELETED and change.old is not None:
                    self._gone.append(PackIndex(self._opened(change.old), name_bytes))
                    continue
                pack = self._changes.get(name.removesuffix(_INDEX) + _PACK)
                if (
                    change.new is not None
                    and pack is not None
                    and pack.kind is ChangeKind.ADDED
                    and pack.new is not None
                ):
                    index = PackIndex(self._opened(change.new), name_bytes)
                    packs.append(Pack(index, self._opened(pack.new), name_bytes, self._work))
        return packs

    def _opened(self, side: Side) -> int:
        """Return the descriptor of a regular file, which is closed at the end.

        Raises:
            OSError: it is none, or cannot be opened.
        """
        if side.type != stat.S_IFREG or side.data is None:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        fd = side.open(self._store)
        self._open.callback(os.close, fd)
        return fd


def read_side(side: Side, store: StoreFiles, most_bytes: int = MOST_PACKED_BYTES) -> bytes | None:
    """Return the content of a small regular file; None if it is none, or cannot be read."""
    if side.type != stat.S_IFREG or side.data is None or side.size > most_bytes:
        return None
    with contextlib.suppress(OSError), open(side.open(store), "rb") as file:
        return file.read(most_bytes)
    return None
