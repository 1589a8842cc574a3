"""Directories that only the user can write to, and files in them.

What governs a session lies in such a directory.  Each is opened from ``/`` on, component by
component and by descriptor, so that what was checked is what is used:

* every component belongs to the user or to root, and nobody else may write to it.  In a sticky
  directory (``/tmp``) others may write, but cannot replace what is not theirs;
* none is a symbolic link, except for those that root has put into ``/`` itself (``/home``, on some
  systems);
* the last one belongs to the user, and nobody else may enter it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import stat
from collections.abc import Iterator

from yolofs.errors import TrustError
from yolofs.paths import display
from yolofs.system.plain_files import naming

_COMPONENT = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
ELSEWHERE = "give yolofs another place: YOLOFS_STATE, or state in ~/.config/yolofs/config.toml"
_MAX_BYTES = 64 << 20


@contextlib.contextmanager
def private_directory(path: bytes) -> Iterator[int]:
    """Open a directory of the user's alone, as :func:`open_private`, for the time of the block."""
    fd = open_private(path)
    try:
        yield fd
    finally:
        os.close(fd)


def open_private(path: bytes, *, make: bool = False) -> int:
    """Open a directory of the user's alone and return a descriptor that reads it.

    ``path`` is absolute.  ``make``: what is missing of it is made, with mode 0700.

    Raises:
        FileNotFoundError: it is not there (and not to be made).
        TrustError: others could change it, or what lies in it; or a component is a link.
        OSError: it cannot be opened or made.
    """
    names = os.path.normpath(path).strip(b"/").split(b"/")
    here = b"/"
    fd = os.open(b"/", _COMPONENT)
    try:
        with naming(path):
            check_safe(os.fstat(fd), here, is_top=True)
            for depth, name in enumerate(names):
                here = os.path.join(here, name)
                below = _open_component(fd, name, here, make=make, may_be_link=not depth)
                os.close(fd)
                fd = below
                check_safe(os.fstat(fd), here, is_top=not depth)
            _check_private(os.fstat(fd), here)
            return os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
    finally:
        os.close(fd)


def _open_component(above: int, name: bytes, path: bytes, *, make: bool, may_be_link: bool) -> int:
    for _ in range(2):
        try:
            return os.open(name, _COMPONENT, dir_fd=above)
        except FileNotFoundError:
            if not make:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=above)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise OSError(error.errno, os.strerror(error.errno or 0), path) from None
            break
    st = os.stat(name, dir_fd=above, follow_symlinks=False)
    if not stat.S_ISLNK(st.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    if may_be_link and st.st_uid == 0:
        return os.open(name, _COMPONENT & ~os.O_NOFOLLOW, dir_fd=above)
    raise TrustError(
        f"{display(path)} is a symbolic link, and yolofs follows none to a session's files",
        hint=f"name the place without the link ({display(os.path.realpath(path))}); {ELSEWHERE}",
    )


def check_safe(st: os.stat_result, path: bytes, *, is_top: bool = False) -> None:
    """Check that nobody but the user and root can replace what lies in a directory with these
    attributes.

    ``is_top``: it is ``/`` or lies directly in it, and so is root's also where a user namespace
    hides that.

    Raises:
        TrustError: somebody can.
    """
    if st.st_uid not in (0, os.geteuid()) and not (is_top and _is_hidden_root(st.st_uid)):
        raise TrustError(
            f"{display(path)} belongs to {user_name(st.st_uid)}, who could change what lies in it", hint=ELSEWHERE
        )
    if st.st_mode & _OTHERS_WRITE and not st.st_mode & stat.S_ISVTX and not _is_private_group(st, path):
        mode = stat.S_IMODE(st.st_mode)
        raise TrustError(
            f"others may write to {display(path)} (mode {mode:04o}), and could change what lies in it",
            hint=f"chmod go-w {display(path)}, or {ELSEWHERE}",
        )


def _is_hidden_root(uid: int) -> bool:
    """Tell whether a file may be root's, of a user who has no number in our user namespace
    (user_namespaces(7)).
    """
    try:
        with open("/proc/sys/fs/overflowuid", encoding="ascii") as file:
            if uid != int(file.read()):
                return False
        with open("/proc/self/uid_map", encoding="ascii") as file:
            outside = [(int(start), int(count)) for _, start, count in map(str.split, file)]
    except (OSError, ValueError):
        return False
    return not any(start <= 0 < start + count for start, count in outside)


def _check_private(st: os.stat_result, path: bytes) -> None:
    if st.st_uid != os.geteuid():
        raise TrustError(f"{display(path)} belongs to {user_name(st.st_uid)}, not to you", hint=ELSEWHERE)
    if st.st_mode & 0o077:
        mode = stat.S_IMODE(st.st_mode)
        raise TrustError(
            f"others may look into {display(path)} (mode {mode:04o}), which holds what is staged",
            hint=f"chmod 700 {display(path)}, or {ELSEWHERE}",
        )


def _is_private_group(st: os.stat_result, path: bytes) -> bool:
    """Tell whether only the group may write, and that is the user's own, as many systems give each
    user one.
    """
    if st.st_mode & stat.S_IWOTH:
        return False
    import grp  # hardly any directory is like that

    try:
        group, me = grp.getgrgid(st.st_gid), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    is_own = group.gr_gid == me.pw_gid and group.gr_name == me.pw_name and set(group.gr_mem) <= {me.pw_name}
    return is_own and not _has_acl(path)


def _has_acl(path: bytes) -> bool:
    """Tell whether an ACL may let somebody else in, whom the group's bits hide."""
    with contextlib.suppress(OSError):
        return "system.posix_acl_access" in os.listxattr(path, follow_symlinks=False)
    return False


def user_name(uid: int) -> str:
    """Return the name of a user, for messages."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


# ---- files in such a directory


def read_private(directory: int, name: bytes) -> bytes:
    """Return the content of a file in an open private directory.

    Raises:
        FileNotFoundError: there is none.
        TrustError: it is somebody else's, others may write to it, or it is not a regular file.
        OSError: it cannot be read.
    """
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise TrustError(f"{display(name)} in the state directory is a symbolic link", hint="remove it") from None
    with open(fd, "rb") as file, naming(name):
        st = os.fstat(fd)
        if not stat.S_ISREG(st.st_mode) or st.st_uid != os.geteuid() or st.st_mode & _OTHERS_WRITE:
            raise TrustError(
                f"{display(name)} in the state directory is not a file of yours alone", hint="look at it, and remove it"
            )
        return file.read(_MAX_BYTES)


def place_in(directory: int, name: bytes = b"") -> bytes:
    """Return the path of a name in an open directory, for a message; the name alone, if the system
    tells no more.
    """
    try:
        return os.path.join(os.readlink(b"/proc/self/fd/%d" % directory), name).rstrip(b"/")
    except OSError:
        return name


def write_private(directory: int, name: bytes, content: bytes, *, durable: bool = True) -> None:
    """Replace a file in an open private directory in one step, with mode 0600; ``durable``: the
    disk is waited for.

    Raises:
        OSError: it cannot be written; ``filename`` is its whole path.
    """
    with naming(place_in(directory, name)):
        _replace(directory, name, content, durable=durable)


def _replace(directory: int, name: bytes, content: bytes, *, durable: bool) -> None:
    temporary = b".%d.%b.new" % (os.getpid(), name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o600, dir_fd=directory)
    try:
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(fd)
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        raise
    if durable:
        os.fsync(directory)
