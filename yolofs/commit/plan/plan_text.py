"""A plan as a person reads it: what becomes of each real path, in the order in which it is done.

A step that only moves a thing out of the way has no line of its own: the line of its arrival tells
the move, and the replaced thing.  What is made in a new directory, and new objects of git, can be
counted instead of listed.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from typing import assert_never

from yolofs.commit.plan.cut_links import Ways
from yolofs.commit.plan.plan import (
    Create,
    Duplicate,
    Fetch,
    FinishDirectory,
    Link,
    MakeDirectory,
    MetadataBefore,
    Park,
    Place,
    Plan,
    Remove,
    Rewrite,
    SetMetadata,
    Step,
)
from yolofs.paths import RelPath, StoreIno, display, is_below, split
from yolofs.store.base import Base
from yolofs.store.interfaces import StorePaths
from yolofs.system.disk_usage import size_text

_GIT_OBJECTS = b"/.git/objects/"
_GIT_OBJECT = re.compile(rb"[0-9a-f]{2}(?:/[0-9a-f]{38}(?:[0-9a-f]{24})?)?|pack(?:/pack-[0-9a-f]+\.[a-z]+)?")
"""The names of objects below that, and of their directories; other files there steer git."""


def plan_lines(
    plan: Plan, base: Base, store: StorePaths, *, is_kept: Callable[[RelPath], bool] | None = None
) -> Iterator[str]:
    """Yield the lines of a plan; no step of it may be done yet.

    With ``is_kept``, a path in a new directory or among git's objects has a line of its own only if
    ``is_kept`` is true for it.

    Raises:
        OSError: base or the store cannot be read.
    """
    reader = _StepLines(plan, base, store)
    holders = {} if is_kept is None else _holders(plan, is_kept)
    counts = Counter(holders.values())
    told = set[RelPath]()
    for step in plan.steps:
        holder = holders.get(step.path) if _only_adds(step) else None
        if holder is None:
            inside = counts[step.path] if isinstance(step, MakeDirectory) else 0
            if inside:
                told.add(step.path)
            for line in reader.lines(step):
                yield f"{line} (and {inside} in it)" if inside else line
        elif _is_of_git(holder) and holder not in told:
            told.add(holder)
            yield f"create {counts[holder]} of git's objects and their directories in {reader.shown(holder)}"
    count = sum(isinstance(step, FinishDirectory) and step.ino is None for step in plan.steps)
    if count:
        which = "1 directory" if count == 1 else f"{count} directories"
        yield f"at last set the times of {which}"


def _holders(plan: Plan, is_kept: Callable[[RelPath], bool]) -> dict[RelPath, RelPath]:
    """Return the paths that are only counted, each with the directory whose line counts it: a new
    one, or git's objects.
    """
    found: dict[RelPath, RelPath] = {}
    new = set[RelPath]()
    for step in plan.steps:
        path = step.path
        if not _only_adds(step):
            continue
        holder = _objects_of(path)
        if holder is None:
            parent = split(path)[0]
            if parent in new:
                holder = parent
            elif found.get(parent) != _objects_of(parent):  # beside an object only objects are counted
                holder = found.get(parent)
        if isinstance(step, Link) and not (holder and is_below(step.existing, holder)):
            holder = None  # the other name is worth a line
        if holder is not None and not is_kept(path):
            found[path] = holder
        elif isinstance(step, MakeDirectory):
            new.add(path)
    return found


def _objects_of(path: RelPath) -> RelPath | None:
    """Return the directory of git's objects that an object lies in, or a directory of such; None
    for anything else.
    """
    top, objects, name = (b"/" + path).partition(_GIT_OBJECTS)
    return RelPath((top + objects)[1:-1]) if objects and _GIT_OBJECT.fullmatch(name) else None


def _only_adds(step: Step) -> bool:
    return isinstance(step, MakeDirectory) or (isinstance(step, Create | Link) and step.replaced is None)


def _is_of_git(holder: RelPath) -> bool:
    return (b"/" + holder + b"/").endswith(_GIT_OBJECTS)


class _StepLines:
    def __init__(self, plan: Plan, base: Base, store: StorePaths) -> None:
        self._root = plan.root
        self._base = base
        self._ways = Ways(base)
        self._store = store
        self._comes_from: dict[int, Park | Fetch] = {
            step.number: step for step in plan.steps if isinstance(step, Park | Fetch)
        }
        self._placed = {step.number for step in plan.steps if isinstance(step, Place)}

    def lines(self, step: Step) -> Iterator[str]:
        path = self.shown(step.path)
        match step:
            case Park() | Fetch():
                if step.number not in self._placed:
                    yield f"take {path} out of the way"
            case Remove():
                yield f"delete {self._kind(step.path)}{path}"
            case MakeDirectory():
                yield f"create directory {path}"
            case Create():
                what = self._staged(step.ino)
                yield f"create {path}{what}" if step.replaced is None else f"replace {path} by what is staged{what}"
            case Place():
                yield f"{self._arrival(step)}{_replacing(step.replaced)}"
            case Link():
                existing, replacing = self.shown(step.existing), _replacing(step.replaced)
                if self._ways.are_cut(step.existing, step.path):
                    yield f"copy {existing} to {path}{replacing}"
                else:
                    yield f"make {path} a hard link of {existing}{replacing}"
            case Duplicate():
                yield f"copy {self.shown(step.existing)} to {path}{_replacing(step.replaced)}"
            case Rewrite():
                yield f"rewrite {path} in place{self._why_in_place(step)}{self._staged(step.ino)}"
            case SetMetadata():
                yield self._metadata(path, step.ino, step.was)
            case FinishDirectory():
                if step.ino is not None and step.was is not None:
                    yield self._metadata(f"directory {path}", step.ino, step.was)
            case _:
                assert_never(step)

    def _why_in_place(self, step: Rewrite) -> str:
        if self._store.shown_owner(step.ino) is None:
            return ", as it has other names"
        return ", so that it keeps its owner and group"

    def _arrival(self, step: Place) -> str:
        """Return words for a step that puts a thing at its path, and for its source."""
        path = self.shown(step.path)
        match self._comes_from.get(step.number):
            case Park() as parked:
                return f"move {self._kind(parked.path)}{self.shown(parked.path)} to {path}"
            case Fetch() as fetched:
                return f"bring {path} back from what commit {fetched.commit} keeps"
            case None:
                return f"put {path} in its place"

    def _kind(self, path: RelPath) -> str:
        """Return what is to be said before the path of something in base."""
        st = self._base.look(path)
        return "directory " if st is not None and stat.S_ISDIR(st.st_mode) else ""

    def _staged(self, ino: StoreIno) -> str:
        """Return what follows the path of a staged file: its size, or what else it is."""
        st = self._store.lstat(ino)
        if stat.S_ISREG(st.st_mode):
            return f" ({size_text(st.st_size)})"
        return " (a symbolic link)" if stat.S_ISLNK(st.st_mode) else ""

    def _metadata(self, path: str, ino: StoreIno, was: MetadataBefore) -> str:
        st = self._store.lstat(ino)
        old, new = stat.S_IMODE(was.mode), stat.S_IMODE(st.st_mode)
        changes = [f"mode {old:o} -> {new:o}"] if old != new else []
        if (was.uid, was.gid) != (st.st_uid, st.st_gid):
            changes.append(f"owner {was.uid}:{was.gid} -> {st.st_uid}:{st.st_gid}")
        return f"change {path}: {', '.join(changes) or 'times or attributes'}"

    def shown(self, path: RelPath) -> str:
        """Return the path of something in base, absolute, as it is told."""
        return display(os.path.join(self._root, path) if path else self._root)


def _replacing(replaced: int | None) -> str:
    return "" if replaced is None else ", which replaces what is there"
