"""Tells whether a thing left by a commit is still in base, and where it is once a part of the
commit is undone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from yolofs.commit.plan.moves import Moves
from yolofs.commit.plan.plan import Park, Place, Plan, Remove, Rewrite, SetMetadata, Step
from yolofs.commit.undo.applied import Applied
from yolofs.commit.undo.commits_around import LaterCommit
from yolofs.commit.undo.made_anew import MadeAnew, ObjectByDisk
from yolofs.paths import RelPath, join, split
from yolofs.store.base import Base
from yolofs.system import syscalls
from yolofs.system.disks import OnDisk


class LeftByCommit:
    """Knows what one commit has left in base, by identity."""

    def __init__(self, applied: Applied, base: Base, anew: MadeAnew) -> None:
        """``anew`` is what commits and undos have made anew since."""
        self._applied = applied
        self._base = base
        self._anew = anew

    def _is_it(self, index: int, path: RelPath, st: os.stat_result) -> bool:
        """Tell whether what is at a path is the thing that a step (by its index) has left there."""
        came, now = self._applied.came(index), self._object_at(path, st)
        if (came is None or came.may_be(now.file)) and self._applied.is_older(self._base.path(path), st):
            return True
        return came is not None and self._stands_for(came, now, path, st)

    def _stands_for(self, came: OnDisk, now: ObjectByDisk, path: RelPath, st: os.stat_result) -> bool:
        """Tell whether what base has at a path was made for something that the commit has left."""
        return self._anew.stands_for(self._left(came), now, self._base.path(path), st)

    def _object_at(self, path: RelPath, st: os.stat_result) -> ObjectByDisk:
        return ObjectByDisk(
            self._base.on_disk(st.st_dev, st.st_ino), syscalls.look(self._base.path(path)).lasting_birth_ns or 0
        )

    def _left(self, came: OnDisk) -> ObjectByDisk:
        ready = self._applied.ready
        return ObjectByDisk(came, ready.births.get(came.inode, 0) if len(ready.disks) == 1 else 0)

    def _was_known_by(self, path: RelPath, st: os.stat_result) -> list[OnDisk]:
        return self._anew.was_known_by(self._object_at(path, st))


def without_moves_taken_back(applied: Applied, base: Base, anew: MadeAnew, later: Sequence[LaterCommit]) -> Applied:
    """Return a commit without those moves that undos have taken back: base has the thing in its old
    place again.  ``later`` are the commits that came after it, in force.

    Things in such a directory are named by its present place.
    """
    return _MovesTakenBack(applied, base, anew, later).without()


class _MovesTakenBack(LeftByCommit):
    def __init__(self, applied: Applied, base: Base, anew: MadeAnew, later: Sequence[LaterCommit]) -> None:
        super().__init__(applied, base, anew)
        self._later = later
        self._moved = {
            index: step
            for index, step in enumerate(applied.plan.steps)
            if isinstance(step, Place) and step.number in applied.parks
        }
        self._back: dict[RelPath, RelPath] = {}
        """The base paths of moves taken back, by the path to which the commit had moved the thing.
        """

    def without(self) -> Applied:
        applied = self._applied
        while (found := self._look()) is not None:
            applied = found
        return applied

    def _look(self) -> Applied | None:
        """Return the commit without what was found to be taken back; None if that is no more than
        before.
        """
        moves, count = Moves(self._plan()), len(self._back)
        for index, step in self._moved.items():
            if step.path in self._back or self._is_there(index, self._present_path(step.path)):
                continue
            if not self._may_be_taken_back(step.path):
                continue
            above, name = split(self._applied.parks[step.number].path)
            directory = moves.after(above)
            old = join(directory, name) if directory is not None else None
            if old is not None and self._is_there(index, old):
                self._back[step.path] = old
        if len(self._back) == count:
            return None
        return Applied(self._applied.number, self._applied.directory, self._plan())

    def _may_be_taken_back(self, path: RelPath) -> bool:
        """Tell whether an undo may have taken back the move to a path: an undo of the commit, or of
        one that this had applied again in part.
        """
        if any(one.takes_back for one in self._later):
            return True
        last = next((one for one in reversed(self._later) if one.touches(path)), None)
        return last is not None and last.undoes is not None and last.undoes < self._applied.number

    def _is_there(self, index: int, path: RelPath) -> bool:
        st = self._base.look(path)
        return st is not None and self._is_it(index, path, st)

    def _present_path(self, path: RelPath) -> RelPath:
        """Return the present place of a thing that the commit has put at a path, or in a directory
        there.
        """
        above, rest = path, list[bytes]()
        while above:
            if above in self._back:
                return RelPath(os.path.join(self._back[above], *reversed(rest)))
            above, name = split(above)
            rest.append(name)
        return path

    def _plan(self) -> Plan:
        """Return the plan; each step keeps its index."""
        return msgspec.structs.replace(self._applied.plan, steps=tuple(map(self._step, self._applied.plan.steps)))

    def _step(self, step: Step) -> Step:
        if isinstance(step, Park | Remove) or (isinstance(step, Rewrite | SetMetadata) and is_before_moves(step)):
            return step
        if isinstance(step, Place) and step.path in self._back:
            return self._applied.parks[step.number]  # to be parked, and not placed
        now = self._present_path(step.path)
        return step if now == step.path else msgspec.structs.replace(step, path=now)


def is_before_moves(step: Rewrite | SetMetadata) -> bool:
    """Tell whether a step comes before all that moves, so that its path is one of before."""
    return step.inode is not None and (isinstance(step, SetMetadata) or step.is_first)
