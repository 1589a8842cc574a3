"""Checks that each path given to a commit or an undo exists somewhere, and says where nothing is
staged.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence

from yolofs.changes.changes import Change
from yolofs.cli.history.missing_paths import hint_of_meant
from yolofs.cli.output import say
from yolofs.cli.show.first_lines import first_lines
from yolofs.errors import UsageError
from yolofs.paths import RelPath, absolute, display, is_below, split
from yolofs.session.session import Session
from yolofs.text.enumeration import some_of

_NAMED = 3
"""How many paths an error names; how many more there are is said."""


def check_paths(session: Session, paths: Sequence[RelPath], everything: Sequence[Change]) -> list[RelPath]:
    """Return those of some paths at and below which nothing of ``everything`` lies.

    Raises:
        UsageError: some of these are neither in the view nor in base, so they are misspelt.
    """
    if not paths:
        return []
    changed = sorted({path for change in everything for path in change.paths})
    changed = sorted({*changed, *_in_renamed_directories(paths, everything, changed)})
    unchanged = [path for path in paths if not _has_below(changed, path)]
    nowhere = [path for path in unchanged if not _is_anywhere(session, path)]
    if nowhere:
        text = f"there is nothing at {_listed(session, nowhere)}, neither staged nor in base, so nothing is committed"
        raise UsageError(text, hint=hint_of_meant(session, nowhere[0]))
    return unchanged


def say_nothing_staged(session: Session, paths: Sequence[RelPath]) -> None:
    """Say that nothing is staged at some paths that the user has named."""
    root = session.base.root
    for line in first_lines(paths, lambda path: f"{display(absolute(root, path))}: nothing is staged there", "paths"):
        say(line)


def _in_renamed_directories(
    paths: Sequence[RelPath], everything: Sequence[Change], changed: Sequence[RelPath]
) -> list[RelPath]:
    """Return those of some paths at which a commit without the rename of a directory would put what
    has changed in it.
    """
    renamed = {change.old_path: change.path for change in everything if change.renames_directory}
    found = []
    for path in paths if renamed else ():
        above = path
        while above and above not in renamed:
            above = split(above)[0]
        if above and above != path and _has_below(changed, RelPath(renamed[above] + path[len(above) :])):
            found.append(path)
    return found


def check_paths_of_undo(
    session: Session, paths: Sequence[RelPath], number: int, changed: Collection[RelPath]
) -> list[RelPath]:
    """Return those of some paths that lie neither at, above nor below one that a commit
    ``changed``.

    Raises:
        UsageError: some of these are neither in the view nor in base, so they are misspelt.
    """
    known = sorted(changed)
    unchanged = [path for path in paths if not (_has_below(known, path) or any(is_below(path, one) for one in known))]
    nowhere = [path for path in unchanged if not _is_anywhere(session, path)]
    if nowhere:
        raise UsageError(
            f"there is nothing at {_listed(session, nowhere)}, and commit {number} changed nothing there,"
            " so nothing is undone",
            hint=f"yolofs undo {number} --dry-run",
        )
    return unchanged


def _listed(session: Session, paths: Sequence[RelPath]) -> str:
    return some_of([display(absolute(session.base.root, path)) for path in paths], _NAMED)


def _has_below(sorted_paths: Sequence[bytes], top: RelPath) -> bool:
    """Tell whether one of some paths is ``top`` or lies below it."""
    if not top:
        return bool(sorted_paths)
    for first in (top, top + b"/"):
        at = bisect_left(sorted_paths, first)
        if at < len(sorted_paths) and is_below(sorted_paths[at], top):
            return True
    return False


def _is_anywhere(session: Session, path: RelPath) -> bool:
    shown = session.state().resolve(path)
    if shown is not None and shown.staged is not None:
        return True
    places = {path} if shown is None or shown.base is None else {path, shown.base}
    return any(map(session.base.has, places))
