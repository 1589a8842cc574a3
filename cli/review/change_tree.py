"""The left side of a review: changes in sections, what is to be looked at first above, and in each
by directories.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import TypeAlias

from yolofs.changes.changes import Change, ChangeKind
from yolofs.cli.review.comparison import Comparison
from yolofs.cli.show.folding import Sort
from yolofs.cli.show.listing import PathDisplay
from yolofs.hostcode.mark import is_marked
from yolofs.paths import RelPath, absolute
from yolofs.state.regions import Region

Key: TypeAlias = tuple[RelPath, bool]
"""A change by its path, and whether it is a deletion: what is known of it over many comparisons."""


class Section(Enum):
    """A part of the list; the value is its title."""

    DELETED = "deleted"
    EMPTIED = "emptied"
    OUTSIDE = "outside the project"
    CODE = "what the host would run or trust"
    PROJECT = "in the project"
    GIT = Sort.GIT.value
    IGNORED = Sort.IGNORED.value
    BYTECODE = Sort.BYTECODE.value
    TIMES = Sort.TIMES.value
    SCRATCH = "in scratch directories"

    @property
    def is_folded(self) -> bool:
        """Whether lists fold what is in it, so that it is closed at first."""
        return self.value in _FOLDED


_FOLDED = frozenset(sort.value for sort in Sort)
_IN_ORDER = frozenset({Section.OUTSIDE, Section.PROJECT, Section.SCRATCH})
_MACHINES = frozenset({b".git", b"__pycache__"})
"""Directories that programs fill, and that nobody reads: closed at first, unless something is amiss
in them.
"""

_MOST_OPEN = 40
"""A new directory of more changes than that is closed at first, or what else changed is pages
below it.
"""


def key_of(change: Change) -> Key:
    """Return what stands for a change."""
    return change.path, change.kind is ChangeKind.DELETED


class Node:
    """A row of the list: a section, a directory, or a change, which may be that of a directory."""

    __slots__ = (
        "above",
        "change",
        "depth",
        "inner",
        "is_open",
        "name",
        "opens_at_first",
        "partly",
        "path",
        "section",
        "total",
        "wholly",
    )

    def __init__(self, section: Section, name: bytes, path: bytes, above: Node | None) -> None:
        self.section = section
        self.name = name
        self.path = path
        """As it is shown: relative to the project, or absolute."""
        self.above = above
        self.inner: list[Node] = []
        self.change: Change | None = None
        self.is_open = True
        self.opens_at_first = True
        """Whether it is open as long as nobody opens or closes it."""
        self.depth = 0
        self.total = 0
        """How many changes it stands for."""
        self.wholly = 0
        """How many of these are accepted, and"""
        self.partly = 0
        """of how many a part is."""

    @property
    def is_section(self) -> bool:
        """Whether it is the title of a section."""
        return self.above is None

    def changes(self) -> Iterator[Node]:
        """Yield all nodes at or below this one that have a change, in their order."""
        todo: list[Node] = [self]
        while todo:
            node = todo.pop()
            if node.change is not None:
                yield node
            todo.extend(reversed(node.inner))


class NodeTree:
    """All nodes, and those of them that are rows now."""

    def __init__(
        self, changes: Sequence[Change], section_of: Callable[[Change], Section], path_display: PathDisplay
    ) -> None:
        """Arrange changes, which are sorted by path."""
        self._place = path_display
        self.sections: list[Node] = []
        self.by_key: dict[Key, Node] = {}
        parts: dict[Section, list[Change]] = {section: [] for section in Section}
        for change in changes:
            parts[section_of(change)].append(change)
        for section, members in parts.items():
            if members:
                self.sections.append(self._section(section, members))
        self._rows: list[Node] = []
        self._places: dict[int, int] = {}
        self.refresh()

    @property
    def rows(self) -> Sequence[Node]:
        """The visible nodes from top to bottom: all but those in a closed directory."""
        return self._rows

    def row_of(self, node: Node) -> int:
        """Return the row of a node, or of what it is hidden in."""
        at: Node | None = node
        while at is not None:
            if id(at) in self._places:
                return self._places[id(at)]
            at = at.above
        return 0

    def refresh(self) -> None:
        """Find the rows anew, after something was opened or closed."""
        rows: list[Node] = []
        todo = list(reversed(self.sections))
        while todo:
            node = todo.pop()
            rows.append(node)
            if node.is_open and node.inner:
                todo.extend(reversed(node.inner))
        self._rows = rows
        self._places = {id(node): row for row, node in enumerate(rows)}

    def show(self, node: Node) -> int:
        """Open what a node lies in, and return its row."""
        at, is_changed = node.above, False
        while at is not None:
            is_changed |= not at.is_open
            at.is_open = True
            at = at.above
        if is_changed:
            self.refresh()
        return self.row_of(node)

    def open(self, node: Node) -> None:
        """Open a node, and what it has in it as long as that is one directory alone."""
        node.is_open = True
        while len(node.inner) == 1 and node.inner[0].inner:
            (node,) = node.inner
            node.is_open = True
        self.refresh()

    def all(self) -> Iterator[Node]:
        """Yield all nodes, as if all were open."""
        todo = list(reversed(self.sections))
        while todo:
            node = todo.pop()
            yield node
            todo.extend(reversed(node.inner))

    def open_as(self, other: NodeTree, *, is_partial: bool = False) -> None:
        """Open and close what another tree has, too, as it is there.

        Of a tree of a part of the changes (``is_partial``) only what the user has opened or closed
        counts.
        """
        known = {
            (node.section, node.path): node.is_open
            for node in other.all()
            if node.inner and (not is_partial or node.is_open is not node.opens_at_first)
        }
        is_changed = False
        for node in self.all():
            is_open = known.get((node.section, node.path), node.is_open)
            is_changed |= bool(node.inner) and is_open is not node.is_open
            node.is_open = is_open
        if is_changed:
            self.refresh()

    # ---- making it

    def _section(self, section: Section, changes: Sequence[Change]) -> Node:
        top = Node(section, section.value.encode(), b"", None)
        directories: dict[bytes, Node] = {b"": top}
        for change in changes:
            path = self._shown_path(change)
            node = directories[path] = self._child(directories, section, path)
            if node.change is not None:  # a deletion, and what is there instead
                node = Node(section, node.name, path, node.above)
                assert node.above is not None
                node.above.inner.append(node)
            node.change = change
            self.by_key[key_of(change)] = node
        _settle(top)
        return top

    def _shown_path(self, change: Change) -> bytes:
        path_display = self._place
        if path_display.project is not None and path_display.holds(change):
            return change.path[len(path_display.project) :].lstrip(b"/") or b"."
        return absolute(path_display.root, change.path)

    def _child(self, directories: dict[bytes, Node], section: Section, path: bytes) -> Node:
        """Return the node of a path, with those that it lies in."""
        known = directories.get(path)
        if known is not None:
            return known
        directory, _, name = path.rpartition(b"/")
        if not directory and path.startswith(b"/"):
            name = path
        above = self._child(directories, section, directory)
        node = directories[path] = Node(section, name, path, above)
        above.inner.append(node)
        return node


def _settle(top: Node) -> None:
    """Make one row of directories that hold nothing but another one; count, and set depths."""
    todo = [top]
    order: list[Node] = []
    while todo:
        node = todo.pop()
        for at, inner in enumerate(node.inner):
            while inner.change is None and len(inner.inner) == 1 and inner.inner[0].inner:
                (only,) = inner.inner
                if only.change is not None:
                    break
                only.name = inner.name + b"/" + only.name
                only.above = node
                node.inner[at] = inner = only
            inner.depth = node.depth + 1
        order.append(node)
        todo.extend(node.inner)
    for node in reversed(order):
        node.total = (node.change is not None) + sum(inner.total for inner in node.inner)
        is_new = node.change is not None and node.change.kind is ChangeKind.ADDED
        is_machines = bool(_MACHINES.intersection(node.name.split(b"/")))
        node.opens_at_first = not (
            node.section in _IN_ORDER and node.inner and (is_machines or (is_new and node.total > _MOST_OPEN))
        )
        node.is_open = node.opens_at_first
    top.is_open = top.opens_at_first = not top.section.is_folded


def _replaces_directory(change: Change) -> bool:
    """Tell whether something else is where a directory was: what was in it is deleted."""
    return change.kind is ChangeKind.TYPE and change.old is not None and change.old.type == stat.S_IFDIR


def sections(comparison: Comparison) -> Callable[[Change], Section]:
    """Return what tells which section a change belongs to."""

    def section_of(change: Change) -> Section:
        if is_marked(change, comparison.marks):
            return Section.CODE
        if comparison.regions.of_all(change.paths) is Region.SCRATCH:
            return Section.SCRATCH
        if (sort := comparison.folded.get(key_of(change))) is not None:
            return Section(sort.value)
        if change.kind is ChangeKind.DELETED or _replaces_directory(change):
            return Section.DELETED
        if change.is_emptied:
            return Section.EMPTIED
        return Section.PROJECT if comparison.path_display.holds(change) else Section.OUTSIDE

    return section_of
