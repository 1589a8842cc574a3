"""Refuses to change one name of base under two spellings: on a disk that takes names for one which
differ in nothing but case (FAT, exFAT, NTFS, SMB; directories of ext4 with ``+F``).

The view tells such names apart, as the disk does not say what it does.  A plan with both would move
one file over another, or look for a file under a name that has just gone.
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
    """Check that no disk takes two of some names for one.  ``names`` are those of the tree.

    Where no two names differ in case alone, no disk is asked.

    Raises:
        YolofsError: one does.
        OSError: base cannot be read.
    """
    paths = {name.path for name in names}
    paths.update(name.natural for name in names if name.natural is not None)
    if len(set(map(_folded, paths))) < len(paths):
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
        self._folding: dict[RelPath, bool] = {}
        """Whether directories of base take spellings for one."""

    def check(self, paths: Iterable[RelPath]) -> None:
        spellings: defaultdict[tuple[RelPath, bytes], list[RelPath]] = defaultdict(list)
        for path in sorted(paths):  # directories before what is in them
            above, last = split(path)
            spellings[above, _folded(last)].append(path)
        for (above, _), found in spellings.items():
            if len(found) > 1:
                self._check_in(above, found)

    def _check_in(self, above: RelPath, found: Sequence[RelPath]) -> None:
        directory = above
        while not self._is_directory(directory):  # a new one
            directory = split(directory)[0]
        listed = set(self._base.names(directory)) if directory == above else frozenset[bytes]()
        unlisted = [path for path in found if split(path)[1] not in listed]
        if not unlisted or not self._folds(directory):
            return
        one = unlisted[0]
        other = next(path for path in found if path != one)
        first, second = (display(self._base.path(path)) for path in (one, other))
        raise YolofsError(
            f"{first} and {second} are one name on that disk, as it does not tell capital letters from small ones: what"
            " is staged at both cannot be committed together",
            hint="give one of them another name in the view, or commit what else there is: yolofs commit PATH...",
        )

    def _folds(self, directory: RelPath) -> bool:
        """Tell whether a directory that base has takes spellings for one, by one of its names, or
        else as the directory above it does.
        """
        if directory not in self._folding:
            names = self._base.names(directory)
            other = next((name.swapcase() for name in names if name.swapcase() != name), None)
            if other is not None:
                self._folding[directory] = other not in names and self._base.has(join(directory, other))
            else:
                self._folding[directory] = bool(directory) and self._folds(split(directory)[0])
        return self._folding[directory]

    def _is_directory(self, path: RelPath) -> bool:
        st = self._base.look(path)
        return st is not None and stat.S_ISDIR(st.st_mode)
