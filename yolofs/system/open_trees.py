"""Going through a directory tree in which somebody may be at work, so that no link is followed.

Each directory is opened by its path from the top, through no link, and what lies in it is reached
by its name there.  So a name that is exchanged meanwhile leads nowhere else.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import Self

from yolofs.system.syscalls import open_by_no_link

_TO_LIST = os.O_RDONLY | os.O_DIRECTORY


class OpenTree:
    """What lies at a path, of any type, and all below it; use it in a ``with``.

    What is in it has a path that begins with a slash, it itself an empty one.  The directory that
    it lies in has to be one to which no link of somebody else's leads.
    """

    def __init__(self, top: bytes) -> None:
        """Open the directory that ``top`` lies in.

        Raises:
            OSError: as open(2).
        """
        self.top = top
        above, self._name = os.path.split(top)
        self._above = os.open(above or b".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._above)

    @contextlib.contextmanager
    def directory(self, rel: bytes, flags: int = _TO_LIST) -> Iterator[int]:
        """Give a descriptor of a directory in the tree; errors of the block name it.

        Raises:
            OSError: as open(2); ELOOP or ENOTDIR where somebody has put a link.
        """
        with named(self.top + rel):
            fd = open_by_no_link(self._name + rel, flags, directory=self._above)
            try:
                yield fd
            finally:
                os.close(fd)

    @contextlib.contextmanager
    def place(self, rel: bytes) -> Iterator[tuple[int, bytes]]:
        """Give the directory that something in the tree lies in, and its name there; errors of the
        block name it.

        Raises:
            OSError: as :meth:`directory`.
        """
        above, _, name = rel.rpartition(b"/")
        with named(self.top + rel):
            if not name:
                yield self._above, self._name
                return
            with self.directory(above, os.O_PATH | os.O_DIRECTORY) as fd:
                yield fd, name

    def lstat(self, rel: bytes) -> os.stat_result:
        """Return the attributes of something in the tree.

        Raises:
            OSError: as lstat(2).
        """
        with self.place(rel) as (fd, name):
            return os.stat(name, dir_fd=fd, follow_symlinks=False)

    def below(self, *, passes_over: bool = False) -> Iterator[tuple[bytes, os.stat_result]]:
        """Yield all that lies below the top, which is a directory, with its attributes.

        With ``passes_over``, what cannot be looked at is left out, with what comes after it in its
        directory.

        Raises:
            OSError: as :meth:`directory` and :meth:`lstat`, unless it ``passes_over`` such errors.
        """
        passed_over = (OSError,) if passes_over else ()
        todo = [b""]
        while todo:
            rel = todo.pop()
            with contextlib.suppress(*passed_over), self.directory(rel) as fd, os.scandir(fd) as entries:
                for entry in entries:
                    path, st = rel + b"/" + os.fsencode(entry.name), entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(st.st_mode):
                        todo.append(path)
                    yield path, st

    def names(self, rel: bytes) -> list[bytes]:
        """Return the names in a directory of the tree.

        Raises:
            OSError: as :meth:`directory`.
        """
        with self.directory(rel) as fd:
            return [os.fsencode(name) for name in os.listdir(fd)]


@contextlib.contextmanager
def named(path: bytes) -> Iterator[None]:
    """Have an error of a block, in which descriptors are open, name a path, or one below it."""
    try:
        yield
    except OSError as error:
        if error.filename is None or not os.fsencode(error.filename).startswith(path):
            raise OSError(error.errno, error.strerror, path) from error
        raise
