"""What a command shows when it is asked from inside a sandbox: nothing that the rules hide from
programs there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from yolofs.changes.changes import Change
from yolofs.paths import absolute

if TYPE_CHECKING:  # takes long, and only what is asked from inside a sandbox needs it
    from yolofs.rules import RuleBook, Verdict


class PathGuard(Protocol):
    """Judges absolute paths."""

    def may_see(self, path: bytes) -> bool:
        """Tell whether programs in the view may know of a path."""
        ...

    def may_read(self, path: bytes) -> bool:
        """Tell whether programs in the view may read it, without asking anybody."""
        ...


class Guard(PathGuard, Protocol):
    """Judges on behalf of a process in a sandbox."""

    def may_see_process(self, pid: int) -> bool:
        """Tell whether it may be known what a process does, by its number outside."""
        ...


class RuleGuard:
    """Judges paths by rules, as they are when it is made."""

    def __init__(self, book: RuleBook) -> None:
        self._book = book
        self._directories: dict[bytes, Verdict] = {}
        """Those judged so far: of a thousand files in one directory each takes a step then, and not
        its whole path.
        """

    def may_see(self, path: bytes) -> bool:
        """Tell whether programs in the view may know of a path."""
        return not self._at(path).seems_absent

    def may_read(self, path: bytes) -> bool:
        """Tell whether programs in the view may read it, without asking anybody."""
        verdict = self._at(path)
        return verdict.may_read and not verdict.seems_absent

    def _at(self, path: bytes) -> Verdict:
        directory, _, name = path.rpartition(b"/")
        if not name:
            return self._book.at(path)
        above = self._directories.get(directory)
        if above is None:
            above = self._directories[directory] = self._book.at(directory or b"/")
        return self._book.below(above, name)


class SandboxGuard(RuleGuard):
    """Judges paths by rules, and processes by the sandbox of the one on whose behalf that is."""

    def __init__(self, book: RuleBook, pid: int) -> None:
        super().__init__(book)
        self._sandbox = _pid_namespace(pid)

    def may_see_process(self, pid: int) -> bool:
        """Tell whether a process is in the same sandbox."""
        return self._sandbox is not None and _pid_namespace(pid) == self._sandbox


def visible_changes(guard: PathGuard | None, changes: Iterable[Change], root: bytes) -> list[Change]:
    """Return the changes that may be shown."""
    return [change for change in changes if guard is None or all(map(guard.may_see, _paths(change, root)))]


def hidden_by(guard: PathGuard | None, changes: Iterable[Change], root: bytes) -> list[Change]:
    """Return the changes that touch a path that nobody may know of."""
    if guard is None:
        return []
    top, may_see = absolute(root, b"").rstrip(b"/") + b"/", guard.may_see
    return [
        change
        for change in changes
        if not may_see(top + change.path) or (change.old_path is not None and not may_see(top + change.old_path))
    ]


def readable_changes(guard: PathGuard | None, changes: Iterable[Change], root: bytes) -> list[Change]:
    """Return the changes whose content may be shown."""
    return [change for change in changes if guard is None or all(map(guard.may_read, _paths(change, root)))]


def _pid_namespace(pid: int) -> str | None:
    """Return what stands for the pid namespace of a process, None if it is gone or cannot be
    seen.
    """
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def _paths(change: Change, root: bytes) -> list[bytes]:
    return [absolute(root, path) for path in change.paths]
