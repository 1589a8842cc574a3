"""``yolofs commit --exclude``: patterns of what stays staged."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import msgspec

from yolofs.changes.changes import Change
from yolofs.cli.project.project import relative_paths
from yolofs.commit.select.selection import Selection
from yolofs.errors import UsageError
from yolofs.paths import RelPath, in_shell
from yolofs.session.session import Session
from yolofs.text.path_patterns import Pattern, Patterns, is_wild, parse_pattern


class Excluded(msgspec.Struct, frozen=True):
    """What patterns leave out of a commit."""

    paths: frozenset[RelPath] = frozenset()
    """Of all that is staged."""
    unused: tuple[str, ...] = ()
    """The patterns, as they were written, that fit nothing that is staged."""

    @classmethod
    def of(cls, selection: Selection, everything: Iterable[Change]) -> Excluded:
        """Find what the patterns of a selection leave out of ``everything``."""
        if selection.excluded is None:
            return cls()
        paths = {path for change in everything for path in change.paths}
        used = selection.excluded.used_by(paths)
        left_out = frozenset(path for path in paths if selection.excludes(path))
        return cls(left_out, tuple(text for text in selection.excluded.values if text not in used))


def parse_excludes(session: Session, words: Sequence[str]) -> Patterns[str] | None:
    """Return patterns that a user typed, relative to base; None if there are none.

    Up to its first wildcard a pattern is a path as any other argument is: from where the user
    stands, links before the last name followed.

    Raises:
        UsageError: one lies outside base, or is empty.
    """
    return Patterns([(_parse(session, word), word) for word in words]) if words else None


def _parse(session: Session, word: str) -> Pattern:
    if not word:
        raise UsageError("an empty pattern excludes nothing", hint="leave out --exclude, or give it a PATTERN")
    if word.startswith("**/"):
        return parse_pattern(word, b"", b"")
    home = os.path.expanduser("~") if word.startswith("~/") else ""
    names = os.fsencode(home + word[1:] if home else word).split(b"/")
    head = next((at for at, name in enumerate(names) if is_wild(name)), len(names))
    if head == len(names):
        start = b"/".join(names)
    else:  # what lies in a directory: that one is followed, too
        start = b"/".join(names[:head]) + b"/" if head else b"./"
    (top,) = relative_paths(session, [start])
    return parse_pattern(os.fsdecode(b"/".join((b"", top, *names[head:]))), b"", b"")


def divide_by_patterns(changes: Iterable[Change], excluded: Excluded) -> tuple[list[Change], list[Change]]:
    """Return the changes that patterns do not leave out, and those that they do."""
    taken_and_excluded: tuple[list[Change], list[Change]] = ([], [])
    for change in changes:
        taken_and_excluded[not excluded.paths.isdisjoint(change.paths)].append(change)
    return taken_and_excluded


def unused_text(pattern: str) -> str:
    """Return what is said of a pattern that fits nothing."""
    return f"note: --exclude {in_shell(os.fsencode(pattern))} fits nothing that is staged; **/NAME fits a name anywhere"
