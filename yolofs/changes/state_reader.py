"""What a state shows, node by node: a tree over base and store."""

from __future__ import annotations

import functools
import os
import stat
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from yolofs.errors import MissingInodeError
from yolofs.paths import RelPath, StoreIno, display, join
from yolofs.state.hard_links import key_for, staged_for
from yolofs.state.tree import Entry, Staged, Tree
from yolofs.store.base import Base
from yolofs.store.interfaces import StoreFiles

GONE_OR_CLOSED = (FileNotFoundError, NotADirectoryError, PermissionError)
"""What base answers where nothing is to be had of a name: it is not there, or closed to this user.

Anything else is a disk that does not answer: whoever took that for an absence would show a change
that there is not.
"""
FileIdentity: TypeAlias = bytes | int
"""Which file it is, over all its versions and places: its first base path, or the number of its
first store inode, or a number that stands for a file with several names in base (``Staged.key``).
"""


class ShownNode:
    """Something that a state shows: its path, its entry if there is one, and its attributes."""

    __slots__ = ("entry", "link_key", "meta", "path", "source", "st", "staged")

    def __init__(
        self,
        path: RelPath,
        entry: Entry | None,
        staged: Staged | None,
        source: RelPath | None,
        meta: bytes,
        st: os.stat_result,
        *,
        link_key: int | None = None,
    ) -> None:
        self.path = path
        self.entry = entry
        self.staged = staged
        self.link_key = link_key
        self.source = source
        """The base path that data or children come from where nothing overrides them; None if none
        do.
        """
        self.meta = meta
        """The absolute path of what has its attributes."""
        self.st = st
        """Those attributes; where ``staged`` has an origin, the size may not be true."""

    @property
    def identity(self) -> FileIdentity:
        """Which file this is."""
        if self.staged is not None:
            return self.staged.key
        if self.link_key is not None:
            return self.link_key
        assert self.source is not None
        return self.source

    @property
    def home(self) -> RelPath | None:
        """The base path of this very name, as far as that is known."""
        if self.entry is not None and self.entry.base is not None:
            return self.entry.base
        return self.staged.home if self.staged is not None else self.source

    @property
    def kind(self) -> int:
        """The type, as ``stat.S_IFMT`` gives it."""
        return stat.S_IFMT(self.st.st_mode)

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return stat.S_ISDIR(self.st.st_mode)


Again: TypeAlias = Callable[[RelPath], ShownNode | None]


class StateReader:
    """What one tree shows over base and store, node by node."""

    def __init__(self, tree: Tree, base: Base, store: StoreFiles, again: Again | None = None) -> None:
        """If a path's store inode is missing, ``again`` says what is there now, as a program may
        have gone on; without ``again`` that is an error.
        """
        self.tree = tree
        self.base = base
        self.store = store
        self._again = again
        self._seen_by_links: defaultdict[StoreIno, set[RelPath]] = defaultdict(set)

    @functools.cached_property
    def _by_identity(self) -> Mapping[FileIdentity, list[Entry]]:
        found: defaultdict[FileIdentity, list[Entry]] = defaultdict(list)
        for entry in entries_below(self.tree.root):
            if entry.staged is not None:
                found[entry.staged.key].append(entry)
            elif entry.base is not None:
                found[entry.base].append(entry)
        return found

    @functools.cached_property
    def _by_source(self) -> Mapping[RelPath, list[Entry]]:
        found: defaultdict[RelPath, list[Entry]] = defaultdict(list)
        for entry in entries_below(self.tree.root):
            source = entry.source
            if source is not None:
                found[source].append(entry)
        return found

    def leaves_time_of(self, node: ShownNode) -> bool:
        """Tell whether the tree shows a time that base is not to get."""
        return node.staged is not None and node.staged.ino in self.tree.left_times

    def root(self) -> ShownNode | None:
        """Return the node of base's root."""
        return self._at_entry(RelPath(b""), self.tree.root)

    def child(self, directory: ShownNode, name: bytes) -> ShownNode | None:
        """Return what ``name`` in a directory shows, None if nothing (any more).

        Raises:
            YolofsError: the tree names a store inode that is not there.
        """
        path = join(directory.path, name)
        entry = child_entry(directory.entry, name)
        if entry is not None:
            return self._at_entry(path, entry)
        return self._at_base(path, join(directory.source, name)) if directory.source is not None else None

    def names(self, directory: ShownNode) -> set[bytes]:
        """Return all names in a directory, and perhaps some that show nothing; none if base cannot
        be listed.
        """
        names = set(directory.entry.children or ()) if directory.entry is not None else set()
        if directory.source is not None:
            try:
                names.update(self.base.names(directory.source))
            except GONE_OR_CLOSED:
                return names  # gone, replaced or closed since: what it had cannot be told
        return names

    def places(self, identity: FileIdentity) -> Iterator[ShownNode]:
        """Yield every place that shows this file: more than one if it has hard links."""
        for entry in self._by_identity.get(identity, ()):
            node = self._at_entry(entry.path(), entry)
            if node is not None:
                yield node
        if isinstance(identity, bytes) and identity:
            yield from self._places_below_sources(identity)

    def _places_below_sources(self, base_path: bytes) -> Iterator[ShownNode]:
        """Yield where a base path shows because a directory above it does, and no entry is in
        between.
        """
        end = len(base_path)
        while end > 0:
            end = base_path.rfind(b"/", 0, end)
            prefix, rest = (base_path[:end], base_path[end + 1 :]) if end >= 0 else (b"", base_path)
            for entry in self._by_source.get(RelPath(prefix), ()):
                if child_entry(entry, rest.partition(b"/")[0]) is None:
                    node = self._at_base(join(entry.path(), rest), RelPath(base_path))
                    if node is not None:
                        yield node

    def unseen(self, staged: Staged) -> int:
        """Return how many names that base has show a staged file and were not come upon so far."""
        return max(0, self.tree.unseen(staged) - len(self._seen_by_links.get(staged.ino, ())))

    def _at_entry(self, path: RelPath, entry: Entry) -> ShownNode | None:
        if entry.staged is None:
            return self._at_base(path, entry.base, entry) if entry.base is not None else None
        return self._at_staged(path, entry, entry.staged)

    def _at_staged(self, path: RelPath, entry: Entry | None, staged: Staged) -> ShownNode | None:
        meta = self.store.path(staged.ino)
        try:
            st = self.store.lstat(staged.ino)
        except FileNotFoundError:
            if self._again is not None:
                return self._again(path)
            raise MissingInodeError(
                f"store inode {staged.ino}, shown as {display(path)}, is missing", hint="yolofs doctor"
            ) from None
        return ShownNode(path, entry, staged, staged.origin, meta, st)

    def _at_base(self, path: RelPath, source: RelPath, entry: Entry | None = None) -> ShownNode | None:
        try:
            st = self.base.lstat(source)
        except GONE_OR_CLOSED:
            st = None  # never was there, or the host has removed it
        if entry is not None and entry.children and (st is None or not stat.S_ISDIR(st.st_mode)) and has_work(entry):
            st = _LOST_DIRECTORY
        if st is None:
            return None
        staged = staged_for(self.tree, self.base, st)
        if staged is not None:
            self._seen_by_links[staged.ino].add(path)
            return self._at_staged(path, entry, staged)
        link_key = key_for(self.tree, self.base, st)
        return ShownNode(path, entry, None, source, self.base.path(source), st, link_key=link_key)


_LOST_DIRECTORY = os.stat_result(
    (stat.S_IFDIR | 0o755, 0, 0, 2, os.geteuid(), os.getegid(), 0, 0, 0, 0),
    {"st_mtime_ns": 0},  # else it would be None
)
"""Stands for a base directory that the host removed while there was staged work below: that work
has to be seen.
"""


def has_work(directory: Entry) -> bool:
    """Tell whether anything is staged at an entry or below it."""
    return any(entry.staged is not None for entry in entries_below(directory))


def entries_below(top: Entry) -> Iterator[Entry]:
    """Yield ``top`` and every entry below it, tombstones too."""
    stack = [top]
    while stack:
        entry = stack.pop()
        yield entry
        if entry.children:
            stack.extend(entry.children.values())


def child_entry(entry: Entry | None, name: bytes) -> Entry | None:
    """Return the entry of a name below another one, None if there is none."""
    return entry.children.get(name) if entry is not None and entry.children else None
