"""Base, read-only: the places of its files, and the places that must not be entered or seen.

Nothing here writes.  Two kinds of base paths are set apart:

* *hidden*: the session's own directory and the link to it, the state directories of all users
  (:mod:`yolofs.system.own_names`), and the runtime directory with the control sockets.  They do not
  exist for the view, under any name.
* *pseudo*: directories that show as empty ones, because another filesystem is mounted there that is
  no real data (``/proc``, ``/sys``, ``/dev``, a yolofs mount).  They are never even looked at: a
  ``stat`` of our own mountpoint from the thread that serves it would wait for itself.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Protocol

from yolofs.journal.records import Fingerprint, owner_of
from yolofs.paths import RelPath, is_below, join, parse_relpath, split
from yolofs.store.base_opening import hold, noatime_directory, open_noatime
from yolofs.store.listed_names import ListedNames
from yolofs.system import own_names
from yolofs.system.disks import OnDisk, disk_key
from yolofs.system.mount_table import mounted_paths

PSEUDO_TYPES = frozenset(
    b"binder binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs fuse.yolofs fusectl "
    b"hugetlbfs mqueue nsfs proc pstore rpc_pipefs securityfs selinuxfs sysfs tracefs".split()
)
"""Filesystem types (as in ``/proc/self/mountinfo``) that hold no data of the user's."""
_VIEW = b"fuse.yolofs"
_PSEUDO_PATHS = (b"/dev", b"/proc", b"/sys")
_ROOT_NUMBER = 1
_SLOTS = 1 << 14


class Elsewhere(Protocol):
    """Knows what of base lies elsewhere than at its path
    (:class:`yolofs.commit.apply.recovery.displaced.Displaced`).
    """

    def path(self, rel: bytes) -> bytes | None:
        """Return the absolute path of what base has at ``rel``; None if it lies there."""
        ...

    def hides(self, name: bytes) -> bool:
        """Tell whether a name in base is none of base's own."""
        ...


class Base:
    """The base directory ``root`` (absolute).

    ``hidden`` are absolute paths that the view never shows; ``runtime`` is an absolute path that
    shows as an empty directory.  Both may be absent on disk.
    """

    def __init__(self, root: bytes, *, hidden: Iterable[bytes] = (), runtime: Iterable[bytes] = ()) -> None:
        self.root = os.path.realpath(root)
        self._prefix = b"/" if self.root == b"/" else self.root + b"/"
        root_stat = os.lstat(self.root)
        self._device = root_stat.st_dev
        self._root_ino = root_stat.st_ino
        self._slots: dict[bytes, int] = {}
        """By disk, for good: a disk that comes again has the numbers that it had."""
        self._slots_now: dict[int, int] = {}
        """The same by the numbers that the devices have now."""
        self._disks: dict[int, bytes] = {self._device: b""}
        self.listed = ListedNames(self.names, self.place)
        self.elsewhere: Elsewhere | None = None
        """Set for as long as a commit stands half way; paths are those that base had before it."""
        self._looks: dict[bytes, os.stat_result | OSError] | None = None
        self.hidden = frozenset(rel for path in hidden if (rel := self.relative(path)) is not None)
        self._hidden_in = Counter(rel.rpartition(b"/")[0] for rel in self.hidden if _is_directory(self.path(rel)))
        self._hidden_names = frozenset(rel.rpartition(b"/")[2] for rel in self.hidden)
        self._hidden_ids = frozenset(
            (st.st_dev, st.st_ino) for rel in self.hidden if (st := _lstat_or_none(self.path(rel))) is not None
        )
        self._always_pseudo: frozenset[bytes] = frozenset(
            rel for path in (*_PSEUDO_PATHS, *runtime) if (rel := self.relative(path)) is not None
        )
        self.pseudo: frozenset[bytes] = frozenset()
        self.mounts: frozenset[bytes] = frozenset()
        self._views: tuple[bytes, ...] = ()
        """What paths below yolofs mounts begin with."""
        self.refresh_mounts()

    # ---- paths

    def path(self, rel: bytes) -> bytes:
        """Return the absolute path of a base path."""
        return self._prefix + rel if rel else self.root

    def place(self, rel: bytes) -> bytes:
        """Return the absolute path of what base has at a path: nearly always
        :meth:`path`.
        """
        moved = self.elsewhere.path(rel) if self.elsewhere is not None else None
        return moved if moved is not None else self.path(rel)

    def relative(self, path: bytes) -> RelPath | None:
        """Return an absolute path relative to base, None if it lies outside."""
        return self._below(os.path.abspath(path))

    def _below(self, path: bytes) -> RelPath | None:
        """Return a path that is absolute and in its shortest form relative to base."""
        if path == self.root:
            return parse_relpath(b"")
        return parse_relpath(path[len(self._prefix) :]) if path.startswith(self._prefix) else None

    def refresh_mounts(self) -> None:
        """Read again which filesystems are mounted below base, and which of them are pseudo ones.

        Which disk has which device number may have changed, too: one that was unmounted leaves its
        number to the next.
        """
        self._disks = {self._device: b""}
        self._slots_now.clear()
        self.listed.forget()
        mounts: dict[RelPath, bytes] = {}
        with contextlib.suppress(OSError), open("/proc/self/mountinfo", "rb") as lines:
            for path, kind in mounted_paths(lines):
                rel = self._below(path)
                if rel:
                    mounts[rel] = kind
        pseudo = self._always_pseudo.union(rel for rel, kind in mounts.items() if kind in PSEUDO_TYPES)
        self.mounts = frozenset(mounts)
        self._views = tuple(rel + b"/" for rel, kind in mounts.items() if kind == _VIEW)
        self.pseudo = pseudo - {b""}

    def _check_is_base(self, rel: bytes) -> None:
        """See that a path does not lead through a yolofs mount: nothing in it is base's.

        Danger: a mount that is paused does not answer, and whoever has paused it would wait for it.

        Raises:
            FileNotFoundError: it does.
        """
        if rel.startswith(self._views):
            raise FileNotFoundError(errno.ENOENT, "in a view", rel)

    def is_hidden(self, rel: bytes) -> bool:
        """Tell whether a base path is one that no view may show (or lies below one)."""
        if rel in self.hidden:
            return True
        return any(is_below(rel, hidden) for hidden in self.hidden)

    def is_hidden_name(self, rel: bytes, name: bytes) -> bool:
        """Tell whether ``name`` in the base directory ``rel`` is hidden; cheap for all ordinary
        names.

        A hidden directory is also hidden where a bind mount shows it, and so is what belongs to any
        other session or user: a program that could write to a journal would write to base at the
        next commit there.
        """
        if name not in self._hidden_names and not own_names.may_be_hidden(name):
            return False
        path = join(rel, name)
        if path.startswith(self._views):
            return False
        if path in self.hidden or self._is_hidden_file(_lstat_or_none(self.path(path))):
            return True
        return own_names.may_be_hidden(name) and own_names.is_hidden(self.path(rel), name)

    def holds_hidden(self, rel: bytes) -> bool:
        """Tell whether a base directory that may look empty holds anything hidden."""
        if rel in self.pseudo:
            return False
        try:
            self._check_is_base(rel)
            with noatime_directory(self.path(rel)) as directory:
                return any(self.is_hidden_name(rel, os.fsencode(name)) for name in os.listdir(directory))
        except OSError:  # it is gone, or tells nothing to this user
            return False

    def _is_hidden_file(self, st: os.stat_result | None) -> bool:
        return st is not None and (st.st_dev, st.st_ino) in self._hidden_ids

    def hidden_in(self, rel: bytes) -> int:
        """Return how many hidden directories a base directory holds, to be left out of its link
        count.
        """
        return self._hidden_in.get(rel, 0)

    def is_pseudo(self, rel: bytes) -> bool:
        """Tell whether a base path shows as an empty directory that nothing can be put into."""
        return rel in self.pseudo

    def is_pinned(self, rel: bytes) -> bool:
        """Tell whether a base directory cannot be renamed or removed.

        That is one at which something is mounted, and one that is, or holds, a hidden or pseudo
        directory.
        """
        return rel in self.mounts or any(is_below(path, rel) for path in (*self.hidden, *self.pseudo))

    def mount_above(self, path: bytes) -> bytes:
        """Return the mountpoint above a name; the root's path if no mount lies between.

        No name can be moved, or get another (hard link), over the edge of a mount.  A path of the
        view will do: mounts stay where they are.
        """
        while path and self.mounts:
            path = split(path)[0]
            if path in self.mounts:
                return path
        return b""

    # ---- looking

    def lstat(self, rel: bytes) -> os.stat_result:
        """Return the attributes of a base path, those of an empty directory where it is pseudo.

        Raises:
            OSError: as lstat(2); ENOENT where it is hidden, ENOTDIR where a symbolic link is on the
                way.
        """
        return self._lstat(rel) if self._looks is None else self._lstat_once(rel, self._looks)

    @contextlib.contextmanager
    def looking_once(self) -> Iterator[None]:
        """Have each path looked at once in the block, for a command that asks of the same paths
        several times.

        Danger: what the host does meanwhile is not seen; nothing that is about to be changed may be
        judged by it.
        """
        self._looks = {}
        try:
            yield
        finally:
            self._looks = None

    def _lstat_once(self, rel: bytes, looks: dict[bytes, os.stat_result | OSError]) -> os.stat_result:
        found = looks.get(rel)
        if found is None:
            try:
                found = self._lstat(rel)
            except OSError as error:
                found = error
            looks[rel] = found
        if isinstance(found, OSError):
            raise found
        return found

    def _lstat(self, rel: bytes) -> os.stat_result:
        if rel in self.pseudo:
            return _empty_directory(rel)
        if rel in self.hidden:
            raise FileNotFoundError(2, "hidden", rel)
        self._check_is_base(rel)
        place = self.place(rel)
        fd = hold(place)
        try:
            st = os.fstat(fd)
        except OSError as error:
            raise _named(error, place) from None
        finally:
            os.close(fd)
        return self._unhidden(st, rel)

    def look(self, rel: RelPath | None) -> os.stat_result | None:
        """Return what is at a base path, None if nothing that a view could show.

        Raises:
            OSError: it cannot be looked at.
        """
        if rel is None:
            return None
        try:
            return self.lstat(rel)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def lstat_in(self, directory: int, name: bytes, rel: bytes) -> os.stat_result:
        """Do what :meth:`lstat` does of ``rel``, a name in a base directory that is held: a third
        as long.

        Raises:
            OSError: as lstat(2); ENOENT where it is hidden.
        """
        if rel in self.pseudo or rel in self.hidden:
            return self.lstat(rel)
        self._check_is_base(rel)
        try:
            st = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):  # most are, and nobody is told
            raise
        except OSError as error:
            raise _named(error, self.path(rel)) from None
        return self._unhidden(st, rel)

    def _unhidden(self, st: os.stat_result, rel: bytes) -> os.stat_result:
        if (st.st_dev, st.st_ino) in self._hidden_ids:
            raise FileNotFoundError(2, "hidden", rel)
        return st

    def look_listed(self, rel: RelPath | None) -> os.stat_result | None:
        """Return what :meth:`look` does, but None if base lists it by another spelling.

        Raises:
            OSError: it cannot be looked at.
        """
        st = self.look(rel)
        if st is None or not rel:
            return st
        above, name = split(rel)
        return st if self.listed.has(above, name, st.st_dev) else None

    def has(self, rel: bytes) -> bool:
        """Tell whether there is something at a base path that a view could show.

        Raises:
            OSError: it cannot be looked at.
        """
        return self.look(RelPath(rel)) is not None

    def may_have(self, rel: bytes) -> bool:
        """Tell whether there is something at a base path; true, too, where this user may not look.

        Raises:
            OSError: the disk does not answer.
        """
        try:
            return self.has(rel)
        except PermissionError:
            return True

    def names(self, rel: bytes) -> list[bytes]:
        """Return the names in a base directory that may be shown, in the order of the disk.

        Leaves the directory's access time alone where the system permits.

        Raises:
            OSError: as opendir(3).
        """
        if rel in self.pseudo:
            return []
        self._check_is_base(rel)
        place = self.place(rel)
        with noatime_directory(place) as directory:
            try:
                names = [os.fsencode(name) for name in os.listdir(directory)]
            except OSError as error:
                raise _named(error, place) from None
        if self.elsewhere is not None:
            names = [name for name in names if not self.elsewhere.hides(name)]
        if self._hidden_names.isdisjoint(names) and not own_names.may_hold_hidden(names):
            return names
        return [name for name in names if not self.is_hidden_name(rel, name)]

    def open(self, rel: bytes) -> int:
        """Open a regular base file for reading and return its descriptor; its access time stays,
        where permitted.

        What is there may be no regular file any more: the descriptor tells.

        Raises:
            OSError: as open(2); ELOOP for a symbolic link, ENOENT where it is hidden or pseudo.
        """
        if rel in self.pseudo or rel in self.hidden:
            raise FileNotFoundError(2, "hidden", rel)
        self._check_is_base(rel)
        path = self.place(rel)
        try:
            return open_noatime(path, os.O_RDONLY | os.O_NONBLOCK)  # should the host have put a fifo there
        except BlockingIOError:  # a file on which somebody has a lease, which he has to give up first
            return open_noatime(path, os.O_RDONLY)

    # ---- identity

    def number(self, st: os.stat_result) -> int:
        """Return the inode number that the view shows for a base file: its own on base's root
        device.

        Files of other disks below base get one mixed from their disk and their number.  They are
        different as long as no disk numbers its files above 2**48.  They stay the same as long as
        the system tells which disk it is (:mod:`yolofs.system.disks`), as journals hold them.
        """
        ino = st.st_ino
        if st.st_dev == self._device:
            if ino == self._root_ino:
                return _ROOT_NUMBER
            return ino if ino > 1 else ino | 1 << 62
        slot = self._slots_now.get(st.st_dev)
        if slot is None:
            slot = self._slots_now[st.st_dev] = self._slot(self._disk(st.st_dev))
        return (ino ^ slot << 48) & ((1 << 62) - 1) | 1 << 62

    def _slot(self, disk: bytes) -> int:
        """Return the 14 bits that stand for a disk: nearly always the same, and never those of
        another.
        """
        if disk not in self._slots:
            taken = set(self._slots.values())
            slot = zlib.crc32(disk) & _SLOTS - 1
            while (not slot or slot in taken) and len(taken) < _SLOTS - 1:
                slot = slot + 1 & _SLOTS - 1
            self._slots[disk] = slot
        return self._slots[disk]

    def _disk(self, device: int) -> bytes:
        key = self._disks.get(device)
        if key is None:
            key = self._disks[device] = disk_key(device)
        return key

    def on_disk(self, device: int, inode: int) -> OnDisk:
        """Return which file has an inode number on a device, so that it is known for good.

        Something on that device has been looked at just now.
        """
        return OnDisk(self._disk(device), inode)

    def file_of(self, number: int) -> tuple[int, int] | None:
        """Return device and inode number of the base file that has this :meth:`number`, None if
        that cannot be told.
        """
        return None if number >> 62 else (self._device, number)

    def number_of_path(self, rel: bytes) -> int:
        """Return a number for a directory that shows at several paths: one that stands for this
        path.
        """
        import hashlib  # takes long, and hardly any base has such a directory

        digest = hashlib.blake2b(rel, digest_size=8).digest()
        return int.from_bytes(digest) & ((1 << 61) - 1) | 1 << 61

    def fingerprint(self, st: os.stat_result) -> Fingerprint:
        """Return the fingerprint of a base file with these attributes."""
        return Fingerprint(st.st_mtime_ns, st.st_size, self.number(st), owner_of(st), st.st_ctime_ns, st.st_nlink)


def _named(error: OSError, path: bytes) -> OSError:
    """Return an error with the path that it is about: a call about what is open tells none."""
    return OSError(error.errno, error.strerror, path)


def _is_directory(path: bytes) -> bool:
    st = _lstat_or_none(path)
    return st is not None and stat.S_ISDIR(st.st_mode)


def _lstat_or_none(path: bytes) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _empty_directory(rel: bytes) -> os.stat_result:
    """Return the attributes that a pseudo directory shows: root's, read-only, with a number of its
    own.
    """
    whole = (stat.S_IFDIR | 0o555, zlib.crc32(rel), 0, 2, 0, 0, 0, 0, 0, 0)
    return os.stat_result((*whole, 0.0, 0.0, 0.0, 0, 0, 0, 4096, 0, 0))  # times, again in ns, block size, blocks, rdev
