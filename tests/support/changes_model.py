"""The plainest meaning of changes: applied to the old state, they give the new one."""

from __future__ import annotations

import stat

from hypothesis import event

from tests.support.scribe import Shot, develop
from yolofs.changes.changes import Aspect, Change, ChangeKind, compare
from yolofs.paths import RelPath, join, split
from yolofs.state.tree import Tree
from yolofs.store.base import Base
from yolofs.store.store import Store


def replay(old: dict[bytes, Shot], new: dict[bytes, Shot], changes: list[Change]) -> dict[bytes, Shot]:
    """Do to ``old`` what the changes say, taking from ``new`` only what they name."""
    gone = {change.path for change in changes if change.kind is ChangeKind.DELETED}
    moved = {change.old_path: change for change in changes if change.kind is ChangeKind.RENAMED}
    places: dict[bytes, bytes] = {b"": b""}
    result = {}
    for path in sorted(old):  # parents first
        if path in moved:
            places[path] = moved[RelPath(path)].path
        elif path and path not in gone:
            parent, name = split(path)
            places[path] = join(places[parent], name)
    for path, place in places.items():
        assert place not in result, "two things in one place"
        result[place] = old[path]
    for change in changes:
        if change.kind is ChangeKind.ADDED:
            assert change.path not in result, "added over something"
        if change.kind is ChangeKind.RENAMED:
            assert change.old_path in old
            assert change.path in result
        if change.kind is not ChangeKind.DELETED and (
            change.kind is not ChangeKind.RENAMED or change.content or change.metadata
        ):
            result[change.path] = new[change.path]
    return result


def comparable(shots: dict[bytes, Shot]) -> dict[bytes, Shot]:
    """Leave the mode of symlinks out, which means nothing."""
    return {path: shot._replace(mode=0) if shot.kind == stat.S_IFLNK else shot for path, shot in shots.items()}


def check_each(old: dict[bytes, Shot], new: dict[bytes, Shot], changes: list[Change]) -> None:
    """No line says too much."""
    for change in changes:
        before, after = old.get(change.old_path or change.path), new.get(change.path)
        event(f"kind {change.kind.value}")
        match change.kind:
            case ChangeKind.ADDED:
                assert after is not None
            case ChangeKind.DELETED:
                assert before is not None
            case ChangeKind.MODIFIED:
                assert before is not None
                assert after is not None
                assert (before.kind, before.content) != (after.kind, after.content)
            case ChangeKind.TYPE:
                assert before is not None
                assert after is not None
                assert before.kind != after.kind
            case ChangeKind.METADATA:
                assert before is not None
                assert after is not None
                assert before.content == after.content
                aspects = {
                    Aspect.MODE: before.mode != after.mode,
                    Aspect.OWNER: before.owner != after.owner,
                    Aspect.TIME: before.mtime_ns != after.mtime_ns,
                    Aspect.XATTRS: before.xattrs != after.xattrs,
                }
                assert set(change.metadata) == {aspect for aspect, differs in aspects.items() if differs}
            case ChangeKind.RENAMED:
                assert change.old_path is not None
                assert change.old_path != change.path
                assert before is not None
                assert after is not None
                assert change.content == (before.content != after.content)
    lines = [(change.path, change.kind is ChangeKind.DELETED) for change in changes]
    assert len(set(lines)) == len(lines), "two lines for one thing"
    assert lines == sorted(lines, key=lambda line: (line[0], not line[1]))


def check_pair(old_tree: Tree, new_tree: Tree, base: Base, store: Store) -> None:
    """Compare two states and check every line against all that both show."""
    old, new = (comparable(develop(tree, base, store)) for tree in (old_tree, new_tree))
    for expand_renames in (False, True):
        changes = compare(old_tree, new_tree, base, store, expand_renames=expand_renames)
        assert replay(old, new, changes) == new
        check_each(old, new, changes)
