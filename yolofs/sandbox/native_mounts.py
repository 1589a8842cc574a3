"""Mounting what comes straight from base over the view, before bubblewrap makes that the root and
takes it along.

bubblewrap could bind directories itself, but reads the whole mount table anew for each, and follows
every symbolic link that it is to put something over.

What is mounted is not base itself but parts of an overlay over it, which has nothing to add.  It
reads from the same pages, but its files are files of their own: whoever locks one of them (flock(2)
needs no right to write) locks nobody out on the host.  System calls: openat2(2), open_tree(2),
move_mount(2), fsopen(2), fsconfig(2), fsmount(2), fspick(2); Linux 5.12, from 5.11 on for ordinary
users, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator, Mapping, Sequence

_OPEN_TREE, _MOVE_MOUNT, _FSOPEN, _FSCONFIG, _FSMOUNT, _FSPICK = 428, 429, 430, 431, 432, 433
_OPENAT2, _MOUNT_SETATTR = 437, 442
"""The same on all machines."""
_AT_FDCWD = -100
_AT_EMPTY_PATH = 0x1000
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_FROM_EMPTY_PATH, _MOVE_MOUNT_TO_EMPTY_PATH = 0x04, 0x40
_FS_CLOEXEC = 1
_FSPICK_EMPTY_PATH = 8
_SET_FLAG, _SET_STRING, _CREATE, _RECONFIGURE = 0, 1, 6, 7
_RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS = 0x02, 0x04
_READ_ONLY, _NO_SETUID, _NO_DEVICES = 0x01, 0x02, 0x04
_libc = ctypes.CDLL(None, use_errno=True)

_ASIDE = b"/sys"
"""A directory from which nothing is ever bound: what parts are taken from lies there, where no
sandbox sees it.
"""


class _How(ctypes.Structure):
    """``struct open_how``."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class _Attributes(ctypes.Structure):
    """``struct mount_attr``."""

    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user_namespace", ctypes.c_uint64),
    )


def mount_over(view: bytes, native: Mapping[bytes, Sequence[bytes]]) -> list[int]:
    """Mount directories, files and symbolic links over what a view shows at the same paths,
    read-only.

    For a process in a mount namespace of its own (:func:`yolofs.sandbox.namespaces.leave_mounts`).
    ``view`` is the mountpoint of a view of ``/``; no path leads through a symbolic link, in base
    and in the view.  ``native``: the paths, by the directories in which they lie
    (:func:`yolofs.sandbox.native_here.by_directory`).  What cannot be mounted stays as the view
    shows it.

    Returns descriptors for :func:`forget_names`, one for each overlay.
    """
    handles: list[int] = []
    links = [path for paths in native.values() for path in paths if os.path.islink(path)]  # which nobody can lock
    for path in links:
        with contextlib.suppress(OSError), _copied(path) as tree:
            _put_over(view, path, tree)
    with contextlib.suppress(OSError), _filesystem(b"tmpfs", size=b"4k") as empty:
        _mount_aside(empty)
        for directory, paths in native.items():
            others = [path for path in paths if path not in links]
            if others:
                with contextlib.suppress(OSError), _overlay(directory, empty) as overlay:
                    handles.append(_checked(_libc.syscall(_FSPICK, overlay, b"", _FS_CLOEXEC | _FSPICK_EMPTY_PATH)))
                    for path in others:
                        with contextlib.suppress(OSError), _part(overlay, os.path.relpath(path, directory)) as tree:
                            _put_over(view, path, tree)
    return handles


def forget_names(handle: int) -> None:
    """Have an overlay look at base again for names that it knows, or knows not to be there.

    The user who made it may do so from outside its namespace, too.

    Raises:
        OSError: it is not there any more.
    """
    _configure(handle, _SET_FLAG, b"ro", None)
    _configure(handle, _RECONFIGURE, None, None)


def try_copy() -> None:
    """Do what :func:`mount_over` does for a link, short of mounting anything anywhere.

    Raises:
        OSError: this machine forbids it, or its Linux is too old.
    """
    with _copied(os.fsencode(os.path.realpath(__file__))):
        pass


@contextlib.contextmanager
def _overlay(directory: bytes, empty: int) -> Iterator[int]:
    """Give an overlay over a directory in which nothing is mounted; ``empty`` is the other layer,
    as it wants two.
    """
    with _opened(_AT_FDCWD, directory) as source:
        layers = b"/proc/self/fd/%d:/proc/self/fd/%d" % (source, empty)
        # No attribute of a file may make the overlay show something else than what is there.
        options = {"lowerdir": layers, "redirect_dir": b"nofollow", "metacopy": b"off", "xino": b"off"}
        with _filesystem(b"overlay", source=directory, **options) as overlay:
            _mount_aside(overlay)
            yield overlay


@contextlib.contextmanager
def _filesystem(kind: bytes, **options: bytes) -> Iterator[int]:
    """Give a mount of a new filesystem, read-only, which is mounted nowhere yet."""
    context = _checked(_libc.syscall(_FSOPEN, kind, _FS_CLOEXEC))
    try:
        for name, value in options.items():
            _configure(context, _SET_STRING, name.encode(), value[:255])
        _configure(context, _SET_FLAG, b"ro", None)
        _configure(context, _CREATE, None, None)
        attributes = _READ_ONLY | _NO_SETUID | _NO_DEVICES
        mount = _checked(_libc.syscall(_FSMOUNT, context, _FS_CLOEXEC, attributes))
    finally:
        os.close(context)
    try:
        yield mount
    finally:
        os.close(mount)


def _mount_aside(mount: int) -> None:
    """Take a mount into our mount namespace, as parts are taken only of what is there; bubblewrap
    leaves it behind.
    """
    _checked(_libc.syscall(_MOVE_MOUNT, mount, b"", _AT_FDCWD, _ASIDE, _MOVE_MOUNT_FROM_EMPTY_PATH))


@contextlib.contextmanager
def _part(mount: int, path: bytes) -> Iterator[int]:
    """Give a copy of what lies at a relative path of a mount."""
    with _opened(mount, path) as source:
        tree = _checked(_libc.syscall(_OPEN_TREE, source, b"", _AT_EMPTY_PATH | _OPEN_TREE_CLONE | os.O_CLOEXEC))
        try:
            yield tree
        finally:
            os.close(tree)


@contextlib.contextmanager
def _copied(path: bytes) -> Iterator[int]:
    """Give a mount of what lies at a path, which is mounted nowhere; it has nothing of what is
    mounted below.
    """
    with _part(_AT_FDCWD, path) as tree:
        wanted = _Attributes(_READ_ONLY | _NO_SETUID | _NO_DEVICES)
        size = ctypes.c_size_t(ctypes.sizeof(wanted))
        _checked(_libc.syscall(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH, ctypes.byref(wanted), size))
        yield tree


def _put_over(view: bytes, path: bytes, tree: int) -> None:
    flags = _MOVE_MOUNT_FROM_EMPTY_PATH | _MOVE_MOUNT_TO_EMPTY_PATH
    with _opened(_AT_FDCWD, view + path) as place:
        _checked(_libc.syscall(_MOVE_MOUNT, tree, b"", place, b"", flags))


@contextlib.contextmanager
def _opened(directory: int, path: bytes) -> Iterator[int]:
    how = _How(os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, 0, _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS)
    size = ctypes.c_size_t(ctypes.sizeof(how))
    fd = _checked(_libc.syscall(_OPENAT2, directory, path, ctypes.byref(how), size))
    try:
        yield fd
    finally:
        os.close(fd)


def _configure(context: int, command: int, name: bytes | None, value: bytes | None) -> None:
    _checked(_libc.syscall(_FSCONFIG, context, command, name, value, 0))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
