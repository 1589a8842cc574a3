"""A file keeps its inode number, and so its open handles their file, over all that happens to it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mount.in_process import MountedView

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]


@pytest.mark.parametrize("how", ["write", "chmod", "rename", "replace"])
def test_over_a_commit(base: Path, mounted: Mounter, how: str) -> None:
    (base / "f").write_bytes(b"0123")
    view = mounted(base_timeout_s=0.0)
    file = Path(os.fsdecode(view.mountpoint)) / "f"
    with file.open("r+b", buffering=0) as held:
        number = os.fstat(held.fileno()).st_ino
        expected = b"0123"
        match how:
            case "write":
                held.write(b"AB")
                expected = b"AB23"
            case "chmod":
                os.fchmod(held.fileno(), 0o600)
            case "rename":
                file = file.rename(file.with_name("g"))
            case "replace":
                file.rename(file.with_name("g"))
                file.write_bytes(b"another")
                file = file.with_name("g")
        view.commit()
        assert os.fstat(held.fileno()).st_ino == file.stat().st_ino == number
        assert os.pread(held.fileno(), 10, 0) == expected
        assert os.pwrite(held.fileno(), b"!", 3) == 1
        assert file.read_bytes() == expected[:3] + b"!"
        assert os.fstat(held.fileno()).st_ino == file.stat().st_ino == number
    view.commit()
    assert (base / file.name).read_bytes() == expected[:3] + b"!"
    assert file.stat().st_ino == number


def test_a_commit_does_not_hide_what_the_host_changed_before_it(base: Path, mounted: Mounter) -> None:
    for name in ("f", "g"):
        (base / name).write_bytes(b"old")
    view = mounted(base_timeout_s=1000.0)
    root = Path(os.fsdecode(view.mountpoint))
    assert (root / "f").read_bytes() == (root / "g").read_bytes() == b"old"
    (root / "new").write_bytes(b"")
    (root / "g").rename(root / "h")
    (base / "f").write_bytes(b"from the host")
    (base / "g").write_bytes(b"from the host")
    view.commit()
    assert (root / "f").read_bytes() == b"from the host"
    assert (root / "h").read_bytes() == b"from the host"


def test_an_open_directory_that_is_gone_after_a_commit_is_stale(base: Path, mounted: Mounter) -> None:
    (base / "d").mkdir()
    view = mounted(base_timeout_s=0.0)
    directory = Path(os.fsdecode(view.mountpoint)) / "d"
    fd = os.open(directory, os.O_RDONLY)
    try:
        directory.rmdir()
        directory.write_bytes(b"a file now")
        assert os.fstat(fd).st_nlink == 0
        view.commit()
        with pytest.raises(OSError, match=os.strerror(errno.ESTALE)):
            os.fstat(fd)
    finally:
        os.close(fd)
    assert directory.read_bytes() == b"a file now"


def test_a_directory_that_the_host_makes_a_file_shows_as_one(base: Path, mounted: Mounter) -> None:
    (base / "d").mkdir()
    view = mounted(base_timeout_s=0.0)
    directory = Path(os.fsdecode(view.mountpoint)) / "d"
    fd = os.open(directory, os.O_RDONLY)
    try:
        (base / "d").rmdir()
        (base / "d").write_bytes(b"a file now")
        with pytest.raises(OSError, match=os.strerror(errno.ESTALE)):
            os.fstat(fd)
    finally:
        os.close(fd)
    assert directory.is_file()
    assert directory.read_bytes() == b"a file now"
