"""Removing, emptying and measuring directories in which programs, perhaps hostile ones, work.

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

from yolofs.system.open_trees import OpenTree

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


def remove_tree(path: bytes) -> None:
    """Remove what lies at a path, of any type, with all below it.

    The directory that it lies in has to be one to which no link of somebody else's leads.

    Raises:
        OSError: something cannot be removed, or programs make more all the time; all else is gone.
    """
    with OpenTree(path) as tree, tree.place(b"") as (above, name):
        if not _unlinked(above, name):
            with _opened(above, name) as directory:
                empty(directory, path=path)
            os.rmdir(name, dir_fd=above)


def empty(directory: int, kept: Iterable[bytes] = (), *, path: bytes = b"") -> None:
    """Remove all that lies in an open directory, except for some directories: of these what lies in
    them.

    ``kept``: their paths relative to it.  Those above them stay, too.  ``path`` is its own, which
    errors name.

    Raises:
        OSError: something cannot be removed, or programs make more all the time; all else is gone.
    """
    steps = _steps(kept)
    begun_s = time.monotonic()
    for count in range(_PASSES):
        failure = _Emptying(directory, steps, path).run()
        if failure is None and steps.issuperset(_names(directory)):
            return
        if failure is not None and failure.errno != errno.ENOTEMPTY:
            raise failure
        if count and time.monotonic() - begun_s > _PATIENCE_S:
            break
    raise OSError(errno.ENOTEMPTY, "programs write there all the time", path or None)


class _Moved(msgspec.Struct, frozen=True):
    """A directory that was moved to the top."""

    name: bytes
    """What it is called there."""
    path: bytes
    """Where it lay, relative to the top."""


class _Emptying:
    """One pass over a tree; ``steps`` are the relative paths of the directories that stay."""

    def __init__(self, top: int, steps: set[bytes], path: bytes) -> None:
        self._top = top
        self._steps = steps
        self._path = path
        self._device = os.fstat(top).st_dev
        self._number = 0
        self._failure: OSError | None = None

    def run(self) -> OSError | None:
        """Remove what can be, and return why something cannot."""
        for step in sorted(self._steps):
            with self._noted(step), contextlib.suppress(FileNotFoundError, NotADirectoryError):
                self._clear_step(step)
        todo = self._clear(self._top, b"", is_kept=True)
        while todo:
            moved = todo.pop()
            with self._noted(moved.path):
                todo += self._remove(moved)
        return self._failure

    def _clear_step(self, step: bytes) -> None:
        here = os.dup(self._top)
        try:
            for word in step.split(b"/"):
                with _opened(here, word, self._device) as below:
                    above, here = here, os.dup(below)
                    os.close(above)
            self._clear(here, step, is_kept=True)
        finally:
            os.close(here)

    def _clear(self, directory: int, path: bytes, *, is_kept: bool = False) -> list[_Moved]:
        """Remove the files of a directory, and move the directories in it to the top; return these.

        ``path`` is where it lay, relative to the top; ``is_kept``: it lies there, and stays.
        """
        moved: list[_Moved] = []
        for name in _names(directory):
            inner = os.path.join(path, name)
            with self._noted(inner), contextlib.suppress(FileNotFoundError):
                if _unlinked(directory, name) or (is_kept and inner in self._steps):
                    continue
                moved += [_Moved(name, inner)] if directory == self._top else self._moved(directory, name, inner)
        return moved

    def _remove(self, moved: _Moved) -> list[_Moved]:
        """Remove a directory that lies at the top; return those that lay in it."""
        try:
            with _opened(self._top, moved.name, self._device) as here:
                below = self._clear(here, moved.path)
        except (FileNotFoundError, NotADirectoryError):  # somebody has exchanged it: the next pass sees that
            return []
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.rmdir(moved.name, dir_fd=self._top)
        return below

    def _moved(self, directory: int, name: bytes, path: bytes) -> list[_Moved]:
        """Move a directory to the top.  If its disk does not rename it, as OverlayFS one of a lower
        layer, move those in it, and remove it where it lies.
        """
        with _opened(directory, name, self._device) as here:  # the kernel wants one that we may write to
            while True:
                self._number += 1
                new = b".yolofs-removes-%d-%d" % (os.getpid(), self._number)
                try:
                    os.stat(new, dir_fd=self._top, follow_symlinks=False)
                except FileNotFoundError:
                    break
            try:
                os.rename(name, new, src_dir_fd=directory, dst_dir_fd=self._top)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
            else:
                return [_Moved(new, path)]
            below = self._clear(here, path)
        os.rmdir(name, dir_fd=directory)
        return below

    @contextlib.contextmanager
    def _noted(self, path: bytes) -> Iterator[None]:
        """Go on after a failure.  Remember the first, or one that another pass cannot repair."""
        try:
            yield
        except OSError as error:
            if self._failure is None or self._failure.errno == errno.ENOTEMPTY:
                self._failure = OSError(error.errno, error.strerror, os.path.join(self._path, path))


@contextlib.contextmanager
def _opened(directory: int, name: bytes, device: int | None = None) -> Iterator[int]:
    """Give a descriptor of a directory, made one that we may read and write, if it is ours.

    Raises:
        OSError: as open(2); EXDEV if it does not lie on the ``device``.
    """
    fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        st = os.fstat(fd)
        if device not in (None, st.st_dev):
            raise OSError(errno.EXDEV, "it lies on another disk")
        if st.st_uid == os.geteuid() and st.st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(b"/proc/self/fd/%d" % fd, stat.S_IMODE(st.st_mode) | stat.S_IRWXU)
        here = os.open(b".", _DIRECTORY, dir_fd=fd)
    finally:
        os.close(fd)
    try:
        yield here
    finally:
        os.close(here)


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
