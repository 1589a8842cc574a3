"""Finding the other names that base has for a file with hard links.

No filesystem tells them: directories have to be read until all are found.  That starts where the
file is known to be and goes outwards, and ends after a bounded number of names, so that it costs
little where base is the whole system.  Commits do without it: they write such a file in place,
which reaches all of its names.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable, Collection, Iterable

from yolofs.paths import RelPath, join, split
from yolofs.state.tree import Staged
from yolofs.store.base import Base
from yolofs.store.base_opening import open_noatime
from yolofs.system.disks import FilesOnDisks, OnDisk
from yolofs.system.syscalls import PATH_MAX

MOST_SEARCHED = 100_000
"""How many names are looked at; a tenth of a second or so."""
_PASSED_OVER = frozenset(
    (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENOTCONN, errno.ECONNABORTED)
)
"""How a directory fails to open that holds no name which could be found."""


def find_names(base: Base, files: Iterable[Staged], *, limit: int = MOST_SEARCHED) -> list[RelPath]:
    """Return all base paths that were found of the base files that these, with hard links, were
    copied up from.

    A directory that this user may not read is passed over, and so is what is mounted below the one
    where the search starts.

    Raises:
        OSError: the disk does not answer, or a file may not be looked at.
    """
    search = _Search(base, limit)
    for staged in files:
        search.want(staged)
    return search.run()


def find_names_at(base: Base, home: RelPath, *, limit: int = MOST_SEARCHED) -> tuple[list[RelPath], bool]:
    """Return the base paths that were found of the file at ``home``, itself among them, and whether
    these are all.
    """
    search = _Search(base, limit)
    search.want_at(home)
    return search.run(), search.is_complete


def find_all_names_at(
    base: Base, homes: Iterable[RelPath], *, limit: int = MOST_SEARCHED
) -> dict[tuple[int, int], list[RelPath]]:
    """Return all base paths of the files at some places, by device and inode number; of none that
    lacks a name.
    """
    search = _Search(base, limit)
    for home in homes:
        search.want_at(home)
    found: dict[tuple[int, int], list[RelPath]] = {}
    for path in search.run():
        st = base.lstat(path)
        found.setdefault((st.st_dev, st.st_ino), []).append(path)
    return {file: paths for file, paths in found.items() if not search.misses(file)}


def find_name_near(
    base: Base,
    files: Collection[OnDisk],
    path: RelPath,
    *,
    limit: int = MOST_SEARCHED,
    is_good: Callable[[RelPath], bool] = lambda _: True,
) -> RelPath | None:
    """Return a base path of one of some files, of which one had a name at ``path``; None if none
    was found.

    Only a path that ``is_good`` counts.
    """
    search = _Search(base, limit, is_good)
    search.want_one(files, near=path)
    return next(iter(search.run()), None)


class _Search:
    def __init__(self, base: Base, limit: int, is_good: Callable[[RelPath], bool] = lambda _: True) -> None:
        self._base = base
        self._is_good = is_good
        self._left = limit
        self._missing: dict[tuple[int, int], int] = {}
        """How many names are still to be found, by device and inode number."""
        self._any_of: FilesOnDisks | None = None
        """Of these one name of one file is wanted, and no more."""
        self._numbers: set[int] = set()
        self._tops: dict[RelPath, None] = {}
        self._devices: set[int] = set()
        """Of the directories in which names may be; empty if it is not known."""
        self._read: set[RelPath] = set()
        self._found: list[RelPath] = []

    def want(self, staged: Staged) -> None:
        """Look for the base file of a staged one, if that is still at a place where it was copied
        up.
        """
        if staged.home is None or staged.base is None:
            return
        st = self._base.look(staged.home)
        if st is not None and self._base.number(st) == staged.base.ino:
            self._want(staged.home, st)

    def want_at(self, home: RelPath) -> None:
        """Look for the names of whatever file is at a place."""
        st = self._base.look(home)
        if st is not None:
            self._want(home, st)
        else:
            self._left = 0

    def want_one(self, files: Collection[OnDisk], *, near: RelPath) -> None:
        """Look for one name of any of some files, from the directory of ``near`` on."""
        self._any_of = FilesOnDisks(files)
        self._numbers.update(file.inode for file in files)
        self._tops[split(near)[0]] = None

    @property
    def is_complete(self) -> bool:
        """Whether all names were found; not if nothing was there to begin with."""
        return bool(self._found) and not self._missing

    def misses(self, file: tuple[int, int]) -> bool:
        """Whether a name of a file (device and inode number) was not found."""
        return file in self._missing

    def _want(self, home: RelPath, st: os.stat_result) -> None:
        self._missing[st.st_dev, st.st_ino] = st.st_nlink
        self._numbers.add(st.st_ino)
        above = split(home)[0]
        self._tops[above] = None
        try:
            self._devices.add(os.stat(self._base.path(above)).st_dev)  # OverlayFS: not that of the file
        except OSError as error:  # gone meanwhile, and the file with it
            if error.errno not in _PASSED_OVER:
                raise

    def run(self) -> list[RelPath]:
        """Read directories from the wanted files outwards."""
        tops = list(self._tops)
        while tops and self._numbers and self._left > 0:
            for top in tops:
                self._read_below(top)
            above = {split(top)[0] for top in tops if top and top not in self._base.mounts}
            tops = [top for top in above if top not in self._read]
        return self._found

    def _read_below(self, top: RelPath) -> None:
        todo = deque([top])
        while todo and self._numbers and self._left > 0:
            directory = todo.popleft()
            if directory not in self._read and directory not in self._base.pseudo:
                self._read.add(directory)
                todo.extend(self._read_one(directory))

    def _read_one(self, directory: RelPath) -> list[RelPath]:
        """Take in what is in a directory and return its subdirectories.

        Files too deep for a path are passed over like unreadable ones: anybody may make such
        directories, and the way to each takes as long as its path.  So is a mount whose server is
        gone, as others mount and unmount meanwhile: it has no names.  Another disk has none either,
        and listing it could take long.
        """
        subdirectories: list[RelPath] = []
        path_of_it = self._base.path(directory)
        if len(path_of_it) >= PATH_MAX:
            return subdirectories
        try:
            if self._devices and os.lstat(path_of_it).st_dev not in self._devices:
                return subdirectories
            fd = open_noatime(path_of_it, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            if error.errno not in _PASSED_OVER:
                raise
            return subdirectories
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    self._left -= 1
                    if entry.inode() not in self._numbers and not entry.is_dir(follow_symlinks=False):
                        continue
                    name = os.fsencode(entry.name)
                    if self._base.is_hidden_name(directory, name):
                        continue
                    path = join(directory, name)
                    if not entry.is_dir(follow_symlinks=False):
                        self._take(path)
                    elif path not in self._base.mounts:
                        subdirectories.append(path)
        except OSError as error:  # its names may be read, and no more; or a server is gone meanwhile
            if error.errno not in _PASSED_OVER:
                raise
            return subdirectories
        finally:
            os.close(fd)
        return subdirectories

    def _take(self, path: RelPath) -> None:
        st = self._base.look(path)
        if st is None:
            return
        if self._any_of is not None:
            if self._any_of.has(self._base.on_disk(st.st_dev, st.st_ino)) and self._is_good(path):
                self._found, self._numbers = [path], set()
            return
        file = st.st_dev, st.st_ino
        if file in self._missing and self._is_good(path):
            self._found.append(path)
            self._missing[file] -= 1
            if not self._missing[file]:
                del self._missing[file]
                self._numbers = {ino for _, ino in self._missing}
