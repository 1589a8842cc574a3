"""A disk in user space that ignores case in names but keeps the spelling, like FAT, exFAT, NTFS and
those of other systems.

Run as ``python -m tests.support.disk_without_case SOURCE MOUNTPOINT``.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.disk_by_names import DiskByNames, Numbers, serve_disk
from tests.support.required import do_without

CHECKOUT = Path(__file__).parents[2]
_DEADLINE_S = 30.0


class DiskWithoutCase(DiskByNames):
    """Shows a directory."""

    def _below(self, node: int, name: bytes) -> bytes:
        directory = self._path(node)
        for there in os.listdir(directory):
            if there.lower() == name.lower():
                return os.path.join(directory, there)
        return os.path.join(directory, name)

    async def rename(
        self, parent_inode_old: int, name_old: bytes, parent_inode_new: int, name_new: bytes, flags: int, ctx: object
    ) -> None:
        old, there = self._below(parent_inode_old, name_old), self._below(parent_inode_new, name_new)
        await super().rename(parent_inode_old, name_old, parent_inode_new, name_new, flags, ctx)
        new = os.path.join(self._path(parent_inode_new), name_new)
        if there != new:  # the new spelling counts
            os.rename(there, new)
            self._moved(there, new)
        assert old == there or not os.path.lexists(old)


@contextlib.contextmanager
def disk_without_case(directory: Path) -> Iterator[Path]:
    """Give the root of such a disk, whose files lie in ``directory``; skip the test where there can
    be none.
    """
    source, shown = directory / "disk", directory / "shown"
    source.mkdir()
    shown.mkdir()
    command = [sys.executable, "-m", "tests.support.disk_without_case", *map(str, (source, shown))]
    with subprocess.Popen(command, cwd=CHECKOUT) as serving:
        try:
            deadline = time.monotonic() + _DEADLINE_S
            while not os.path.ismount(shown):
                if serving.poll() is not None:
                    do_without("no disk in user space can be mounted here")
                assert time.monotonic() < deadline, "the disk is ready"
                time.sleep(0.02)  # it tells nobody when it is
            yield shown
        finally:
            subprocess.run(["umount", "--lazy", shown], check=False)
            serving.kill()


def main() -> None:
    source, mountpoint = sys.argv[1:]
    disk: Any = DiskWithoutCase(os.fsencode(source), Numbers.OF_NAMES)
    serve_disk(disk, mountpoint)


if __name__ == "__main__":
    main()
