"""Files that are open while the view changes around them, holes, and what is durable when."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.in_process import MountedView

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]
MIB = 1 << 20
SYNCING = """
import os
for name in ("f", "new"):
    fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
    os.write(fd, b"data")
    os.fsync(fd)
    os.fdatasync(fd)
directory = os.open(".", os.O_RDONLY)
os.fsync(directory)
os.mkdir("directory")
os.fsync(directory)
"""


def at(view: MountedView, name: str) -> Path:
    return Path(os.fsdecode(view.mountpoint)) / name


@pytest.mark.parametrize("origin", ["base", "metadata", "staged", "snapshotted"])
@pytest.mark.parametrize("is_remade", [False, True])
def test_an_unlinked_open_file_keeps_its_content_over_snapshot_travel_and_commit(
    base: Path, mounted: Mounter, origin: str, is_remade: bool
) -> None:
    if origin in ("base", "metadata"):
        (base / "f").write_bytes(b"0123456789")
    view = mounted()
    if origin in ("staged", "snapshotted"):
        at(view, "f").write_bytes(b"0123456789")
    if origin == "metadata":
        at(view, "f").chmod(0o600)
    first = view.snapshot() if origin == "snapshotted" else 0
    fd = os.open(at(view, "f"), os.O_RDWR)
    expected = bytearray(b"0123456789")

    def write(offset: int, data: bytes) -> None:
        assert os.pwrite(fd, data, offset) == len(data)
        expected[offset : offset + len(data)] = data
        look()

    def look() -> None:
        assert os.pread(fd, 100, 0) == expected
        assert (os.fstat(fd).st_nlink, os.fstat(fd).st_size) == (0, len(expected))

    try:
        at(view, "f").unlink()
        look()
        if is_remade:
            at(view, "f").write_bytes(b"another file")
        write(0, b"A")
        second = view.snapshot()
        write(1, b"B")
        os.ftruncate(fd, 8)
        del expected[8:]
        look()
        view.travel(first)
        assert at(view, "f").exists() == (origin != "staged")
        write(2, b"C")
        view.travel(second)
        write(10, b"D") if len(expected) >= 10 else write(8, b"DE")
        assert at(view, "f").exists() == is_remade
        view.commit()
        write(3, b"F")
        os.fsync(fd)
    finally:
        os.close(fd)
    assert at(view, "f").exists() == is_remade == (base / "f").exists()
    if is_remade:
        assert at(view, "f").read_bytes() == b"another file" == (base / "f").read_bytes()
    view.remount()
    assert os.listdir(view.mountpoint) == ([b"f"] if is_remade else [])


def test_the_store_forgets_unlinked_files_that_were_open_at_a_remount(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"x" * 100_000)
    view = mounted()
    fd = os.open(at(view, "f"), os.O_RDWR)
    at(view, "f").unlink()
    os.pwrite(fd, b"y", 0)
    os.close(fd)
    view.remount()
    files = [path for path in (base / ".yolofs/files").glob("*/*") if path.is_file()]
    assert files == []


def sparse(path: Path) -> None:
    """Make a file of 64 MiB that holds three pieces of data."""
    with path.open("wb") as file:
        file.truncate(64 * MIB)
        for offset in (0, 20 * MIB + 5, 64 * MIB - 10):
            file.seek(offset)
            file.write(b"data")


def test_holes_stay_over_copy_up_snapshot_and_commit(base: Path, mounted: Mounter) -> None:
    for name in ("written", "chmodded", "both", "cut", "grown"):
        sparse(base / name)
    view = mounted()
    at(view, "chmodded").chmod(0o600)
    at(view, "both").chmod(0o600)
    for turn in range(3):
        for name in ("written", "both"):
            fd = os.open(at(view, name), os.O_WRONLY)
            os.pwrite(fd, b"more", 40 * MIB + turn)
            os.close(fd)
        os.truncate(at(view, "cut"), 30 * MIB)
        os.truncate(at(view, "grown"), 90 * MIB)
        view.snapshot()
    sizes = {"written": 64, "chmodded": 64, "both": 64, "cut": 30, "grown": 90}
    for name, size in sizes.items():
        st = at(view, name).stat()
        assert (st.st_size, st.st_blocks * 512 < MIB // 4) == (size * MIB, True), name
    stored = [path.stat().st_blocks * 512 for path in (base / ".yolofs/files").glob("*/*")]
    assert sum(stored) < MIB
    view.commit()
    for name, size in sizes.items():
        st = (base / name).stat()
        assert (st.st_size, st.st_blocks * 512 < MIB // 4) == (size * MIB, True), name
        with (base / name).open("rb") as file:
            file.seek(20 * MIB + 5)
            assert file.read(5) == b"data\0"
    assert os.pread(os.open(base / "both", os.O_RDONLY), 7, 40 * MIB) == b"mmmore\0"


def test_fsync_makes_the_data_durable_before_the_journal_and_that_where_something_is_new_in_it(
    base: Path, mounted: Mounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def noting(real: Callable[[int], None]) -> Callable[[int], None]:
        def call(fd: int) -> None:
            calls.append(os.path.relpath(os.readlink(f"/proc/self/fd/{fd}"), os.path.realpath(base / ".yolofs")))
            real(fd)

        return call

    (base / "f").write_bytes(b"x")
    view = mounted()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", noting(os.fsync))
        patch.setattr(os, "fdatasync", noting(os.fdatasync))
        # By another process: what this one opens counts as the mount's own.
        subprocess.run([sys.executable, "-c", SYNCING], cwd=view.mountpoint, check=True)
    old, new = calls[0], calls[3]
    assert {old[:6], new[:6]} == {"files/"}
    assert old != new
    # A disk takes its time for a journal with nothing new in it, too.
    assert calls == [old, "journal", old, new, "journal", new, "journal"]


@pytest.mark.parametrize("others", [0, 8])
def test_a_file_whose_last_name_a_commit_removed_is_whole_for_a_process_that_has_it_open(
    base: Path, mounted: Mounter, others: int
) -> None:
    """``others``: how many more files are open than the daemon keeps descriptors for."""
    (base / "f").write_bytes(b"data")
    os.setxattr(base / "f", "user.x", b"value")
    for number in range(others):
        (base / f"other{number}").write_bytes(b"other")
    view = mounted(xattrs=True)
    view.mount.call(lambda: setattr(view.overlay.descriptors, "_most", 4))
    fd = os.open(at(view, "f"), os.O_RDWR)
    at(view, "f").unlink()
    view.commit()
    assert not (base / "f").exists()
    held = [os.open(at(view, f"other{number}"), os.O_RDONLY) for number in range(others)]
    assert os.listxattr(fd) == ["user.x"]
    assert os.getxattr(fd, "user.x") == b"value"
    assert os.pread(fd, 10, 0) == b"data"
    assert (os.fstat(fd).st_size, os.fstat(fd).st_nlink) == (4, 0)
    os.pwrite(fd, b"D", 0)
    os.fchmod(fd, 0o600)
    os.setxattr(fd, "user.y", b"more")
    assert os.pread(fd, 10, 0) == b"Data"
    assert sorted(os.listxattr(fd)) == ["user.x", "user.y"]
    for each in (fd, *held):
        os.close(each)
