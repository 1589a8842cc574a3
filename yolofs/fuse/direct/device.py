"""The descriptor of a mount's device, which several threads write to."""

from __future__ import annotations

import errno
import os
import threading

MOUNT_ENDED = frozenset([errno.ENODEV, errno.ECONNABORTED])
"""The mount has been taken away."""
WITHDRAWN = frozenset([errno.ENOENT, errno.EINTR])
"""Of a read: the request was taken back meanwhile.  Of a write: nobody waits for the answer."""
NOBODY_WAITS = MOUNT_ENDED | WITHDRAWN
"""Of a write of an answer."""


class Device:
    """A descriptor that is closed when nobody uses it any more.

    A thread that has a message for the kernel does not know that the mount has just ended.  Were
    the descriptor closed under it, the message would go wherever its number leads to by then: into
    a file that was opened meanwhile.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._changing = threading.Lock()
        """Guards what is below."""
        self._sender_count = 0
        self._is_closed = False

    def send(self, *parts: bytes) -> None:
        """Write a message; nothing once :meth:`close` was called.  May block.

        Raises:
            OSError: as write(2).
        """
        with self._changing:
            if self._is_closed:
                return
            self._sender_count += 1
        try:
            os.writev(self.fd, parts)
        finally:
            with self._changing:
                self._sender_count -= 1
                is_last = self._is_closed and not self._sender_count
            if is_last:
                os.close(self.fd)

    def close(self) -> None:
        """Close the descriptor, or have the last message that is under way close it.  Twice does no
        harm.
        """
        with self._changing:
            is_last = not self._is_closed and not self._sender_count
            self._is_closed = True
        if is_last:
            os.close(self.fd)
