"""Output that may have to wait for a paused mount: files in the mount, and readers that write to
it.

``yolofs commit --yes | tee FILE`` with a FILE in the view stops when the pipe is full: ``tee``
waits for the mount, and the mount for the command.  So what nobody takes for some seconds is kept
until the mount goes on.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import select
import stat
import sys
import time
from collections.abc import Iterator
from typing import Any

from yolofs.system.syscalls import device_and_type

_PATIENCE_S = 3.0
"""How long a reader may take nothing.  Somebody who reads a list page by page takes longer, and
gets the rest afterwards.
"""
_MOMENT_MS = 20
_AT_ONCE_BYTES = 256
"""So many bytes go into a socket without waiting once poll(2) says that it is writable."""


@contextlib.contextmanager
def deferred_output(mountpoint: bytes) -> Iterator[None]:
    """Keep what is written to stdout and stderr, as far as it cannot be written, until the end of
    the block.

    To be left when the mount is served again; entering it asks the mount nothing, as another
    command may have paused it.  What is kept is lost with the process, and an error of writing it
    is raised at the end.
    """
    device, _ = device_and_type(mountpoint)
    patience = _Patience()
    with contextlib.ExitStack() as stack:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if isinstance(stream, io.TextIOWrapper) and (kind := _kind(stream, device)) is not None:
                stack.enter_context(_kept(name, stream, kind, patience))
        yield


class _Patience:
    """How long readers are waited for: stdout's and stderr's together, as they often are the same
    one.
    """

    def __init__(self) -> None:
        self.is_over = False

    def deadline_s(self) -> float:
        """Return until when a reader may take nothing, from now on."""
        return time.monotonic() + (0.0 if self.is_over else _PATIENCE_S)


class _HeldOutput(io.RawIOBase):
    """Writes what can be written at once, and keeps the rest."""

    def __init__(self, fd: int, patience: _Patience, *, is_in_mount: bool) -> None:
        self._fd = fd
        self._patience = patience
        self._impatient_fd = -1 if is_in_mount else _without_waiting(fd)
        self._keeps = is_in_mount
        self._is_terminal = not is_in_mount and os.isatty(fd)
        self.kept = io.BytesIO()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._is_terminal

    def fileno(self) -> int:
        return self._fd

    def write(self, data: Any, /) -> int:
        left = memoryview(data).cast("B")
        deadline_s = self._patience.deadline_s()
        while left and not self._keeps:
            count = self._write_some(left)
            if count:
                deadline_s = self._patience.deadline_s()
                left = left[count:]
            elif time.monotonic() > deadline_s:
                self._keeps = self._patience.is_over = True
        self.kept.write(left)
        return memoryview(data).nbytes

    def close(self) -> None:
        if self._impatient_fd >= 0:
            os.close(self._impatient_fd)
            self._impatient_fd = -1
        super().close()

    def _write_some(self, data: memoryview) -> int:
        """Write what is taken within a moment, and return how much that was."""
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        found = poll.poll(_MOMENT_MS)
        if not found:
            return 0
        if found[0][1] & select.POLLERR:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        if self._impatient_fd < 0:
            return os.write(self._fd, data[:_AT_ONCE_BYTES])
        try:
            return os.write(self._impatient_fd, data)
        except BlockingIOError:  # a terminal may say that it takes something, and take nothing
            time.sleep(_MOMENT_MS / 1000)
            return 0


def _without_waiting(fd: int) -> int:
    """Open a pipe or terminal once more, so that only writes through this descriptor never wait; -1
    if that is not possible.
    """
    try:
        return os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return -1


def _kind(stream: io.TextIOWrapper, device: int) -> int | None:
    """Return the type (``S_IFMT``) of where a stream leads, None if what is written there never
    waits for the mount.
    """
    try:
        found, kind = device_and_type(stream.fileno())
    except (OSError, ValueError):  # closed, or no file at all
        return None
    is_passed_on = found == device or kind in (stat.S_IFIFO, stat.S_IFSOCK) or os.isatty(stream.fileno())
    return kind if is_passed_on else None


@contextlib.contextmanager
def _kept(name: str, stream: io.TextIOWrapper, kind: int, patience: _Patience) -> Iterator[None]:
    stream.flush()
    raw = _HeldOutput(stream.fileno(), patience, is_in_mount=kind in (stat.S_IFREG, stat.S_IFDIR))
    instead = io.TextIOWrapper(
        io.BufferedWriter(raw, 1 << 16),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
    setattr(sys, name, instead)
    try:
        yield
    except BaseException:
        setattr(sys, name, stream)
        with contextlib.suppress(OSError):  # the first error is the one to tell
            instead.flush()
            _write(stream, raw)
        raise
    setattr(sys, name, stream)
    instead.flush()
    _write(stream, raw)


def _write(stream: io.TextIOWrapper, raw: _HeldOutput) -> None:
    stream.buffer.write(raw.kept.getvalue())
    stream.flush()
