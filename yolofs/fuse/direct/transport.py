"""The kernel's protocol as a transport: see :class:`yolofs.fuse.transport.Transport`."""

from __future__ import annotations

import contextlib

from yolofs.fuse.direct.device import Device
from yolofs.fuse.direct.device_server import DeviceServer
from yolofs.fuse.direct.mounting import let_go, mount
from yolofs.fuse.direct.notices import Notices
from yolofs.fuse.direct.tracing import counted
from yolofs.fuse.trace import Trace
from yolofs.fuse.transport import MountOptions, Served


class DirectTransport:
    """One mount of which we read the device ourselves."""

    tells_interrupts = True

    def __init__(self, served: Served, options: MountOptions) -> None:
        self._served = served
        self._options = options
        self._trace: Trace | None = None
        self._mountpoint = b""
        self._device: Device | None = None
        self._notices: Notices | None = None
        self._server: DeviceServer | None = None

    def count(self, trace: Trace) -> None:
        """Have requests counted."""
        self._trace = trace

    # ---- life

    def mount(self, mountpoint: bytes) -> None:
        """Mount.

        Raises:
            MountError: the kernel or fusermount3 refuses.
        """
        self._mountpoint = mountpoint
        self._device = Device(mount(mountpoint, allow_other=self._options.allow_other))
        self._notices = Notices(self._device)
        self._server = DeviceServer(self._served, self._options, self._device, self._notices)
        if self._trace is not None:
            self._server.answers = counted(self._server.answers, self._trace)

    async def serve(self) -> None:
        """Serve until the mount is taken away or the loop is stopped."""
        server = self._mounted
        assert self._device is not None
        self._served.loop.serve_device(self._device.fd, server.serve_one)
        try:
            await server.ended
        finally:
            server.end()

    def close(self, *, unmount: bool) -> None:
        """Let go of the kernel."""
        device, self._device = self._device, None
        if device is not None:
            let_go(self._mountpoint, device, unmounts=unmount)

    def unjudged(self) -> contextlib.AbstractContextManager[None]:
        """Open files for the calling thread without judging while the block runs."""
        return self._mounted.unjudged()

    @property
    def _mounted(self) -> DeviceServer:
        assert self._server is not None, "not mounted"
        return self._server

    # ---- what the kernel is told

    def forget_attributes(self, number: int) -> None:
        """Have the kernel ask for a file's attributes when it next needs them."""
        if self._notices is not None:
            self._notices.forget_attributes(number)

    def forget_file(self, number: int) -> None:
        """Have the kernel drop all that it has cached of a file."""
        if self._notices is not None:
            self._notices.forget_file(number)

    def forget_name(self, parent: int, name: bytes) -> None:
        """Have the kernel drop a name, with all that it knows below."""
        if self._notices is not None:
            self._notices.forget_name(parent, name)

    def expire_name(self, parent: int, name: bytes) -> None:
        """Have the kernel look a name up when it next needs it; before Linux 6.2, drop it."""
        if self._notices is not None:
            self._notices.expire_name(parent, name)
