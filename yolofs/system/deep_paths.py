"""Paths to what lies deeper than the kernel takes a path: programs get there step by step."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self

from yolofs.system.syscalls import PATH_MAX, open_by_no_link


class DeepPaths:
    """Gives paths that the kernel takes; to be used in a ``with``.  It holds one directory, and is
    for one thread.
    """

    def __init__(self) -> None:
        self._directory = b""
        self._fd = -1

    def near(self, path: bytes) -> bytes:
        """Return a path by which the kernel finds what is at an absolute one, as long as nobody
        asks for the next.

        Raises:
            OSError: as open(2) of its directory; ELOOP if a link is on the way there.
        """
        if len(path) < PATH_MAX:
            return path
        directory, name = os.path.split(path)
        if directory != self._directory:
            fd = open_by_no_link(directory, os.O_PATH | os.O_DIRECTORY)
            self._close()
            self._directory, self._fd = directory, fd
        return b"/proc/self/fd/%d/%s" % (self._fd, name)

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._directory, self._fd = b"", -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()
