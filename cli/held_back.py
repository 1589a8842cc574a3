"""Output into files of the very mount that a command has paused: it would wait for itself."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def held_back(mountpoint: bytes) -> Iterator[None]:
    """Keep what is written to stdout and stderr, as far as they lead into a mount, until the end of the block.

    To be entered while the mount is served, and left when it is again.  What is kept is lost with the process, and an
    error of writing it is raised at the end.
    """
    device = os.stat(mountpoint).st_dev
    with contextlib.ExitStack() as stack:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if isinstance(stream, io.TextIOWrapper) and _is_on(stream, device):
                stack.enter_context(_kept(name, stream))
        yield


def _is_on(stream: io.TextIOWrapper, device: int) -> bool:
    try:
        return os.fstat(stream.fileno()).st_dev == device
    except (OSError, ValueError):  # closed, or no file at all
        return False


@contextlib.contextmanager
def _kept(name: str, stream: io.TextIOWrapper) -> Iterator[None]:
    stream.flush()
    kept = io.BytesIO()
    instead = io.TextIOWrapper(kept, encoding=stream.encoding, errors=stream.errors, write_through=True)
    setattr(sys, name, instead)
    try:
        yield
    except BaseException:
        setattr(sys, name, stream)
        with contextlib.suppress(OSError):  # the first error is the one to tell
            _write(stream, kept)
        raise
    setattr(sys, name, stream)
    _write(stream, kept)


def _write(stream: io.TextIOWrapper, kept: io.BytesIO) -> None:
    stream.buffer.write(kept.getvalue())
    stream.flush()
