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

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from yolofs.changes.state_reader import FileIdentity, ShownNode, StateReader, child_entry
from yolofs.paths import RelPath, split
from yolofs.state.link_names import find_names
from yolofs.state.tree import Entry, Staged, Tree


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
        return {name for name in names if not self._is_same(child_entry(old, name), child_entry(new, name))}

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


def _differing_links(old: Tree, new: Tree) -> list[Staged]:
    """Return the files with hard links in base of which the two states do not show the same."""
    differing = []
    for number, right in new.linked.items():
        left = old.linked.get(number)
        if left is None or (left.ino, left.origin) != (right.ino, right.origin):
            differing.append(right)
    return differing + [left for number, left in old.linked.items() if number not in new.linked]
