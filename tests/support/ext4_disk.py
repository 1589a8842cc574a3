"""A disk of its own with ext4, for a test: one that gives the number of a removed file to the next
one, and that nobody else makes files on.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

_IMAGE_BYTES = 64 << 20  # sparse
_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))


@contextlib.contextmanager
def ext4_disk(directory: Path) -> Iterator[Path]:
    """Give the root of an empty disk whose image lies in ``directory``; skip the test where there
    can be none.
    """
    program = shutil.which("mkfs.ext4", path=_PATH)
    if program is None or os.geteuid() != 0:
        assert os.environ.get("YOLOFS_REQUIRE_MOUNT") != "1" or os.geteuid() != 0, "there is no mkfs.ext4"
        pytest.skip("only root may mount a disk image, and there has to be a mkfs.ext4")
    image, mountpoint = directory / "ext4.image", directory / "ext4"
    with image.open("wb") as file:
        file.truncate(_IMAGE_BYTES)
    subprocess.run([program, "-q", image], check=True, stdout=subprocess.DEVNULL)
    mountpoint.mkdir()
    subprocess.run(["mount", "-o", "loop", image, mountpoint], check=True)
    try:
        yield mountpoint
    finally:
        subprocess.run(["umount", "--lazy", mountpoint], check=True)  # a test that has failed may have files open
        image.unlink()
