"""Mounting a run's private ``/tmp`` over the view, and in it what the view shows there.

bubblewrap binds by paths, and would follow a link that another run has put into that directory.  So
all that lies in there is mounted before, by descriptors.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec

from yolofs.paths import is_below
from yolofs.sandbox.mount_calls import (
    HERE,
    NO_DEVICES,
    NO_SETUID,
    READ_ONLY,
    filesystem,
    mount_on,
    opened,
    part,
    restrict,
)

_PLACE = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SMALL = {"size": b"64k", "mode": b"0700"}
_ATTEMPTS = 20
"""So often a way is made anew while other runs, or an abort, take it away."""


class PrivateTmp(msgspec.Struct, frozen=True):
    """What a run has in place of the view's directories.  Paths are absolute, without symbolic
    links.
    """

    sources: Mapping[bytes, bytes] = MappingProxyType({})
    """Where each private directory lies, by its path in the sandbox."""
    shown: tuple[bytes, ...] = ()
    """Directories of the view that are there in a private one, too."""
    wanted: tuple[bytes, ...] = ()
    """Directories that programs expect there, empty at first."""

    def is_private(self, path: bytes) -> bool:
        """Tell whether a path lies in a private directory."""
        return self.lies_in(path) and not any(is_below(path, one) for one in self.shown)

    def outside(self, path: bytes) -> bytes | None:
        """Return where we find what has a path in the sandbox; None if it is not private."""
        path = os.path.normpath(path)
        if not self.is_private(path):
            return None
        top = next(top for top in self.sources if is_below(path, top))
        return self.sources[top] + path[len(top) :]

    def lies_in(self, path: bytes) -> bool:
        """Tell whether the way to a path leads through a private directory."""
        return any(is_below(path, top) for top in self.sources)


class Cover(msgspec.Struct, frozen=True):
    """A directory that holds one file alone, read-only."""

    path: bytes
    name: bytes
    """Of the file."""
    source: bytes
    """Where the file lies outside."""


def mount_private(view: bytes, tmp: PrivateTmp, cover: Cover | None) -> None:
    """Mount the directories over what a view shows at the same paths.

    For a process in a mount namespace of its own (:func:`yolofs.sandbox.namespaces.leave_mounts`).
    ``view`` is the mountpoint of a view of ``/``; the way to ``cover`` leads through a private
    directory.

    Raises:
        OSError: something cannot be mounted, with its path in the sandbox.
    """
    with contextlib.ExitStack() as stack:
        trees = {}
        for path in tmp.shown:  # before something lies over them
            with _naming(path), contextlib.suppress(FileNotFoundError):  # the view may have it no more
                trees[path] = stack.enter_context(part(HERE, view + path, with_mounts=True))
        tops = {}
        for path, source in tmp.sources.items():
            with _naming(path), opened(HERE, view + path) as place:
                tree = tops[path] = stack.enter_context(part(HERE, source))
                restrict(tree, NO_SETUID | NO_DEVICES)
                mount_on(tree, place)
        for path, tree in trees.items():
            with _naming(path):
                _mount_in(tops, path, tree)
        for path in tmp.wanted:
            with _naming(path), _made_directory(tops, path, 0o700):
                pass
        if cover is not None:
            with _naming(cover.path), filesystem(b"tmpfs", _SMALL, is_read_only=False) as tree:
                if tmp.is_private(cover.path):
                    _mount_in(tops, cover.path, tree)
                else:
                    with opened(HERE, view + cover.path) as place:
                        mount_on(tree, place)
                _fill(tree, cover)


def _fill(tree: int, cover: Cover) -> None:
    os.close(os.open(cover.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=tree))
    with part(HERE, cover.source) as file, opened(tree, cover.name) as place:
        restrict(file, READ_ONLY | NO_SETUID | NO_DEVICES)
        mount_on(file, place)
    restrict(tree, READ_ONLY)


def _mount_in(tops: Mapping[bytes, int], path: bytes, tree: int) -> None:
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(FileNotFoundError), _made_directory(tops, path, 0o755) as place:
            mount_on(tree, place)
            return
    raise OSError(errno.ENOENT, "other runs take it away all the time")


@contextlib.contextmanager
def _made_directory(tops: Mapping[bytes, int], path: bytes, mode: int) -> Iterator[int]:
    """Give a descriptor of a directory in a private one, made with all above it.

    What is no directory has been put there by a program, and goes.
    """
    top = next(top for top in tops if is_below(path, top))
    here = os.dup(tops[top])
    try:
        words = os.path.relpath(path, top).split(b"/")
        for count, word in enumerate(words, 1):
            below = _step(here, word, mode if count == len(words) else 0o755)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def _step(directory: int, name: bytes, mode: int) -> int:
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=directory)
        try:
            fd = os.open(name, _PLACE, dir_fd=directory)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                os.unlink(name, dir_fd=directory)
            continue
        st = os.fstat(fd)
        if st.st_uid == os.geteuid() and st.st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(b"/proc/self/fd/%d" % fd, stat.S_IMODE(st.st_mode) | stat.S_IRWXU)
        return fd
    raise OSError(errno.ENOENT, "other runs take it away all the time")


@contextlib.contextmanager
def _naming(path: bytes) -> Iterator[None]:
    """Have an error tell which path it is about."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
