"""Which changes a commit is to take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from yolofs.changes.changes import Change
from yolofs.paths import ROOT, RelPath, first_below, is_below, is_below_any, split
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
    left_staged: frozenset[RelPath] = frozenset()
    """Paths that stay all the same."""

    @cached_property
    def _tops(self) -> frozenset[RelPath]:
        return frozenset(self.paths)

    @cached_property
    def _sorted(self) -> list[RelPath]:
        return sorted(self.paths)

    @cached_property
    def _sorted_left_staged(self) -> list[RelPath]:
        return sorted(self.left_staged)

    def has(self, path: bytes) -> bool:
        """Tell whether a path relative to base is selected."""
        if path in self.left_staged or self.excludes(path):
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
        inside = first_below(self._sorted_left_staged, directory)
        if inside is not None or self.paths:
            return inside
        tops = (self.regions.project, *self.regions.scratch)
        return next((top for top in tops if top != directory and is_below(top, directory) and not self.has(top)), None)

    def with_other_names(self, changes: Iterable[Change]) -> Selection:
        """Return a selection in which either name of what was renamed selects the other one, too.

        So does either path of what lies in a renamed directory, unless something else has come to
        the old one.
        """
        if not self.paths:
            return self
        changes = list(changes)
        known = set(self.paths)
        others = [path for change in changes if not known.isdisjoint(change.paths) for path in change.paths]
        others += self._in_renamed_directories(changes)
        more = tuple(path for path in dict.fromkeys(others) if path not in known)
        return msgspec.structs.replace(self, paths=(*self.paths, *more)) if more else self

    def _in_renamed_directories(self, changes: Sequence[Change]) -> Iterator[RelPath]:
        """Yield the other paths of what the paths mean in renamed directories."""
        renamed = [(one.old_path, one.path) for one in changes if one.renames_directory and one.old_path is not None]
        if not renamed:
            return
        to_old, to_new = {new: old for old, new in renamed}, dict(renamed)
        come = {change.path for change in changes if change.new is not None}
        in_order = sorted(come)
        for path in self.paths:
            for other_ends in (to_old, to_new):
                above = split(path)[0]
                while above and above not in other_ends:
                    above = split(above)[0]
                if above:
                    other = RelPath(other_ends[above] + path[len(above) :])
                    old = other if other_ends is to_old else path
                    if old not in come and first_below(in_order, old) is None:
                        yield other

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out."""
        if self.left_staged or self.excluded is not None:
            return False
        if self.paths:
            return ROOT in self.paths
        missing = frozenset(Region) - self.wanted
        if self.regions.project == ROOT:
            missing -= {Region.OUTSIDE}
        if not self.regions.scratch:
            missing -= {Region.SCRATCH}
        return not missing
