"""The shown owners of store inodes: the user and group in the view of files that could not be given
to them.  They lie in ``files/owners``, one line each.

A store inode belongs to the user who runs yolofs, in a group of theirs.  The file that it stands
for may belong to somebody else, or to a group without the user: a writable file of base, or a new
file in a setgid directory of such a group.  The line says who that is.  So the view shows the
owners of a plain directory, and a commit knows which owners to leave in base, and which files to
make where the kernel gives them the group.

A line is ``<ino> <uid> <gid> #<checksum>``, or ``<ino> - #<checksum>`` once the store inode has the
right owner itself; the last one counts.  The checksum is that of a line of the journal, without a
stamp.  Other lines are passed over: a crash may leave half a line, of which no record tells.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Container
from threading import Lock
from typing import Any

import msgspec

from yolofs.store import copying
from yolofs.system.plain_files import open_plain, read_note, replace_note

NAME = b"owners"
_MOST_BYTES = 1 << 30
OWNERS_LEFT_OUT = frozenset({"owner", "group"})
"""What :mod:`yolofs.store.copying` says could not be carried over of whom a file belongs to."""


class Owners:
    """The owners of one store.

    Attributes:
        of: user and group by number of the store inode.  It stays the same object.
    """

    def __init__(self, directory: bytes) -> None:
        """Read the owners of the store in a directory.

        Raises:
            OSError: they cannot be read.
        """
        self._path = os.path.join(directory, NAME)
        self._lock = Lock()
        self._is_whole = False
        """Whether the file is known to end with a whole line."""
        self._writes = self._durable_writes = 0
        self.of: dict[int, tuple[int, int]] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read them again: another process may have written.

        Raises:
            OSError: they cannot be read.
        """
        with self._lock:
            found = _decode(read_note(self._path, _MOST_BYTES) or b"")
            self._is_whole = False
            self._writes += bool(found)
            self.of.clear()
            self.of.update(found)

    def note(self, ino: int, uid: int, gid: int) -> None:
        """Note whom a store inode belongs to in the view.  Any thread may call this.

        Raises:
            OSError: it cannot be written.
        """
        if self.of.get(ino) != (uid, gid):
            self._write(b"%d %d %d" % (ino, uid, gid))
            self.of[ino] = uid, gid

    def forget(self, ino: int) -> None:
        """Note that a store inode itself belongs to whom it is to belong to, if it did not.

        Raises:
            OSError: it cannot be written.
        """
        if ino in self.of:
            self._write(b"%d -" % ino)
            del self.of[ino]

    def forget_others(self, kept: Container[int]) -> None:
        """Forget the store inodes that are not ``kept``: they are gone.

        Raises:
            OSError: it cannot be written.
        """
        left = {ino: owner for ino, owner in self.of.items() if ino in kept}
        if len(left) == len(self.of):
            return
        with self._lock:
            replace_note(self._path, b"".join(_line(b"%d %d %d" % (ino, *owner)) for ino, owner in left.items()))
            self._is_whole = True
            self._durable_writes = self._writes
            self.of.clear()
            self.of.update(left)

    def sync(self) -> None:
        """Make durable what was noted, if it is not; any thread may call this.

        Raises:
            OSError: the disk failed.
        """
        writes = self._writes
        if writes == self._durable_writes:
            return
        with open(open_plain(self._path, os.O_RDONLY), "rb") as file:
            os.fsync(file.fileno())  # without the lock: whoever notes an owner does not wait for the disk
        with self._lock:
            self._durable_writes = max(self._durable_writes, writes)

    def _write(self, text: bytes) -> None:
        with self._lock, open(open_plain(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND), "r+b", 0) as file:
            size = os.fstat(file.fileno()).st_size
            is_torn = not self._is_whole and size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n"
            self._is_whole = False
            left = (b"\n" if is_torn else b"") + _line(text)
            while left:
                left = left[os.write(file.fileno(), left) :]
            self._is_whole = True
            self._writes += 1  # after it: a sync that has begun meanwhile may have missed it


class GivableOwners:
    """Tells which owners and groups this user may give to a file of theirs."""

    def __init__(self) -> None:
        self._uid = os.geteuid()
        self._groups = frozenset((*os.getgroups(), os.getegid()))

    def may_give(self, uid: int, gid: int) -> bool:
        """Tell whether a file may be given to a user and a group."""
        return self._uid == 0 or (uid == self._uid and gid in self._groups)


def gives_group(directory: os.stat_result, gid: int) -> bool:
    """Tell whether the kernel gives what is made in a directory a group, whoever makes it."""
    return directory.st_gid == gid and bool(directory.st_mode & stat.S_ISGID)


def shown(st: os.stat_result, owner: tuple[int, int]) -> os.stat_result:
    """Return attributes with another user and group."""
    parts: Any = st.__reduce__()  # all that it has, times in ns and all
    fields, more = parts[1]
    return os.stat_result((*fields[:4], *owner, *fields[6:]), more)


def shown_source(source: copying.CopySource, owner: tuple[int, int]) -> copying.CopySource:
    """Return what is to be copied with another user and group."""
    metadata = source.metadata
    return msgspec.structs.replace(source, metadata=msgspec.structs.replace(metadata, st=shown(metadata.st, owner)))


def _line(text: bytes) -> bytes:
    text += b" "
    return b"%b#%08x\n" % (text, zlib.crc32(text))


def _decode(text: bytes) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for line in text.split(b"\n"):
        said, _, checksum = line.rpartition(b"#")
        if b"%08x" % zlib.crc32(said) != checksum:
            continue
        match said.split():
            case [ino, b"-"]:
                found.pop(int(ino), None)
            case [ino, uid, gid]:
                found[int(ino)] = int(uid), int(gid)
    return found
