"""Which of some changes lie at paths that a rule hides.

A mount is asked about these paths alone.  That takes a tenth of the time that sending all its rules
would take.  Without one, all rules are read only if those that may hide one of them do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from yolofs.changes.changes import Change
from yolofs.cli.options import options
from yolofs.cli.project.connection import connected
from yolofs.paths import absolute

if TYPE_CHECKING:
    from yolofs.cli.guard import PathGuard

_MOST = 500
"""With more paths the rules take less time."""


class _Told:
    """Judges paths as a mount has judged them; others by its rules."""

    def __init__(self, project: bytes, asked: frozenset[bytes], hidden: set[bytes]) -> None:
        self._project = project
        self._asked = asked
        self._hidden = hidden
        self._rules: PathGuard | None = None

    def may_see(self, path: bytes) -> bool:
        """Tell whether programs in the view may know of a path."""
        return path not in self._hidden if path in self._asked else self._by_rules().may_see(path)

    def may_read(self, path: bytes) -> bool:
        """Tell whether programs in the view may read it, without asking anybody."""
        return self._by_rules().may_read(path)

    def _by_rules(self) -> PathGuard:
        if self._rules is None:
            self._rules = _hiding(self._project)
            assert self._rules is not None  # nobody's guard tells, or this would not have been made
        return self._rules


def hiding_of(project: bytes, changes: Collection[Change], root: bytes, *, shows_all: bool = False) -> PathGuard | None:
    """Return what tells which paths of some changes the user has had hidden, as
    :func:`yolofs.cli.rules.in_force.hiding` does.
    """
    asked = frozenset(absolute(root, path) for change in changes for path in change.paths)
    return _guard_of(project, asked) if not shows_all else None


def hidden_paths(project: bytes, paths: Iterable[bytes]) -> set[bytes]:
    """Return which of some absolute paths the user has had hidden; none if somebody's guard
    tells.
    """
    asked = frozenset(paths)
    guard = _guard_of(project, asked)
    return {path for path in asked if not guard.may_see(path)} if guard is not None else set()


def _guard_of(project: bytes, asked: frozenset[bytes]) -> PathGuard | None:
    if options().guard is not None:
        return None
    if len(asked) <= _MOST:
        with connected(project) as client:
            if client is not None:
                return _Told(project, asked, client.hidden(tuple(asked)) if asked else set())
    return _hiding_by_files(project, asked)


def _hiding_by_files(project: bytes, asked: frozenset[bytes]) -> PathGuard:
    from yolofs.cli.rules.in_force import files_in_order, guard_by  # take long to import

    files = files_in_order(project)
    guard = guard_by(files.hiding_near(asked))
    return _Told(project, asked, set()) if all(map(guard.may_see, asked)) else guard_by(files.sources().sets())


def _hiding(project: bytes) -> PathGuard | None:
    from yolofs.cli.rules.in_force import hiding  # rules take long to import

    return hiding(project)
