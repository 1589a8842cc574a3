"""Matches the files of two states; this part of a comparison looks at names only.

Two trees over the same base are walked side by side, from the root down, in *slots*: the same name
in two directories that are already known to belong together.

- A slot whose two sides have the same identity (:attr:`ShownNode.identity`) is the same file in its
  old place.
- A directory whose identity the other state has elsewhere has moved; its two places are walked side
  by side, too.
- Two directories in a slot of which neither has moved belong together all the same: one replaced
  the other.
- What is left is settled at the end, when every file that stayed in its place is known.  Files that
  went are paired with files of the same identity that came: they were moved.  Hard links to what
  stayed are not.  What then is still in one slot belongs together: one has replaced the other.

Where two directories have the same :attr:`ShownNode.source`, only names with an entry can differ,
and those that base has for a file with hard links that was changed through another name
(:mod:`yolofs.state.link_names`).  So the walk costs what the two override trees cost, and base is
listed only below directories that came, went or were replaced.
"""

from __future__ import annotations

import functools
import os
import stat
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from yolofs.errors import MissingInodeError
from yolofs.paths import RelPath, StoreIno, display, join, split
from yolofs.state.hard_links import key_for, staged_for
from yolofs.state.link_names import find_names
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
        entry = _child_entry(directory.entry, name)
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
                if _child_entry(entry, rest.partition(b"/")[0]) is None:
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
        if entry is not None and entry.children and (st is None or not stat.S_ISDIR(st.st_mode)) and _has_work(entry):
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


def _has_work(directory: Entry) -> bool:
    return any(entry.staged is not None for entry in entries_below(directory))


def entries_below(top: Entry) -> Iterator[Entry]:
    """Yield ``top`` and every entry below it, tombstones too."""
    stack = [top]
    while stack:
        entry = stack.pop()
        yield entry
        if entry.children:
            stack.extend(entry.children.values())


class Match(msgspec.Struct, frozen=True):
    """Two nodes that belong together; or one alone, which came (``old`` is None) or went (``new``
    is None).
    """

    old: ShownNode | None
    new: ShownNode | None
    is_move: bool = False
    """Whether it is the same file, in another place than its directory's own move explains."""


def match(old: StateReader, new: StateReader, *, expand_renames: bool = False) -> list[Match]:
    """Return what belongs together in two states, in no particular order.

    Pairs that show one and the same thing in the same place are left out, as far as that is seen
    without looking at them.  With ``expand_renames`` everything below a directory that moved counts
    as moved, too, which lists that directory.

    Raises:
        YolofsError: a tree names a store inode that is not there.
    """
    return _Matcher(old, new, expand_renames).run()


class _Matcher:
    def __init__(self, old: StateReader, new: StateReader, expand_renames: bool) -> None:
        self._old = old
        self._new = new
        self._expand = expand_renames
        self._matches: list[Match] = []
        self._unsettled: list[tuple[ShownNode | None, ShownNode | None]] = []
        self._directories: list[tuple[ShownNode | None, ShownNode | None]] = []
        self._moved: set[FileIdentity] = set()
        self._by_links: defaultdict[RelPath, set[bytes]] = defaultdict(set)
        """The names in base directories that are, or lead to, names of files with hard links that
        differ.
        """
        for path in find_names(old.base, _differing_links(old.tree, new.tree)):
            rest = path
            while rest:
                rest, name = split(rest)
                self._by_links[rest].add(name)

    def run(self) -> list[Match]:
        old_root, new_root = self._old.root(), self._new.root()
        if old_root is not None and new_root is not None:
            self._join(old_root, new_root)
        while self._directories:
            old, new = self._directories.pop()
            for name in self._names(old, new):
                self._slot(
                    self._old.child(old, name) if old is not None else None,
                    self._new.child(new, name) if new is not None else None,
                )
        self._settle()
        return self._matches

    def _names(self, old: ShownNode | None, new: ShownNode | None) -> set[bytes]:
        """Return the names that may differ between two directories that belong together."""
        if old is None:
            return self._new.names(new) if new is not None else set()
        if new is None:
            return self._old.names(old)
        if old.source != new.source or (self._expand and old.path != new.path):
            return self._old.names(old) | self._new.names(new)
        names = self._differing_names(old.entry, new.entry)
        if self._by_links and old.source is not None:
            names |= self._by_links.get(old.source, set())
        return names

    def _differing_names(self, old: Entry | None, new: Entry | None) -> set[bytes]:
        """Return the names with an entry on either side, without those that plainly show the
        same.
        """
        names = set(old.children or ()) if old is not None else set()
        names.update((new.children or ()) if new is not None else ())
        return {name for name in names if not self._is_same(_child_entry(old, name), _child_entry(new, name))}

    def _is_same(self, old: Entry | None, new: Entry | None) -> bool:
        """Tell whether two entries, judged by themselves, show the same and have nothing below
        them.
        """
        if old is None or new is None or old.children or new.children or old.base != new.base:
            return False
        if old.staged is None or new.staged is None:
            return old.staged is new.staged and not self._leads_to_links(old.base)
        return old.staged.ino == new.staged.ino and old.staged.origin == new.staged.origin

    def _leads_to_links(self, base: RelPath | None) -> bool:
        """Tell whether a base path is, or leads to, a name of a file with hard links that
        differs.
        """
        if base is None or not self._by_links:
            return False
        directory, name = split(base)
        return name in self._by_links.get(directory, ())

    def _slot(self, old: ShownNode | None, new: ShownNode | None) -> None:
        if old is not None and new is not None and old.identity == new.identity and old.kind == new.kind:
            self._join(old, new)
            return
        if old is not None and old.is_directory and self._follow_old(old):
            old = None
        if new is not None and new.is_directory and self._follow_new(new):
            new = None
        if old is not None and new is not None and old.is_directory and new.is_directory:
            self._join(old, new)
        elif old is not None or new is not None:
            self._unsettled.append((old, new))
            if old is not None and old.is_directory:
                self._directories.append((old, None))
            if new is not None and new.is_directory:
                self._directories.append((None, new))

    def _join(self, old: ShownNode, new: ShownNode, *, is_move: bool = False) -> None:
        is_move = is_move or (self._expand and old.path != new.path and old.kind == new.kind)
        self._matches.append(Match(old, new, is_move))
        if old.is_directory and new.is_directory:
            self._directories.append((old, new))

    def _follow_old(self, old: ShownNode) -> bool:
        """Tell whether a directory of the old state is somewhere else in the new one; if so, it is
        joined once.
        """
        new = next((node for node in self._new.places(old.identity) if node.is_directory), None)
        return new is not None and self._move(old, new)

    def _follow_new(self, new: ShownNode) -> bool:
        """Tell whether a directory of the new state was somewhere else in the old one; if so, it is
        joined once.
        """
        old = next((node for node in self._old.places(new.identity) if node.is_directory), None)
        return old is not None and self._move(old, new)

    def _move(self, old: ShownNode, new: ShownNode) -> bool:
        if old.identity not in self._moved:
            self._moved.add(old.identity)
            self._join(old, new, is_move=True)
        return True

    def _settle(self) -> None:
        """Pair the files that went with those that came, then the two sides of each other slot."""
        went: defaultdict[tuple[FileIdentity, int], list[ShownNode]] = defaultdict(list)
        came: defaultdict[tuple[FileIdentity, int], list[ShownNode]] = defaultdict(list)
        for old, _ in self._unsettled:
            if old is not None and not old.is_directory:
                went[old.identity, old.kind].append(old)
        for _, new in self._unsettled if went else ():
            if new is not None and not new.is_directory:
                came[new.identity, new.kind].append(new)
        if not (went and came):
            for left, right in self._unsettled:
                if left is not None and right is not None:
                    self._join(left, right)
                else:
                    self._matches.append(Match(left, right))
            return
        moved_from, moved_to = set(), set()
        for key in went.keys() & came.keys():
            for old, new in _pair(went[key], came[key]):
                self._join(old, new, is_move=True)
                moved_from.add(old.path)
                moved_to.add(new.path)
        for left, right in self._unsettled:
            old_rest = None if left is None or left.path in moved_from else left
            new_rest = None if right is None or right.path in moved_to else right
            if old_rest is not None and new_rest is not None:
                self._join(old_rest, new_rest)
            elif old_rest is not None or new_rest is not None:
                self._matches.append(Match(old_rest, new_rest))


def _pair(went: list[ShownNode], came: list[ShownNode]) -> Iterator[tuple[ShownNode, ShownNode]]:
    """Pair names of one file that went with those that came: such as base had at the same path,
    then the others.
    """
    if len(went) > 1 or len(came) > 1:
        by_home = {node.home: node for node in sorted(came, key=_path, reverse=True)}  # of several the first name
        for old in sorted(went, key=_path):
            new = by_home.pop(old.home, None)
            if new is not None and old.home is not None:
                yield old, new
                went = [node for node in went if node is not old]
                came = [node for node in came if node is not new]
    yield from zip(sorted(went, key=_path), sorted(came, key=_path), strict=False)


def _path(node: ShownNode) -> bytes:
    return node.path


def _child_entry(entry: Entry | None, name: bytes) -> Entry | None:
    return entry.children.get(name) if entry is not None and entry.children else None


def _differing_links(old: Tree, new: Tree) -> list[Staged]:
    """Return the files with hard links in base of which the two states do not show the same."""
    differing = []
    for number, right in new.linked.items():
        left = old.linked.get(number)
        if left is None or (left.ino, left.origin) != (right.ino, right.origin):
            differing.append(right)
    return differing + [left for number, left in old.linked.items() if number not in new.linked]
