"""Counting requests by kind, for benchmarks and tests.  Unless somebody asks, nothing of this is in
the way.

With pyfuse3 a request is what it hands to the adapter; what it or libfuse answers alone is not
counted.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, Self, TypeVar

T = TypeVar("T")

KINDS = (
    "lookup", "forget", "getattr", "setattr", "readlink", "statfs", "getxattr", "listxattr", "setxattr", "removexattr",
    "mknod", "mkdir", "symlink", "link", "unlink", "rmdir", "rename",
    "open", "create", "read", "write", "flush", "release", "fsync", "opendir", "readdir", "releasedir", "fsyncdir",
    "fallocate", "lseek", "copy_file_range", "tmpfile", "statx",
)  # fmt: skip
"""``readdir`` is the kernel's READDIRPLUS; pyfuse3 knows nothing of the last five."""

TRACE_VARIABLE = "YOLOFS_TRACE"
"""The environment variable that has the daemon keep its figures in the file that it names."""

_SIZE_BYTES = 16 * len(KINDS)


@dataclass(frozen=True, slots=True)
class Figure:
    """The requests of one kind."""

    count: int
    handler_ns: int
    """Nanoseconds from the call of the adapter to its answer, waiting included."""


class Trace:
    """Figures by kind of request: in memory, or in a file that other processes may read
    meanwhile.
    """

    def __init__(self, memory: bytearray | mmap.mmap | None = None) -> None:
        """Keep them in ``memory``: two native 64-bit numbers for each of :data:`KINDS`."""
        self._numbers = memoryview(bytearray(_SIZE_BYTES) if memory is None else memory).cast("Q")

    @classmethod
    def create(cls, path: bytes) -> Self:
        """Keep the figures in a new file, in place of one that is there.

        Raises:
            OSError: it cannot be made.
        """
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(fd, _SIZE_BYTES)
            return cls(mmap.mmap(fd, _SIZE_BYTES))
        finally:
            os.close(fd)

    @classmethod
    def open(cls, path: bytes) -> Self:
        """Read along in the file of another process.

        Raises:
            OSError: there is none.
            ValueError: it is no such file.
        """
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return cls(mmap.mmap(fd, _SIZE_BYTES, prot=mmap.PROT_READ))
        finally:
            os.close(fd)

    def figures(self) -> dict[str, Figure]:
        """Return all figures so far."""
        return {kind: Figure(*self._numbers[2 * at : 2 * at + 2]) for at, kind in enumerate(KINDS)}

    def counts(self) -> dict[str, int]:
        """Return how many requests there were so far, of the kinds that there were any of."""
        return {kind: figure.count for kind, figure in self.figures().items() if figure.count}

    def install(self, operations: Any) -> None:
        """Count the requests to ``operations``, an object with a coroutine method for each of
        :data:`KINDS` that it knows.
        """
        for at, kind in enumerate(KINDS):
            if hasattr(operations, kind):
                setattr(operations, kind, self._counted(2 * at, getattr(operations, kind)))

    def counting(self, kind: str, handler: Callable[..., T]) -> Callable[..., T]:
        """Return ``handler``, whose calls are counted as requests of a kind."""
        numbers, at = self._numbers, 2 * KINDS.index(kind)

        def counted(*args: Any) -> T:
            numbers[at] += 1
            start_ns = perf_counter_ns()
            try:
                return handler(*args)
            finally:
                numbers[at + 1] += perf_counter_ns() - start_ns

        return counted

    def _counted(self, at: int, handler: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        numbers = self._numbers

        async def counted(*args: Any) -> Any:
            numbers[at] += 1
            start_ns = perf_counter_ns()
            try:
                return await handler(*args)
            finally:
                numbers[at + 1] += perf_counter_ns() - start_ns

        return counted
