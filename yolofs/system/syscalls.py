"""The system calls that Python's ``os`` lacks: openat2(2), statx(2), getxattrat(2), renameat2(2),
syncfs(2) and fallocate(2).
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import stat
import sys
from typing import Final

import msgspec

PATH_MAX: Final = 4096
"""So many bytes has a path that the kernel takes, at most, with a NUL at its end."""

_RENAME_NOREPLACE: Final = 1
_RENAME_EXCHANGE: Final = 2
_FALLOC_FL_KEEP_SIZE: Final = 1
FALLOC_FL_PUNCH_HOLE: Final = 2
_UNSUPPORTED: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})
"""What system calls answer where the kernel, a seccomp filter or the filesystem lacks the flag."""

_OPENAT2: Final = 437
"""The same on all machines."""
_AT_FDCWD: Final = -100
_RESOLVE_NO_SYMLINKS: Final = 0x04

_GETXATTRAT: Final = 464
"""The same on all machines, from Linux 6.13 on."""
_MOST_XATTR_BYTES: Final = 1 << 16
"""No attribute has more (``XATTR_SIZE_MAX``)."""
_USUAL_XATTR_BYTES: Final = 512
"""As much as most have.  The kernel makes and clears room of the size that it is offered, which
takes twice as long as the rest of the call where that is the most.
"""
_HAS_NONE: Final = frozenset({errno.ENODATA, errno.EOPNOTSUPP})
"""What is said of a file without the attribute, and of a filesystem without such attributes."""

_AT_SYMLINK_NOFOLLOW: Final = 0x100
_AT_EMPTY_PATH: Final = 0x1000
_STATX_BYTES: Final = 256
_STATX_ATTR_FIXED: Final = 0x10 | 0x20
"""STATX_ATTR_IMMUTABLE and STATX_ATTR_APPEND."""
_STATX_MNT_ID: Final = 0x1000
_STATX_BTIME: Final = 0x800
_STATX_TYPE: Final = 0x1
_STATX_NLINK: Final = 0x4
_STATX_CTIME: Final = 0x80
_AT_STATX_FORCE_SYNC: Final = 0x2000
_AT_STATX_DONT_SYNC: Final = 0x4000
_STATFS_BYTES: Final = 256
"""More than ``struct statfs`` has anywhere; its first field, a long, is the type."""
_LONG_BYTES: Final = ctypes.sizeof(ctypes.c_long)
_OVERLAYFS: Final = 0x794C7630
_FUSE: Final = 0x65735546
_BTRFS: Final = 0x9123683E

_libc = ctypes.CDLL(None, use_errno=True)


class _How(ctypes.Structure):
    """``struct open_how``."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_HOW_BYTES: Final = ctypes.sizeof(_How)


def _syscall(number: int, *arguments: int | bytes | ctypes.Array[ctypes.c_char]) -> int:
    return int(_libc.syscall(number, *arguments))


def open_by_no_link(path: bytes, flags: int, *, directory: int = _AT_FDCWD) -> int:
    """Open an absolute path, or one in an open ``directory``, that has to lead through no symbolic
    link, and return the descriptor.

    Danger: what was a directory a moment ago may be a link now.  Anybody who may write above it can
    have put it there, and it leads to what other rules judge, or what belongs to somebody else.  A
    look before opening could never be sure.

    Raises:
        OSError: as open(2); ELOOP if any component is a symbolic link, the last one too.
    """
    if len(path) >= PATH_MAX or not _has_openat2():
        return _open_by_components(path, flags, directory)
    how = _how(flags)
    while (fd := _syscall(_OPENAT2, directory, path, how, _HOW_BYTES)) < 0:
        if ctypes.get_errno() != errno.EINTR:
            _raise(path)
    return fd


@functools.cache  # made anew it would take as long as the system call
def _how(flags: int) -> ctypes.Array[ctypes.c_char]:
    how = _How(flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0, _RESOLVE_NO_SYMLINKS)
    return ctypes.create_string_buffer(bytes(how), _HOW_BYTES)


@functools.cache
def _has_openat2() -> bool:
    """Tell whether there is openat2: Linux 5.6, and no filter that refuses it."""
    how = _How(os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_NO_SYMLINKS)
    fd = _syscall(_OPENAT2, _AT_FDCWD, b"/", bytes(how), _HOW_BYTES)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def _open_by_components(path: bytes, flags: int, directory: int) -> int:
    """Do what :func:`open_by_no_link` does, one directory after another."""
    names = [name for name in path.split(b"/") if name] or [b"."]
    start, start_fd = (b"/", None) if path.startswith(b"/") else (b".", directory)
    above = os.open(start, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=start_fd)
    for name in names[:-1]:
        try:
            below = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        finally:
            os.close(above)
        above = below
        if stat.S_ISLNK(os.fstat(above).st_mode):  # opened as itself
            os.close(above)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    try:
        return os.open(names[-1], flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    finally:
        os.close(above)


class Facts(msgspec.Struct, frozen=True):
    """What ``os.stat`` does not tell of a thing."""

    is_fixed: bool
    """Whether it is immutable or append-only (chattr), for root too; False where the system does
    not tell.
    """
    birth_ns: int | None
    """When it was made, in ns since 1970; None where the filesystem does not tell."""
    keeps_birth: bool
    """Whether it will tell the same as long as the thing is there."""

    @property
    def lasting_birth_ns(self) -> int | None:
        """When it was made, if that is known and stays so."""
        return self.birth_ns if self.keeps_birth else None


def look(target: bytes | int, known: dict[bytes, bool] | None = None) -> Facts:
    """Return the facts about what is at a path (a link itself), or is open.

    ``known`` is for many looks within a moment: which devices are OverlayFS, as was found so far.
    The number of a device is given again once it is gone.

    Raises:
        OSError: as statx(2).
    """
    found = _statx(target, _STATX_BTIME)
    is_fixed = bool(int.from_bytes(found[8:16], sys.byteorder) & _STATX_ATTR_FIXED)
    if not int.from_bytes(found[:4], sys.byteorder) & _STATX_BTIME:
        return Facts(is_fixed, None, keeps_birth=False)
    birth_ns = int.from_bytes(found[80:88], sys.byteorder, signed=True) * 10**9 + int.from_bytes(
        found[88:92], sys.byteorder
    )
    known = known if known is not None else {}
    device = found[136:144]
    if device not in known:
        known[device] = is_on_overlay(target)
    return Facts(is_fixed, birth_ns or None, keeps_birth=not known[device])  # 0: some say so of all they have


def is_on_overlay(target: bytes | int) -> bool:
    """Tell whether something is on OverlayFS: once that has made its copy of a thing, it tells that
    one's birth.
    """
    fd = _hold(target) if isinstance(target, bytes) else target
    try:
        return _type_of_disk(fd) == _OVERLAYFS
    finally:
        if isinstance(target, bytes):
            os.close(fd)


def _hold(path: bytes) -> int:
    """Return a descriptor of what is at a path, a link itself, however deep it lies."""
    if len(path) >= PATH_MAX:
        return open_by_no_link(path, os.O_PATH)
    return os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)


def _lstat(path: bytes) -> os.stat_result:
    if len(path) < PATH_MAX:
        return os.lstat(path)
    fd = _hold(path)
    try:
        return os.fstat(fd)
    finally:
        os.close(fd)


def is_in_user_space(fd: int) -> bool:
    """Tell whether what is open, O_PATH or not, is on a disk in user space (FUSE).

    Raises:
        OSError: as fstatfs(2).
    """
    return _type_of_disk(fd) == _FUSE


def is_on_btrfs(fd: int) -> bool:
    """Tell whether what is open is on btrfs.

    Raises:
        OSError: as fstatfs(2).
    """
    return _type_of_disk(fd) & 0xFFFFFFFF == _BTRFS  # where a long has 32 bits the number is negative or not


def _type_of_disk(fd: int) -> int:
    told = ctypes.create_string_buffer(_STATFS_BYTES)
    if _libc.fstatfs(fd, told):
        _raise(b"")
    return int.from_bytes(told.raw[:_LONG_BYTES], sys.byteorder)


def has_several_names(path: bytes, st: os.stat_result) -> bool:
    """Tell whether what is at a path, a link itself, has several names; ``st`` are its attributes.

    Of a disk in user space, or in the network, the kernel may remember a name that was just
    removed: so the disk itself is asked.

    Raises:
        OSError: as statx(2).
    """
    if st.st_nlink <= 1:
        return False
    found = _statx(path, _STATX_NLINK, _AT_STATX_FORCE_SYNC)
    is_told = int.from_bytes(found[:4], sys.byteorder) & _STATX_NLINK
    return not is_told or int.from_bytes(found[16:20], sys.byteorder) > 1


def fresh_ctime_ns(target: bytes | int) -> int:
    """Return the ctime in ns of what is at a path (a link itself), or is open, as the disk itself
    tells it.

    Of a disk in user space, or in the network, the kernel may remember the one that a file had
    before it lost a name.

    Raises:
        OSError: as statx(2).
    """
    found = _statx(target, _STATX_CTIME, _AT_STATX_FORCE_SYNC)
    if not int.from_bytes(found[:4], sys.byteorder) & _STATX_CTIME:
        return (os.fstat(target) if isinstance(target, int) else _lstat(target)).st_ctime_ns
    seconds = int.from_bytes(found[96:104], sys.byteorder, signed=True)
    return seconds * 10**9 + int.from_bytes(found[104:108], sys.byteorder)


def may_leave_its_directory(path: bytes, st: os.stat_result) -> bool:
    """Tell whether what is at an absolute path may come to lie in another directory.

    The kernel lets nobody move a directory there who may not write to it, as that changes its
    "..".  A directory of our own may be opened up for that.
    """
    return not stat.S_ISDIR(st.st_mode) or st.st_uid == os.geteuid() or os.access(path, os.W_OK, effective_ids=True)


def is_read_only(path: bytes) -> bool:
    """Tell whether nobody may change what is at a path, no symbolic link: its mount, its disk or
    its subvolume is read-only.

    Raises:
        OSError: as statvfs(2).
    """
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return True
    # btrfs tells of a subvolume by the error alone, before it looks at who asks
    return bool(_libc.access(path, os.W_OK)) and ctypes.get_errno() == errno.EROFS


def may_never_change(target: bytes | int) -> bool:
    """Tell whether what is at a path (a link itself), or is open, is immutable or append-only
    (chattr), for root too.

    False where the kernel or the filesystem does not tell.

    Raises:
        OSError: as statx(2).
    """
    return bool(int.from_bytes(_statx(target, 0)[8:16], sys.byteorder) & _STATX_ATTR_FIXED)


def birth_ns(path: bytes) -> int | None:
    """Return the time of birth at a path, a link's own, in ns; None if it is not told, or not
    lasting.

    Raises:
        OSError: as statx(2).
    """
    return look(path).lasting_birth_ns


def device_and_mount(path: bytes) -> tuple[int, int]:
    """Return the numbers of the device and of the mount that what is at a path, a link itself, is
    on.

    What differs in either cannot be renamed from one to the other: two mounts may show the same
    device (bind mounts).  The mount is 0 where the kernel does not tell (before Linux 5.8).

    Raises:
        OSError: as statx(2).
    """
    found = _statx(path, _STATX_MNT_ID)
    is_told = int.from_bytes(found[:4], sys.byteorder) & _STATX_MNT_ID
    return _lstat(path).st_dev, int.from_bytes(found[144:152], sys.byteorder) if is_told else 0


def device_and_type(target: bytes | int) -> tuple[int, int]:
    """Return the number of the device and the type (``S_IFMT``) of what is at a path, or open.

    The filesystem is not asked, as it may be a mount that is paused: it would not answer, and no
    signal that is caught ends a wait for it.

    Raises:
        OSError: as statx(2).
    """
    found = _statx(target, _STATX_TYPE, _AT_STATX_DONT_SYNC)
    if not int.from_bytes(found[:4], sys.byteorder) & _STATX_TYPE:
        st = os.stat(target)
        return st.st_dev, stat.S_IFMT(st.st_mode)
    major, minor = (int.from_bytes(found[at : at + 4], sys.byteorder) for at in (136, 140))
    return os.makedev(major, minor), stat.S_IFMT(int.from_bytes(found[28:30], sys.byteorder))


def _statx(target: bytes | int, mask: int, flags: int = 0) -> bytes:
    """Return statx(2)'s answer about a path, a link itself, or an open file; zeros without that
    call.
    """
    statx = getattr(_libc, "statx", None)  # glibc has it from 2.28
    found = ctypes.create_string_buffer(_STATX_BYTES)
    if isinstance(target, bytes):
        if len(target) >= PATH_MAX:
            fd = _hold(target)
            try:
                return _statx(fd, mask, flags)
            finally:
                os.close(fd)
        failed = statx is not None and statx(_AT_FDCWD, target, flags | _AT_SYMLINK_NOFOLLOW, mask, found)
    else:
        failed = statx is not None and statx(target, b"", flags | _AT_EMPTY_PATH, mask, found)
    if failed:
        _raise(target if isinstance(target, bytes) else b"")
    return found.raw


class _XattrRoom(ctypes.Structure):
    """``struct xattr_args``."""

    _fields_ = (("value", ctypes.c_uint64), ("size", ctypes.c_uint32), ("flags", ctypes.c_uint32))


class AttributeReader:
    """Reads one extended attribute of names in open directories, where the kernel can.

    Python's ``os.getxattr`` takes no directory: it needs a path through ``/proc``, which takes more
    than the rest of it.  For one thread at a time, as there is one place for what is read.
    """

    def __init__(self, attribute: bytes) -> None:
        self._attribute = ctypes.create_string_buffer(attribute)
        self._value = ctypes.create_string_buffer(_MOST_XATTR_BYTES)
        place = ctypes.addressof(self._value)
        self._usual_room = ctypes.byref(_XattrRoom(place, _USUAL_XATTR_BYTES, 0))
        self._most_room = ctypes.byref(_XattrRoom(place, _MOST_XATTR_BYTES, 0))
        # The seventh argument of syscall(2) lies on the stack, where an int takes half of a place.
        self._room_bytes = ctypes.c_size_t(ctypes.sizeof(_XattrRoom))

    def read(self, directory: int, name: bytes) -> bytes | None:
        """Return the attribute of a name in an open directory, of a link itself; None if it has
        none.

        Raises:
            OSError: it cannot be read, or not by this call: ENOSYS before Linux 6.13, and others
                where system calls are filtered.
        """
        attribute, size = self._attribute, self._room_bytes
        count = _libc.syscall(_GETXATTRAT, directory, name, _AT_SYMLINK_NOFOLLOW, attribute, self._usual_room, size)
        if count < 0 and ctypes.get_errno() == errno.ERANGE:
            count = _libc.syscall(_GETXATTRAT, directory, name, _AT_SYMLINK_NOFOLLOW, attribute, self._most_room, size)
        if count >= 0:
            return ctypes.string_at(self._value, count)
        if ctypes.get_errno() not in _HAS_NONE:
            _raise(name)
        return None


def rename_noreplace(src_fd: int, src: bytes, dst_fd: int, dst: bytes) -> None:
    """Rename ``src`` in the directory ``src_fd`` to ``dst`` in ``dst_fd``, if there is nothing.

    A filesystem that cannot do this in one step (NFS) gets a look and then a rename.

    Raises:
        FileExistsError: there is something at ``dst``.
        OSError: as rename(2).
    """
    try:
        _renameat2(src_fd, src, dst_fd, dst, _RENAME_NOREPLACE)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        try:
            os.stat(dst, dir_fd=dst_fd, follow_symlinks=False)
        except FileNotFoundError:
            os.rename(src, dst, src_dir_fd=src_fd, dst_dir_fd=dst_fd)
        else:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), dst) from None


def rename_exchange(src_fd: int, src: bytes, dst_fd: int, dst: bytes) -> bool:
    """Let two things, of any type, swap their names in one step; return False if the filesystem
    cannot.

    Raises:
        OSError: as renameat2(2).
    """
    try:
        _renameat2(src_fd, src, dst_fd, dst, _RENAME_EXCHANGE)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return False
        raise
    return True


def sync_filesystem(fd: int) -> None:
    """Make all that was written to the filesystem of ``fd`` durable.  Blocks for as long as the
    disk takes.

    Raises:
        OSError: as syncfs(2) and fsync(2): an earlier write failed.
    """
    syncfs = getattr(_libc, "syncfs", None)
    if syncfs is None:
        os.sync()
    elif syncfs(fd):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    elif _libc.fsync(fd) and (number := ctypes.get_errno()) not in _UNSUPPORTED:
        # Before Linux 6.15, syncfs does nothing with a disk that an error has made read-only, and
        # says that all is well.
        raise OSError(number, os.strerror(number))


def fallocate(fd: int, mode: int, offset: int, length: int) -> None:
    """Allocate or free room in a file, with the flags of fallocate(2) as ``mode``.

    Raises:
        OSError: as fallocate(2).
    """
    if _libc.fallocate(fd, mode, ctypes.c_int64(offset), ctypes.c_int64(length)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def reserve_space(fd: int, offset: int, length: int) -> None:
    """Have the disk keep space for a range of a file, without changing its size or content.

    Raises:
        OSError: as fallocate(2): ENOSPC, EOPNOTSUPP where the filesystem cannot.
    """
    fallocate(fd, _FALLOC_FL_KEEP_SIZE, offset, length)


def _renameat2(src_fd: int, src: bytes, dst_fd: int, dst: bytes, flags: int) -> None:
    renameat2 = getattr(_libc, "renameat2", None)  # glibc has it from 2.28
    if renameat2 is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), dst)
    if renameat2(src_fd, src, dst_fd, dst, flags):
        _raise(dst)


def _raise(path: bytes) -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number), path)
