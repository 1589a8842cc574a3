"""Emptying and measuring directories in which programs, perhaps hostile ones, are at work.

Everything goes by descriptors: a directory is opened by its name in an open directory, never
through a link, and only on the same disk.  So a name that is exchanged meanwhile leads nowhere
else.  A tree may be as deep as it likes: before a directory is removed, those in it are moved to
the top.  So a few descriptors are enough.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterable, Iterator

import msgspec

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PASSES = 20
_PATIENCE_S = 5.0
"""So often, and so long, a tree is looked through for what has come meanwhile; at least twice."""
_BLOCK = 512
_DEEPEST = 64
"""What lies deeper is not measured: each level costs two descriptors."""


class Measured(msgspec.Struct, frozen=True):
    """How much of the disk something takes."""

    size_bytes: int
    is_more: bool = False
    """Whether that is not all, as the rest was not looked at."""


def measure(directory: int, most: int, *, without: Iterable[bytes] = ()) -> Measured:
    """Return how much of the disk the content of an open directory takes, each file once; looks at
    ``most`` names at the most.

    What cannot be looked at is left out, as is what lies on another disk.  ``without``: paths of
    directories, relative to it, that do not count themselves, nor do those above them.
    """
    steps = _steps(without)
    device = os.fstat(directory).st_dev
    total, count, is_more = 0, 0, False
    seen: set[int] = set()
    with contextlib.ExitStack() as stack:
        levels = [_Level(directory, b"", stack)]
        while levels:
            entry = levels[-1].next()
            if entry is None:
                levels.pop().close()
                continue
            count += 1
            if count > most:
                return Measured(total, is_more=True)
            try:
                st = entry.stat(follow_symlinks=False)
            except OSError:  # it is gone
                continue
            if st.st_dev != device or (st.st_ino in seen and not stat.S_ISDIR(st.st_mode)):
                continue
            if st.st_nlink > 1:
                seen.add(st.st_ino)
            if not stat.S_ISDIR(st.st_mode) or levels[-1].path_of(entry) not in steps:
                total += st.st_blocks * _BLOCK
            if stat.S_ISDIR(st.st_mode):
                is_more |= len(levels) >= _DEEPEST
                if len(levels) < _DEEPEST:
                    with contextlib.suppress(OSError):
                        levels.append(levels[-1].below(entry))
    return Measured(total, is_more)


class _Level:
    """A directory that is being listed."""

    def __init__(self, directory: int, path: bytes, stack: contextlib.ExitStack) -> None:
        self._path = path
        self._stack = stack
        self._own = contextlib.ExitStack()
        stack.callback(self._own.close)
        self._directory = os.dup(directory)
        self._own.callback(os.close, self._directory)
        self._entries = self._own.enter_context(os.scandir(self._directory))

    def next(self) -> os.DirEntry[str] | None:
        try:
            return next(self._entries, None)
        except OSError:
            return None

    def path_of(self, entry: os.DirEntry[str]) -> bytes:
        return os.path.join(self._path, os.fsencode(entry.name))

    def below(self, entry: os.DirEntry[str]) -> _Level:
        fd = os.open(entry.name, _DIRECTORY, dir_fd=self._directory)
        try:
            return _Level(fd, self.path_of(entry), self._stack)
        finally:
            os.close(fd)

    def close(self) -> None:
        self._own.close()


def empty(directory: int, kept: Iterable[bytes] = ()) -> None:
    """Remove all that lies in an open directory, except for some directories: of these what lies in
    them.

    ``kept``: their paths relative to it.  Those above them stay, too.

    Raises:
        OSError: something cannot be removed, or programs make more all the time; all else is gone.
    """
    steps = _steps(kept)
    begun_s = time.monotonic()
    for count in range(_PASSES):
        failure = _Emptying(directory, steps).go()
        if failure is None and steps.issuperset(_names(directory)):
            return
        if failure is not None and failure.errno != errno.ENOTEMPTY:
            raise failure
        if count and time.monotonic() - begun_s > _PATIENCE_S:
            break
    raise OSError(errno.ENOTEMPTY, "programs write there all the time")


class _Emptying:
    """One pass over a tree; ``steps`` are the relative paths of the directories that stay."""

    def __init__(self, top: int, steps: set[bytes]) -> None:
        self._top = top
        self._steps = steps
        self._device = os.fstat(top).st_dev
        self._number = 0
        self._failure: OSError | None = None

    def go(self) -> OSError | None:
        """Remove what can be, and return why something cannot."""
        for step in sorted(self._steps):
            with self._noted(step), contextlib.suppress(FileNotFoundError, NotADirectoryError):
                self._clear_step(step)
        todo = self._clear(self._top, b"")
        while todo:
            name = todo.pop()
            with self._noted(name):
                todo += self._remove(name)
        return self._failure

    def _clear_step(self, step: bytes) -> None:
        here = os.dup(self._top)
        try:
            for word in step.split(b"/"):
                below = self._open(here, word)
                os.close(here)
                here = below
            self._clear(here, step + b"/")
        finally:
            os.close(here)

    def _clear(self, directory: int, before: bytes | None = None) -> list[bytes]:
        """Remove the files of a directory, and move the directories in it to the top; return their
        names there.

        ``before``: its path with a slash, if it stays itself.
        """
        moved: list[bytes] = []
        for name in _names(directory):
            with self._noted(name), contextlib.suppress(FileNotFoundError):
                if _unlinked(directory, name) or (before is not None and before + name in self._steps):
                    continue
                moved.append(name if before == b"" else self._moved(directory, name))
        return moved

    def _remove(self, name: bytes) -> list[bytes]:
        """Remove a directory that lies at the top; return the names there of those that lay in
        it.
        """
        try:
            here = self._open(self._top, name)
        except (FileNotFoundError, NotADirectoryError):  # somebody has exchanged it: the next pass sees that
            return []
        try:
            moved = self._clear(here)
        finally:
            os.close(here)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.rmdir(name, dir_fd=self._top)
        return moved

    def _moved(self, directory: int, name: bytes) -> bytes:
        """Move a directory to the top, and return its name there."""
        os.close(self._open(directory, name))  # the kernel wants one that we may write to
        while True:
            self._number += 1
            new = b".yolofs-removes-%d-%d" % (os.getpid(), self._number)
            try:
                os.stat(new, dir_fd=self._top, follow_symlinks=False)
            except FileNotFoundError:
                os.rename(name, new, src_dir_fd=directory, dst_dir_fd=self._top)
                return new

    def _open(self, directory: int, name: bytes) -> int:
        """Open a directory on the same disk, and make it one that we may read and write."""
        fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            st = os.fstat(fd)
            if st.st_dev != self._device:
                raise OSError(errno.EXDEV, "it lies on another disk")
            if st.st_mode & stat.S_IRWXU != stat.S_IRWXU:
                os.chmod(b"/proc/self/fd/%d" % fd, stat.S_IMODE(st.st_mode) | stat.S_IRWXU)
            return os.open(b".", _DIRECTORY, dir_fd=fd)
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def _noted(self, name: bytes) -> Iterator[None]:
        """Go on after a failure.  Remember the first, or one that another pass cannot repair."""
        try:
            yield
        except OSError as error:
            if self._failure is None or self._failure.errno == errno.ENOTEMPTY:
                self._failure = OSError(error.errno, error.strerror, name)


def _unlinked(directory: int, name: bytes) -> bool:
    """Remove a name, unless it is a directory's; tell whether it is gone."""
    try:
        os.unlink(name, dir_fd=directory)
    except (IsADirectoryError, PermissionError):  # the second is what some disks say of a directory
        if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            return False
        raise
    return True


def _names(directory: int) -> list[bytes]:
    return [os.fsencode(name) for name in os.listdir(directory)]


def _steps(paths: Iterable[bytes]) -> set[bytes]:
    """Return some relative paths, and those of all directories above them."""
    steps = set()
    for path in paths:
        while path and path not in steps:
            steps.add(path)
            path = os.path.dirname(path)
    return steps
