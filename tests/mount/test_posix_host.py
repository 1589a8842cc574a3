"""What the host does to base under the mount: handles keep their file, and no two files are ever
confused.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.in_process import MountedView

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]


def at(view: MountedView, name: str) -> Path:
    return Path(os.fsdecode(view.mountpoint)) / name


@pytest.fixture
def uncached(base: Path, mounted: Mounter) -> Mounter:
    """Mounts so that the kernel asks about every name of base again."""
    return lambda: mounted(base_timeout_s=0.0)


def replace(base: Path, content: bytes) -> None:
    (base / "f.new").write_bytes(content)
    (base / "f.new").rename(base / "f")


def delete(base: Path, content: bytes) -> None:
    (base / "f").unlink()


@pytest.mark.parametrize("change", [replace, delete])
@pytest.mark.parametrize("is_looked_up", [False, True])
@pytest.mark.parametrize("has_staged_mode", [False, True])
def test_writes_to_a_handle_go_to_the_file_that_was_opened(
    base: Path,
    uncached: Mounter,
    change: Callable[[Path, bytes], None],
    is_looked_up: bool,
    has_staged_mode: bool,
) -> None:
    (base / "f").write_bytes(b"the old file")
    view = uncached()
    fd = os.open(at(view, "f"), os.O_RDWR)
    try:
        if has_staged_mode:
            os.fchmod(fd, 0o600)
        assert os.pread(fd, 100, 0) == b"the old file"
        change(base, b"another file")
        if is_looked_up:
            assert at(view, "f").exists() == (change is replace)
        assert os.pwrite(fd, b"THE", 0) == 3
        assert os.pread(fd, 100, 0) == b"THE old file"
        os.ftruncate(fd, 7)
        os.fchmod(fd, 0o640)
        assert os.fstat(fd).st_size == 7
        if not has_staged_mode:
            assert at(view, "f").exists() == (change is replace)
            if change is replace:
                assert at(view, "f").read_bytes() == b"another file"
    finally:
        os.close(fd)


def test_chmod_works_through_a_handle_whose_file_is_gone(base: Path, uncached: Mounter) -> None:
    (base / "f").write_bytes(b"old")
    view = uncached()
    with at(view, "f").open("rb") as held:
        delete(base, b"")
        os.fchmod(held.fileno(), 0o600)
        assert held.read() == b"old"
    assert os.listdir(view.mountpoint) == []


def test_a_handle_without_a_descriptor_never_reads_the_replacement(base: Path, uncached: Mounter) -> None:
    (base / "f").write_bytes(b"old")
    view = uncached()
    fd = os.open(at(view, "f"), os.O_RDONLY)
    try:
        replace(base, b"new")
        for inode in view.inodes():
            view.mount.call(partial(view.overlay.descriptors.close, inode))
        with pytest.raises(OSError, match=os.strerror(errno.ESTALE)):
            os.pread(fd, 100, 0)
    finally:
        os.close(fd)
    assert at(view, "f").read_bytes() == b"new"


def test_a_new_file_of_the_host_with_an_old_number_is_not_the_old_one(base: Path, uncached: Mounter) -> None:
    view = uncached()
    reused = 0
    for turn in range(30):
        old, new = base / f"old{turn}", base / f"new{turn}"
        old.write_bytes(b"old content, %d" % turn)
        number = old.stat().st_ino
        at(view, old.name).chmod(0o600)
        old.unlink()
        new.write_bytes(b"new %d" % turn)
        reused += new.stat().st_ino == number
        assert at(view, new.name).read_bytes() == b"new %d" % turn
        with at(view, new.name).open("ab") as file:
            file.write(b"!")
        assert at(view, new.name).read_bytes() == b"new %d!" % turn
        assert not at(view, old.name).exists()
    if not reused:
        pytest.skip("this filesystem does not use numbers again so soon")


def test_a_file_with_a_staged_mode_goes_when_the_host_deletes_it(base: Path, uncached: Mounter) -> None:
    (base / "f").write_bytes(b"old")
    view = uncached()
    at(view, "f").chmod(0o600)
    (base / "f").unlink()
    assert os.listdir(view.mountpoint) == []
    assert not at(view, "f").exists()
    at(view, "f").write_bytes(b"new")
    assert at(view, "f").read_bytes() == b"new"
    view.remount()
    assert at(view, "f").read_bytes() == b"new"


def test_a_directory_with_a_staged_mode_stays_when_the_host_deletes_it(base: Path, uncached: Mounter) -> None:
    (base / "d").mkdir()
    (base / "d/f").write_bytes(b"")
    view = uncached()
    at(view, "d").chmod(0o700)
    at(view, "d/staged").write_bytes(b"kept")
    shutil.rmtree(base / "d")
    assert os.listdir(at(view, "d")) == ["staged"]
    assert at(view, "d/staged").read_bytes() == b"kept"
    at(view, "d/staged").unlink()
    at(view, "d").rmdir()
    assert os.listdir(view.mountpoint) == []


@pytest.mark.parametrize("as_directory", [False, True])
def test_a_new_file_does_not_inherit_what_was_staged_below_a_directory_that_is_gone(
    base: Path, uncached: Mounter, as_directory: bool
) -> None:
    (base / "d").mkdir()
    (base / "d/f").write_bytes(b"")
    view = uncached()
    at(view, "d/staged").write_bytes(b"")
    shutil.rmtree(base / "d")
    assert not at(view, "d").exists()
    if as_directory:
        at(view, "d").mkdir()
    else:
        at(view, "d").write_bytes(b"file")
    for _ in range(2):
        assert at(view, "d").is_dir() == as_directory
        if as_directory:
            assert os.listdir(at(view, "d")) == []
        entry = view.mount.call(lambda: view.overlay.tree.find(b"d"))
        assert entry is not None
        assert not entry.children
        view.remount()


def test_a_new_file_at_a_renamed_name_whose_file_is_gone_is_new(base: Path, uncached: Mounter) -> None:
    (base / "f").write_bytes(b"old")
    view = uncached()
    at(view, "f").rename(at(view, "g"))
    (base / "f").unlink()
    assert not at(view, "g").exists()
    at(view, "g").write_bytes(b"new")
    staged = view.mount.call(lambda: view.overlay.tree.find(b"g"))
    assert staged is not None
    assert staged.staged is not None
    assert staged.staged.key == staged.staged.ino, "it counts as a version of the old file"
    os.link(at(view, "g"), at(view, "h"))
    view.remount()
    assert at(view, "h").read_bytes() == b"new"


def test_nothing_can_be_made_in_an_open_directory_that_is_gone(base: Path, uncached: Mounter) -> None:
    (base / "d").mkdir()
    view = uncached()
    at(view, "f").write_bytes(b"")
    fd = os.open(at(view, "d"), os.O_RDONLY)
    try:
        (base / "d").rmdir()
        attempts: list[Callable[[], None]] = [
            lambda: os.mkdir("x", dir_fd=fd),
            lambda: os.rename(at(view, "f"), "x", dst_dir_fd=fd),
            lambda: os.link(at(view, "f"), "x", dst_dir_fd=fd),
            lambda: os.symlink("x", "x", dir_fd=fd),
        ]
        for refused in attempts:
            with pytest.raises(FileNotFoundError):
                refused()
    finally:
        os.close(fd)
    assert os.listdir(view.mountpoint) == [b"f"]


@pytest.mark.parametrize("how", ["mkdir", "rename", "rmdir above"])
def test_files_open_below_a_directory_that_is_gone_can_be_written_on(base: Path, uncached: Mounter, how: str) -> None:
    (base / "p/d").mkdir(parents=True)
    view = uncached()
    at(view, "p/d/staged").write_bytes(b"staged")
    at(view, "other").mkdir()
    with at(view, "p/d/staged").open("r+b", buffering=0) as held:
        view.snapshot()
        shutil.rmtree(base / "p/d")
        match how:
            case "mkdir":
                at(view, "p/d").mkdir()
            case "rename":
                at(view, "other").rename(at(view, "p/d"))
            case "rmdir above":
                at(view, "p").rmdir()
        held.write(b"S")
        assert os.pread(held.fileno(), 10, 0) == b"Staged"
        assert os.fstat(held.fileno()).st_nlink == 0
    assert not at(view, "p/d/staged").exists()
    view.remount()
    assert not at(view, "p/d/staged").exists()


HOLDER = """
import mmap, os, sys
fd = os.open("f", os.O_RDWR)
window = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
assert window[0:3] == b"old" and window[60000:60003] == b"old"
print("held", flush=True)
sys.stdin.readline()
print(os.pread(fd, 10, 0), os.pread(fd, 10, 60000), os.fstat(fd).st_size)
os.pwrite(fd, b"mine", 100)
print(os.pread(fd, 10, 0), os.pread(fd, 10, 98), os.fstat(fd).st_size, flush=True)
window[60000]  # zeros, or SIGBUS: the kernel's business
"""


@pytest.mark.parametrize("how", ["truncate", "truncate to nothing", "rewrite"])
def test_a_reader_outlives_a_base_file_that_the_host_cuts_under_its_handle(
    base: Path, uncached: Mounter, how: str
) -> None:
    (base / "f").write_bytes(b"old" * 30_000)
    view = uncached()
    command = [sys.executable, "-c", HOLDER]
    with subprocess.Popen(
        command, cwd=view.mountpoint, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        match how:
            case "truncate":
                os.truncate(base / "f", 50)
            case "truncate to nothing":
                os.truncate(base / "f", 0)
            case "rewrite":
                (base / "f").write_bytes(b"new")
        left = (base / "f").read_bytes()
        assert at(view, "f").read_bytes() == left
        out, err = holder.communicate("go\n")
        size = len(left)
        assert out.splitlines() == [
            f"{left[:10]!r} b'' {size}",
            f"{(left + bytes(10))[:10]!r} {bytes(2) + b'mine'!r} 104",
        ], err
    assert at(view, "f").read_bytes() == left + bytes(100 - size) + b"mine"
    assert (base / "f").read_bytes() == left
    view.remount()
    assert at(view, "f").read_bytes() == left + bytes(100 - size) + b"mine"
