"""Refuses to change one name of base under two spellings: on a disk that takes names for one which
differ in nothing but case (FAT, exFAT, NTFS, SMB; directories of ext4 with ``+F``).

The view tells such names apart, and shows each file by the one that the disk lists, as rules know
it by that.  A plan with both would move one file over another, or look for a file under a name that
has just gone.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence

from yolofs.commit.plan.overridden_names import OverriddenName
from yolofs.errors import YolofsError
from yolofs.paths import RelPath, display, join, split
from yolofs.store.base import Base


def check_spellings(names: Sequence[OverriddenName], base: Base) -> None:
    """Check that no disk takes two of some names for one, or one of them for another that base has.
    ``names`` are those of the tree.

    A disk is asked once what it does, and its directories are read only if it takes names for one.

    Raises:
        YolofsError: one does.
        OSError: base cannot be read.
    """
    paths = {name.path for name in names}
    paths.update(name.natural_path for name in names if name.natural_path is not None)
    _SpellingCheck(base).check(paths)


def _folded(name: bytes) -> bytes:
    """Return what all spellings of a name, or of the last name of a path, have in common.

    No disk takes more names for one than this does: some leave out dots and spaces at the end, and
    some spell accents in two ways.
    """
    if not name.isascii():
        name = os.fsencode(unicodedata.normalize("NFD", os.fsdecode(name).casefold()))
    return name.lower().rstrip(b". ")


class _SpellingCheck:
    def __init__(self, base: Base) -> None:
        self._base = base

    def check(self, paths: Iterable[RelPath]) -> None:
        inside: defaultdict[RelPath, list[RelPath]] = defaultdict(list)
        for path in paths:
            inside[split(path)[0]].append(path)
        for above in sorted(inside):
            if self._folds(self._nearest(above)):
                self._check_in(above, sorted(inside[above]))

    def _check_in(self, above: RelPath, found: Sequence[RelPath]) -> None:
        listed = {_folded(name): name for name in self._listed(above)}
        spelled: dict[bytes, RelPath] = {}
        for path in found:
            name = split(path)[1]
            there = listed.get(_folded(name))
            first = join(above, there) if there is not None else spelled.setdefault(_folded(name), path)
            if first != path:
                raise self._refusal(path, first)

    def _listed(self, directory: RelPath) -> list[bytes]:
        """Return the names in a directory of base; none if it is a new one, or may not be read."""
        if not self._is_directory(directory):
            return []
        try:
            return self._base.names(directory)
        except PermissionError:
            return []

    def _refusal(self, path: RelPath, other: RelPath) -> YolofsError:
        first, second = (display(self._base.path(one)) for one in sorted((path, other)))
        return YolofsError(
            f"{first} and {second} are one name on that disk, as it does not tell capital letters from small ones: what"
            " is staged there cannot be committed",
            hint="give one of them another name in the view, or commit what else there is: yolofs commit PATH...",
        )

    def _nearest(self, directory: RelPath) -> RelPath:
        """Return a directory, or that above it that base has, if it is a new one."""
        while not self._is_directory(directory):
            directory = split(directory)[0]
        return directory

    def _folds(self, directory: RelPath) -> bool:
        """Tell whether a directory that base has takes spellings for one, by one of its names, or
        else as the directory above it does.
        """
        st = self._base.look(directory)
        if st is None:  # the host has taken it away
            return False
        tell = self._base.listed.folds
        told = (tell(directory, name, st.st_dev) for name in self._listed(directory))
        folds = next((one for one in told if one is not None), None)
        if folds is None:
            return bool(directory) and self._folds(split(directory)[0])
        return folds

    def _is_directory(self, path: RelPath) -> bool:
        st = self._base.look(path)
        return st is not None and stat.S_ISDIR(st.st_mode)
