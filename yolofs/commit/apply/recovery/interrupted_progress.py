"""How far an interrupted commit came, for people.  Nothing is opened for writing, nothing changed.

The log says it of nearly all steps.  A step may be done before its line is written: then the files
at their places tell.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from yolofs.commit.apply import step_log
from yolofs.commit.apply.ready import Ready
from yolofs.commit.plan.plan import Create, Duplicate, Fetch, Link, MakeDirectory, Park, Place, Plan, Remove, Step
from yolofs.store.base import Base


class HowFar(NamedTuple):
    """How far a commit came."""

    done: int
    """How many steps, from the first on."""
    is_exact: bool
    """Whether it is known that the next one is not done."""


def how_far(plan: Plan, base: Base, parking: bytes, ready: Ready | None) -> HowFar:
    """Return how far a commit came; ``ready`` is what was written before its first step.

    Raises:
        OSError: base cannot be read.
    """
    steps = plan.steps
    inodes = {step.number: step.inode for step in steps if isinstance(step, Park | Fetch)}
    done = min(len(step_log.read(parking)), len(steps))
    while done < len(steps):
        is_done = _is_done(steps[done], base, parking, ready, inodes)
        if not is_done:
            return HowFar(done, is_done is not None)
        done += 1
    return HowFar(done, True)


def _is_done(step: Step, base: Base, parking: bytes, ready: Ready | None, inodes: dict[int, int]) -> bool | None:
    """Tell whether a step is done whose line is not in the log; None if that cannot be told."""
    match step:
        case Park() | Fetch():
            return _inode(parking, b"parked", step.number) == step.inode or None  # or it is on another device
        case Remove():
            return _inode(parking, b"replaced", step.number) == step.inode or None
        case Create() | MakeDirectory() | Duplicate():
            made = ready.made.get(step.number) if ready is not None else None
            return None if made is None else _at(base, step) == made.inode
        case Place():
            return None if step.number not in inodes else _at(base, step) == inodes[step.number]
        case Link():
            existing = base.look(step.existing)
            return existing is not None and _at(base, step) == existing.st_ino
        case _:
            return None


def _at(base: Base, step: Create | MakeDirectory | Duplicate | Place | Link) -> int | None:
    st = base.look(step.path)
    return st.st_ino if st is not None else None


def _inode(parking: bytes, folder: bytes, number: int) -> int | None:
    try:
        return os.lstat(os.path.join(parking, folder, b"%d" % number)).st_ino
    except OSError:
        return None
