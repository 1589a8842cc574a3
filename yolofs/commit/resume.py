"""Finishing a commit that a crash interrupted: the steps that are left, told from those done by what is where.

The log says which steps are done for certain.  After a killed process only the next one is in doubt; after a power
failure several may be, as the log is not waited for.  So each step that is left is first looked at: every one of them
moves something between places that only this commit uses, or may simply be done again.
"""

from __future__ import annotations

import os
from typing import TypeAlias

from yolofs.commit.plan import (
    Create,
    Duplicate,
    FinishDirectory,
    Link,
    MakeDirectory,
    Park,
    Place,
    Remove,
    Rewrite,
    SetMetadata,
    Step,
)
from yolofs.commit.steps import Folder, Spot, Steps
from yolofs.commit.trees import remove_tree
from yolofs.paths import split

_Arrival: TypeAlias = Create | Place | Link | Duplicate


class ResumedSteps(Steps):
    """Does what is left of the steps."""

    def recall(self, step: Step) -> None:
        """Take note of a step that is done: of what it left beside base, on another device."""
        if isinstance(step, Park | Remove):
            aside = self._shelter(step.path, step.number)
            if self._inode(aside) is not None:
                if isinstance(step, Park):
                    self._set_aside[step.number] = aside
                else:
                    self._leftovers.append(aside)

    def do(self, step: Step) -> None:
        """Do one step, or the rest of it, unless it is done."""
        if not self._is_done(step):
            super().do(step)

    def _is_done(self, step: Step) -> bool:
        match step:
            case Park():
                self.recall(step)
                return step.number in self._set_aside or self._inode(self._in(self._parked, step.number)) is not None
            case Remove():
                return self._is_removed(step)
            case MakeDirectory():
                return self._inode(Spot(*split(step.path))) is not None
            case Create() | Place() | Link() | Duplicate():
                return self._has_arrived(step)
            case Rewrite(is_first=True) if self._inode(Spot(*split(step.path))) != step.inode:
                return True
            case Rewrite():
                self._clear(self._in(self._new, step.number))  # a backup that is not whole
                return False
            case SetMetadata():
                return step.inode is not None and self._inode(Spot(*split(step.path))) != step.inode
            case FinishDirectory():
                return False

    def _is_removed(self, step: Remove) -> bool:
        kept = self._in(self._replaced, step.number)
        aside = self._shelter(step.path, step.number)
        if self._inode(aside) is None:
            return self._inode(kept) is not None
        self._clear(kept)  # a copy to this device, perhaps not whole
        self._copy_tree(aside, kept, step.path)
        return True

    def _has_arrived(self, step: _Arrival) -> bool:
        target, kept = Spot(*split(step.path)), self._in(self._replaced, step.number)
        there = self._inode(target)
        sources = self._sources(step)
        if step.replaced is not None:
            for spot in sources:
                if self._inode(spot) == step.replaced and there != step.replaced:  # the two have changed places
                    self._clear(kept)
                    self._keep(spot, step)
                    return True
            if self._inode(kept) is not None:
                if there is not None and there != step.replaced:
                    return True
                self._clear(kept)  # another name or a copy of what is still in its place
        elif there is not None and all(self._inode(spot) is None for spot in sources):
            return True
        for spot in sources:
            if not isinstance(step, Place) or spot.directory is not self._parked:
                self._clear(spot)  # half made
        return False

    def _sources(self, step: _Arrival) -> list[Spot]:
        """Return the places from which a step brings something in."""
        beside = self._beside(step.path, step.number)
        if isinstance(step, Place):
            return [self._set_aside.get(step.number, self._in(self._parked, step.number)), beside]
        return [self._in(self._new, step.number), beside]

    # ---- places

    @staticmethod
    def _in(folder: Folder, number: int) -> Spot:
        return Spot(folder, b"%d" % number)

    def _inode(self, spot: Spot) -> int | None:
        """Return the inode number of what is at a spot, None if nothing is."""
        try:
            return os.stat(spot.name, dir_fd=self._fd(spot), follow_symlinks=False).st_ino
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _clear(self, spot: Spot) -> None:
        if self._inode(spot) is not None:
            self._unlocked(spot)
            remove_tree(self._at(spot))
