"""The control socket's address: a path of any length, reached through its directory."""

from __future__ import annotations

import _socket  # as yolofs.system.descriptor_passing
import contextlib
import errno
import os
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import socket

_PATH_BYTES = 107
"""The longest path that fits into a ``sockaddr_un``."""


def bind(path: bytes) -> socket.socket:
    """Make the socket at ``path``, which only its owner may connect to, in place of a dead one; not
    listening yet.

    Its directory is the owner's alone, so the mode may come a moment later.  (A umask would be the
    whole process'.)

    Raises:
        OSError: as bind(2).
    """
    import socket  # for the daemon alone

    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(path) as address:
            sock.bind(address)
        os.chmod(path, 0o600)
    except BaseException:
        sock.close()
        raise
    return sock


def connect(path: bytes, timeout_s: float) -> _socket.socket:
    """Connect to the socket at ``path``; ``timeout_s`` holds for this and all later calls.

    Raises:
        TimeoutError: there is a listener, and no room for one more to wait.
        OSError: nobody listens there.
    """
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    # If the queue is full, a socket that does not block is refused; one that blocks gets its turn.
    seconds, rest_s = divmod(timeout_s, 1)
    sock.setsockopt(
        _socket.SOL_SOCKET, _socket.SO_SNDTIMEO, struct.pack("@ll", int(seconds), max(1, int(rest_s * 1e6)))
    )
    try:
        with _short(path) as address:
            sock.connect(address)
        sock.getpeername()  # a signal ends connect(2), too, and Python takes it for done
        sock.settimeout(timeout_s)
    except BlockingIOError:
        sock.close()
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), path) from None
    except BaseException:
        sock.close()
        raise
    return sock


class HasPeer(Protocol):
    """A connected socket, of Python's or of trio's."""

    def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes:
        """Return an option's value."""
        ...


def peer(sock: HasPeer) -> tuple[int, int]:
    """Return pid and uid of the process at the other end, as it was when it connected or began to
    listen.
    """
    pid, uid, _ = struct.unpack("iII", sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12))
    return pid, uid


@contextlib.contextmanager
def _short(path: bytes) -> Iterator[bytes]:
    """Give a name of the same socket that is short enough."""
    if len(path) <= _PATH_BYTES:
        yield path
        return
    directory, name = os.path.split(path)
    fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield b"/proc/self/fd/%d/%b" % (fd, name)
    finally:
        os.close(fd)
