"""A store inode that nothing shows any more loses its name at once; what it had on the disk another
thread frees.
"""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.in_process import MountedView
from tests.support.plain_handlers import handlers_of
from yolofs.fuse.cache import freeing
from yolofs.fuse.handlers import Handlers
from yolofs.overlay import Owner

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]
ME = Owner(os.getuid(), os.getgid())
MIB = 1 << 20
DEADLINE_S = 100.0


def stored(base: Path) -> dict[int, os.stat_result]:
    found = {}
    for path in (base / ".yolofs/files").glob("*/*"):
        with suppress(FileNotFoundError):  # removed just now
            found[int(path.name)] = path.lstat()
    return found


def to_be_freed(view: MountedView) -> int:
    """Return how many are still to be freed once what is being removed is handed over: its name
    goes first.
    """
    return view.mount.call(lambda: view.mount._freeing.count)


def root_of(view: MountedView) -> Path:
    return Path(os.fsdecode(view.mountpoint))


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it does not come about"
        time.sleep(0.001)  # between two looks at a condition with a deadline


@contextmanager
def held(handlers: Handlers) -> Iterator[list[int]]:
    """Give the descriptors that are to be closed, and close them at the end."""
    fds: list[int] = []
    handlers.overlay.removal.close_removed = fds.append
    yield fds
    handlers.overlay.removal.close_removed = os.close
    for fd in fds:
        os.close(fd)


def make(handlers: Handlers, kind: str) -> int:
    """Make ``f`` and return its number; a file is left with its descriptor open or closed."""
    if kind == "directory":
        answer = handlers.mkdir(1, b"f", 0o755, ME)
    elif kind == "symlink":
        answer = handlers.symlink(1, b"f", b"target", ME)
    elif kind == "fifo":
        answer = handlers.mknod(1, b"f", stat.S_IFIFO | 0o600, 0, ME)
    else:
        opened, answer = handlers.create(1, b"f", 0o200, os.O_WRONLY, ME)
        handlers.write(opened.handle, 0, b"content")
        handlers.release(opened.handle)
        if kind == "closed file":
            assert answer.attr is not None
            handlers.overlay.descriptors.close(handlers.overlay.inodes.by_number[answer.attr.number])
    assert answer.attr is not None
    return answer.attr.number


@pytest.mark.parametrize("kind", ["open file", "closed file", "directory", "symlink", "fifo"])
def test_a_removed_store_inode_loses_its_name_at_once_and_its_space_with_one_descriptor(base: Path, kind: str) -> None:
    with handlers_of(base) as handlers, held(handlers) as fds:
        number = make(handlers, kind)
        store_inode = stored(base)[1].st_ino
        (handlers.rmdir if kind == "directory" else handlers.unlink)(1, b"f")
        assert list(stored(base)) == [1], "the kernel still knows it"
        assert fds == []
        handlers.forget([(number, 1)])
        assert stored(base) == {}
        assert [os.fstat(fd).st_ino for fd in fds] == [store_inode]
        make(handlers, kind)
        assert list(stored(base)) == [2], "its number is not given out anew"


def test_a_replaced_store_inode_is_freed_as_a_removed_one_is(base: Path) -> None:
    with handlers_of(base) as handlers, held(handlers) as fds:
        old = make(handlers, "open file")
        handlers.rename(1, b"f", 1, b"old", 0)
        make(handlers, "open file")
        handlers.rename(1, b"f", 1, b"old", 0)
        handlers.forget([(old, 1)])
        assert list(stored(base)) == [2]
        assert len(fds) == 1


def test_the_descriptor_of_a_base_file_is_not_taken_for_the_store_inode(base: Path) -> None:
    (base / "f").write_bytes(b"content")
    with handlers_of(base) as handlers, held(handlers) as fds:
        attr = handlers.lookup(1, b"f").attr
        assert attr is not None
        handlers.setattr(attr.number, 0o600, None, None, None, None, None)
        opened = handlers.open(attr.number, os.O_RDONLY)
        assert bytes(handlers.read(opened.handle, 0, 100) or b"") == b"content"
        handlers.release(opened.handle)
        store_inode = stored(base)[1].st_ino
        handlers.unlink(1, b"f")
        handlers.forget([(attr.number, 1)])
        assert [os.fstat(fd).st_ino for fd in fds] == [store_inode]
        assert stored(base) == {}
    assert (base / "f").read_bytes() == b"content"


@pytest.mark.parametrize("kind", ["open file", "closed file"])
def test_a_removal_that_fails_leaves_no_descriptor(base: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    def refuse(_: bytes) -> None:
        raise OSError(errno.EIO, "no luck")

    with handlers_of(base) as handlers:
        first = make(handlers, "closed file")
        handlers.unlink(1, b"f")
        handlers.forget([(first, 1)])  # one descriptor stays: readers of the store are looked for by it
        before = os.listdir("/proc/self/fd")
        number = make(handlers, kind)
        handlers.unlink(1, b"f")
        with monkeypatch.context() as patch:
            patch.setattr(os, "unlink", refuse)
            with pytest.raises(OSError, match="no luck"):
                handlers.forget([(number, 1)])
        assert os.listdir("/proc/self/fd") == before
        assert list(stored(base)) == [2]


def test_a_store_inode_that_is_missing_at_its_removal_is_an_error_and_leaves_no_descriptor(base: Path) -> None:
    with handlers_of(base) as handlers, held(handlers) as fds:
        number = make(handlers, "closed file")
        handlers.unlink(1, b"f")
        (base / ".yolofs/files/00/1").unlink()
        with pytest.raises(FileNotFoundError):
            handlers.forget([(number, 1)])
        assert fds == []


def test_a_store_inode_is_removed_though_no_descriptor_is_to_be_had(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    with handlers_of(base) as handlers, held(handlers) as fds:
        number = make(handlers, "closed file")
        handlers.unlink(1, b"f")
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", refuse)
            handlers.forget([(number, 1)])
        assert (stored(base), fds) == ({}, [])


# ---- with a mount


class Disk:
    """Frees nothing until it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.goes_on = threading.Event()
        self._close = freeing._close
        monkeypatch.setattr(freeing, "_close", self.close)
        monkeypatch.setattr(freeing, "_LARGE_BYTES", 0)

    def close(self, fd: int) -> None:
        if threading.current_thread().name == "freeing":
            assert self.goes_on.wait(DEADLINE_S)
        self._close(fd)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk(monkeypatch)
    yield disk
    disk.goes_on.set()


def make_and_remove(root: Path, count: int, name: str = "t") -> None:
    for number in range(count):
        path = root / f"{name}{number}"
        path.write_bytes(b"x" * 5000)
        path.unlink()


def test_a_slow_disk_holds_up_nobody_who_works(base: Path, mounted: Mounter, disk: Disk) -> None:
    view = mounted()
    root = root_of(view)
    (root / "kept").write_bytes(b"kept")
    make_and_remove(root, 100)
    wait_until(lambda: list(stored(base)) == [1])
    assert to_be_freed(view) == 100
    (root / "new").write_bytes(b"new")
    assert sorted(stored(base)) == [1, 102]
    assert (root / "kept").read_bytes() == b"kept"
    disk.goes_on.set()
    view.remount()
    assert (root / "new").read_bytes() == b"new"
    assert view.mount._freeing.count == 0


def test_whoever_removes_more_than_may_wait_waits_for_the_disk(base: Path, mounted: Mounter, disk: Disk) -> None:
    view = mounted()
    make_and_remove(root_of(view), 400)
    wait_until(lambda: not stored(base))
    assert to_be_freed(view) == 256
    disk.goes_on.set()


def test_an_open_file_can_be_read_and_written_until_it_is_closed(base: Path, mounted: Mounter, disk: Disk) -> None:
    view = mounted()
    with (root_of(view) / "t").open("w+b") as file:
        (root_of(view) / "t").unlink()
        file.write(b"content")
        file.flush()
        make_and_remove(root_of(view), 40)
        file.seek(0)
        assert file.read() == b"content"
        disk.goes_on.set()


@pytest.mark.parametrize("way", ["abort", "commit", "travel"])
def test_the_state_may_be_exchanged_while_much_is_still_to_be_freed(
    base: Path, mounted: Mounter, disk: Disk, way: str
) -> None:
    view = mounted()
    root = root_of(view)
    (root / "kept").write_bytes(b"kept")
    make_and_remove(root, 50)
    wait_until(lambda: list(stored(base)) == [1])
    if way == "travel":
        view.travel(0)
    else:
        getattr(view, way)()
    assert (root / "kept").exists() == (way == "commit")
    assert to_be_freed(view) == 50
    (root / "next").write_bytes(b"next")
    make_and_remove(root, 50, "u")
    disk.goes_on.set()
    view.remount()
    assert (root / "next").read_bytes() == b"next"
    if way == "travel":
        view.travel(1)
        assert (root / "kept").read_bytes() == b"kept"


def test_a_number_is_given_out_anew_after_an_abort_though_its_old_file_is_not_freed(
    base: Path, mounted: Mounter, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yolofs.fuse.mount._LAST_FREED_S", 0)
    view = mounted()
    root = root_of(view)
    make_and_remove(root, 20)
    wait_until(lambda: not stored(base))
    first = view.mount._freeing
    view.abort()
    view.remount()
    assert first.count == 20
    (root / "f").write_bytes(b"content")
    assert list(stored(base)) == [1]
    disk.goes_on.set()
    wait_until(lambda: first.count == 0)
    assert (root / "f").read_bytes() == b"content"
    view.remount()
    assert (root / "f").read_bytes() == b"content"


# ---- a small disk


@pytest.fixture
def small(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The base directory; what is staged lies on a disk of 3 MiB."""
    if os.getuid() != 0:
        pytest.skip("only root can mount a small disk, which CI is")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs", disk], check=True)
    monkeypatch.setenv("YOLOFS_STATE", str(disk / "state"))
    yield base
    subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.fixture
def handed_over_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freeing, "_SOON_S", 3600)
    monkeypatch.setattr(freeing, "_BATCH", 1000)


@pytest.mark.usefixtures("handed_over_late")
def test_a_full_disk_is_not_full_if_something_was_removed(small: Path, mounted: Mounter) -> None:
    (small / "b").write_bytes(b"y" * MIB)
    view = mounted()
    root = root_of(view)
    for _ in range(5):
        (root / "f").write_bytes(b"x" * 2 * MIB)
        (root / "f").unlink()
        wait_until(lambda: view.mount._freeing.count == 1)
    with (root / "b").open("r+b") as file:  # which a worker copies
        file.write(b"z")
    assert (root / "b").read_bytes() == b"z" + b"y" * (MIB - 1)
    with pytest.raises(OSError, match="No space left"):
        (root / "f").write_bytes(b"x" * 3 * MIB)


@pytest.mark.usefixtures("handed_over_late")
def test_a_request_that_needs_its_copy_again_gets_it(
    small: Path, mounted: Mounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full when the copy is recorded, so that it is thrown away; the second attempt
    needs another.
    """
    (small / "b").write_bytes(b"y" * MIB)
    view = mounted()
    root = root_of(view)
    (root / "f").write_bytes(b"x" * MIB)
    (root / "f").unlink()
    wait_until(lambda: view.mount._freeing.count == 1)
    write = os.write
    failures = [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))]

    def full_once(fd: int, data: bytes) -> int:
        if failures and fd == view.session.journal._fd:
            raise failures.pop()
        return write(fd, data)

    monkeypatch.setattr(os, "write", full_once)
    with (root / "b").open("r+b") as file:
        file.write(b"z")
    assert not failures
    assert (root / "b").read_bytes() == b"z" + b"y" * (MIB - 1)


@pytest.mark.usefixtures("small", "handed_over_late")
def test_statfs_counts_removed_files_as_free_though_no_thread_starts(
    mounted: Mounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    view = mounted()
    root = root_of(view)
    (root / "f").write_bytes(b"x" * 2 * MIB)
    before = os.statvfs(root).f_bavail
    (root / "f").unlink()
    wait_until(lambda: view.mount._freeing.count == 1)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert os.statvfs(root).f_bavail > before + 400
    (root / "g").write_bytes(b"the mount lives on")


@pytest.mark.usefixtures("small", "handed_over_late")
def test_statfs_counts_removed_files_as_free(mounted: Mounter) -> None:
    view = mounted()
    root = root_of(view)
    free = os.statvfs(root).f_bavail
    (root / "f").write_bytes(b"x" * 2 * MIB)
    assert os.statvfs(root).f_bavail < free - 500
    (root / "f").unlink()
    wait_until(lambda: view.mount._freeing.count == 1)
    assert os.statvfs(root).f_bavail > free - 100
