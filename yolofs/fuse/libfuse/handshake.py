"""What is agreed with the kernel as a mount begins and pyfuse3 leaves no choice about.

**Who drops pages.**  By itself the kernel drops what it has cached of a file whenever it hears of
another mtime than it knew (``FUSE_AUTO_INVAL_DATA``), even after a write of its own.  Then it has
to read the file back from us: a fifth of all requests of a ``make``
(``docs/design/kernel-options.md``).  With ``FUSE_EXPLICIT_INVAL_DATA`` it leaves that to us.

**What waits for whom.**  Unless ``FUSE_PARALLEL_DIROPS`` is agreed, the kernel asks for one name of
a directory at a time, so while one look-up waits, all others in there wait, too.

**What a link leads to.**  With ``FUSE_CACHE_SYMLINKS`` the kernel asks once.

libfuse knows these, but asks for something else, and pyfuse3 does not let us say otherwise.  So for
the one message of each side with which a mount begins we stand between libfuse and the kernel, and
change the bits.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
import struct

from yolofs.fuse.loop.loop import DeviceLoop

log = logging.getLogger("yolofs.fuse")

_DEVICE = "/dev/fuse"
_MAX_BYTES = 1 << 17
"""Of a message; the kernel refuses to give one to whoever has less room than for its largest
write.
"""
_FLAGS = struct.Struct("=I")
_OFFERED_AT = 52
"""Where the kernel's message has its flags (``struct fuse_in_header`` and ``struct fuse_init_in``
in linux/fuse.h).
"""
_ACCEPTED_AT = 28
"""The same in the answer (``struct fuse_out_header`` and ``struct fuse_init_out``)."""
_AUTO_INVAL_DATA = 1 << 12
_PARALLEL_DIROPS = 1 << 18
_CACHE_SYMLINKS = 1 << 23
_EXPLICIT_INVAL_DATA = 1 << 25
_PATIENCE_MS = 5_000


class NoDeviceError(Exception):
    """The descriptor of the mount was not found, or says nothing."""


def open_devices() -> frozenset[int]:
    """Return this process' descriptors of the FUSE device."""
    return frozenset(int(name) for name in os.listdir("/proc/self/fd") if _leads_to_device(name))


class Handshake:
    """Has the kernel ask for several names of a directory at a time, and keep targets of symbolic
    links.  If it can, and ``drops_pages_itself`` is false, it also leaves it to us to drop pages.

    It stands in for the device at ``number``, the descriptor of a new mount from which nothing has
    been read, until ``loop``, which is to serve the mount, has passed the answer on.
    """

    def __init__(self, number: int, loop: DeviceLoop, *, drops_pages_itself: bool = False) -> None:
        """Take the kernel's message, and put it where libfuse reads.

        Raises:
            NoDeviceError: there is none.
            OSError: as of socketpair(2) and read(2); the device is as it was, and nothing is left
                open.
        """
        self._number = number
        self._loop = loop
        waiting = select.poll()
        waiting.register(number, select.POLLIN)
        if not waiting.poll(_PATIENCE_MS):
            raise NoDeviceError("the kernel did not begin the mount")
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, contextlib.ExitStack() as if_it_fails:
            if_it_fails.callback(self._ours.close)
            self._device = os.dup(number)
            if_it_fails.callback(os.close, self._device)
            offer = os.read(self._device, _MAX_BYTES)
            os.dup2(theirs.fileno(), number, inheritable=False)
            if_it_fails.pop_all()
        self._ours.send(offer)
        self._drops_pages_itself = drops_pages_itself
        self._offered: int = _FLAGS.unpack_from(offer, _OFFERED_AT)[0]
        loop.add_reader(self._ours.fileno(), select.POLLIN, lambda _: self._pass_answer())

    def end(self) -> None:
        """Bring libfuse and the kernel together, whether they have agreed or not; twice does no
        harm.
        """
        if self._device >= 0:
            os.set_blocking(self._device, os.get_blocking(self._number))  # the loop has set it for what stood in for it
            os.dup2(self._device, self._number, inheritable=False)
            os.close(self._device)
            self._device = -1
            self._ours.close()

    def _pass_answer(self) -> None:
        answer = bytearray(self._ours.recv(_MAX_BYTES))
        if len(answer) >= _ACCEPTED_AT + _FLAGS.size:
            _FLAGS.pack_into(answer, _ACCEPTED_AT, self._agreed(_FLAGS.unpack_from(answer, _ACCEPTED_AT)[0]))
        self._loop.remove_reader(self._ours.fileno())
        try:
            os.write(self._device, answer)
        finally:
            self.end()

    def _agreed(self, accepted: int) -> int:
        """Return what libfuse accepts, with the bits that are changed."""
        agreed = accepted | (self._offered & (_PARALLEL_DIROPS | _CACHE_SYMLINKS))
        if self._drops_pages_itself:
            return agreed
        if self._offered & _EXPLICIT_INVAL_DATA and accepted & _AUTO_INVAL_DATA:
            return agreed & ~_AUTO_INVAL_DATA | _EXPLICIT_INVAL_DATA
        log.info("the kernel drops pages by itself, more than it has to")
        return agreed


def _leads_to_device(name: str) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{name}") == _DEVICE
    except OSError:  # the directory's own
        return False
