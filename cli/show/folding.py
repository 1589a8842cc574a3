"""Folds lists of changes: related ones share a line, so that a person sees what matters.

A new or deleted directory is one line with a count, also where something else was or is in its
place.  In the project, so are the insides of each ``.git`` and of each bare repository that base
has, what git ignores, compiled Python code, and changes of times alone, these outside of the
project, too.  Never folded away are host code (but for a new directory of which most files carry
one mark, which its line has then), deletions of tracked files (except for those in a deleted
directory, which is shown itself), all else outside the project, and changes that the caller keeps,
such as conflicts.
"""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from yolofs.changes.changes import Aspect, Change, ChangeKind
from yolofs.cli.show.marked_alike import MarkedAlike
from yolofs.hostcode.mark import is_marked
from yolofs.paths import RelPath, display, join, split

if TYPE_CHECKING:
    from yolofs.hostcode.git_ignored import Repositories
    from yolofs.hostcode.mark import Marks

_DOT_GIT = b".git"
_MODULES = b"modules"
"""In a ``.git``, the directory that has one such directory for each submodule."""
_IN_REPOSITORY = frozenset(
    {
        *(b"HEAD", b"ORIG_HEAD", b"FETCH_HEAD", b"COMMIT_EDITMSG", b"index", b"packed-refs", b"config", b"description"),
        *(b"branches", b"hooks", b"info", b"logs", b"objects", b"refs", b"modules", b"worktrees"),
    }
)
"""What lies in a repository.  It tells the directory of a submodule from one above it, as the name
of a submodule may have slashes.
"""
_CACHE = b"__pycache__"
_COMPILED = (b".pyc", b".pyo")
_COME_OR_GO = frozenset({ChangeKind.ADDED, ChangeKind.DELETED, ChangeKind.TYPE})
"""The kinds by which a directory may come or go."""
_NAMED = 3
_NAMES_WIDTH = 60


class Sort(Enum):
    """What is told in one line; the value is how that begins."""

    GIT = "git"
    IGNORED = "ignored by git"
    BYTECODE = "bytecode"
    TIMES = "times alone"


class ChangeLine(msgspec.Struct, frozen=True):
    """A change that has a line of its own."""

    change: Change
    inside: list[Change]
    """Changes inside the directory that this line adds or deletes, at its new or its old path; they
    have no line of their own.
    """
    alike: list[Change] = []
    """Those of :attr:`inside` that all carry one mark; such a line is marked, too."""

    @property
    def count_text(self) -> str:
        """What tells how much that is, for the end of the line; empty if it is nothing."""
        if not self.inside:
            return ""
        is_plain = self.change.kind is not ChangeKind.TYPE
        what = "" if is_plain else "deleted " if self.inside[0].kind is ChangeKind.DELETED else "added "
        return f"  (and {len(self.inside)} {what}in it)"

    @property
    def deletes(self) -> bool:
        """Whether something is deleted by it."""
        return ChangeKind.DELETED in (self.change.kind, *(inner.kind for inner in self.inside[:1]))


class Group(msgspec.Struct, frozen=True):
    """Changes that are told in one line."""

    sort: Sort
    lines: list[ChangeLine]
    top: RelPath | None = None
    """Of a repository its path: that of a ``.git``, or of a bare one."""

    @property
    def changes(self) -> list[Change]:
        """All of them."""
        return [change for line in self.lines for change in (line.change, *line.inside)]


class Folded(msgspec.Struct, frozen=True):
    """A list of changes made short."""

    lines: list[ChangeLine]
    groups: list[Group]


def fold(
    changes: Iterable[Change],
    *,
    in_project: Callable[[Change], bool],
    is_outside: Callable[[Change], bool],
    is_kept: Callable[[Change], bool],
    marks: Marks,
    repositories: Repositories | None,
) -> Folded:
    """Return changes, which are sorted by path, made short.

    What ``is_kept`` has a line of its own, and so has what is marked, except where most of a new
    directory carries the same mark.  Without ``repositories`` git is not asked, and no
    deletion folded.

    Blocks while git tells what it ignores.
    """
    gits: dict[RelPath, Group] = {}
    rest: list[tuple[ChangeLine, bool]] = []
    times: list[ChangeLine] = []
    changes = list(changes)
    alike = MarkedAlike(changes, marks, is_kept)

    def is_apart(change: Change) -> bool:
        return is_kept(change) or is_marked(change, marks) or change.path in alike.directories

    for line in _in_directories(changes, in_project, is_apart, alike):
        if is_time_alone(line.change) and is_outside(line.change) and not is_apart(line.change):
            times.append(line)
            continue
        may_fold = in_project(line.change) and not is_apart(line.change)
        top = _repository_of(line.change, repositories) if may_fold else None
        if top is None:
            rest.append((line, may_fold))
        else:
            gits.setdefault(top, Group(Sort.GIT, [], top)).lines.append(line)
    ignored = _ignored([line for line, may_fold in rest if may_fold], repositories)
    groups = {sort: Group(sort, []) for sort in (Sort.IGNORED, Sort.BYTECODE, Sort.TIMES)}
    lines = []
    for line, may_fold in rest:
        sort = _sort_of(line, ignored, repositories) if may_fold else None
        if sort is None:
            lines.append(line)
        else:
            groups[sort].lines.append(line)
    groups[Sort.TIMES].lines.extend(times)
    return Folded(lines, [*gits.values(), *(group for group in groups.values() if group.lines)])


def group_counts_text(group: Group) -> str:
    """Return how many changes a group has, and how many of them delete something."""
    kinds = Counter(change.kind for change in group.changes)
    total, deleted = sum(kinds.values()), kinds[ChangeKind.DELETED]
    text = f"{total} change{'s' if total > 1 else ''}"
    return text + (f", {deleted} of them deleted" if deleted else "")


def names_text(group: Group, show: Callable[[Change], str]) -> str:
    """Return the first names of a group, as far as a line has room for them."""
    shown: list[str] = []
    for line in group.lines[:_NAMED]:
        name = show(line.change)
        if shown and len(", ".join((*shown, name))) > _NAMES_WIDTH:
            break
        shown.append(name if len(name) <= _NAMES_WIDTH else f"…{name[-_NAMES_WIDTH:]}")
    more = len(group.lines) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _in_directories(
    changes: Iterable[Change],
    in_project: Callable[[Change], bool],
    is_apart: Callable[[Change], bool],
    alike: MarkedAlike,
) -> list[ChangeLine]:
    """Return the changes without those in a directory that was itself added or deleted, which has
    them instead.  Where something else took its place, or had it, that has them.  What is added in
    a ``.git`` of the project stays apart: its group tells what happened there.
    """
    lines: list[ChangeLine] = []
    holders: dict[tuple[ChangeKind, RelPath], ChangeLine] = {}
    marked: dict[RelPath, ChangeLine] = {}
    for change in sorted(changes, key=lambda change: change.path.split(b"/")):
        kind = change.kind
        if (directory := alike.directory_of(change)) is not None:
            marked[directory].inside.append(change)
            marked[directory].alike.append(change)
            continue
        holds = kind in (ChangeKind.ADDED, ChangeKind.DELETED)
        holder = holders.get((kind, split(change.path)[0])) if holds else None
        if holder is not None and not is_apart(change):
            holder.inside.append(change)
            line = holder
        else:
            line = ChangeLine(change, [])
            lines.append(line)
            if kind is ChangeKind.ADDED and change.path in alike.directories:
                marked[change.path] = line
        for came_or_went in _holds_all(change) if kind in _COME_OR_GO else ():
            if came_or_went is ChangeKind.DELETED or _dot_git_of(change) is None or not in_project(change):
                holders[came_or_went, change.path] = line
    return lines


def _holds_all(change: Change) -> Iterator[ChangeKind]:
    """Yield which changes below a path are in a directory that came or went there as a whole."""
    old, new = change.old, change.new
    is_old = old is not None and old.type == stat.S_IFDIR
    is_new = new is not None and new.type == stat.S_IFDIR
    if is_old and not is_new:
        yield ChangeKind.DELETED
    if is_new and not is_old:
        yield ChangeKind.ADDED


def _is_directory(change: Change) -> bool:
    side = change.new or change.old
    return side is not None and side.type == stat.S_IFDIR


def _dot_git_of(change: Change) -> RelPath | None:
    """Return the ``.git`` that a change lies in, with both its paths; None if there is none."""
    tops = {_dot_git_above(path) for path in change.paths}
    return tops.pop() if len(tops) == 1 else None


def _repository_of(change: Change, repositories: Repositories | None) -> RelPath | None:
    """Return the repository that a change lies in, with both its paths: a ``.git``, or a bare one
    that base has; None if there is none.
    """
    top = _dot_git_of(change)
    if top is not None or repositories is None:
        return top
    tops = {_bare_above(path, repositories) for path in change.paths}
    return tops.pop() if len(tops) == 1 else None


def _bare_above(path: RelPath, repositories: Repositories) -> RelPath | None:
    names = path.split(b"/")
    above = (b"/".join(names[:at]) for at in range(1, len(names)) if names[at] in _IN_REPOSITORY)
    return next((RelPath(top) for top in above if repositories.is_bare(RelPath(top))), None)


def _dot_git_above(path: bytes) -> RelPath | None:
    names = path.split(b"/")
    at = names.index(_DOT_GIT) if _DOT_GIT in names[:-1] else -1
    while at >= 0 and names[at + 1] == _MODULES:
        inside = next((index for index in range(at + 3, len(names)) if names[index] in _IN_REPOSITORY), None)
        if inside is None:
            break
        at = inside - 1
    return RelPath(b"/".join(names[: at + 1])) if at >= 0 else None


def _ignored(lines: Sequence[ChangeLine], repositories: Repositories | None) -> set[RelPath]:
    """Return the paths at which git ignores all that there is."""
    if repositories is None:
        return set()
    from yolofs.hostcode.git_ignored import CheckedPath

    return repositories.ignored(
        CheckedPath(path, _is_directory(line.change)) for line in lines for path in line.change.paths
    )


def _sort_of(line: ChangeLine, ignored: set[RelPath], repositories: Repositories | None) -> Sort | None:
    change = line.change
    if _is_imported_bytecode(change) or _deletes_repository(line) or (change.kind is ChangeKind.TYPE and line.inside):
        return None
    if ignored.issuperset(change.paths):
        return Sort.IGNORED
    if _is_bytecode(line) and not _deletes_tracked(line, repositories):
        return Sort.BYTECODE
    return Sort.TIMES if is_time_alone(change) else None


def is_time_alone(change: Change) -> bool:
    """Tell whether a change is one of a file's time, and of nothing else."""
    return change.kind is ChangeKind.METADATA and change.metadata == (Aspect.TIME,)


def _deletes_tracked(line: ChangeLine, repositories: Repositories | None) -> bool:
    if line.change.kind not in (ChangeKind.DELETED, ChangeKind.RENAMED):
        return False
    return repositories is None or any(map(repositories.is_tracked, line.change.paths))


def _deletes_repository(line: ChangeLine) -> bool:
    """Tell whether a deleted directory holds a repository, with what is nowhere else."""
    if line.change.kind is not ChangeKind.DELETED or not line.inside:
        return False
    paths = {change.path for change in line.inside}
    directories = [split(path)[0] for path in paths if split(path)[1] == b"HEAD"]
    is_bare = any({join(each, b"objects"), join(each, b"refs")} <= paths for each in directories)
    return is_bare or any(split(path)[1] == _DOT_GIT for path in paths)


def _is_imported_bytecode(change: Change) -> bool:
    """Tell whether Python runs what is at a path without looking for a source: outside of
    ``__pycache__``.
    """
    is_there = change.new is not None and change.new.type in (stat.S_IFREG, stat.S_IFLNK)
    return is_there and change.path.endswith(_COMPILED) and split(split(change.path)[0])[1] != _CACHE


def _is_bytecode(line: ChangeLine) -> bool:
    change = line.change
    if not {Aspect.TIME}.issuperset(change.metadata):
        return False
    if not _is_directory(change):
        return _is_compiled(change)
    is_cache = change.kind is not ChangeKind.RENAMED and split(change.path)[1] == _CACHE
    return is_cache and all(_is_compiled(one) for one in line.inside)


def _is_compiled(change: Change) -> bool:
    sides = [side for side in (change.old, change.new) if side is not None]
    return all(path.endswith(_COMPILED) for path in change.paths) and all(stat.S_ISREG(side.type) for side in sides)


def shown_top(top: RelPath, project: RelPath | None) -> str:
    """Return whose repository it is, for the beginning of a line: nothing for the project's own."""
    names = top.split(b"/")
    at = names.index(_DOT_GIT) if _DOT_GIT in names else len(names)
    holder, submodule = b"/".join(names[:at]), b"/".join(names[at + 2 :])
    within = holder[len(project) :].lstrip(b"/") if project is not None else holder
    return (f" in {display(within)}" if within else "") + (f", submodule {display(submodule)}" if submodule else "")
