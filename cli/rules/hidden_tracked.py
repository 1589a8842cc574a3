"""Tracked files that a rule hides: git in a view takes them for deleted, and commits that."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator

from yolofs.changes.changes import Change, Side
from yolofs.cli.rules.hidden_changes import hidden_paths
from yolofs.paths import RelPath, absolute, display, in_shell
from yolofs.session.session import Session
from yolofs.store.as_read import StoreFiles
from yolofs.system.plain_files import read_plain

_INDEX = b".git/index"
_SHOWN = 3
_COMMANDS = 5


def untracked_lines(session: Session, changes: Collection[Change]) -> list[str]:
    """Return what tells of the files that git tracks no more after some changes and that a rule
    hides, and the commands that show them to programs; none for a guarded caller.
    """
    lost = [absolute(session.base.root, path) for path in _lost(session, changes)]
    return _lines(session.project, lost, "git took for deleted, and tracks no more, what a rule hides")


def tracked_lines(project: bytes) -> list[str]:
    """Return what tells of the files that a project's repository tracks and that a rule hides, and
    the commands that show them to programs.
    """
    from yolofs.hostcode import git_index

    try:
        tracked = _names(read_plain(os.path.join(project, _INDEX), git_index.MOST_BYTES))
    except OSError:
        return []
    paths = [path for name in tracked or () if _is_file(path := os.path.join(project, name))]
    return _lines(project, paths, "a rule hides what git tracks, so git in a view takes it for deleted")


def _lines(project: bytes, paths: Collection[bytes], what: str) -> list[str]:
    found = sorted(hidden_paths(project, paths)) if paths else []
    if not found:
        return []
    inside = project.rstrip(b"/") + b"/"
    names = ", ".join(display(path.removeprefix(inside)) for path in found[:_SHOWN])
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return [
        f"{what}: {names}{more}",
        f"to show {'them' if len(found) > 1 else 'it'} to programs:",
        *(f"  yolofs rule allow {in_shell(path)}" for path in found[:_COMMANDS]),
        *([f"  … and {len(found) - _COMMANDS} more"] if len(found) > _COMMANDS else []),
    ]


def _lost(session: Session, changes: Collection[Change]) -> Iterator[RelPath]:
    """Yield the files of base that changed indexes have lost while nothing was staged at them."""
    indexes = [change for change in changes if (b"/" + change.path).endswith(b"/" + _INDEX) and change.content]
    if not indexes:
        return
    changed = {path for change in changes for path in change.paths}
    for index in indexes:
        top = index.path.removesuffix(_INDEX)
        old, new = _names_of(index.old, session.store), _names_of(index.new, session.store)
        for name in sorted(old - new) if old is not None and new is not None else ():
            path = RelPath(top + name)
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


def _is_file(path: bytes) -> bool:
    try:
        return not stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
