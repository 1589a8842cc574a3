"""What other commits say of the one that is to be undone: those after it, and the times of
directories before earlier ones that are undone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import NamedTuple

from yolofs.commit.apply import copy_log
from yolofs.commit.plan.moves import Moves
from yolofs.commit.plan.plan import (
    Create,
    Duplicate,
    Fetch,
    FinishDirectory,
    Link,
    MakeDirectory,
    Park,
    Place,
    Plan,
    Remove,
    Rewrite,
    SetMetadata,
    Step,
)
from yolofs.commit.undo.applied import Applied, is_time_alone, read_plan
from yolofs.paths import RelPath, split
from yolofs.system.clock import is_kept_as
from yolofs.system.disks import FilesOnDisks, OnDisk


class LaterCommit(NamedTuple):
    """A commit that came after."""

    number: int
    paths: Collection[RelPath]
    """All that it has changed, before and after."""
    metadata_alone: AbstractSet[RelPath] = frozenset()
    """Those of these paths at which it has changed a directory's own metadata, and nothing else: it
    is not about what lies in there.
    """
    times: Collection[RelPath] = ()
    """The directories that it has given nothing but a time."""
    takes_back: bool = False
    """Whether it undoes a part of that commit, or of what that has applied again, so that its
    changes are meant.
    """
    applies_again: bool = False
    """Whether it undoes such an undo, and so has what that commit had kept."""
    undoes: int | None = None
    """Which commit it undoes, if it is an undo."""
    files: FilesOnDisks = FilesOnDisks()
    """What it has changed in place."""
    kept: AbstractSet[int] = frozenset()
    """The inode numbers of what it has taken out of base, or moved in it."""
    opened: AbstractSet[int] = frozenset()
    """The slots of that commit out of which it, or the undo that it undoes, took a part."""
    brought_back: AbstractSet[int] = frozenset()
    """The slots of that commit from which it, as an undo of a part, took the kept thing, in whole
    or in part.
    """
    arrivals: AbstractSet[RelPath] = frozenset()
    """The names at which it put something back, as an undo of a part of that commit; of hard links
    that came back together it has taken one from its slot.
    """
    directory: bytes = b""
    """Its own."""

    @classmethod
    def read(
        cls,
        number: int,
        directory: bytes,
        *,
        takes_back: bool = False,
        undoes: int | None = None,
        before: int | None = None,
    ) -> LaterCommit:
        """Read which paths the commit in ``directory`` is about; raises as :meth:`Applied.read`.

        ``before``: the commit that it came after.
        """
        plan = read_plan(directory)
        paths = {step.path for step in plan.steps if not isinstance(step, FinishDirectory)}
        alone = {step.path for step in plan.of(FinishDirectory) if not is_time_alone(step)} - paths
        times = {step.path for step in plan.steps if is_time_alone(step)}
        files: list[OnDisk] = []
        if any(isinstance(step, Rewrite | SetMetadata) for step in plan.steps):
            applied = Applied(number, directory, plan)
            for index, step in enumerate(plan.steps):
                if isinstance(step, Rewrite | SetMetadata) and (came := applied.came(index)) is not None:
                    files.append(came)
        is_undo = undoes is not None and undoes == before
        opened = opened_slots(plan, undoes) if undoes is not None and is_undo else frozenset()
        kept = frozenset(filter(None, map(_taken_out, plan.steps)))
        back = frozenset(step.slot for step in plan.of(Fetch) if is_undo and step.commit == undoes)
        return cls(
            number,
            paths | alone,
            alone,
            times,
            takes_back,
            undoes=undoes,
            files=FilesOnDisks(files),
            kept=kept,
            opened=opened,
            brought_back=back,
            arrivals=frozenset(step.path for step in plan.steps if isinstance(step, Place | Link | MakeDirectory))
            if is_undo
            else frozenset(),
            directory=directory,
        )

    def has_taken(self, numbers: AbstractSet[int]) -> bool:
        """Tell whether it has taken a file out of its place in base, by itself or in a directory
        that it has removed or copied to another device; ``numbers``: the inode numbers that this
        was known by.
        """
        if self.kept & numbers:
            return True
        if not self.directory:
            return False
        if any(one.was.file[1] in numbers for one in copy_log.read(self.directory)):
            return True
        todo = [os.path.join(self.directory, b"replaced")]
        for place in todo:
            with (
                contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError),
                os.scandir(place) as names,
            ):
                for entry in names:
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    elif entry.inode() in numbers:
                        return True
        return False

    def touches(self, path: RelPath, files: Iterable[OnDisk] = ()) -> bool:
        """Tell whether it is about a path, or about a directory that this lies in, or about the
        very file under another of its names; ``files``: all that this was known by.
        """
        if any(self.files.has(file) for file in files):
            return True
        is_in = path in self.paths
        while path and not is_in:
            path = split(path)[0]
            is_in = bool(path) and path in self.paths and path not in self.metadata_alone
        return is_in


class EarlierTimes:
    """The times that directories had before earlier commits that are undone.  A commit that was
    made in between has noted the times that those commits gave.
    """

    def __init__(
        self, undone: Iterable[Plan] = (), all_since: Callable[[], Iterable[tuple[Plan, bool]]] = lambda: ()
    ) -> None:
        """``undone``: the plans of those commits.  ``all_since`` reads the plans of all commits
        from the first of those on, oldest first, each with whether it is undone.
        """
        self._by_undone: dict[RelPath, list[int]] = {}
        for plan in undone:
            for path, given_ns, _ in _times_given(plan):
                self._by_undone.setdefault(path, []).append(given_ns)
        self._all_since = all_since

    @cached_property
    def _changes(self) -> dict[RelPath, list[tuple[int, int, bool]]]:
        """By directory, oldest first: the time that a commit gave it, the one before, and whether
        that commit is undone.  What a commit moved is known by both places.
        """
        changes: dict[RelPath, list[tuple[int, int, bool]]] = {}
        for plan, is_undone in self._all_since():
            moves = Moves(plan)
            for path, given_ns, before_ns in _times_given(plan):
                old = moves.before(path)
                for place in (path,) if old in (None, path) else (path, old):
                    assert place is not None
                    changes.setdefault(place, []).append((given_ns, before_ns, is_undone))
        return changes

    def before(self, path: RelPath, mtime_ns: int) -> int:
        """Return which time a directory had before those commits that gave it ``mtime_ns``."""
        if not any(is_kept_as(given_ns, mtime_ns) for given_ns in self._by_undone.get(path, ())):
            return mtime_ns  # as nearly always: so the plans of many commits need not be read
        for given_ns, before_ns, is_undone in reversed(self._changes.get(path, ())):
            if is_kept_as(given_ns, mtime_ns):
                if not is_undone:
                    break
                mtime_ns = before_ns
        return mtime_ns


def _times_given(plan: Plan) -> Iterator[tuple[RelPath, int, int]]:
    """Yield each directory to which a plan gives a time, with that and the one before."""
    for step in plan.steps:
        if isinstance(step, FinishDirectory) and step.was is not None:
            yield step.path, step.mtime_ns, step.was.mtime_ns


NO_EARLIER_TIMES = EarlierTimes()


def opened_slots(plan: Plan, commit: int) -> frozenset[int]:
    """Return the slots of a commit that keep a directory of which the undo with this ``plan`` took
    something by itself.
    """
    return frozenset(step.slot for step in plan.of(Fetch) if step.commit == commit and step.inside)


def _taken_out(step: Step) -> int | None:
    """Return the inode number of what a step takes out of its place in base."""
    if isinstance(step, Remove | Park):
        return step.inode
    return step.replaced if isinstance(step, Create | Place | Link | Duplicate) else None
