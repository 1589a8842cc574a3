"""Tracked files that a rule hides: git in a view takes them for deleted, and commits that."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Sequence

from yolofs.changes.changes import Change, Side
from yolofs.cli.rules.hidden_changes import hidden_paths
from yolofs.hostcode.git_work_trees import may_be_index, work_tree_of
from yolofs.paths import RelPath, display, in_shell, join
from yolofs.session.session import Session
from yolofs.store.interfaces import StoreFiles
from yolofs.system.plain_files import read_plain
from yolofs.text.enumeration import some_of

_SHOWN = 3
_COMMANDS = 5


def untracked_lines(session: Session, changes: Collection[Change]) -> list[str]:
    """Return lines about hidden files that git no longer tracks after some changes, with the
    commands that show them to programs; none for a guarded caller.
    """
    found = untracked(session, changes)
    return _lines(session.project, found, "git took for deleted, and no longer tracks, what a rule hides")


def untracked(session: Session, changes: Collection[Change]) -> list[bytes]:
    """Return the absolute paths of these files, sorted."""
    return _hidden(session.project, [session.base.path(path) for path in _lost(session, changes)])


def tracked_lines(project: bytes) -> list[str]:
    """Return lines about hidden files that a project's repository and its submodules track, with
    the commands that show them to programs.
    """
    found = _hidden(project, list(_tracked(project)))
    return _lines(project, found, "a rule hides what git tracks, so git in a view takes it for deleted")


def _tracked(project: bytes) -> Iterator[bytes]:
    """Yield the absolute paths of the files that a work tree and its submodules track.

    Each directory is looked at once, as a submodule and links may lead back to what is around it;
    all their indexes together may be as long as one.
    """
    from yolofs.hostcode import git_index
    from yolofs.hostcode.git_work_trees import index_of

    todo, seen, left = [project], set(), git_index.MOST_BYTES
    while todo:
        work_tree = todo.pop()
        index, identity = index_of(work_tree), _identity(work_tree)
        if index is None or identity is None or identity in seen:
            continue
        seen.add(identity)
        try:
            data = read_plain(index, left)
        except OSError:
            continue
        left -= len(data)
        for name in _names(data) or ():
            path = os.path.join(work_tree, name)
            if _is_file(path):
                yield path
            elif os.path.lexists(os.path.join(path, b".git")) and not os.path.islink(path):
                todo.append(path)


def _hidden(project: bytes, paths: Collection[bytes]) -> list[bytes]:
    return sorted(hidden_paths(project, paths)) if paths else []


def _lines(project: bytes, found: Sequence[bytes], what: str) -> list[str]:
    if not found:
        return []
    inside = project.rstrip(b"/") + b"/"
    return [
        f"{what}: {some_of([display(path.removeprefix(inside)) for path in found], _SHOWN)}",
        f"to show {'them' if len(found) > 1 else 'it'} to programs:",
        *(f"  yolofs rule allow {in_shell(path)}" for path in found[:_COMMANDS]),
        *([f"  … and {len(found) - _COMMANDS} more"] if len(found) > _COMMANDS else []),
    ]


def _lost(session: Session, changes: Collection[Change]) -> Iterator[RelPath]:
    """Yield the files of base that changed indexes have lost while nothing was staged at them."""
    indexes = [change for change in changes if change.content and may_be_index(change.path)]
    if not indexes:
        return
    changed = {path for change in changes for path in change.paths}
    for index in indexes:
        work_tree = work_tree_of(session.base.path(index.path))
        top = session.base.relative(work_tree) if work_tree is not None else None
        old, new = _names_of(index.old, session.store), _names_of(index.new, session.store)
        if top is None or old is None or new is None:
            continue
        for name in sorted(old - new):
            path = join(top, name)
            if path not in changed and _is_file(session.base.path(path)):
                yield path


def _names_of(side: Side | None, store: StoreFiles) -> frozenset[bytes] | None:
    from yolofs.cli.show.git_new_objects import read_side  # for the few lists in which an index has changed
    from yolofs.hostcode import git_index

    data = read_side(side, store, git_index.MOST_BYTES) if side is not None else None
    return _names(data) if data is not None else None


def _names(index: bytes) -> frozenset[bytes] | None:
    """Return what an index tracks, None if that cannot be told; nothing outside of its work tree:
    anybody may have written it.
    """
    from yolofs.hostcode import git_index

    names = git_index.names(index)
    return frozenset(name for name in names if not git_index.leads_out(name)) if names is not None else None


def _identity(directory: bytes) -> tuple[int, int] | None:
    try:
        st = os.stat(directory)
    except OSError:
        return None
    return st.st_dev, st.st_ino


def _is_file(path: bytes) -> bool:
    try:
        return not stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
