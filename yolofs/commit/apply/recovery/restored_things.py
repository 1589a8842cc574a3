"""Finds what is as it was again once a commit is taken back, so that it is not taken for the host's
doing.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping

from yolofs.commit.apply.ready import DirectoryBefore, Looks, looks_of
from yolofs.commit.apply.step_log import ObjectIdentity
from yolofs.commit.plan.moves import Moves
from yolofs.commit.plan.plan import (
    Fetch,
    FinishDirectory,
    Link,
    MakeDirectory,
    Park,
    Plan,
    Remove,
    Rewrite,
    SetMetadata,
)
from yolofs.paths import RelPath, join, split
from yolofs.system import syscalls
from yolofs.system.open_trees import OpenTree


def restored_things(
    plan: Plan,
    moves: Moves,
    directories: Iterable[DirectoryBefore],
    looks: Mapping[int, Collection[Looks]],
    untimed: Collection[tuple[int, Looks]],
) -> tuple[set[ObjectIdentity], set[ObjectIdentity]]:
    """Return the identities of the things that are again as before the commit, and of those among
    them without their old times.

    What the host has changed meanwhile, or put there, is left out: its ctime is its own.

    ``directories``: those that lost or gained names.  ``looks``: how things looked before, by inode
    number.  ``untimed``: the inode numbers and looks of what could not get its times back.
    """
    found, without_times = _moved_name_by_name(plan, looks), set[ObjectIdentity]()
    for path in dict.fromkeys([*(one.path for one in directories), *_touched(plan, moves)]):
        with contextlib.suppress(OSError):
            st = os.lstat(os.path.join(plan.root, path))
            if (st.st_ino, looks_of(st)) in untimed:
                without_times.add(ObjectIdentity.of(st))
            elif looks_of(st) in looks.get(st.st_ino, ()):
                found.add(ObjectIdentity.of(st))
    return found | without_times, without_times


def _touched(plan: Plan, moves: Moves) -> Iterator[RelPath]:
    """Yield the paths, as they were before the commit, of what its steps move or change."""
    for step in plan.steps:
        match step:
            case Park() | Remove():
                yield step.path
            case FinishDirectory() | MakeDirectory() | Fetch():
                pass
            case Rewrite(is_first=True) | SetMetadata(inode=int()):
                yield step.path
            case _:
                above, name = split(step.path)
                old = moves.before(above)
                if old is not None:
                    yield join(old, name)
                for path in (step.path, step.existing) if isinstance(step, Link) else (step.path,):
                    if (moved := moves.before(path)) is not None:
                        yield moved


def _moved_name_by_name(plan: Plan, looks: Mapping[int, Collection[Looks]]) -> set[ObjectIdentity]:
    """Return the identities of directories that were moved name by name and back, so that they were
    made anew, and of all in them: each name has moved.
    """
    found: set[ObjectIdentity] = set()
    for step in plan.steps:
        if not isinstance(step, Park | Remove):
            continue
        path = os.path.join(plan.root, step.path)
        with contextlib.suppress(OSError):
            st = os.lstat(path)
            is_anew = stat.S_ISDIR(st.st_mode) and not syscalls.look(path).keeps_birth
            if is_anew and looks_of(st) in looks.get(step.inode, ()):
                found.add(ObjectIdentity.of(st))
                with OpenTree(path) as tree:
                    inside = [of for _, of in tree.below(passes_over=True) if of.st_ctime_ns <= st.st_ctime_ns]
                found.update(map(ObjectIdentity.of, inside))
    return found
