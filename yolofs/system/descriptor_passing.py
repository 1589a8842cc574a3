"""Passes descriptors along over a socket.

Sockets are those of the module in C below ``socket``, which makes enums of hundreds of names as it
is imported: that takes longer than all that a short command says to the daemon.
"""

from __future__ import annotations

import _socket
import struct
from collections.abc import Sequence


def send(sock: _socket.socket, fds: Sequence[int]) -> None:
    """Send descriptors, with one byte.

    Raises:
        OSError: as sendmsg(2).
    """
    packed = struct.pack(f"{len(fds)}i", *fds)
    sock.sendmsg([b"\0"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)])


def receive(sock: _socket.socket, most_bytes: int, most_fds: int) -> tuple[bytes, list[int]]:
    """Receive up to so many bytes, none at the end, and the descriptors that came with them.

    Raises:
        OSError: as recvmsg(2).
    """
    int_bytes = struct.calcsize("i")
    data, messages, _, _ = sock.recvmsg(most_bytes, _socket.CMSG_LEN(most_fds * int_bytes))
    fds: list[int] = []
    for level, kind, content in messages:
        if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS):
            count = len(content) // int_bytes  # the last one may have been cut off
            fds += struct.unpack(f"{count}i", content[: count * int_bytes])
    return data, fds
