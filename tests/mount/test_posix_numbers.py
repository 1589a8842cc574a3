"""A file keeps its inode number, and so its open handles their file, over all that happens to
it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.in_process import MountedView

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]


@pytest.mark.parametrize("how", ["write", "chmod", "rename", "replace"])
def test_an_open_file_keeps_its_inode_number_over_a_commit(base: Path, mounted: Mounter, how: str) -> None:
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


@pytest.mark.parametrize("how", ["removed", "replaced", "left"])
def test_a_file_that_is_there_again_is_one_file_though_the_old_one_is_held(
    base: Path, mounted: Mounter, how: str
) -> None:
    (base / "f").write_bytes(b"base")
    view = mounted(base_timeout_s=0.0, staged_timeout_s=0.0)
    file = Path(os.fsdecode(view.mountpoint)) / "f"
    with file.open("r+b", buffering=0) as old:
        old.write(b"old ")
        match how:
            case "removed":
                file.unlink()
            case "replaced":
                file.with_name("g").write_bytes(b"new")
                file.with_name("g").rename(file)
        view.travel(0)
        with file.open("r+b", buffering=0) as held:
            number = os.fstat(held.fileno()).st_ino
            for turn in (b"1", b"2"):
                assert os.pwrite(held.fileno(), turn, 0) == 1
                assert file.read_bytes() == turn + b"ase"
                assert file.stat().st_ino == os.fstat(held.fileno()).st_ino == number
                view.snapshot()
            file.unlink()
            assert os.fstat(held.fileno()).st_nlink == 0
            assert os.pread(held.fileno(), 9, 0) == b"2ase"
        assert os.pread(old.fileno(), 9, 0) == b"old "


def test_a_file_that_is_found_again_by_a_travel_is_not_two(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"base")
    view = mounted(base_timeout_s=0.0, staged_timeout_s=0.0)
    file = Path(os.fsdecode(view.mountpoint)) / "f"
    with contextlib.ExitStack() as stack:

        def hold() -> int:
            fd = os.open(file, os.O_PATH)
            stack.callback(os.close, fd)
            return fd

        hold()
        with file.open("r+b", buffering=0) as writing:
            writing.write(b"old ")
            view.snapshot()
            view.travel(0)
            held = hold()
        view.travel(1)
        assert file.read_bytes() == b"old "
        file.write_bytes(b"new")
        assert os.fstat(held).st_ino == file.stat().st_ino
        file.unlink()
        assert os.fstat(held).st_nlink == 0


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


def make_with_number(base: Path, number: int) -> Path:
    """Make a base file with the inode number of a deleted one; skip if the filesystem never gives a
    number again.
    """
    tried = []
    try:
        for turn in range(200):
            path = base / f"host{turn}"
            path.write_bytes(b"the host's")
            if path.stat().st_ino == number:
                return path
            tried.append(path)
    finally:
        for path in tried:
            path.unlink()
    pytest.skip("this filesystem does not use numbers again so soon")


@pytest.mark.parametrize("first", ["staged", "host's"])
@pytest.mark.parametrize("is_committed", [False, True])
def test_a_number_that_the_host_uses_again_is_not_taken_for_the_staged_file(
    base: Path, mounted: Mounter, first: str, is_committed: bool
) -> None:
    (base / "f").write_bytes(b"base")
    number = (base / "f").stat().st_ino
    view = mounted(base_timeout_s=0.0, staged_timeout_s=0.0)
    file = Path(os.fsdecode(view.mountpoint)) / "f"
    with file.open("ab") as appending:
        appending.write(b", staged")
    assert file.stat().st_ino == number
    if is_committed:
        view.commit()
        shutil.rmtree(base / ".yolofs/commits")  # what was replaced goes, and its number with it
    else:
        (base / "f").unlink()
    other = file.with_name(make_with_number(base, number).name)
    if not is_committed:
        view.remount()
    pair = (file, other) if first == "staged" else (other, file)
    numbers = [path.stat().st_ino for path in pair]
    assert len(set(numbers)) == 2
    for _ in range(3):
        assert file.read_bytes() == b"base, staged"
        assert other.read_bytes() == b"the host's"
        assert [path.stat().st_ino for path in pair] == numbers
    with other.open("ab") as appending:
        appending.write(b" and ours")
    assert file.read_bytes() == b"base, staged"
    assert other.read_bytes() == b"the host's and ours"
    assert [path.stat().st_ino for path in pair] == numbers
    view.remount()
    assert file.read_bytes() == b"base, staged"
    assert other.read_bytes() == b"the host's and ours"
    assert file.stat().st_ino != other.stat().st_ino


def test_numbers_stay_and_are_unique_over_many_commits(base: Path, mounted: Mounter) -> None:
    names = [f"f{k}" for k in range(5)]
    for name in names:
        (base / name).write_bytes(name.encode())
    view = mounted(base_timeout_s=0.0, staged_timeout_s=0.0)
    root = Path(os.fsdecode(view.mountpoint))
    numbers = {name: (root / name).stat().st_ino for name in names}
    for turn in range(6):
        for name in names[turn % 2 :: 2]:
            (root / name).write_bytes(b"%d of " % turn + name.encode())
        view.commit()
        shutil.rmtree(base / ".yolofs/commits")
        (base / f"host{turn}").write_bytes(b"host")
        assert (root / f"host{turn}").read_bytes() == b"host"
        assert {name: (root / name).stat().st_ino for name in names} == numbers
        everything = [path.stat().st_ino for path in root.iterdir()]
        assert len(everything) == len(set(everything))
        for name in names:
            assert (root / name).read_bytes().endswith(name.encode())
