"""Requests that cannot be answered yet: they wait in tasks of the loop, and are answered later.

What is in the way is a question to the user, a large copy, a full disk, or pages that the kernel
has to drop first.  Other requests only wait for a disk, in a worker thread.
"""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Callable
from functools import partial

from yolofs.fuse.direct import incoming
from yolofs.fuse.direct.device import NOBODY_WAITS, Device
from yolofs.fuse.direct.kernel_protocol import IN, OUT, OUT_SIZE, Opcode
from yolofs.fuse.direct.replies import Replies, Reply
from yolofs.fuse.loop.loop import LoopClosedError
from yolofs.fuse.request import KernelRequest
from yolofs.fuse.suspended_requests import AnsweredError, Obstacle, Requests
from yolofs.fuse.transport import Served

log = logging.getLogger("yolofs.fuse")

_MAY_WAIT = frozenset(
    [
        Opcode.LOOKUP,
        Opcode.GETATTR,
        Opcode.STATX,
        Opcode.READDIRPLUS,
        Opcode.SYMLINK,
        Opcode.MKNOD,
        Opcode.MKDIR,
        Opcode.UNLINK,
        Opcode.RMDIR,
        Opcode.RENAME,
        Opcode.RENAME2,
        Opcode.LINK,
        Opcode.CREATE,
    ]
)
"""They keep nothing locked that has to do with pages.  So they may wait until the kernel has
dropped those that are outdated.
"""


class Waiting:
    """The requests of one mount that wait; belongs to the device loop."""

    def __init__(
        self,
        served: Served,
        requests: Requests,
        replies: Replies,
        *,
        again: Callable[[bytes], Reply | None],
        say: Callable[[Reply], None],
        device: Device,
    ) -> None:
        """``again`` carries out a request from its bytes, ``say`` sends an answer.  Threads other
        than the loop's answer through ``device``.
        """
        self._handlers = served.handlers
        self._loop = served.loop
        self._freeing = served.freeing
        self._requests = requests
        self._replies = replies
        self._again = again
        self._say = say
        self._device = device
        self._suspended: dict[int, KernelRequest] = {}
        """The requests that an obstacle has suspended, by their unique numbers."""
        self._in_threads: set[int] = set()
        """The unique numbers of those that other threads carry out, and answer."""

    def suspend(self, message: bytes, obstacle: Obstacle) -> None:
        """Answer a request later, when ``obstacle`` is out of its way."""
        unique = IN.unpack_from(message)[1]
        self._loop.spawn(self._later(message, obstacle), name=f"request {unique}")

    def interrupt(self, unique: int) -> None:
        """Tell a suspended request that whoever has sent it does not want to wait any more."""
        request = self._suspended.get(unique)
        if request is not None:
            self._requests.interrupt(request)

    def errno_of(self, message: incoming.Buffer, size: int, error: OSError | LoopClosedError) -> int:
        """Return the errno that a request ends with."""
        request = incoming.request(message, size)
        if request is not None:
            return self._requests.errno_of(error, request)
        return self._handlers.errno_of(error) if isinstance(error, OSError) else errno.EINTR

    def in_thread(self, unique: int, job: Callable[[], bytes | None]) -> None:
        """Have another thread answer a request with what ``job`` returns.

        The loop is not woken for that, which would take longer than many a disk.
        """
        self._in_threads.add(unique)
        try:
            self._loop.start_in_thread(partial(self._say_from_thread, unique, job))
        except (LoopClosedError, RuntimeError) as error:  # RuntimeError: the system's limit on threads
            self._in_threads.discard(unique)
            log.warning("a request cannot be carried out: %s", error)
            self._say(self._replies.error(unique, errno.EIO))

    def statfs_when_freed(self, unique: int) -> None:
        """Answer statfs once everything removed so far has been freed, and begin with that now."""
        self._freeing.hand_over()
        self._loop.spawn(self._say_statfs(unique), name="statfs")

    def seek_when_written(self, unique: int, handle: int, offset: int, whence: int) -> None:
        """Answer where data or a hole is once the kernel has handed over what was written by a
        mapping: until then such data would look like a hole.
        """
        self._loop.spawn(self._say_seek(unique, handle, offset, whence), name="seek")

    async def _say_seek(self, unique: int, handle: int, offset: int, whence: int) -> None:
        self._handlers.have_written_out(handle)
        await self._requests.drop_pages(waits=True)
        try:
            self._say(self._replies.offset(unique, self._handlers.seek(handle, offset, whence)))
        except OSError as error:
            self._say(self._replies.error(unique, self._handlers.errno_of(error)))

    def drop_pages(self, opcode: int, reply: Reply | None) -> None:
        """Have the kernel drop what the host has made wrong; before the answer if that may wait."""
        if opcode not in _MAY_WAIT:
            if reply is not None:
                self._say(reply)
            self._loop.spawn(self._requests.drop_pages(waits=True), name="drop pages")
        else:
            self._loop.spawn(self._say_after_dropping(bytes(reply or b"")), name="drop pages")

    async def _later(self, message: bytes, obstacle: Obstacle) -> None:
        """Carry out a request that something is in the way of, and answer it."""
        opcode, unique, _, _, _, _ = IN.unpack_from(message)
        size = len(message)
        request = incoming.request(message, size)
        assert request is not None
        self._suspended[unique] = request
        try:
            reply = await self._requests.carry_out(lambda: self._again(message), request, obstacle)
            if self._requests.outdated:
                kept = bytes(reply) if reply is not None else None
                await self._requests.drop_pages(waits=opcode in _MAY_WAIT)
                reply = kept
        except AnsweredError as error:
            reply = self._replies.error(unique, error.number)
        except (OSError, LoopClosedError) as error:
            reply = self._replies.error(unique, self.errno_of(message, size, error))
        except Exception:
            log.exception("request %d failed", opcode)
            reply = self._replies.error(unique, errno.EIO)
        finally:
            del self._suspended[unique]
        if reply is not None:
            self._say(reply)

    async def _say_after_dropping(self, reply: bytes) -> None:
        await self._requests.drop_pages(waits=True)
        self._say(reply)

    def _say_from_thread(self, unique: int, job: Callable[[], bytes | None]) -> None:
        """Answer a request with what ``job`` returns; in any thread."""
        data, number = b"", 0
        try:
            data = job() or b""
        except OSError as error:
            number = self._handlers.errno_of(error)
        except Exception:
            log.exception("a request failed in a thread")
            number = errno.EIO
        try:
            self._device.send(OUT.pack(OUT_SIZE + len(data), -number, unique), data)
        except OSError as error:
            if error.errno not in NOBODY_WAITS:
                log.warning("a request cannot be answered: %s", error)
        self._in_threads.discard(unique)

    def end(self) -> None:
        """Answer what threads are still at work on as the mount ends: nobody can tell any more
        whether it reaches the disk.
        """
        for unique in list(self._in_threads):
            self._say(self._replies.error(unique, errno.EIO))

    async def _say_statfs(self, unique: int) -> None:
        with contextlib.suppress(LoopClosedError, RuntimeError):  # RuntimeError: the system's limit on threads
            await self._loop.in_thread(self._freeing.wait)
        try:
            self._say(self._replies.statfs(unique, self._handlers.statvfs()))
        except OSError as error:
            self._say(self._replies.error(unique, self._handlers.errno_of(error)))
