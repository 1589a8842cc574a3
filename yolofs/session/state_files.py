"""The files of one state, read as the view shows them, without a mount."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import Protocol

from yolofs.changes.changes import Side, side_of
from yolofs.changes.state_reader import FileIdentity, ShownNode, StateReader
from yolofs.paths import RelPath
from yolofs.state.tree import Tree
from yolofs.store.base import Base
from yolofs.store.interfaces import StoreFiles

_CHUNK_BYTES = 1 << 20


class Ground(Protocol):
    """What a state stands on."""

    @property
    def base(self) -> Base:
        """The base."""
        ...

    @property
    def store(self) -> StoreFiles:
        """The store."""
        ...


class StateFile:
    """Something that a state shows."""

    def __init__(self, node: ShownNode, side: Side) -> None:
        self.path: RelPath = node.path
        self.side = side
        """Its attributes, and where to read it."""
        self.st = node.st
        """The same attributes; the size and the number of blocks may not be true."""
        self.identity: FileIdentity = node.identity
        """The same for all names of one file."""
        self.node = node

    @property
    def mtime_ns(self) -> int:
        """When its content was changed last; of a directory, when a name came or went."""
        entry = self.node.entry
        return (entry.touched_ns if entry is not None and self.is_directory else 0) or self.st.st_mtime_ns

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return self.side.type == stat.S_IFDIR


class StateFiles:
    """Reads what a state shows, by paths relative to base.  Symbolic links are not followed."""

    def __init__(self, ground: Ground, tree: Tree) -> None:
        """``tree`` is the state, as :meth:`~yolofs.session.session.Session.state` of a session
        returns it.

        ``ground``: the session, or what else it stands on.
        """
        self._base = ground.base
        self._store = ground.store
        self.reader = StateReader(tree, ground.base, ground.store)

    def look(self, path: RelPath) -> StateFile | None:
        """Return what is at a path, None if nothing is.

        Raises:
            YolofsError: the store lacks something that the state shows.
        """
        node = self.reader.root()
        for name in path.split(b"/") if path else ():
            node = self.reader.child(node, name) if node is not None and stat.S_ISDIR(node.st.st_mode) else None
        return self._file(node) if node is not None else None

    def inside(self, directory: StateFile) -> list[tuple[bytes, StateFile]]:
        """Return what is in a directory, by name, sorted.

        Raises:
            YolofsError: as :meth:`look`.
        """
        found = []
        for name in sorted(self.reader.names(directory.node)):
            node = self.reader.child(directory.node, name)
            if node is not None:
                found.append((name, self._file(node)))
        return found

    @contextlib.contextmanager
    def open(self, file: StateFile) -> Iterator[int]:
        """Open a regular file for the time of the block, and yield a descriptor to read it from.

        Raises:
            OSError: as open(2); EISDIR and EINVAL for what is no regular file.
        """
        fd = self.descriptor(file)
        try:
            yield fd
        finally:
            os.close(fd)

    def descriptor(self, file: StateFile) -> int:
        """Open a regular file, and return a descriptor that the caller closes.

        Raises:
            OSError: as :meth:`open`.
        """
        if file.side.type != stat.S_IFREG:
            number = errno.EISDIR if file.is_directory else errno.EINVAL
            raise OSError(number, os.strerror(number), file.side.meta)
        return file.side.open(self._store)

    def chunks(self, file: StateFile) -> Iterator[bytes]:
        """Yield the content of a regular file.

        Raises:
            OSError: as :meth:`open`.
        """
        with self.open(file) as fd:
            while data := os.read(fd, _CHUNK_BYTES):
                yield data

    def _file(self, node: ShownNode) -> StateFile:
        return StateFile(node, side_of(node, self._base))
