"""Copying one file with all of its metadata; :mod:`yolofs.store.file_data` copies its bytes.

Copy-up uses this towards the store, commit towards base.  Nothing follows symlinks, and every
function blocks until the bytes are with the kernel (not until they are durable).

If something cannot be carried over, for lack of permission or support, that is no error: the
functions return a tuple of strings that name it, such as ``"owner"`` or ``"xattr user.note"``.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

import msgspec

from yolofs.store import file_data
from yolofs.system.syscalls import PATH_MAX, open_by_no_link

_NOT_PERMITTED = frozenset(
    {errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.EINVAL, errno.E2BIG, errno.ERANGE, errno.EOVERFLOW}
)
"""What writing an xattr answers if this user, or the other filesystem, may not hold it.  EOVERFLOW:
a file capability belongs to a user whom this user namespace does not have.
"""
_NO_SUCH_METADATA = frozenset({errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENOSYS})
"""What setting mode, owner or times answers if this user, or the filesystem, may not."""
_XFS_ALIAS = "trusted.SGI_"
"""What root sees on XFS as a second name of each ACL."""


class Metadata(msgspec.Struct, frozen=True):
    """All that a file has besides its data, as it was when it was read."""

    st: os.stat_result
    xattrs: tuple[tuple[str, bytes], ...] = ()
    unread: tuple[str, ...] = ()
    """The xattrs that could not be read, each as ``xattr NAME``."""


class CopySource(msgspec.Struct, frozen=True):
    """A file about to be copied: all that is needed is read or open, so its path may change or be
    closed off.
    """

    metadata: Metadata
    fd: int = -1
    """Of a regular file whose data is wanted, open for reading, owned by this object; else -1."""
    target: bytes = b""
    """Of a symlink."""

    def close(self) -> None:
        """Close :attr:`fd`.  To be called once."""
        if self.fd >= 0:
            os.close(self.fd)


class PathDescriptor(msgspec.Struct, frozen=True):
    """What a descriptor leads to that was opened with ``O_PATH``, and so is good for its attributes
    alone.

    It stays the same thing, a link itself, whatever is at its path by now.
    """

    fd: int

    @property
    def path(self) -> bytes:
        """A path that leads to it, for calls that take paths and follow links: the system's own."""
        return b"/proc/self/fd/%d" % self.fd


@contextlib.contextmanager
def path_descriptor(path: bytes) -> Iterator[PathDescriptor]:
    """Give a descriptor of what is at a path, a link itself, for the time of a block.

    Raises:
        OSError: as open(2).
    """
    fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield PathDescriptor(fd)
    finally:
        os.close(fd)


def at(dir_fd: int, name: bytes) -> bytes:
    """Return a path for ``name`` in an open directory, for all that takes paths (os.setxattr takes
    no dir_fd).

    It is good while ``dir_fd`` is open, in this process only.
    """
    return b"/proc/self/fd/%d/%b" % (dir_fd, name)


# --- whole files ----------------------------------------------------------------------------------


def copy_node(src: bytes | PathDescriptor, dst: bytes, *, data: bool = True) -> tuple[str, ...]:
    """Make ``dst`` a copy of ``src``, whatever its type; of a directory without its children.

    Without ``data`` a regular file becomes one hole of the same size.  Returns what could not be
    carried over.

    Raises:
        FileExistsError: there is something at ``dst``; it is left alone.
        OSError: ``src`` cannot be read or ``dst`` not written; nothing is left at ``dst``.
    """
    source = open_source(src, data=data)
    try:
        return write_copy(source, dst)
    finally:
        source.close()


def open_source(path: bytes | PathDescriptor, *, data: bool = True, is_base: bool = False) -> CopySource:
    """Read the metadata of a path, or of what is held, and, of a regular file whose ``data`` is
    wanted, open it.

    Reading leaves the access time alone where that is permitted.  ``is_base``: the path is
    absolute, and nothing is read by any symbolic link on the way there.

    Raises:
        OSError: it cannot be read; ESTALE if its type changed meanwhile.
    """
    if not isinstance(path, PathDescriptor):
        fd = (open_by_no_link if is_base else os.open)(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return open_source(PathDescriptor(fd), data=data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from None
        finally:
            os.close(fd)
    st = os.fstat(path.fd)
    if stat.S_ISLNK(st.st_mode):
        return CopySource(read_metadata(path, st=st), target=os.readlink(b"", dir_fd=path.fd))
    if not data or not stat.S_ISREG(st.st_mode):
        return CopySource(read_metadata(path, st=st))
    fd = _open_to_read(path.path)
    try:
        return CopySource(read_metadata(fd, st=os.fstat(fd)), fd=fd)
    except BaseException:
        os.close(fd)
        raise


def write_copy(source: CopySource, dst: bytes) -> tuple[str, ...]:
    """Make ``dst`` a copy of what :func:`open_source` read; returns and raises as
    :func:`copy_node`.
    """
    st = source.metadata.st
    if stat.S_ISREG(st.st_mode):
        fd, left_out = write_file(source, dst)
        os.close(fd)
        return left_out
    if stat.S_ISDIR(st.st_mode):
        os.mkdir(dst, 0o700)
    elif stat.S_ISLNK(st.st_mode):
        os.symlink(source.target, dst)
    else:
        os.mknod(dst, stat.S_IFMT(st.st_mode) | 0o600, st.st_rdev)
    try:
        return write_metadata(dst, source.metadata)
    except BaseException:
        with contextlib.suppress(OSError):
            (os.rmdir if stat.S_ISDIR(st.st_mode) else os.unlink)(dst)
        raise


def write_file(source: CopySource, dst: bytes, *, keep: int | None = None) -> tuple[int, tuple[str, ...]]:
    """Make ``dst`` a copy of a regular file, of its first ``keep`` bytes (None: all of it).

    Returns a descriptor for reading and writing, which the caller owns, and what could not be
    carried over.  Until it has its real mode the file is open to its owner only.

    Raises:
        OSError: as :func:`copy_node`.
    """
    st = source.metadata.st
    fd = os.open(dst, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        size = st.st_size if keep is None else min(keep, st.st_size)
        if source.fd < 0:
            if size:
                os.ftruncate(fd, size)
        elif not file_data.copy_small(source.fd, fd, st, size):
            file_data.copy_data(source.fd, fd, size)
        return fd, write_metadata(fd, source.metadata)
    except BaseException:
        os.close(fd)
        with contextlib.suppress(OSError):
            os.unlink(dst)
        raise


def _open_to_read(path: bytes) -> int:
    """Open what a path of the system's own leads to: it is followed."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # NONBLOCK: somebody may have a lease on it
    try:
        return os.open(path, flags | os.O_NOATIME)
    except PermissionError as error:
        if error.errno != errno.EPERM:
            raise
        return os.open(path, flags)  # another user's file: only its owner may leave the access time alone


# --- metadata -------------------------------------------------------------------------------------


def copy_metadata(
    src: bytes, dst: bytes | PathDescriptor, *, st: os.stat_result | None = None, times: bool = True
) -> tuple[str, ...]:
    """Give ``dst`` the owner, xattrs (ACLs among them), mode and times of ``src``, which has the
    same type.

    ``st`` is used instead of looking ``src`` up; without ``times`` those of ``dst`` stay as they
    become.  Returns what could not be carried over.

    Raises:
        OSError: for any other reason than that something is not permitted or not supported.
    """
    return write_metadata(dst, read_metadata(src, st=st), times=times)


def read_base_metadata(path: bytes, *, st: os.stat_result | None = None) -> Metadata:
    """Return the metadata of what is at a path in base; ``st`` is used instead of looking it up.

    Raises:
        OSError: it cannot be read; ELOOP where a symbolic link is on the way, as anybody may have
            put one there since.
    """
    fd = open_by_no_link(path, os.O_PATH)
    try:
        return read_metadata(PathDescriptor(fd), st=st)
    finally:
        os.close(fd)


def read_metadata(src: bytes | int | PathDescriptor, *, st: os.stat_result | None = None) -> Metadata:
    """Return the metadata of a path or descriptor; ``st`` is used instead of looking it up."""
    if isinstance(src, bytes) and len(src) >= PATH_MAX:
        return read_base_metadata(src, st=st)
    if st is None:
        st = _stat(src.fd if isinstance(src, PathDescriptor) else src)
    xattrs, unread = [], []
    place = b"/proc/self/fd/%d" % src.fd if isinstance(src, PathDescriptor) else src
    follows = not isinstance(src, bytes)
    for name in _list_xattrs(place, follows=follows):
        try:
            xattrs.append((name, os.getxattr(place, name, follow_symlinks=follows)))
        except OSError as error:
            if error.errno in _NOT_PERMITTED:
                unread.append(f"xattr {name}")
            elif error.errno != errno.ENODATA:  # removed since it was listed
                raise
    return Metadata(st, tuple(xattrs), tuple(unread))


def write_metadata(dst: bytes | int | PathDescriptor, metadata: Metadata, *, times: bool = True) -> tuple[str, ...]:
    """Give ``dst``, a path or descriptor, what :func:`read_metadata` read; as :func:`copy_metadata`
    otherwise.

    What is at a path is held meanwhile: chmod(2) would follow a link that somebody has put there
    since.
    """
    if isinstance(dst, bytes):
        with path_descriptor(dst) as thing:
            return write_metadata(thing, metadata, times=times)
    st = metadata.st
    skipped = _write_owner(dst, st)
    # In this order: a new owner clears setuid and capabilities; an xattr needs a file that is still
    # writable; an ACL changes the mode; and each of them changes a time.
    skipped += metadata.unread + _write_xattrs(dst, dict(metadata.xattrs), metadata.unread)
    if not stat.S_ISLNK(st.st_mode) and not _may_chmod(dst, _mode_for(st, skipped)):
        skipped += ("mode",)
    if times and not may_set_times(dst, st):
        skipped += ("times",)
    return skipped


def _write_owner(dst: int | PathDescriptor, st: os.stat_result) -> tuple[str, ...]:
    now = _stat(dst)
    skipped: tuple[str, ...] = ()
    if now.st_gid != st.st_gid and not _may_chown(dst, -1, st.st_gid):
        skipped += ("group",)
    if now.st_uid != st.st_uid and not _may_chown(dst, st.st_uid, -1):
        skipped += ("owner",)
    return skipped


def _stat(file: bytes | int | PathDescriptor) -> os.stat_result:
    if isinstance(file, bytes):
        return os.lstat(file)
    return os.fstat(file.fd if isinstance(file, PathDescriptor) else file)


def _place(file: int | PathDescriptor) -> int | bytes:
    """Return what to give to calls that change metadata, and follow links: a descriptor, or a path
    of the system's own.
    """
    return file.path if isinstance(file, PathDescriptor) else file


def _may_chown(dst: int | PathDescriptor, uid: int, gid: int) -> bool:
    try:
        os.chown(_place(dst), uid, gid)
    except OSError as error:
        if error.errno not in _NO_SUCH_METADATA | {errno.EINVAL}:  # that: an id that this user namespace does not have
            raise
        return False
    return True


def _may_chmod(dst: int | PathDescriptor, mode: int) -> bool:
    """Set a mode; tell whether ``dst`` has it now.  Another user's file may have it already.

    The kernel takes setgid away where the user is not in the group, also if it was there before.
    """
    try:
        if mode & stat.S_ISGID and stat.S_IMODE(_stat(dst).st_mode) == mode:
            return True
        os.chmod(_place(dst), mode)
        if mode & stat.S_ISGID:
            return stat.S_IMODE(_stat(dst).st_mode) == mode
    except OSError as error:
        if error.errno not in _NO_SUCH_METADATA:
            raise
        return stat.S_IMODE(_stat(dst).st_mode) == mode
    return True


def may_set_times(dst: bytes | int | PathDescriptor, st: os.stat_result) -> bool:
    """Give a path or descriptor the times of ``st``; tell as :func:`may_set_ns`."""
    return may_set_ns(dst, st.st_atime_ns, st.st_mtime_ns)


def may_set_ns(dst: bytes | int | PathDescriptor, atime_ns: int, mtime_ns: int) -> bool:
    """Give a path or descriptor these times; tell whether it has them now, but for that of
    access.
    """
    place = dst if isinstance(dst, bytes) else _place(dst)
    try:
        os.utime(place, ns=(atime_ns, mtime_ns), follow_symlinks=not isinstance(dst, bytes))
    except OSError as error:
        if error.errno not in _NO_SUCH_METADATA:
            raise
        return _stat(dst).st_mtime_ns == mtime_ns
    return True


def _mode_for(st: os.stat_result, skipped: tuple[str, ...]) -> int:
    """Return the mode, without setuid or setgid where these would lend the rights of somebody
    else.
    """
    mode = stat.S_IMODE(st.st_mode)
    if "owner" in skipped:
        mode &= ~stat.S_ISUID
    if "group" in skipped and not stat.S_ISDIR(st.st_mode):
        mode &= ~stat.S_ISGID
    return mode


def _write_xattrs(dst: int | PathDescriptor, wanted: dict[str, bytes], unread: tuple[str, ...]) -> tuple[str, ...]:
    """Make the xattrs of ``dst`` those ``wanted``; leave those alone of which it is not known what
    they should be.
    """
    place = _place(dst)
    present = _list_xattrs(place, follows=True)
    if not wanted and not present:
        return ()
    _let_owner_in(dst)
    skipped = [name for name, value in wanted.items() if not _may_set_xattr(place, name, value, name in present)]
    for name in present:
        is_surplus = name not in wanted and f"xattr {name}" not in unread and not is_label(name)
        if is_surplus and not _may_remove_xattr(place, name):
            skipped.append(name)
    return tuple(f"xattr {name}" for name in skipped)


def _let_owner_in(dst: int | PathDescriptor) -> None:
    """Widen the mode, if it is ours to change: xattrs cannot be read or written through a mode that
    forbids it.
    """
    mode = _stat(dst).st_mode
    if mode & 0o600 != 0o600 and not stat.S_ISLNK(mode):
        with contextlib.suppress(PermissionError):
            os.chmod(_place(dst), stat.S_IMODE(mode) | 0o600)


def _may_set_xattr(place: bytes | int, name: str, value: bytes, is_present: bool) -> bool:
    try:
        if not is_present or os.getxattr(place, name) != value:
            os.setxattr(place, name, value)
    except OSError as error:
        if error.errno not in _NOT_PERMITTED:
            raise
        return False
    return True


def _may_remove_xattr(place: bytes | int, name: str) -> bool:
    try:
        os.removexattr(place, name)
    except OSError as error:
        if error.errno not in _NOT_PERMITTED | {errno.ENODATA}:
            raise
        return error.errno == errno.ENODATA  # gone already is as good
    return True


def is_label(name: str) -> bool:
    """Tell whether the system gives this xattr to every file by itself (SELinux, IMA, EVM,
    Smack).
    """
    return name.startswith("security.") and name != "security.capability"


def has_only_labels(path: bytes | int) -> bool:
    """Tell whether something has no extended attributes, an ACL among them, but such as the system
    gives by itself.
    """
    return all(map(is_label, _list_xattrs(path)))


def _list_xattrs(path: bytes | int, *, follows: bool | None = None) -> list[str]:
    try:
        names = os.listxattr(path, follow_symlinks=follows if follows is not None else isinstance(path, int))
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EPERM, errno.EACCES):
            return []
        raise
    return [name for name in names if not name.startswith(_XFS_ALIAS)]


# --- data -----------------------------------------------------------------------------------------
