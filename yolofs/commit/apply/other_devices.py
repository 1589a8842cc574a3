"""Folders for new files that cannot be made in the commit's own directory: those for another
device, or for a group without the user.

A folder on another device lies in a directory of base there that does not move: the topmost
writable one.  The kernel gives a folder the group of a setgid directory that it is made in, and
setgid, and so the group to all that is made in the folder.  If the session lies on the same mount,
such a folder is moved to the commit's directory at once.  The list of folders is durable in
``commits/N/far`` before they are made, so that removing the commit removes them.  Which times their
directories have is noted there, too: a folder that comes or goes changes them, and a kill, or a
power cut, may come before they are put back.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from yolofs.commit.plan.moves import Moves
from yolofs.paths import RelPath, split
from yolofs.store import copying
from yolofs.store.copying import at
from yolofs.store.owners import gives_group
from yolofs.store.restored import InodeCtime
from yolofs.system.busy_trees import empty
from yolofs.system.disks import disk_key
from yolofs.system.open_trees import OpenTree
from yolofs.system.plain_files import read_note, replace_note
from yolofs.system.rename_domains import RenameDomain, rename_domain
from yolofs.system.syscalls import device_and_mount, open_by_no_link

NOTE = b"far"
"""In a commit's directory: the paths of its folders."""
_MOST_BYTES = 1 << 20
_FLAGS = os.O_RDONLY | os.O_DIRECTORY
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_MOMENT_NS = 2_000_000_000
"""If the last change of a directory came within this time after the note of a folder, or after the
folder was made, the folder was that change.
"""


class Folder(NamedTuple):
    """A folder of the commit, open."""

    path: bytes
    """Absolute."""
    fd: int


class NotedFolder(msgspec.Struct, frozen=True, array_like=True):
    """A folder that is, or is about to be, made or removed."""

    path: bytes
    """Absolute."""
    atime_ns: int = 0
    mtime_ns: int = 0
    """The times of the directory that it lies in, without this folder; 0 in notes of earlier
    versions, which have none.
    """
    mode: int | None = None
    """The mode of that directory, if it is opened up to remove the folder: its owner has forbidden
    writing since, or the commit has.
    """
    mount: bytes = b""
    """Where the filesystem is mounted that it lies on, absolute; empty if it lies in the commit's
    directory.
    """
    disk: bytes = b""
    """Which one that is (:func:`yolofs.system.disks.disk_key`)."""


class FarFolders:
    """The folders of one commit, by device, mount and project.  Close it."""

    def __init__(self, root: bytes, parking: bytes, name: bytes, moves: Moves) -> None:
        """``parking``: the commit's own directory; ``name``: what the folders are called."""
        self._root = root
        self._parking = parking
        self._name = name
        self._moves = moves
        self._folders: dict[RenameDomain, Folder | None] = {}
        self._of_groups: dict[tuple[RenameDomain, int], Folder] = {}
        """Those of groups, also by group."""
        self.by_number: list[Folder] = []
        """In the order in which they were made."""
        self._noted: list[NotedFolder] = []

    def folder_in(self, domain: RenameDomain, directory: RelPath) -> Folder | None:
        """Return the folder from which a rename leads to a domain, made if need be; None if there
        is no place for one.

        ``directory`` is one of base there, as it is before the first step.

        Raises:
            OSError: it cannot be made.
        """
        if domain not in self._folders:
            self._folders[domain] = self._make(domain, directory)
        return self._folders[domain]

    def of_group(self, gid: int, domain: RenameDomain, directory: RelPath) -> Folder | None:
        """Return such a folder whose new files get a group that the user is not in; it is made if
        need be.

        ``directory`` is one of base in that domain, as it is before the first step.  None if it
        does not give what is made in it the group, or if there is no place for the folder.

        Raises:
            OSError: it cannot be made.
        """
        folder = self._of_groups.get((domain, gid))
        if folder is not None:
            return folder
        is_near = domain == rename_domain(self._parking)
        for place in self._above(domain, directory):
            if not gives_group(os.lstat(os.path.join(self._root, place)), gid):
                continue
            if not self._may_write(place) or not (is_near or self._moves.after(place) == place):
                continue
            name = b"%b-%d" % (self._name, len(self.by_number))
            folder = self._of_groups[domain, gid] = self._make_in(place, name, is_near=is_near)
            return folder
        return None

    def _make(self, domain: RenameDomain, directory: RelPath) -> Folder | None:
        for place in self._places(domain, directory):
            return self._make_in(place, self._name)
        return None

    def _make_in(self, place: RelPath, name: bytes, *, is_near: bool = False) -> Folder:
        """Make a folder in a directory of base; with ``is_near`` move it to the commit's own."""
        path = os.path.join(self._root, place, name) if place else os.path.join(self._root, name)
        st = os.lstat(os.path.dirname(path))
        noted = NotedFolder(path, st.st_atime_ns, st.st_mtime_ns, None, _mount_point(path), disk_key(st.st_dev))
        _note(self._parking, [*self._noted, noted])
        with _times_kept(os.path.dirname(path)) as above:
            os.mkdir(name, 0o700, dir_fd=above)
            if is_near:
                path = os.path.join(self._parking, name)
                os.rename(name, path, src_dir_fd=above)
        if is_near:
            noted = NotedFolder(path)
            _note(self._parking, [*self._noted, noted])
        self._noted.append(noted)
        folder = Folder(path, open_by_no_link(path, _FLAGS))
        self.by_number.append(folder)
        return folder

    def _places(self, domain: RenameDomain, directory: RelPath) -> Iterator[RelPath]:
        """Yield directories at and above one, in its domain, that stay and may be written in, the
        topmost first.
        """
        for place in self._above(domain, directory):
            if self._moves.after(place) != place:
                return  # it moves or goes, and so does all below it
            if self._may_write(place):
                yield place

    def _above(self, domain: RenameDomain, directory: RelPath) -> Sequence[RelPath]:
        """Return a directory and those above it in its domain, the topmost first."""
        places: list[RelPath] = []
        while rename_domain(os.path.join(self._root, directory)) == domain:
            places.insert(0, directory)
            if not directory:
                break
            directory = split(directory)[0]
        return places

    def _may_write(self, place: RelPath) -> bool:
        return os.access(os.path.join(self._root, place), os.W_OK | os.X_OK, effective_ids=True)

    def reopen(self) -> None:
        """Open the folders of a commit that was interrupted; those that are gone had nothing left
        to give.

        Raises:
            OSError: one may be there, and cannot be opened.
        """
        for path in noted_paths(self._parking):
            try:
                fd = open_by_no_link(path, _FLAGS)
            except OSError as error:
                if error.errno not in _GONE:
                    raise
                fd = -1
            self.by_number.append(Folder(path, fd))

    def close(self) -> None:
        """Close the folders."""
        for folder in self.by_number:
            if folder.fd >= 0:
                os.close(folder.fd)
        self.by_number.clear()


def noted_paths(parking: bytes) -> list[bytes]:
    """Return the paths of the folders that the commit in a directory has made, or was about to
    make; none where nothing was noted, or the note is damaged.

    Raises:
        OSError: the note cannot be read.
    """
    return [folder.path for folder in _noted_folders(parking)]


def _noted_folders(parking: bytes) -> list[NotedFolder]:
    text = read_note(os.path.join(parking, NOTE), _MOST_BYTES)
    try:
        found = msgspec.json.decode(text, type=list[NotedFolder | bytes]) if text is not None else []
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
    return [folder if isinstance(folder, NotedFolder) else NotedFolder(folder) for folder in found]


def _note(parking: bytes, folders: Sequence[NotedFolder]) -> None:
    replace_note(os.path.join(parking, NOTE), msgspec.json.encode(folders))


def remove(parking: bytes, name: bytes) -> list[tuple[InodeCtime, InodeCtime]]:
    """Remove the commit's folders whose names begin with ``name``, with all in them, durably;
    return the inode ctimes of their parents before and after.

    Whoever calls this is about to remove what tells of them.

    Raises:
        OSError: one cannot be removed.
    """
    found: list[tuple[InodeCtime, InodeCtime]] = []
    folders = _noted_folders(parking)
    for number, folder in enumerate(folders):
        above, last = os.path.split(folder.path)
        if not _is_called(last, name):
            continue
        with contextlib.suppress(FileNotFoundError), _named(folder.path), _path_by_descriptor(above) as reached:
            before = os.stat(reached)
            with _opened_up(reached, folders, number, parking) as directory:
                if _empty(directory, last):
                    atime_ns, mtime_ns = _times_without(folder, directory, last, parking)
                    folders[number] = msgspec.structs.replace(folders[number], atime_ns=atime_ns, mtime_ns=mtime_ns)
                    with contextlib.suppress(OSError):  # a full disk does not keep the folder
                        _note(parking, folders)
                times = _times_without(folder, directory, last, parking)  # the host may have been at work meanwhile
                with contextlib.suppress(FileNotFoundError):
                    os.rmdir(last, dir_fd=directory)
                copying.may_set_ns(directory, *times)  # not another user's
                os.fsync(directory)
            after = os.stat(reached)
            found.append(((before.st_ino, before.st_ctime_ns), (after.st_ino, after.st_ctime_ns)))
    return found


def may_be_elsewhere(parking: bytes, name: bytes) -> bool:
    """Tell whether a folder of the commit's whose name begins with ``name`` may lie on a disk that
    is not mounted, so that :func:`remove` could not find it.

    Raises:
        OSError: a disk does not tell.
    """
    folders = (folder for folder in _noted_folders(parking) if _is_called(os.path.basename(folder.path), name))
    return any(folder.mount and not _is_mounted(folder.mount, folder.disk) for folder in folders)


def _mount_point(path: bytes) -> bytes:
    """Return where the filesystem is mounted that a directory with a new name in it lies on."""
    place = os.path.dirname(path)
    mount = device_and_mount(place)
    while place != b"/" and device_and_mount(os.path.dirname(place)) == mount:
        place = os.path.dirname(place)
    return place


def _is_mounted(place: bytes, disk: bytes) -> bool:
    """Tell whether a disk may be the one that is mounted at a place."""
    try:
        mount = device_and_mount(place)
        if place != b"/" and device_and_mount(os.path.dirname(place)) == mount:
            return False
    except OSError as error:
        if error.errno not in _GONE:
            raise
        return False
    keys = disk, disk_key(mount[0])
    return keys[0] == keys[1] or not all(key.startswith(b"uuid ") for key in keys)


@contextlib.contextmanager
def _opened_up(reached: bytes, folders: list[NotedFolder], number: int, parking: bytes) -> Iterator[int]:
    """Open the directory that a folder lies in, and let its owner work there meanwhile: it may
    forbid that since the folder was made, as the commit has given it such a mode.

    The mode is noted before.  So whoever goes on after a kill gives it that mode again.
    """
    st, noted = os.stat(reached), folders[number].mode
    mode = stat.S_IMODE(st.st_mode)
    may_work = st.st_uid != os.geteuid() or os.access(reached, os.R_OK | os.W_OK | os.X_OK, effective_ids=True)
    if noted is not None and mode != noted | stat.S_IRWXU:  # somebody has given it another one
        noted = None
    if not may_work:
        noted = mode
        folders[number] = msgspec.structs.replace(folders[number], mode=mode)
        with contextlib.suppress(OSError):  # as in remove
            _note(parking, folders)
        os.chmod(reached, mode | stat.S_IRWXU)
    try:
        fd = os.open(reached, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)
    finally:
        if noted is not None:
            os.chmod(reached, noted)


def _times_without(folder: NotedFolder, directory: int, last: bytes, parking: bytes) -> tuple[int, int]:
    """Return the atime and mtime that an open directory shall have when a folder in it is gone.

    They are those that it has.  If a process made or removed the folder and was killed before it
    put the times back, they are those from before that.
    """
    st = os.fstat(directory)
    try:
        since_ns = os.stat(last, dir_fd=directory, follow_symlinks=False).st_mtime_ns
    except FileNotFoundError:
        since_ns = os.lstat(os.path.join(parking, NOTE)).st_mtime_ns
    is_by_folder = st.st_mtime_ns == st.st_ctime_ns and 0 <= st.st_mtime_ns - since_ns < _MOMENT_NS
    if is_by_folder and folder.mtime_ns:
        return folder.atime_ns, folder.mtime_ns
    return st.st_atime_ns, st.st_mtime_ns


def _empty(directory: int, last: bytes) -> bool:
    """Remove what is in a folder; tell whether there is such a folder."""
    try:
        if not stat.S_ISDIR(os.stat(last, dir_fd=directory, follow_symlinks=False).st_mode):
            return False
        with OpenTree(at(directory, last)) as tree, tree.directory(b"") as folder:
            empty(folder, path=tree.top)
    except FileNotFoundError:
        return False
    return True


def _is_called(last: bytes, name: bytes) -> bool:
    """Tell whether a folder is called ``name``, or as one for a group is called then."""
    start, _, number = last.rpartition(b"-")
    return last == name or (start == name and number.isdigit())


@contextlib.contextmanager
def _times_kept(path: bytes) -> Iterator[int]:
    """Open a directory, and give it back the times that it had."""
    with _opened(path) as fd:
        st = os.fstat(fd)
        try:
            yield fd
        finally:
            copying.may_set_times(fd, st)  # not another user's


@contextlib.contextmanager
def _named(path: bytes) -> Iterator[None]:
    """Have an error of a block, in which descriptors are open, name a path."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


@contextlib.contextmanager
def _path_by_descriptor(directory: bytes) -> Iterator[bytes]:
    """Give a path that leads to a directory meanwhile, also to one that cannot be read."""
    fd = open_by_no_link(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        yield b"/proc/self/fd/%d" % fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def _opened(directory: bytes) -> Iterator[int]:
    fd = open_by_no_link(directory, _FLAGS)
    try:
        yield fd
    finally:
        os.close(fd)
