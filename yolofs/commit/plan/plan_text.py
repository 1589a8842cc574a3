"""A plan as a person reads it: what becomes of each real path, in the order in which it is done.

What only the machinery needs (that something is out of the way meanwhile) is folded into that: what
moves is told where it arrives, with what it replaces.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import assert_never

from yolofs.commit.plan.plan import (
    Attributes,
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
from yolofs.paths import RelPath, StoreIno, display
from yolofs.store.as_read import StorePaths
from yolofs.store.base import Base
from yolofs.system.disk_usage import size_text


def plan_lines(plan: Plan, base: Base, store: StorePaths) -> Iterator[str]:
    """Yield the lines, for a plan of which nothing is done yet.

    Raises:
        OSError: base or the store cannot be read.
    """
    reader = _Reader(plan, base, store)
    for step in plan.steps:
        yield from reader.lines(step)
    count = sum(isinstance(step, FinishDirectory) and step.ino is None for step in plan.steps)
    if count:
        which = "1 directory" if count == 1 else f"{count} directories"
        yield f"at last give {which} the times that the view shows"


class _Reader:
    def __init__(self, plan: Plan, base: Base, store: StorePaths) -> None:
        self._root = plan.root
        self._base = base
        self._store = store
        self._comes_from: dict[int, Park | Fetch] = {
            step.number: step for step in plan.steps if isinstance(step, Park | Fetch)
        }
        self._placed = {step.number for step in plan.steps if isinstance(step, Place)}

    def lines(self, step: Step) -> Iterator[str]:
        path = self._shown(step.path)
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
                existing, replacing = self._shown(step.existing), _replacing(step.replaced)
                if self._base.mount_above(step.path) == self._base.mount_above(step.existing):
                    yield f"make {path} a hard link of {existing}{replacing}"
                else:
                    yield f"copy {existing} to {path}{replacing}"
            case Duplicate():
                yield f"copy {self._shown(step.existing)} to {path}{_replacing(step.replaced)}"
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
        """Return where something comes from, and that it comes to be at the path of a step."""
        path = self._shown(step.path)
        match self._comes_from.get(step.number):
            case Park() as parked:
                return f"move {self._kind(parked.path)}{self._shown(parked.path)} to {path}"
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

    def _metadata(self, path: str, ino: StoreIno, was: Attributes) -> str:
        st = self._store.lstat(ino)
        old, new = stat.S_IMODE(was.mode), stat.S_IMODE(st.st_mode)
        changes = [f"mode {old:o} -> {new:o}"] if old != new else []
        if (was.uid, was.gid) != (st.st_uid, st.st_gid):
            changes.append(f"owner {was.uid}:{was.gid} -> {st.st_uid}:{st.st_gid}")
        return f"change {path}: {', '.join(changes) or 'times or attributes'}"

    def _shown(self, path: RelPath) -> str:
        return display(os.path.join(self._root, path) if path else self._root)


def _replacing(replaced: int | None) -> str:
    return "" if replaced is None else ", which replaces what is there"
