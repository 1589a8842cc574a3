"""Which changes a commit is to take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

import msgspec

from yolofs.changes.changes import Change
from yolofs.paths import ROOT, RelPath, first_below, is_below, is_below_any
from yolofs.state.regions import Region, Regions
from yolofs.text.path_patterns import Patterns


class Selection(msgspec.Struct, frozen=True, dict=True):
    """What the user asked for: whole regions, or paths with all that is below them."""

    regions: Regions
    wanted: frozenset[Region] = frozenset((Region.PROJECT,))
    paths: tuple[RelPath, ...] = ()
    """If there are any, they alone count."""
    excluded: Patterns[str] | None = None
    """Patterns of what stays, relative to base, whatever else is selected."""
    takes_marked: bool = False
    """Whether what has to be named is taken without that."""
    unnamed: Mapping[RelPath, str] = {}
    """Paths that are taken only where each is named, and are not named; each with the reason."""
    left: frozenset[RelPath] = frozenset()
    """Paths that stay all the same."""

    @cached_property
    def _tops(self) -> frozenset[RelPath]:
        return frozenset(self.paths)

    @cached_property
    def _sorted(self) -> list[RelPath]:
        return sorted(self.paths)

    @cached_property
    def _sorted_left(self) -> list[RelPath]:
        return sorted(self.left)

    def has(self, path: bytes) -> bool:
        """Tell whether a path relative to base is selected."""
        if path in self.left or self.excludes(path):
            return False
        if self.paths:
            return is_below_any(RelPath(path), self._tops)
        return self.regions.of(path) in self.wanted

    def excludes(self, path: bytes) -> bool:
        """Tell whether a path relative to base stays, whatever else is selected."""
        return self.excluded is not None and self.excluded.find(path) is not None

    def has_all(self, paths: Iterable[bytes]) -> bool:
        """Tell whether all of some paths are selected."""
        return all(map(self.has, paths))

    def has_some_in(self, directory: bytes) -> bool:
        """Tell whether paths were asked for that lie in a directory."""
        return first_below(self._sorted, directory) is not None

    def left_out_below(self, directory: bytes) -> RelPath | None:
        """Return a place below a selected directory where the selection ends, None if all below it
        is selected.
        """
        inside = first_below(self._sorted_left, directory)
        if inside is not None or self.paths:
            return inside
        tops = (self.regions.project, *self.regions.scratch)
        return next((top for top in tops if top != directory and is_below(top, directory) and not self.has(top)), None)

    def with_other_names(self, changes: Iterable[Change]) -> Selection:
        """Return a selection in which either name of what was renamed selects the other one,
        too.
        """
        if not self.paths:
            return self
        known = set(self.paths)
        others = [path for change in changes if not known.isdisjoint(change.paths) for path in change.paths]
        more = tuple(path for path in dict.fromkeys(others) if path not in known)
        return msgspec.structs.replace(self, paths=(*self.paths, *more)) if more else self

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out."""
        if self.left or self.excluded is not None:
            return False
        if self.paths:
            return ROOT in self.paths
        missing = frozenset(Region) - self.wanted
        if self.regions.project == ROOT:
            missing -= {Region.OUTSIDE}
        if not self.regions.scratch:
            missing -= {Region.SCRATCH}
        return not missing
