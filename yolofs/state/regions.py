"""Whose a path is: the project's, scratch, or somebody else's on this machine.

The nearest directory decides: a project in ``/tmp`` is no scratch, and a scratch directory in the
project is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from enum import Enum

import msgspec

from yolofs.paths import ROOT, RelPath, is_below
from yolofs.store.base import Base


class Region(Enum):
    """A part of base; the value is the word that JSON has for it."""

    PROJECT = "project"
    OUTSIDE = "outside"
    SCRATCH = "scratch"


class Regions(msgspec.Struct, frozen=True):
    """Which part of base is which."""

    project: RelPath
    """The project; base itself if the project does not lie in it."""
    scratch: tuple[RelPath, ...] = ()
    """The directories of :attr:`yolofs.config.settings.Settings.scratch` that lie in base."""

    @classmethod
    def find(cls, base: Base, project: bytes, scratch: Iterable[str]) -> Regions:
        """Return the regions of a session; ``scratch`` as the configuration has it."""
        within = (base.relative(_absolute(project, path)) for path in scratch)
        home = base.relative(project)
        return cls(home if home is not None else ROOT, tuple(path for path in within if path is not None))

    def of(self, path: bytes) -> Region:
        """Return the region that a path relative to base lies in."""
        inside = len(self.project) if is_below(path, self.project) else -1
        for top in self.scratch:  # asked of each change, several times: lengths come first
            if len(top) > inside and is_below(path, top):
                return Region.SCRATCH
        return Region.PROJECT if inside >= 0 else Region.OUTSIDE

    def of_all(self, paths: Sequence[bytes]) -> Region:
        """Return the one region that all of some paths lie in; where they differ, it counts as
        outside.
        """
        region = self.of(paths[0])
        return region if all(self.of(path) is region for path in paths[1:]) else Region.OUTSIDE


def _absolute(project: bytes, path: str) -> bytes:
    return os.path.realpath(os.path.join(project, os.path.expanduser(os.fsencode(path))))
