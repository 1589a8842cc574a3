"""The disk of the session is full: nothing is half done, and work goes on once there is space."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.in_process import MountedView

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    """A base directory on a disk of 2 MiB, with its session."""
    if os.getuid() != 0:
        pytest.skip("only root can mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=755", "tmpfs", disk], check=True)
    path = disk / "base"
    path.mkdir()
    yield path
    subprocess.run(["umount", "--lazy", disk], check=True)


def is_full(operation: Callable[[], object]) -> bool:
    """Tell whether an operation fails with ENOSPC; any other error is raised."""
    try:
        operation()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return True
    return False


def fill(fd: int) -> None:
    """Write until the disk is full to the last byte."""
    for size in (65536, 512, 1):
        while not is_full(partial(os.write, fd, b"x" * size)):
            pass


def append(path: Path) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, b"!" * 5000)
    finally:
        os.close(fd)


def exhaust_the_journal(directory: Path, staged: Path) -> None:
    """Rename to and fro, then link, until the journal has no room left for anything but
    removals.
    """
    there, back = directory, directory.with_name("e")
    while not is_full(partial(there.rename, back)):
        there, back = back, there
    names = (staged.with_name(f"~{number}") for number in range(100))
    assert any(is_full(partial(os.link, staged, name)) for name in names)


def content(root: Path) -> dict[str, bytes | None]:
    files = [path for path in sorted(root.rglob("*")) if path.name != "filler" and path.name[0] != "~"]
    return {path.name: path.read_bytes() if path.is_file() else None for path in files}


def test_on_a_full_disk_nothing_is_half_done_and_work_goes_on(base: Path, mounted: Mounter) -> None:
    (base / "d").mkdir()
    (base / "gone").mkdir()
    for number in range(500):
        (base / f"old{number}").touch()
    for name in ("a", "b", "d/c"):
        (base / name).write_bytes(name[-1:].encode() * 5000)
    view = mounted()
    root = Path(os.fsdecode(view.mountpoint))
    (root / "staged").write_bytes(b"staged")
    filler = os.open(root / "filler", os.O_CREAT | os.O_WRONLY)
    try:
        fill(filler)
        before = content(root)
        assert is_full(partial(append, root / "a"))
        assert is_full(partial(os.truncate, root / "b", 4500))
        assert content(root) == before
        exhaust_the_journal(root / "d", root / "staged")
        attempts: list[Callable[[], object]] = [
            (root / "new").mkdir,
            partial((root / "staged").rename, root / "moved"),
            partial(os.link, root / "staged", root / "linked"),
        ]
        assert all(map(is_full, attempts))
        assert content(root).keys() - {"d", "e"} == before.keys() - {"d"}
        for number in range(500):
            (root / f"old{number}").unlink()
        (root / "gone").rmdir()
        assert is_full((root / "new").mkdir)
        assert {path.name for path in base.iterdir()} > {"old0", "gone"}
        os.ftruncate(filler, 0)
        append(root / "a")
        (root / "b").unlink()
        now = content(root)
        assert now["a"] == b"a" * 5000 + b"!" * 5000
        assert "b" not in now
    finally:
        os.close(filler)
    view.remount()
    assert content(root) == now
