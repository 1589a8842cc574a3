"""Which changes a commit is to take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from yolofs.paths import ROOT, RelPath, is_below
from yolofs.regions import Region, Regions


class Selection(msgspec.Struct, frozen=True):
    """What the user asked for: whole regions, or paths with all that is below them."""

    regions: Regions
    wanted: frozenset[Region] = frozenset((Region.PROJECT,))
    paths: tuple[RelPath, ...] = ()
    """If there are any, they alone count."""
    unnamed: Mapping[RelPath, str] = {}
    """Why paths are taken only by who names each of them, which has not been done."""

    def has(self, path: bytes) -> bool:
        """Tell whether a path relative to base is selected."""
        if self.paths:
            return any(is_below(path, top) for top in self.paths)
        return self.regions.of(path) in self.wanted

    def has_all(self, paths: Iterable[bytes]) -> bool:
        """Tell whether all of some paths are selected."""
        return all(map(self.has, paths))

    def has_some_in(self, directory: bytes) -> bool:
        """Tell whether paths were asked for that lie in a directory."""
        return any(top != directory and is_below(top, directory) for top in self.paths)

    def left_out_below(self, directory: bytes) -> RelPath | None:
        """Return a place below a selected directory where the selection ends, None if all below it is selected."""
        if self.paths:
            return None
        tops = (self.regions.project, *self.regions.scratch)
        return next((top for top in tops if top != directory and is_below(top, directory) and not self.has(top)), None)

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out."""
        if self.paths:
            return ROOT in self.paths
        missing = frozenset(Region) - self.wanted
        if self.regions.project == ROOT:
            missing -= {Region.OUTSIDE}
        if not self.regions.scratch:
            missing -= {Region.SCRATCH}
        return not missing
