"""pyfuse3 as a transport.

It keeps its session in globals, so a process has one mount of this kind at most.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Collection, Iterator

import pyfuse3

from yolofs.errors import MountError
from yolofs.fuse.libfuse import backend
from yolofs.fuse.libfuse.adapter import Adapter
from yolofs.fuse.libfuse.handshake import Handshake, NoDeviceError, open_devices
from yolofs.fuse.trace import Trace
from yolofs.fuse.transport import FILESYSTEM_NAME, NOT_KNOWN, SOURCE_NAME, MountOptions, Served
from yolofs.paths import display

log = logging.getLogger("yolofs.fuse")


class Pyfuse3Transport:
    """See :class:`yolofs.fuse.transport.Transport`."""

    tells_interrupts = False

    def __init__(self, served: Served, options: MountOptions) -> None:
        self._options = options
        self._loop = served.loop
        self.adapter = Adapter(served, self, xattrs=options.xattrs is True)
        self._handshake: Handshake | None = None
        self._is_closed = False

    def count(self, trace: Trace) -> None:
        """Have requests counted."""
        trace.install(self.adapter)

    def unjudged(self) -> contextlib.AbstractContextManager[None]:
        """Open files for the calling thread without judging while the block runs."""
        return self.adapter.unjudged()

    # ---- life

    def mount(self, mountpoint: bytes) -> None:
        """Mount by libfuse.

        Raises:
            MountError: the kernel or fusermount3 refuses.
        """
        options = {f"fsname={SOURCE_NAME}", f"subtype={FILESYSTEM_NAME}", "default_permissions"}
        if self._options.allow_other:
            options.add("allow_other")
        backend.install(self._loop)
        others = open_devices()
        try:
            pyfuse3.init(self.adapter, os.fsdecode(mountpoint), options)
        except RuntimeError as error:
            backend.uninstall()
            raise MountError(
                f"cannot mount at {display(mountpoint)}: {error}",
                hint="yolofs doctor; what fusermount3 said is in the daemon's log",
            ) from error
        self._agree(open_devices() - others)

    def _agree(self, devices: Collection[int]) -> None:
        """Agree with the kernel on what pyfuse3 leaves no choice about.

        Where that fails, it drops more pages than it has to, and one waiting request holds up more.
        """
        try:
            (device,) = devices
            self._handshake = Handshake(device, self._loop, drops_pages_itself=self._options.drops_pages_itself)
        except (ValueError, OSError, NoDeviceError) as error:
            log.warning("the kernel drops more pages than it has to: %s", error)

    async def serve(self) -> None:
        """Serve until the mount is taken away or the loop is stopped."""
        await backend.serve_session()

    def close(self, *, unmount: bool) -> None:
        """End pyfuse3's session."""
        self._is_closed = True
        if self._handshake is not None:
            self._handshake.end()
        pyfuse3.close(unmount=unmount)
        backend.uninstall()

    # ---- what the kernel is told

    def forget_attributes(self, number: int) -> None:
        """Have the kernel ask for a file's attributes when it next needs them."""
        with self._telling():
            pyfuse3.invalidate_inode(number, attr_only=True)

    def forget_file(self, number: int) -> None:
        """Have the kernel drop all that it has cached of a file."""
        with self._telling():
            pyfuse3.invalidate_inode(number)

    def forget_name(self, parent: int, name: bytes) -> None:
        """Have the kernel drop a name, with all that it knows below."""
        with self._telling():
            pyfuse3.invalidate_entry(parent, name)

    def expire_name(self, parent: int, name: bytes) -> None:
        """Have the kernel drop a name: pyfuse3 has no word for keeping it."""
        self.forget_name(parent, name)

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """Tell the kernel something in the block.  It is no error if the mount has ended, or the
        kernel does not know the inode or the name.
        """
        try:
            yield
        except OSError as error:
            if error.errno not in NOT_KNOWN and not self._is_closed:
                raise
