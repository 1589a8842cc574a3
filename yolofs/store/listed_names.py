"""By which names base lists its files, where a disk finds them by others, too.

FAT, exFAT, NTFS and SMB find a file by its name in any case.  Rules know a file by the name that is
listed, so a view must show it by no other.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from yolofs.paths import RelPath, join

_MOST_LISTINGS = 8


class ListedNames:
    """Tells names that are listed from other spellings.  Nothing is read of other disks than these,
    but one look at each.
    """

    def __init__(self, names: Callable[[RelPath], list[bytes]], place: Callable[[RelPath], bytes]) -> None:
        """``names`` lists a base directory; ``place`` gives the absolute path of a base path."""
        self._names = names
        self._place = place
        self._folding: dict[int, bool] = {}
        """By device, as far as is known: whether it finds a file by another spelling."""
        self._listings: dict[RelPath, frozenset[bytes]] = {}
        """What was read of directories on such devices, by the names that were asked for."""

    def forget(self) -> None:
        """Begin anew: a device number may be another disk's now."""
        self._folding.clear()
        self._listings.clear()

    def has(self, directory: RelPath, name: bytes, device: int) -> bool:
        """Tell whether what was found under a name in a base directory has that very name.

        ``device`` is that of what was found.  On a disk that finds it by any spelling the directory
        is read if the name is not known to be in it.
        """
        folds = self._folding.get(device)
        if folds is None:
            folds = self.folds(directory, name, device)
        if not folds or name in self._listings.get(directory, ()):
            return True
        return name in self._list(directory)

    def folds(self, directory: RelPath, name: bytes, device: int) -> bool | None:
        """Tell whether a device finds a file by another spelling of its name; None if the name does
        not tell, as it has no letters or a disk is mounted there.
        """
        known = self._folding.get(device)
        other = name.swapcase()
        if known is not None or other == name:
            return known
        try:
            if os.lstat(self._place(directory)).st_dev != device:
                return None
            os.lstat(self._place(join(directory, other)))
        except OSError as error:
            if error.errno == errno.ENOENT and os.path.lexists(self._place(join(directory, name))):
                self._folding[device] = False
            return self._folding.get(device)
        names = self._list(directory)
        if names:  # else it may not be read
            self._folding[device] = not names.issuperset((name, other))
        return self._folding.get(device)

    def _list(self, directory: RelPath) -> frozenset[bytes]:
        """Return the names in a directory, read anew; none if it is gone or may not be read."""
        try:
            names = frozenset(self._names(directory))
        except OSError:
            names = frozenset()
        if len(self._listings) >= _MOST_LISTINGS:
            self._listings.clear()
        self._listings[directory] = names
        return names
