"""What the kernel is told without having asked."""

from __future__ import annotations

from yolofs.fuse.direct.device import Device
from yolofs.fuse.direct.kernel_protocol import EXPIRE_ONLY, INVAL_ENTRY_OUT, INVAL_INODE_OUT, NoticeCode
from yolofs.fuse.transport import NOT_KNOWN


class Notices:
    """Tells the kernel, through the device, what to forget; for any thread.

    An unknown file or name is no error; nor is the end of the mount, which makes the kernel forget
    everything.

    Raises:
        OSError: as of write(2).
    """

    def __init__(self, device: Device) -> None:
        self._device = device

    def forget_attributes(self, number: int) -> None:
        """Have it ask for a file's attributes when it next needs them.

        A negative offset leaves the pages alone.  So this never waits for a request.
        """
        self._tell(INVAL_INODE_OUT.pack(INVAL_INODE_OUT.size, NoticeCode.INVAL_INODE, 0, number, -1, 0))

    def forget_file(self, number: int) -> None:
        """Have it drop all that it has cached of a file, or of a directory's listing.

        Waits for requests about the pages.
        """
        self._tell(INVAL_INODE_OUT.pack(INVAL_INODE_OUT.size, NoticeCode.INVAL_INODE, 0, number, 0, 0))

    def forget_name(self, parent: int, name: bytes) -> None:
        """Have it drop a name, with all that it knows below.  Waits while the directory is
        locked.
        """
        self._tell_of_name(parent, name, 0)

    def expire_name(self, parent: int, name: bytes) -> None:
        """Have it look a name up when it next needs it, and keep it until then; before Linux 6.2 it
        drops it.  Waits while the directory is locked.
        """
        self._tell_of_name(parent, name, EXPIRE_ONLY)

    def _tell_of_name(self, parent: int, name: bytes, flags: int) -> None:
        size = INVAL_ENTRY_OUT.size + len(name) + 1
        self._tell(INVAL_ENTRY_OUT.pack(size, NoticeCode.INVAL_ENTRY, 0, parent, len(name), flags) + name + b"\0")

    def _tell(self, message: bytes) -> None:
        try:
            self._device.send(message)
        except OSError as error:
            if error.errno not in NOT_KNOWN:
                raise
