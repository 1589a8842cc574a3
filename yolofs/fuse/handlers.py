"""What answers the kernel: numbers, bytes and small tuples in and out, :class:`OSError` for errors.

Knows the overlay, the gate in front of it and the kernel's side (handles, how long an answer may be
cached), but no :mod:`transport <yolofs.fuse.transport>`.  All of it runs on the device loop and
nothing here waits.  A request that needs an answer of the user raises
:class:`~yolofs.access.refusals.UndecidedError`, one that needs a large copy
:class:`~yolofs.fuse.results.PostponedError`, and one that would keep others waiting
:class:`~yolofs.overlay.LongChangeError`, before anything is done.  There is one method for each
kind of request, so the file is long.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from yolofs.access.gate import Gate
from yolofs.access.questions import Operation
from yolofs.fuse.cache.lifetimes import Lifetimes
from yolofs.fuse.cache.listings import Listings
from yolofs.fuse.cache.lost_names import LostNames
from yolofs.fuse.results import ChangingError, DirHandle, EntryReply, Opened, PostponedError, UncountedError
from yolofs.journal.journal import Journal
from yolofs.overlay import ALL_STILL_KNOWN, UNNAMED, Overlay, Owner, may_write
from yolofs.overlay.inodes import UNKNOWN_NUMBER, Attr, Inode
from yolofs.store.owners import Owners

log = logging.getLogger("yolofs.fuse")

MAX_READ = 1 << 20
"""No request asks for more bytes as the kernel is set up by default
(``/proc/sys/fs/fuse/max_pages_limit``).
"""


_ABSENT = EntryReply(None, 0.0, 0.0)
"""A hidden name that the kernel asks for again each time."""
_CONTENT_XATTRS = (b"user.", b"trusted.")
"""What begins so is content, and judged as such; other extended attributes are looked at as stat(2)
looks.
"""
_ROOTS_XATTRS = b"trusted."
_UNKNOWN_ENTRY = EntryReply(Attr(UNKNOWN_NUMBER, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, False), 0.0, 0.0)
"""A name in a listing that cannot be looked at: in a directory that one may read and not enter, for
instance.
"""


class Handlers:
    """The requests of the kernel, carried out on ``overlay`` as far as ``gate`` lets them.

    ``lifetimes`` says how long answers may be cached.
    """

    def __init__(self, overlay: Overlay, gate: Gate, lifetimes: Lifetimes) -> None:
        self.overlay = overlay
        self.gate = gate
        self._lifetimes = lifetimes
        self._inodes = overlay.inodes.by_number
        self.lost_names = LostNames()
        self.listings = Listings(lambda: (overlay.upheavals, gate.book.version))
        self._files: dict[int, Inode] = {}
        self._directories: dict[int, DirHandle] = {}
        self._last_handle = 0
        self._may_postpone = True
        self.changing: set[Inode] = set()
        """The files with a long change under way; filled by others."""
        self._changed: Inode | None = None  # of which the request that is carried out has had its long change made
        self._read_buffer = memoryview(bytearray(MAX_READ))

    def errno_of(self, error: OSError) -> int:
        """Return the errno of an error for the kernel: EIO if a store inode is missing.

        That a store inode does not exist must not say that the file does not.
        """
        if error.errno == errno.ENOENT and self.overlay.store.holds(error.filename):
            log.error("%s is missing; yolofs doctor tells what it was", os.fsdecode(error.filename))
            return errno.EIO
        return error.errno or errno.EIO

    # ---- names

    def lookup(self, parent: int, name: bytes) -> EntryReply:
        """Look a name up; the kernel owes a forget if it exists."""
        directory = self._inode(parent)
        if name in (b".", b".."):  # of the holder of a file handle; "." may be a file then
            inode = directory if name == b"." else directory.parent or directory
            self.gate.check_stat(inode)
            attr = self.overlay.getattr(inode)
            inode.lookups += 1
            return self._answer(directory, name, attr)
        if not self.gate.shows(directory, name):
            return self._hidden(directory, name)
        found = self.overlay.lookup(directory, name)
        if found is None:
            return self._answer(directory, name, None)
        if self.lost_names.uncounted and self.lost_names.may_be_uncounted(found[0].number):
            self.overlay.forget(found[0].number, 1)
            raise UncountedError(found[0])
        return self._answer(directory, name, found[1])

    def _hidden(self, directory: Inode, name: bytes) -> EntryReply:
        """Return that a hidden name is not there.

        The kernel may keep that for as long as of a name that base does not have; but not in a
        staged directory, where it keeps names for long: a travel may put the directory elsewhere.
        """
        if directory.staged is not None or directory.source is None:
            return _ABSENT
        lifetime_s = self._lifetimes.of_name(directory, is_stable=False)
        if lifetime_s <= 0 or not self.gate.absent_names.may_stay(directory.number, name, lifetime_s):
            return _ABSENT
        return EntryReply(None, lifetime_s, 0.0)

    def forget(self, items: Sequence[tuple[int, int]]) -> None:
        """Take back look-ups: pairs of inode number and count."""
        for number, count in items:
            self.overlay.forget(number, count)

    def mknod(self, parent: int, name: bytes, mode: int, rdev: int, owner: Owner) -> EntryReply:
        """Create a file of any type that is not a directory or a link."""
        directory = self._inode(parent)
        self.gate.check_create(directory, name)
        mode, owner = self.overlay.inherit(directory, mode, owner)
        return self._answer(directory, name, self.overlay.mknod(directory, name, mode, rdev, owner)[1])

    def mkdir(self, parent: int, name: bytes, mode: int, owner: Owner) -> EntryReply:
        """Create a directory."""
        directory = self._inode(parent)
        mode, owner = self.overlay.inherit(directory, mode | stat.S_IFDIR, owner)
        self.gate.check_mkdir(directory, name, mode)
        return self._answer(directory, name, self.overlay.mkdir(directory, name, mode, owner)[1])

    def symlink(self, parent: int, name: bytes, target: bytes, owner: Owner) -> EntryReply:
        """Create a symbolic link."""
        directory = self._inode(parent)
        self.gate.check_symlink(directory, name)
        return self._answer(directory, name, self.overlay.symlink(directory, name, target, owner)[1])

    def link(self, number: int, parent: int, name: bytes) -> EntryReply:
        """Create a hard link."""
        inode, directory = self._inode(number), self._inode(parent)
        if inode.is_orphan and self.overlay.is_unnamed(inode):
            self.gate.check_create(directory, name)
            return self._answer(directory, name, self.overlay.give_name(inode, directory, name)[1])
        self.gate.check_link(inode, directory, name)
        self._check_counted(inode)
        return self._answer(directory, name, self.overlay.link(inode, directory, name)[1])

    def unlink(self, parent: int, name: bytes) -> None:
        """Remove a name that is no directory."""
        directory = self._inode(parent)
        self.gate.check_remove(directory, name)
        self._lost_name(self.overlay.unlink(directory, name), directory)

    def rmdir(self, parent: int, name: bytes) -> None:
        """Remove an empty directory."""
        directory = self._inode(parent)
        self.gate.check_remove(directory, name)
        self.overlay.rmdir(directory, name)

    def rename(self, parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int) -> None:
        """Rename, as renameat2(2)."""
        directory, new_directory = self._inode(parent), self._inode(new_parent)
        self.gate.check_rename(directory, name, new_directory, new_name, flags)
        self._lost_name(self.overlay.rename(directory, name, new_directory, new_name, flags), new_directory)

    # ---- attributes

    def getattr(self, number: int) -> EntryReply:
        """Return a file's attributes."""
        inode = self._inode(number)
        self.gate.check_stat(inode)
        self._check_counted(inode)
        attr = self.overlay.getattr(inode)
        return EntryReply(self._as_shown(inode, attr), 0.0, self._lifetimes.of_attr(inode, attr))

    def birth_ns(self, number: int) -> int | None:
        """Return when a file was made, in ns since 1970, None where that is not known."""
        inode = self._inode(number)
        self.gate.check_stat(inode)
        return self.overlay.birth_ns(inode)

    def setattr(
        self,
        number: int,
        mode: int | None,
        uid: int | None,
        gid: int | None,
        size: int | None,
        atime_ns: int | None,
        mtime_ns: int | None,
        *,
        is_open: bool = False,
        drops_setuid: bool = False,
    ) -> EntryReply:
        """Change those attributes that are not None; ``is_open``: through a handle that was opened
        for writing.

        Such a handle is good for what comes with writing: the size and the times.
        ``drops_setuid``: somebody changes the size who may not keep setuid and setgid bits.
        """
        inode = self._inode(number)
        if size is not None and self.changing:
            self._check_at_rest(inode)
        sets_owner_or_mode = mode is not None or uid is not None or gid is not None
        if sets_owner_or_mode or (size is not None and not is_open):
            self.gate.check_change(inode, Operation.WRITE if size is not None else Operation.METADATA)
        elif not is_open:
            self.gate.check_times(inode)
        self._check_counted(inode)
        if size is None or size:
            self._postpone(inode, size=size, metadata_only=size is None)
        attr = self.overlay.setattr(inode, mode=mode, uid=uid, gid=gid, size=size, atime_ns=atime_ns, mtime_ns=mtime_ns)
        if drops_setuid:
            self.overlay.drop_setuid(inode)
            attr = self.overlay.getattr(inode)
        return EntryReply(self._as_shown(inode, attr), 0.0, self._lifetimes.of_attr(inode, attr))

    def readlink(self, number: int) -> bytes:
        """Return a symbolic link's target."""
        inode = self._inode(number)
        self.gate.check_stat(inode)
        return self.overlay.readlink(inode)

    def statvfs(self) -> os.statvfs_result:
        """Return the figures of the disk that staged data goes to."""
        return self.overlay.statvfs()

    def getxattr(self, number: int, name: bytes) -> bytes:
        """Return an extended attribute."""
        inode = self._inode(number)
        if name.startswith(_CONTENT_XATTRS):
            self.gate.check_read(inode)
        else:
            self.gate.check_stat(inode)
        return self.overlay.getxattr(inode, name)

    def lacks_xattr(self, number: int, name: bytes) -> bool:
        """Tell whether a file is known not to have an extended attribute; false says nothing."""
        inode = self._inode(number)
        self.gate.check_stat(inode)
        return self.overlay.lacks_xattr(inode, name)

    def listxattr(self, number: int, uid: int = 0) -> list[bytes]:
        """Return the names of a file's extended attributes that the user ``uid`` may know."""
        inode = self._inode(number)
        self.gate.check_stat(inode)
        names = self.overlay.listxattr(inode)
        return names if uid == 0 else [name for name in names if not name.startswith(_ROOTS_XATTRS)]

    def setxattr(self, number: int, name: bytes, value: bytes, flags: int = 0, *, drops_setgid: bool = False) -> None:
        """Set an extended attribute, with the flags of setxattr(2); ``drops_setgid``: it is an
        access control list, set by somebody who may not keep that bit.
        """
        inode = self._inode(number)
        self.gate.check_change(inode, Operation.METADATA)
        if flags:
            self._check_xattr(inode, name, flags)
        self._postpone(inode, metadata_only=True)
        self.overlay.setxattr(inode, name, value)
        if drops_setgid:
            self.overlay.drop_setgid(inode)

    def _check_xattr(self, inode: Inode, name: bytes, flags: int) -> None:
        """Refuse to make an attribute that is there, or to replace one that is not."""
        try:
            self.overlay.check_has_xattr(inode, name)
        except OSError as error:
            if error.errno != errno.ENODATA or flags & os.XATTR_REPLACE:
                raise
        else:
            if flags & os.XATTR_CREATE:
                raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))

    def removexattr(self, number: int, name: bytes) -> None:
        """Remove an extended attribute."""
        inode = self._inode(number)
        self.gate.check_change(inode, Operation.METADATA)
        self._postpone(inode, metadata_only=True)
        self.overlay.removexattr(inode, name)

    # ---- files

    def open(self, number: int, flags: int, *, may_keep_setuid: bool = True, is_judged: bool = True) -> Opened:
        """Open a file; the kernel owes a release.  ``may_keep_setuid``: whoever empties it so may
        keep its setuid and setgid bits.
        """
        inode = self._inode(number)
        if is_judged:
            self.gate.check_open(inode, flags)
        if flags & os.O_TRUNC and self.changing:
            self._check_at_rest(inode)
        still_known = self.overlay.open(inode, flags, may_keep_setuid=may_keep_setuid)
        return Opened(self._file_handle(inode, flags), still_known, number)

    def create(
        self, parent: int, name: bytes, mode: int, flags: int, owner: Owner, *, may_keep_setuid: bool = True
    ) -> tuple[Opened, EntryReply]:
        """Create and open a file, or open the one that is there (as :meth:`open`) unless ``flags``
        hold O_EXCL.
        """
        directory = self._inode(parent)
        if not self.gate.verdict_below(directory, name).may_write and not self._exists(directory, name):
            self.gate.check_create(directory, name)
        try:
            bits, heir = self.overlay.inherit(directory, mode, owner) if owner.umask is not None else (mode, owner)
            inode, attr = self.overlay.create(directory, name, bits, heir, is_writer=may_write(flags))
        except FileExistsError:
            if flags & os.O_EXCL:
                raise
            return self._open_existing(directory, name, flags, may_keep_setuid=may_keep_setuid)
        opened = Opened(self._file_handle(inode, flags), ALL_STILL_KNOWN, inode.number)
        return opened, self._answer(directory, name, attr)

    def tmpfile(self, parent: int, mode: int, flags: int, owner: Owner) -> tuple[Opened, EntryReply]:
        """Create and open a file without a name; the kernel owes a forget and a release."""
        directory = self._inode(parent)
        self.gate.check_create(directory, UNNAMED)
        mode, owner = self.overlay.inherit(directory, mode, owner)
        inode, attr = self.overlay.tmpfile(directory, mode, owner, is_writer=may_write(flags))
        opened = Opened(self._file_handle(inode, flags), ALL_STILL_KNOWN, inode.number)
        return opened, EntryReply(self._as_shown(inode, attr), 0.0, self._lifetimes.of_attr(inode, attr))

    def _open_existing(
        self, directory: Inode, name: bytes, flags: int, *, may_keep_setuid: bool
    ) -> tuple[Opened, EntryReply]:
        found = self.overlay.lookup(directory, name)
        if found is None:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        inode = found[0]
        try:
            if inode.kind != stat.S_IFREG:
                raise OSError(errno.EISDIR if inode.is_directory else errno.EEXIST, "not a regular file")
            opened = self.open(inode.number, flags, may_keep_setuid=may_keep_setuid)
            try:
                return opened, self._answer(directory, name, self.overlay.getattr(inode))
            except BaseException:
                self.release(opened.handle)
                raise
        except BaseException:
            self.overlay.forget(inode.number, 1)
            raise

    @property
    def has_open_files(self) -> bool:
        """Whether any file is open; for any thread."""
        return bool(self._files)

    def open_in_base(self) -> dict[int, bytes]:
        """Return the numbers of the open files that have their data in base, with its absolute
        path.
        """
        base = self.overlay.base
        inodes = set(self._files.values())
        return {inode.number: base.path(inode.source) for inode in inodes if inode.source and not inode.is_orphan}

    def release(self, handle: int) -> None:
        """Close a file."""
        self.overlay.release(self._files.pop(handle), writer=bool(handle & 1))

    def read(self, handle: int, offset: int, size: int) -> memoryview | bytes | None:
        """Read from an open file if that needs no waiting for a disk, else return None.

        What is returned holds until the next read.
        """
        fd = self.overlay.read_fd(self._files[handle])
        room = self._read_buffer[:size]
        try:
            count = os.preadv(fd, [room], offset, os.RWF_NOWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            return os.pread(fd, size, offset)  # tmpfs and overlayfs cannot tell
        if count < size and offset + count < os.fstat(fd).st_size:
            return None
        return room[:count]

    def read_job(self, handle: int, offset: int, size: int) -> Callable[[], bytes]:
        """Return a call that reads from an open file and may block; it may run in
        another thread.

        The descriptor that it holds is a copy: the original may be closed meanwhile.
        """
        return partial(_read, os.dup(self.overlay.read_fd(self._files[handle])), offset, size)

    def write(self, handle: int, offset: int, data: bytes | memoryview, *, appends: bool = False) -> int:
        """Write to an open file; ``appends``: at its end, wherever the kernel takes that to be."""
        inode = self._files[handle]
        staged = inode.staged
        if staged is None or staged.ino < self.overlay.fresh_from or staged.origin is not None:
            self._postpone(inode)
        elif self.changing:
            self._check_at_rest(inode)
        return self.overlay.write(inode, offset, data, appends=appends)

    def lends_rights(self, handle: int) -> bool:
        """Tell whether an open file has setuid or setgid bits that a change is to take away."""
        return self.overlay.lends_rights(self._files[handle])

    def drop_setuid(self, handle: int) -> None:
        """Take the setuid and setgid bits of an open file away, as somebody writes to it who may
        not keep them.
        """
        self.overlay.drop_setuid(self._files[handle])

    def fallocate(self, handle: int, mode: int, offset: int, length: int) -> None:
        """Allocate or free room in an open file, as fallocate(2)."""
        inode = self._files[handle]
        self._postpone_write(inode)
        if self._changed is not inode:
            self.overlay.fallocate(inode, mode, offset, length)

    def copy_range(self, source: int, source_offset: int, target: int, offset: int, length: int) -> int:
        """Copy from one open file to another, and return how many bytes: at most
        :data:`~yolofs.overlay.data.MOST_RANGE_BYTES`.
        """
        inode = self._files[target]
        self._postpone_write(inode)
        return self.overlay.copy_range(self._files[source], source_offset, inode, offset, length)

    def may_be_mapped(self, handle: int) -> bool:
        """Tell whether the kernel may hold back what was written to an open file by a mapping."""
        return self._files[handle].writers > 0

    def have_written_out(self, handle: int) -> None:
        """See that the kernel drops the pages of an open file, and so hands over what it holds
        back.
        """
        inode = self._files[handle]
        self.overlay.outdated[inode.number] = inode.paged

    def seek(self, handle: int, offset: int, whence: int) -> int:
        """Return where the next data or hole of an open file is, as lseek(2)."""
        return os.lseek(self.overlay.read_fd(self._files[handle]), offset, whence)

    def _postpone_write(self, inode: Inode) -> None:
        if self.changing:
            self._check_at_rest(inode)
        staged = inode.staged
        if staged is None or staged.ino < self.overlay.fresh_from or staged.origin is not None:
            self._postpone(inode)

    def sync_fd(self, handle: int) -> int | None:
        """Return the descriptor to fsync for an open file, None if there is nothing to make
        durable.
        """
        return self.overlay.sync_fd(self._files[handle])

    def sync_job(self, fd: int | None) -> Callable[[], None]:
        """Return a call that makes a file and then the journal durable; it may run in another
        thread.

        The descriptor that it holds is a copy of ``fd``: the original may be closed meanwhile.
        """
        return partial(_sync, os.dup(fd) if fd is not None else None, self.overlay.store.owners, self.overlay.journal)

    # ---- directories

    def opendir(self, number: int) -> int:
        """Open a directory; the kernel owes a releasedir."""
        inode = self._inode(number)
        self.gate.check_list(inode)
        inode.opens += 1
        self._last_handle += 2
        self._directories[self._last_handle] = DirHandle(inode)
        return self._last_handle

    def directory(self, handle: int, start: int) -> DirHandle:
        """Return an open directory for reading on from offset ``start``; at 0 its names are read
        anew.
        """
        opened = self._directories[handle]
        listings, listing = self.listings, opened.listing
        if start == 0:
            opened.listing = listing = listings.find(opened.inode)
            opened.was_told = listing is not None
            if listing is None:
                names = self.overlay.names(opened.inode)
                opened.names = [b".", b"..", *self.gate.shown(opened.inode, names)]
                opened.listing = listings.begin(opened.inode, self._lifetimes.of_names_in(opened.inode))
        elif listing is not None and not listings.is_valid(listing):
            self.look_up_again(opened)
        return opened

    def would_tell_again(self, handle: int) -> bool:
        """Tell whether an open directory would be listed as it was before."""
        return self.listings.find(self._directories[handle].inode) is not None

    def look_up_again(self, opened: DirHandle) -> None:
        """Have the rest of an open directory looked up, as its listing does not hold (any more)."""
        listing = opened.listing
        if opened.was_told and listing is not None:
            opened.names = [row.name for row in listing.rows]
            opened.was_told = False
            self.listings.drop(listing)
        opened.listing = None

    def dot(self, directory: DirHandle, name: bytes) -> EntryReply:
        """Return what ``.`` or ``..`` of an open directory is, without counting a look-up."""
        inode = directory.inode
        if name == b"..":
            inode = inode.parent or inode
        return EntryReply(self._as_shown(inode, self.overlay.getattr(inode)), 0.0, 0.0)

    def listed(self, directory: DirHandle, name: bytes) -> EntryReply:
        """Look up a name of an open directory; one that cannot be looked at is named all the same,
        without a type.

        The kernel makes nothing of such an answer but the name; it takes back one look-up of a
        number nobody has.
        """
        try:
            return self.lookup(directory.inode.number, name)
        except OSError:
            return _UNKNOWN_ENTRY
        except UncountedError as error:
            self.lost_names.on_seen(error.inode.number)
            return _UNKNOWN_ENTRY

    def note_told(self, directory: DirHandle, offset: int, name: bytes, answer: EntryReply, entry: Any) -> None:
        """Note that the kernel was told ``answer``, ``entry`` in the transport's form, for the name
        at an offset.
        """
        listing, attr = directory.listing, answer.attr
        if listing is None:
            return
        if attr is None or attr.number == UNKNOWN_NUMBER or offset > len(listing.rows):
            self.look_up_again(directory)
            return
        inode = self._inodes[attr.number] if offset >= 2 else None
        lifetime_s = None
        if inode is not None and not (attr.is_stable and self.overlay.is_stable_name(directory.inode, name)):
            lifetime_s = min(answer.name_timeout_s, answer.attr_timeout_s)
        listing.tell(offset, name, entry, inode, lifetime_s)
        if not directory.was_told and len(listing.rows) == len(directory.names):
            self.listings.keep(listing)

    def releasedir(self, handle: int) -> None:
        """Close a directory."""
        self.overlay.release(self._directories.pop(handle).inode, writer=False)

    # ---- inside

    def _lost_name(self, inode: Inode | None, directory: Inode) -> None:
        if inode is not None:
            self.lost_names.note(inode.number, directory.number)

    def _check_counted(self, inode: Inode) -> None:
        """Raise UncountedError if the kernel might count a lost name twice by what it hears now."""
        if self.lost_names.uncounted and self.lost_names.may_be_uncounted(inode.number):
            raise UncountedError(inode)

    def _inode(self, number: int) -> Inode:
        inode = self._inodes.get(number)
        if inode is None:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return inode

    @contextlib.contextmanager
    def copying_at_once(self) -> Iterator[None]:
        """Postpone nothing while the block runs, which must not be suspended."""
        self._may_postpone = False
        try:
            yield
        finally:
            self._may_postpone = True

    @contextlib.contextmanager
    def having_changed(self, inode: Inode) -> Iterator[None]:
        """Carry out a request of which a thread has made the long change of a file, while the block
        runs.
        """
        self._changed = inode
        try:
            yield
        finally:
            self._changed = None

    def _check_at_rest(self, inode: Inode) -> None:
        """Raise ChangingError if a long change of a file is under way, for another request."""
        if inode in self.changing and inode is not self._changed:
            raise ChangingError(inode)

    def _postpone(self, inode: Inode, *, size: int | None = None, metadata_only: bool = False) -> None:
        """Raise PostponedError if a change of ``inode`` should wait for a copy."""
        if self._may_postpone and self.overlay.will_copy(inode, size=size, metadata_only=metadata_only):
            raise PostponedError(inode, size)

    def _exists(self, directory: Inode, name: bytes) -> bool:
        """Tell whether there is something that a program may know of."""
        return self.gate.shows(directory, name) and self.overlay.stat_name(directory, name) is not None

    def _file_handle(self, inode: Inode, flags: int) -> int:
        self._last_handle += 2
        handle = self._last_handle | may_write(flags)
        self._files[handle] = inode
        return handle

    def _answer(self, directory: Inode, name: bytes, attr: Attr | None) -> EntryReply:
        lifetimes = self._lifetimes
        name_timeout_s = lifetimes.of_name(directory, is_stable=self.overlay.is_stable_name(directory, name))
        if attr is None:
            return EntryReply(None, name_timeout_s, 0.0)
        inode = self._inodes[attr.number]
        return EntryReply(self._as_shown(inode, attr), name_timeout_s, lifetimes.of_attr(inode, attr))

    def _as_shown(self, inode: Inode, attr: Attr) -> Attr:
        """Return attributes as they may be told; a link count of 1 means for a directory that it is
        not known.
        """
        if not self.gate.counts_links(inode):
            attr.nlink = min(attr.nlink, 1)
        return attr


def _read(fd: int, offset: int, size: int) -> bytes:
    try:
        return os.pread(fd, size, offset)
    finally:
        os.close(fd)


def _sync(fd: int | None, owners: Owners, journal: Journal) -> None:
    if fd is not None:
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    owners.sync()
    journal.sync()
