"""A disk of its own with ext4, for a test: one that gives the number of a removed file to the next
one, and that nobody else makes files on.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.required import do_without

_IMAGE_BYTES = 64 << 20  # sparse
_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))


@contextlib.contextmanager
def ext4_disk(directory: Path) -> Iterator[Path]:
    """Give the root of an empty disk, open to all users, with its image in ``directory``; skip the
    test if there can be none.  Needs root.
    """
    program = shutil.which("mkfs.ext4", path=_PATH)
    if program is None:
        do_without("there is no mkfs.ext4")
    image, mountpoint = directory / "ext4.image", Path(tempfile.mkdtemp(prefix="yolofs-ext4-"))
    with image.open("wb") as file:
        file.truncate(_IMAGE_BYTES)
    subprocess.run([program, "-q", image], check=True, stdout=subprocess.DEVNULL)
    mounted = subprocess.run(["mount", "-o", "loop", image, mountpoint], check=False, capture_output=True, text=True)
    if mounted.returncode:
        mountpoint.rmdir()
        do_without(f"no disk image can be mounted: {mounted.stderr.strip()}")
    try:
        yield mountpoint
    finally:
        subprocess.run(["umount", "--lazy", mountpoint], check=True)  # a test that has failed may have files open
        mountpoint.rmdir()
        image.unlink()
