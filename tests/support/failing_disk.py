"""A disk that fails: the blocks of an image, read and written by way of a filesystem in user space,
so that the kernel gets an error from the device itself.

Run as ``python -m tests.support.failing_disk IMAGE MOUNTPOINT BAD``: below the mountpoint there is
a file ``image``, of which a loop device can be made.  As long as there is a file ``BAD``, each
write that holds its content fails.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.required import do_without

_IMAGE = 2
"""The inode number of the image."""
_SIZES = {"ext4": 48 << 20, "xfs": 320 << 20}
_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
_DEADLINE_S = 30.0


class FailingDisk:
    """A disk that is mounted at :attr:`root`."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.root = directory / "disk"
        self._kind = kind
        self._image = directory / "blocks/image"
        self._bad = directory / "bad"

    def fail(self, content: bytes) -> None:
        """Fail each write of some bytes from now on."""
        new = self._bad.with_suffix(".new")
        new.write_bytes(content)
        new.rename(self._bad)

    def mend(self) -> None:
        """Fail no more."""
        self._bad.unlink()

    def mount(self) -> None:
        options = "loop,nouuid" if self._kind == "xfs" else "loop"
        subprocess.run(["mount", "-o", options, self._image, self.root], check=True)

    def mount_anew(self) -> None:
        """Forget all that the kernel has of it, as a reset does."""
        subprocess.run(["umount", self.root], check=True)
        self.mount()


@contextlib.contextmanager
def failing_disk(kind: str, directory: Path) -> Iterator[FailingDisk]:
    """Give an empty disk with a filesystem of that kind, with all its files in ``directory``; skip
    the test if there can be none.
    """
    program = shutil.which(f"mkfs.{kind}", path=_PATH)
    if program is None or os.geteuid() != 0:
        do_without(f"only root, with mkfs.{kind}, can have a disk of {kind}")
    blocks, backing = directory / "blocks", directory / "backing"
    for path in (blocks, directory / "disk"):
        path.mkdir()
    with backing.open("wb") as file:
        file.truncate(_SIZES[kind])
    subprocess.run([program, "-q", backing], check=True, stdout=subprocess.DEVNULL)
    command = [sys.executable, "-m", "tests.support.failing_disk", *map(str, (backing, blocks, directory / "bad"))]
    with subprocess.Popen(command) as server:
        disk = FailingDisk(kind, directory)
        try:
            deadline = time.monotonic() + _DEADLINE_S
            while not os.path.ismount(blocks):
                assert server.poll() is None, "the server has ended"
                assert time.monotonic() < deadline, "the server is ready"
                time.sleep(0.02)  # it tells nobody when it is
            disk.mount()
            yield disk
        finally:
            subprocess.run(["umount", "--lazy", disk.root], check=False)
            subprocess.run(["umount", "--lazy", blocks], check=False)


def main(backing: str, mountpoint: str, bad: str) -> None:
    import pyfuse3
    import trio

    fd = os.open(backing, os.O_RDWR)

    class Blocks(pyfuse3.Operations):
        async def getattr(self, inode: int, ctx: object = None) -> Any:
            entry: Any = pyfuse3.EntryAttributes()
            entry.st_ino = inode
            entry.st_mode = stat.S_IFREG | 0o600 if inode == _IMAGE else stat.S_IFDIR | 0o700
            entry.st_size = os.fstat(fd).st_size if inode == _IMAGE else 0
            return entry

        async def lookup(self, parent_inode: int, name: bytes, ctx: object = None) -> Any:
            if name != b"image":
                raise pyfuse3.FUSEError(errno.ENOENT)
            return await self.getattr(_IMAGE)

        async def open(self, inode: int, flags: int, ctx: object) -> Any:
            return pyfuse3.FileInfo(fh=_IMAGE, direct_io=True)

        async def read(self, fh: int, off: int, size: int) -> bytes:
            return os.pread(fd, size, off)

        async def write(self, fh: int, off: int, buf: bytes) -> int:
            with contextlib.suppress(FileNotFoundError):
                if Path(bad).read_bytes() in buf:
                    raise pyfuse3.FUSEError(errno.EIO)
            return os.pwrite(fd, buf, off)

        async def fsync(self, fh: int, datasync: bool) -> None:
            pass

    pyfuse3.init(Blocks(), mountpoint, {"fsname=failing"})
    try:
        trio.run(pyfuse3.main)
    finally:
        pyfuse3.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
