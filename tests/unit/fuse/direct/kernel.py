"""What stands for the kernel at the other end of the device: sends requests to a server, and takes
its answers.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from tests.support.plain_handlers import handlers_of
from yolofs.fuse.cache.freeing import Freeing
from yolofs.fuse.current_run import CurrentRun
from yolofs.fuse.direct.device import Device
from yolofs.fuse.direct.device_server import DeviceServer
from yolofs.fuse.direct.kernel_protocol import Opcode
from yolofs.fuse.direct.notices import Notices
from yolofs.fuse.handlers import Handlers
from yolofs.fuse.long_changes import LongChanges
from yolofs.fuse.loop.loop import DeviceLoop, LoopClosedError
from yolofs.fuse.mount import NobodyToAsk
from yolofs.fuse.transport import MountOptions, Served


class Kernel:
    """Asks a server, one request after another."""

    def __init__(self, server: DeviceServer, device: socket.socket) -> None:
        self._server = server
        self._device = device
        self._unique = 0

    def ask(self, opcode: int, body: bytes, node: int = 1) -> tuple[int, bytes]:
        """Send a request of this process' user; return the errno and the answer without its
        header.
        """
        self.send(opcode, body, node)
        return self.answer()

    def send(self, opcode: int, body: bytes, node: int = 1) -> None:
        """Send a request, and have the server see to it."""
        self._unique += 2
        length = 40 + len(body)
        head = struct.pack(
            "=IIQQIIIHH", length, opcode, self._unique, node, os.getuid(), os.getgid(), os.getpid(), 0, 0
        )
        self._device.send(head + body)
        assert self._server.serve_one()

    def answer(self) -> tuple[int, bytes]:
        """Take the answer to the last request."""
        answer = self._device.recv(1 << 17)
        size, error, unique = struct.unpack_from("=IiQ", answer)
        assert (size, unique) == (len(answer), self._unique)
        return -error, answer[16:]

    def run_until_stopped(self) -> None:
        """Run the loop, and stop it as soon as it runs."""
        loop = self._server._loop
        thread = loop.start(self._ended())
        loop.call(lambda: None)
        loop.stop()
        thread.wait(60)

    async def _ended(self) -> None:
        try:
            with contextlib.suppress(LoopClosedError):
                await self._server.ended
        finally:
            self._server.end()

    def begin(self, minor: int, offered: int, *, more: int = 0) -> int:
        """Begin the mount as a kernel of a version does; return what was accepted."""
        body = struct.pack("=IIII", 7, minor, 131072, offered)
        if offered & 1 << 30:
            body += struct.pack("=I44x", more)
        error, answer = self.ask(Opcode.INIT, body)
        assert error == 0
        return int(struct.unpack_from("=IIII", answer)[3])


@contextlib.contextmanager
def kernel_of(base: Path, *, xattrs: bool | Literal["auto"] = False) -> Iterator[tuple[Kernel, Handlers]]:
    """Give a kernel that may ask about the view of ``base``, and what answers it."""
    loop = DeviceLoop()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    theirs.settimeout(60)
    with ours, theirs, handlers_of(base) as handlers:
        freeing, long_changes = Freeing(loop.call_later), LongChanges(loop, handlers.changing)
        served = Served(handlers, loop, NobodyToAsk(), freeing, CurrentRun(lambda _: 0), long_changes)
        options = MountOptions(allow_other=False, drops_pages_itself=False, xattrs=xattrs)
        device = Device(ours.fileno())
        yield Kernel(DeviceServer(served, options, device, Notices(device)), theirs), handlers
    loop.stop()
