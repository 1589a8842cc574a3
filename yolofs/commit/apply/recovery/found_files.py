"""Files that the host put in the way of an interrupted commit, or changed meanwhile.  They lie in
the folder ``found`` of the commit's directory, under the number of the step that they were in the
way of.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO

from yolofs.commit.plan.plan import Place, Plan, Step
from yolofs.paths import RelPath
from yolofs.system.plain_files import is_there

FOUND = b"found"
_PLACED = b"-placed"
"""The end of the names of what was in the way of a :class:`Place`, which has the same number as its
:class:`~yolofs.commit.plan.plan.Park`.
"""
_SECTOR_BYTES = 512
_SECTORS = 1024
"""How many are read at a time."""


def places_of(directory: bytes, step: Step) -> list[bytes]:
    """Return the paths, in the folder of the commit in ``directory``, of what was at a step's path,
    and a free one.
    """
    paths = [os.path.join(directory, FOUND, _name_of(step))]
    while is_there(paths[-1]):
        paths.append(paths[-1] + b"+")
    return paths


def place_for(directory: bytes, step: Step) -> bytes:
    """Return a path that is free, in the folder of the commit in ``directory``, for what was at a
    step's path.
    """
    return places_of(directory, step)[-1]


def paths_found(directory: bytes, plan: Plan) -> list[RelPath]:
    """Return the paths of base at which the files in the folder were, in the order of the plan."""
    try:
        names = {os.fsencode(name).rstrip(b"+") for name in os.listdir(os.path.join(directory, FOUND))}
    except FileNotFoundError:
        return []
    steps = (step for step in plan.steps if hasattr(step, "number") and _name_of(step) in names)
    return list(dict.fromkeys(step.path for step in steps))


def is_mixture(content: IO[bytes], contents: Sequence[IO[bytes]]) -> bool:
    """Tell whether the content of a file may come from writing over it half way: then nothing is
    lost with it.

    It may if each sector is what one of the ``contents`` has there, or zeros, which a power failure
    may leave.
    """
    size = _SECTOR_BYTES * _SECTORS
    while chunk := content.read(size):
        known = [one.read(size) for one in contents]
        if chunk in known:
            continue
        for start in range(0, len(chunk), _SECTOR_BYTES):
            sector = chunk[start : start + _SECTOR_BYTES]
            if any(sector) and all(sector != one[start : start + len(sector)] for one in known):
                return False
    return True


def _name_of(step: Step) -> bytes:
    return b"%d%b" % (getattr(step, "number", 0), _PLACED if isinstance(step, Place) else b"")
