"""A disk of its own for a test: an image of ext4, or of XFS or btrfs, on which files can share
blocks (reflinks), mounted by a loop device.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

_IMAGE_BYTES = 400 << 20  # sparse; less is too small for an XFS
_MAKERS = {
    "xfs": ("mkfs.xfs", "-q"),
    "btrfs": ("mkfs.btrfs", "-q"),
    "ext4": ("mkfs.ext4", "-q", "-F"),
    "ext4 of whole seconds": ("mkfs.ext4", "-q", "-F", "-I", "128"),
}
_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))

KINDS = ("xfs", "btrfs")

_FIEMAP = 0xC020660B  # _IOWR('f', 11, struct fiemap) of linux/fiemap.h
_MAP = struct.Struct("QQIIII")
_EXTENT = struct.Struct("QQQ16xI12x")
_MOST_EXTENTS = 500
_SYNC, _SHARED = 1, 0x2000


@contextlib.contextmanager
def disk_image(kind: str, directory: Path) -> Iterator[Path]:
    """Give the root of an empty disk that lies in ``directory``; skip the test where there can be
    none.
    """
    maker, *options = _MAKERS[kind]
    program = shutil.which(maker, path=_PATH)
    if program is None:
        pytest.skip(f"there is no {maker}")
    if os.geteuid() != 0:
        pytest.skip("only root may mount a disk image")
    image, mountpoint = directory / f"{kind}.image", directory / kind
    with image.open("wb") as file:
        file.truncate(_IMAGE_BYTES)
    subprocess.run([program, *options, image], check=True, stdout=subprocess.DEVNULL)
    mountpoint.mkdir()
    mounted = subprocess.run(["mount", "-o", "loop", image, mountpoint], check=False, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no disk image of {kind} can be mounted: {mounted.stderr.strip()}")
    try:
        yield mountpoint
    finally:
        subprocess.run(["umount", "--lazy", mountpoint], check=True)  # a test that has failed may have files open
        image.unlink()


sharing_disk = disk_image
"""For one of :data:`KINDS`."""


def shared_bytes(path: Path) -> int:
    """Return how much of a file lies in blocks that other files have, too."""
    found = bytearray(_MAP.size + _MOST_EXTENTS * _EXTENT.size)
    _MAP.pack_into(found, 0, 0, 1 << 62, _SYNC, 0, _MOST_EXTENTS, 0)
    with path.open("rb") as file:
        fcntl.ioctl(file, _FIEMAP, found)
    count = _MAP.unpack_from(found)[3]
    extents = (_EXTENT.unpack_from(found, _MAP.size + number * _EXTENT.size) for number in range(count))
    return sum(length for _, _, length, flags in extents if flags & _SHARED)
