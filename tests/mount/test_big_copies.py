"""Large files are copied up once, whoever writes to them meanwhile."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.in_process import MountedView

pytestmark = pytest.mark.mount
MIB = 1 << 20
BIG = os.urandom(MIB) * 3


def test_writers_of_one_large_file_share_its_copy(base: Path, mounted: Callable[..., MountedView]) -> None:
    (base / "f").write_bytes(BIG)
    with (base / "f").open("r+b") as file:
        file.truncate(64 * MIB)  # mostly a hole
        file.seek(48 * MIB)
        file.write(BIG)
    expected = bytearray((base / "f").read_bytes())
    view = mounted()
    path = Path(os.fsdecode(view.mountpoint)) / "f"
    writers = 8
    start = threading.Barrier(writers)

    def write(number: int) -> None:
        fd = os.open(path, os.O_WRONLY)
        start.wait()
        try:
            os.pwrite(fd, b"%d" % number * 10, number * 1000)
            os.fchmod(fd, 0o600 | number)
        finally:
            os.close(fd)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(writers):
        expected[number * 1000 : number * 1000 + 10] = b"%d" % number * 10
    assert path.read_bytes() == expected
    assert path.stat().st_blocks * 512 < 16 * MIB, "the hole was filled"
    generation = view.snapshot()
    with path.open("r+b") as file:
        file.write(b"after")
    view.travel(generation)
    assert path.read_bytes() == expected
