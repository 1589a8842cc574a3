"""Base lies on a disk that stamps what changes within one tick of the clock with one and the same
time.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.mount.pages import LONG_S, at, opened
from tests.support.in_process import MountedView
from tests.support.program import DEADLINE_S, wait_until
from yolofs.system.clock import coarse_clock_ns

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    """A base directory on a disk whose clock is the coarse one, of 1 to 10 ms, as on all before
    Linux 6.13.
    """
    if os.getuid() != 0:
        pytest.skip("only root can mount a disk")
    path = tmp_path / "base"
    path.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "ramfs", path], check=True)
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


def write(path: Path, data: bytes) -> int:
    """Write in place, as the host does; return the file's ctime."""
    with opened(path, os.O_WRONLY) as fd:
        os.pwrite(fd, data, 0)
    return path.stat().st_ctime_ns


def changed_twice(file: Path, look: Callable[[], bytes]) -> None:
    """Change a file, look at it and change it once more, all within a tick: less than that it
    takes, as a rule.
    """
    deadline = time.monotonic() + DEADLINE_S
    for number in itertools.count():
        assert time.monotonic() < deadline, "the machine is too slow for two changes within a tick"
        begin = coarse_clock_ns()
        wait_until(lambda: coarse_clock_ns() != begin, "the next tick")  # noqa: B023 - called in this round
        first = write(file, data := b"%04d" % (number % 10_000))
        assert look() == data
        if write(file, b"last") == first:
            return


def test_the_next_open_shows_a_change_within_one_tick_of_the_clock(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"----")
    view = mounted(base_timeout_s=LONG_S)
    file = Path(at(view, "f"))
    changed_twice(base / "f", file.read_bytes)
    assert file.read_bytes() == b"last"
    assert file.read_bytes() == b"last"


def test_an_open_file_shows_a_change_within_one_tick_of_the_clock(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"----")
    view = mounted(base_timeout_s=LONG_S)
    with opened(at(view, "f")) as fd:

        def look() -> bytes:
            view.mount.look_at_open()
            return os.pread(fd, 4, 0)

        changed_twice(base / "f", look)
        wait_until(lambda: look() == b"last", "what was written last")


def test_a_copy_up_shows_what_was_copied(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"----")
    view = mounted(base_timeout_s=LONG_S)
    with opened(at(view, "f"), os.O_RDWR) as fd:
        changed_twice(base / "f", Path(at(view, "f")).read_bytes)
        os.pwrite(fd, b"!", 3)
        wait_until(lambda: os.pread(fd, 4, 0) == b"las!", "what was copied")
    assert Path(at(view, "f")).read_bytes() == b"las!"
    assert (base / "f").read_bytes() == b"last"
