"""The beginning of a long comparison, for the first screen: the changes at a few names of the
override tree.

A rename may show as a deletion and an addition here; the comparison that follows knows better.
"""

from __future__ import annotations

from collections.abc import Iterator

from yolofs.changes.changes import Change, ChangeKind, compare_two
from yolofs.changes.state_reader import entries_below
from yolofs.paths import RelPath
from yolofs.session.session import Session
from yolofs.session.state_files import StateFiles
from yolofs.state.tree import Tree

MANY = 2000
"""With fewer names, the whole comparison is quick enough."""
_DELETIONS = 60
_OTHERS = 60
_AT_MOST = 400
"""How many names are looked at, at most."""


def first_changes(session: Session) -> list[Change]:
    """Return a few of the changes of a session with many, deletions among them; none if there are
    few.
    """
    tree = session.state()
    deletions: list[RelPath] = []
    others: list[RelPath] = []
    count = 0
    for entry in entries_below(tree.root):
        count += 1
        if entry.is_tombstone:
            if len(deletions) < _DELETIONS:
                deletions.append(entry.path())
        elif entry.staged is not None and len(others) < _OTHERS:
            others.append(entry.path())
    if count < MANY:
        return []
    found = _changes(session, tree, sorted([*deletions, *others])[:_AT_MOST])
    return sorted(found, key=lambda change: (change.path, change.kind is not ChangeKind.DELETED))


def _changes(session: Session, tree: Tree, paths: list[RelPath]) -> Iterator[Change]:
    before, after = StateFiles(session, Tree()), StateFiles(session, tree)
    for path in paths:
        old, new = before.look(path), after.look(path)
        if old is None:
            if new is not None:
                yield Change(ChangeKind.ADDED, path, new=new.side)
        elif new is None:
            yield Change(ChangeKind.DELETED, path, old=old.side)
        else:
            change = compare_two(old.node, new.node, before.reader, after.reader)
            if change is not None:
                yield change
