"""Reading and writing files, and changing their attributes."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
from collections.abc import Mapping
from typing import Final

import msgspec

from yolofs.overlay import absent_xattrs, acl
from yolofs.overlay.attributes import Attributes, fd_is_own
from yolofs.overlay.big_copies import BigCopies
from yolofs.overlay.descriptors import Descriptors
from yolofs.overlay.inodes import MIXED, NO_PAGES, Attr, Inode, Version, is_as_told, settled_version, version_of
from yolofs.overlay.layers import Layers, os_error
from yolofs.overlay.long_changes import MUCH_ALLOCATED, MUCH_FREED, LongChangeError
from yolofs.overlay.recording import Recording
from yolofs.paths import RelPath
from yolofs.system.syscalls import FALLOC_FL_PUNCH_HOLE, fallocate

_IN_PAGE = mmap.PAGESIZE - 1
_READ_AHEAD = 128 << 10
"""How many bytes the kernel reads at a time, if it has none of them (``read_ahead_kb``)."""
MOST_RANGE_BYTES = 4 << 20
"""Of one request to copy between files."""
NOW: Final = 1 << 100
"""For a time that is to be set: that of the disk, as of a write; no file has such a time."""
_FEW = 4
"""How many pages may be read one by one before all are read anew."""


class StillKnown(msgspec.Struct, frozen=True, gc=False):
    """What the kernel knows of a file and is still true."""

    pages: bool
    """The content that it has cached."""
    attributes: bool


ALL_STILL_KNOWN = StillKnown(pages=True, attributes=True)


class Data:
    """The contents and attributes of open and named files."""

    def __init__(
        self,
        layers: Layers,
        recording: Recording,
        descriptors: Descriptors,
        attributes: Attributes,
        big_copies: BigCopies,
    ) -> None:
        self._layers = layers
        self._base = layers.base
        self._inodes = layers.inodes
        self._clock_ns = layers.clock_ns
        self._recording = recording
        self._descriptors = descriptors
        self._attributes = attributes
        self._big_copies = big_copies
        self.hands_over = False
        """Whether others wait for each request, so that long changes are to be raised
        (:class:`~yolofs.overlay.long_changes.LongChangeError`).
        """

    def open(self, inode: Inode, flags: int, *, may_keep_setuid: bool = True) -> StillKnown:
        """Open a regular file with the flags of open(2) and tell what of the kernel's knowledge of
        it still holds.

        The caller owes a :meth:`release`, with ``writer`` as :func:`may_write` says of the flags.
        O_TRUNC takes the setuid and setgid bits away unless they may be kept, as they may by root
        alone.

        Raises:
            OSError: ESTALE when the host put another file in the place of this base file.
        """
        known = ALL_STILL_KNOWN
        source = inode.source
        if inode.paged == MIXED:
            inode.paged, known = NO_PAGES, StillKnown(pages=False, attributes=True)
        elif source is not None and not inode.is_orphan:
            known = self._check_base(inode, source, opens=not flags & os.O_TRUNC)
        elif inode.ragged > _FEW and not inode.opens and self._is_tattered(inode):
            inode.ragged, known = 0, StillKnown(pages=False, attributes=True)
        try:
            if flags & os.O_TRUNC:
                self._truncate(inode, 0)
                inode.ragged = 0
                if not may_keep_setuid:
                    self.drop_setuid(inode)
            elif inode.fd < 0 and inode.kind == stat.S_IFREG:
                self._descriptors.of(inode, write=False)
        except BaseException:
            if not known.pages:  # it will not hear of that
                inode.paged = NO_PAGES if inode.source is not None else MIXED
            raise
        inode.opens += 1
        if may_write(flags):
            inode.writers += 1
        return known

    def release(self, inode: Inode, *, writer: bool) -> None:
        """Take back one :meth:`open`."""
        inode.opens -= 1
        if writer:
            inode.writers -= 1
        if not inode.opens:
            self._inodes.drop_if_unused(inode)

    def outdated_by(self, found: Mapping[int, os.stat_result]) -> dict[int, Version]:
        """Return of which open files other pages may be cached than base has, as in
        :attr:`outdated`.

        ``found``: what was found at the base paths of files, by their numbers.
        """
        outdated = {}
        for number, st in found.items():
            inode = self._inodes.by_number.get(number)
            if inode is None or not inode.opens or inode.source is None or inode.is_orphan:
                continue
            if not self._layers.is_source_of(inode, st) or self._descriptors.is_other_file(inode, st):
                continue
            if version_of(st) != inode.paged:
                inode.changes += 1
                outdated[number] = settled_version(st, self._clock_ns())
        return outdated

    def read(self, inode: Inode, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes from ``offset``; fewer only at the end of the file."""
        return os.pread(self.read_fd(inode), size, offset)

    def read_fd(self, inode: Inode) -> int:
        """Return a descriptor to read an open file from.  It is the overlay's, and may be closed by
        the next call.
        """
        fd = inode.fd
        return fd if fd >= 0 else self._descriptors.of(inode, write=False)

    def write(self, inode: Inode, offset: int, data: bytes | memoryview, *, appends: bool = False) -> int:
        """Write ``data`` at ``offset`` and return how many bytes were written.

        A file that so far came from base, or from before the last marker, is copied up first.
        ``appends``: to the end, which ``offset`` is by what the kernel knows.  Danger: it asks for
        no size before it appends, and would write over what the host has added since it knew one.
        """
        staged = inode.staged
        if staged is None or staged.ino < self._layers.fresh_from or staged.origin is not None:
            self._big_copies.own_data(inode)
        elif self._recording.run_of_request is not None:
            self._recording.sign(staged)
        fd = inode.fd if inode.fd_writes else self._descriptors.of(inode, write=True)
        if appends and (end := os.lseek(fd, 0, os.SEEK_END)) != offset:
            offset = end
            self._layers.outdated[inode.number] = NO_PAGES  # the kernel keeps what it has written at another place
        if (offset | offset + len(data)) & _IN_PAGE:
            inode.ragged += 1
        inode.changes += 1
        return os.pwrite(fd, data, offset)

    def fallocate(self, inode: Inode, mode: int, offset: int, length: int) -> None:
        """Allocate or free room in an open file, as fallocate(2): all that the store's disk can do.

        Raises:
            OSError: as fallocate(2).
            LongChangeError: another thread is to do it.
        """
        fd = self._fd_to_change(inode)
        if self.hands_over and length >= (MUCH_FREED if mode & FALLOC_FL_PUNCH_HOLE else MUCH_ALLOCATED):
            raise LongChangeError(inode, fd, lambda fd: fallocate(fd, mode, offset, length))
        fallocate(fd, mode, offset, length)

    def copy_range(self, source: Inode, source_offset: int, target: Inode, offset: int, length: int) -> int:
        """Copy between open files, sharing blocks where the disk can, and return how many bytes:
        at most :data:`MOST_RANGE_BYTES`, as all others wait.

        Raises:
            OSError: as copy_file_range(2); EXDEV if the disks cannot do that.
        """
        self._fd_to_change(target)
        source_fd = self.read_fd(source)  # for which the target's may have been closed
        target_fd = self._descriptors.of(target, write=True)
        return os.copy_file_range(source_fd, target_fd, min(length, MOST_RANGE_BYTES), source_offset, offset)

    def _fd_to_change(self, inode: Inode) -> int:
        """Return a descriptor to change the content of an open file by, copied up first if it comes
        from base or from before the last marker.
        """
        staged = inode.staged
        if staged is None or staged.ino < self._layers.fresh_from or staged.origin is not None:
            self._big_copies.own_data(inode)
        elif self._recording.run_of_request is not None:
            self._recording.sign(staged)
        inode.changes += 1
        return self._descriptors.of(inode, write=True)

    def sync_fd(self, inode: Inode) -> int | None:
        """Return a descriptor whose fsync makes the file durable, None where there is nothing to
        make durable.

        The caller syncs the journal afterwards.
        """
        staged = inode.staged
        if staged is None or inode.kind != stat.S_IFREG:
            return None
        return self._descriptors.of(inode, write=False)

    def writers(self) -> list[Inode]:
        """Return the inodes that are open for writing."""
        return [inode for inode in self._inodes.by_number.values() if inode.writers]

    def setattr(
        self,
        inode: Inode,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        size: int | None = None,
        atime_ns: int | None = None,
        mtime_ns: int | None = None,
    ) -> Attr:
        """Change what is given (permission bits, owners, bytes, nanoseconds or :data:`NOW`) and
        return the attributes after it.
        """
        inode.changes += 1
        if size is not None:
            self._truncate(inode, size)
        if mode is not None or uid is not None or gid is not None or atime_ns is not None or mtime_ns is not None:
            path = self._big_copies.own_metadata(inode)
            file = inode.fd if fd_is_own(inode) else path
            if uid is not None or gid is not None:
                self._give(inode, file, uid, gid)
            if mode is not None:
                inode.lacks &= ~absent_xattrs.SETUID
                os.chmod(file, stat.S_IMODE(mode))
            if atime_ns is not None or mtime_ns is not None:
                self._set_times(inode, file, atime_ns, mtime_ns)
        return self._attributes.getattr(inode)

    def setxattr(self, inode: Inode, name: bytes, value: bytes) -> None:
        """Set an extended attribute."""
        inode.changes += 1
        path = self._big_copies.own_metadata(inode)
        inode.lacks = 0  # after the copy, of which that is noted
        os.setxattr(path, name, value, follow_symlinks=False)

    def removexattr(self, inode: Inode, name: bytes) -> None:
        """Remove an extended attribute; no access control list is the same as one that is
        removed.
        """
        try:
            self._attributes.check_has_xattr(inode, name)
        except OSError as error:
            if error.errno == errno.ENODATA and name in acl.NAMES:
                return
            raise
        inode.changes += 1
        path = self._big_copies.own_metadata(inode)
        try:
            os.removexattr(path, name, follow_symlinks=False)
        except OSError as error:
            if error.errno != errno.ENODATA:  # what cannot be read is not copied up
                raise

    def drop_setuid(self, inode: Inode) -> None:
        """Take the bits away that lend the rights of a file's owner and group: somebody else has
        changed it.
        """
        if self.lends_rights(inode):
            mode = stat.S_IMODE(self._attributes.stat(inode).st_mode)
            os.chmod(self._big_copies.own_metadata(inode), mode & ~_lending_bits(mode))

    def lends_rights(self, inode: Inode) -> bool:
        """Tell whether a file has bits that :meth:`drop_setuid` takes away."""
        staged = inode.staged
        if staged is not None and absent_xattrs.lacks(inode, absent_xattrs.SETUID, staged):
            return False
        mode = stat.S_IMODE(self._attributes.stat(inode).st_mode)
        if mode & _lending_bits(mode):
            return True
        if staged is not None and not mode & stat.S_ISGID:
            absent_xattrs.note(inode, absent_xattrs.SETUID, staged)
        return False

    def drop_setgid(self, inode: Inode) -> None:
        """Take away the bit that lends the rights of a file's group."""
        mode = stat.S_IMODE(self._attributes.stat(inode).st_mode)
        if mode & stat.S_ISGID:
            os.chmod(self._big_copies.own_metadata(inode), mode & ~stat.S_ISGID)

    # ---- inside

    def _give(self, inode: Inode, file: int | bytes, uid: int | None, gid: int | None) -> None:
        """Give a file of the store another user or group.

        If only the view shows the owner, the file need not be given to that user: the kernel has
        permitted it by what the view shows.
        """
        assert inode.staged is not None
        ino, follow = inode.staged.ino, isinstance(file, int)
        owners = self._layers.store.owners
        shown = owners.of.get(ino)
        if shown is not None:
            uid, gid = (new if new != old else None for new, old in zip((uid, gid), shown, strict=True))
        os.chown(file, -1 if uid is None else uid, -1 if gid is None else gid, follow_symlinks=follow)
        if shown is None or (uid is None and gid is None):
            return
        st = os.stat(file, follow_symlinks=follow)
        owner = (shown[0] if uid is None else uid, shown[1] if gid is None else gid)
        if owner == (st.st_uid, st.st_gid):
            owners.forget(ino)
        else:
            owners.note(ino, *owner)

    def _set_times(self, inode: Inode, file: int | bytes, atime_ns: int | None, mtime_ns: int | None) -> None:
        """Set times of a store inode; one that is None stays.

        What is :data:`NOW` the disk says: by another clock a file could look older than one that
        was written before it.
        """
        follow = isinstance(file, int)
        if atime_ns is None or mtime_ns is None:
            st = self._attributes.stat(inode)
            atime_ns = st.st_atime_ns if atime_ns is None else atime_ns
            mtime_ns = st.st_mtime_ns if mtime_ns is None else mtime_ns
        if NOW in (atime_ns, mtime_ns):
            os.utime(file, follow_symlinks=follow)
            if atime_ns == mtime_ns:
                return
            st = os.stat(file, follow_symlinks=follow)
            atime_ns = st.st_atime_ns if atime_ns == NOW else atime_ns
            mtime_ns = st.st_mtime_ns if mtime_ns == NOW else mtime_ns
        os.utime(file, ns=(atime_ns, mtime_ns), follow_symlinks=follow)

    def _truncate(self, inode: Inode, size: int) -> None:
        """Set a file's size, copying no more than stays."""
        if inode.kind == stat.S_IFDIR:
            raise os_error(errno.EISDIR)
        if inode.kind != stat.S_IFREG:
            raise os_error(errno.EINVAL)
        inode.changes += 1
        self._big_copies.own_data(inode, keep=size)
        fd = self._descriptors.of(inode, write=True)
        st = os.fstat(fd)
        if self.hands_over and min(st.st_blocks * 512, st.st_size - size) >= MUCH_FREED:
            raise LongChangeError(inode, fd, lambda fd: os.ftruncate(fd, size))
        if size == 0 and st.st_size == 0 and not st.st_mode & (stat.S_ISUID | stat.S_ISGID):
            # ext4 takes ftruncate(2) for the beginning of a replacement, and writes the file
            # out when it is closed
            os.utime(fd, ns=(st.st_atime_ns, self._clock_ns()))
            with contextlib.suppress(OSError):  # it has none, as a rule
                os.removexattr(fd, "security.capability")
            return
        os.ftruncate(fd, size)

    def _is_tattered(self, inode: Inode) -> bool:
        """Tell whether to read a file anew takes fewer requests than to complete what was written
        in part.
        """
        size = os.fstat(self.read_fd(inode)).st_size
        return min(inode.ragged, size // mmap.PAGESIZE) > _FEW + size // _READ_AHEAD

    def _check_base(self, inode: Inode, source: RelPath, *, opens: bool) -> StillKnown:
        """Tell whether the base file behind an inode is as the kernel knows it; ESTALE if it is
        another file.

        With ``opens`` it is open afterwards, if it is a regular file: its descriptor tells what a
        look would.
        """
        if opens and inode.fd < 0 and inode.kind == stat.S_IFREG:
            fd, st = self._descriptors.open_base(inode, source)
            self._descriptors.keep(inode, fd, writes=False)
        else:
            st = self._look_at_base(inode, source)
        now = version_of(st)
        if now == inode.seen == inode.paged:
            return ALL_STILL_KNOWN
        # With pages of another version there may be a listing, too, which is not to be told again.
        is_told = inode.paged == NO_PAGES or is_as_told(inode.paged, now)
        known = StillKnown(pages=now == inode.paged, attributes=now == inode.seen and is_told)
        if not known.attributes:
            inode.changes += 1
        inode.seen, inode.paged = now, settled_version(st, self._clock_ns())
        return known

    def _look_at_base(self, inode: Inode, source: RelPath) -> os.stat_result:
        """Return the attributes of the base file behind an inode that is to be opened; ESTALE if it
        is another file.
        """
        again = self._layers.stat_by_plain_look(inode, source)
        if again is not None:
            return again
        try:
            st = self._base.lstat(source)
        except (FileNotFoundError, NotADirectoryError):
            raise os_error(errno.ESTALE) from None
        if not self._layers.is_source_of(inode, st):
            raise os_error(errno.ESTALE)
        if self._descriptors.is_other_file(inode, st):
            if inode.writers:  # what they write belongs into the file that they have opened
                return os.fstat(inode.fd)
            self._descriptors.close(inode)
        return st


def may_write(flags: int) -> bool:
    """Tell whether flags of open(2) ask for writing."""
    return flags & os.O_ACCMODE != os.O_RDONLY


def _lending_bits(mode: int) -> int:
    """Return the bits by which a file lends the rights of its owner and group; setgid does so only
    where the group may execute it.
    """
    return stat.S_ISUID | (stat.S_ISGID if mode & stat.S_IXGRP else 0)
