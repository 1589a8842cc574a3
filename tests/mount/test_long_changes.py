"""What takes a disk long (to free or allocate much) is made by a worker thread, and others are
answered meanwhile; what wants the view at rest waits.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.ext4_disk import ext4_disk
from tests.support.in_process import MountedView
from tests.support.program import wait_until
from yolofs.fuse.direct.transport import DirectTransport
from yolofs.fuse.loop.loop import LoopClosedError
from yolofs.overlay.long_changes import MUCH_ALLOCATED, MUCH_FREED
from yolofs.system.syscalls import FALLOC_FL_PUNCH_HOLE, fallocate

pytestmark = pytest.mark.mount

KEEP_SIZE = 1
LARGE = 2 * MUCH_ALLOCATED
SMALL = 5
DATA = b"what is at the beginning"


class LongView:
    """A view with a large staged file, whose worker threads can be kept from beginning anything."""

    def __init__(self, view: MountedView) -> None:
        self.view = view
        self.root = Path(os.fsdecode(view.mountpoint))
        self.path = self.root / "large"
        self.path.write_bytes(DATA)
        by_fd(self.path, lambda fd: os.posix_fallocate(fd, 0, LARGE))
        (self.root / "other").write_bytes(b"other")
        self._threads = ThreadPoolExecutor(8)

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Have no worker thread begin anything while the block runs."""
        go_on = threading.Event()
        loop = self.view.mount.loop

        def wait() -> None:
            go_on.wait()

        try:
            for _ in range(8):
                loop.call(loop.start_in_thread, wait)
            yield
        finally:
            go_on.set()

    def begin(self, change: Callable[[], Any]) -> Future[Any]:
        """Have another thread make a change, and return once the loop waits for it."""
        made = self._threads.submit(change)
        wait_until(lambda: made.done() or self.view.handlers.changing, "the change")
        assert not made.done(), made.result()
        return made

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        return self._threads.submit(call)

    def check_others_are_answered(self, *, large: bool = False) -> None:
        """Use the view; ``large``: the large file, too."""
        assert (self.root / "other").read_bytes() == b"other"
        (self.root / "new").write_bytes(b"new")
        with (self.root / "other").open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, SMALL)
        (self.root / "new").unlink()
        if large:
            with self.path.open("rb") as file:
                assert file.read(len(DATA)) == DATA
        os.listdir(self.root)


@pytest.fixture
def long(mounted: Callable[..., MountedView]) -> LongView:
    return LongView(mounted(make_transport=DirectTransport))


def by_fd(path: Path, change: Callable[[int], object]) -> None:
    fd = os.open(path, os.O_RDWR)
    try:
        change(fd)
    finally:
        os.close(fd)


CHANGES: dict[str, tuple[Callable[[Path], object], int]] = {
    "ftruncate": (lambda path: by_fd(path, lambda fd: os.ftruncate(fd, SMALL)), SMALL),
    "truncate": (lambda path: os.truncate(path, SMALL), SMALL),
    "open": (lambda path: os.close(os.open(path, os.O_WRONLY | os.O_TRUNC)), 0),
    "allocate": (lambda path: by_fd(path, lambda fd: fallocate(fd, 0, 0, 2 * LARGE)), 2 * LARGE),
    "keep size": (lambda path: by_fd(path, lambda fd: fallocate(fd, KEEP_SIZE, 0, 2 * LARGE)), LARGE),
    "punch": (lambda path: by_fd(path, lambda fd: punch(fd, MUCH_FREED)), LARGE),
}


def punch(fd: int, offset: int) -> None:
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | KEEP_SIZE, offset, LARGE - offset)


def room_of(path: Path) -> int:
    """Return the MiB that a file takes; ext4 needs some blocks more, or fewer, to know of them."""
    return path.stat().st_blocks // 2048


@pytest.mark.parametrize("kind", CHANGES)
def test_other_requests_are_answered_during_a_long_change(long: LongView, tmp_path: Path, kind: str) -> None:
    change, size = CHANGES[kind]
    plain = tmp_path / "plain"
    plain.write_bytes(DATA)
    by_fd(plain, lambda fd: os.posix_fallocate(fd, 0, LARGE))
    change(plain)
    with long.busy():
        made = long.begin(lambda: change(long.path))
        long.check_others_are_answered(large=True)
        assert not made.done()
    made.result(60)
    assert long.path.stat().st_size == plain.stat().st_size == size
    assert room_of(long.path) == room_of(plain)
    with long.path.open("rb") as ours, plain.open("rb") as theirs:
        assert ours.read(100) == theirs.read(100)
    assert not long.view.handlers.changing


def test_other_requests_are_answered_during_a_truncation_whatever_the_transport(
    mounted: Callable[..., MountedView],
) -> None:
    long = LongView(mounted())  # without fallocate(2) the C library writes
    with long.busy():
        made = long.begin(lambda: os.truncate(long.path, SMALL))
        long.check_others_are_answered()
        assert not made.done()
    made.result(60)
    assert long.path.read_bytes() == DATA[:SMALL]


def test_small_changes_of_the_room_of_a_file_wait_for_no_thread(long: LongView) -> None:
    with long.busy():
        by_fd(long.path, lambda fd: os.ftruncate(fd, LARGE - MUCH_FREED // 2))
        by_fd(long.path, lambda fd: fallocate(fd, 0, LARGE, MUCH_ALLOCATED // 2))
        hole = long.root / "hole"
        hole.write_bytes(DATA)
        os.truncate(hole, 1 << 40)
        os.truncate(hole, SMALL)
    assert long.path.stat().st_size == LARGE + MUCH_ALLOCATED // 2


@pytest.mark.parametrize(
    "later",
    [
        lambda path: os.truncate(path, 3),
        lambda path: os.close(os.open(path, os.O_WRONLY | os.O_TRUNC)),
        lambda path: by_fd(path, lambda fd: os.pwrite(fd, b"later", LARGE)),
        lambda path: by_fd(path, lambda fd: fallocate(fd, 0, 0, LARGE + SMALL)),
        lambda path: by_fd(path, lambda fd: punch(fd, 0)),
    ],
    ids=["truncate", "open", "write", "allocate", "punch"],
)
def test_changes_of_one_file_keep_their_order(long: LongView, tmp_path: Path, later: Callable[[Path], object]) -> None:
    plain = tmp_path / "plain"
    plain.write_bytes(DATA)
    by_fd(plain, lambda fd: os.posix_fallocate(fd, 0, LARGE))
    os.truncate(plain, SMALL)
    later(plain)
    with long.busy():
        first = long.begin(lambda: os.truncate(long.path, SMALL))
        second = long.submit(lambda: later(long.path))
        long.check_others_are_answered()
        assert not second.done()
    first.result(60)
    second.result(60)
    assert long.path.stat().st_size == plain.stat().st_size
    assert room_of(long.path) == room_of(plain)


def test_a_snapshot_waits_and_has_the_change_whole(long: LongView) -> None:
    with long.busy():
        made = long.begin(lambda: os.truncate(long.path, SMALL))
        taken = long.submit(long.view.snapshot)
        wait_until(lambda: long.view.mount._long_changes._calls, "the snapshot")
        third = long.submit(lambda: by_fd(long.root / "other", lambda fd: fallocate(fd, 0, 0, LARGE)))
        long.root.stat()
        assert not taken.done()
        assert not third.done()
    made.result(60)
    generation = taken.result(60)
    third.result(60)
    long.path.write_bytes(b"another")
    long.view.travel(generation)
    assert long.path.read_bytes() == DATA[:SMALL]


def test_after_a_snapshot_what_it_keeps_is_not_changed(long: LongView) -> None:
    generation = long.view.snapshot()
    os.truncate(long.path, SMALL)
    by_fd(long.path, lambda fd: fallocate(fd, 0, 0, LARGE))
    os.truncate(long.path, 0)
    long.view.travel(generation)
    assert long.path.stat().st_size == LARGE
    with long.path.open("rb") as file:
        assert file.read(len(DATA)) == DATA


@pytest.mark.root_only
def test_a_full_disk_is_told_and_nothing_waits_for_ever(tmp_path: Path) -> None:
    with ext4_disk(tmp_path) as disk:
        base = disk / "base"
        base.mkdir()
        view = MountedView(os.fsencode(base), make_transport=DirectTransport)
        try:
            path = Path(os.fsdecode(view.mountpoint)) / "f"
            path.write_bytes(DATA)
            for _ in range(2):
                with pytest.raises(OSError, match="space") as refused:
                    by_fd(path, lambda fd: fallocate(fd, 0, 0, LARGE))
                assert refused.value.errno == errno.ENOSPC
            os.truncate(path, len(DATA))
            assert path.read_bytes() == DATA
            assert not view.handlers.changing
        finally:
            view.close()


def test_the_end_of_the_mount_lets_those_go_who_wait(long: LongView) -> None:
    with long.busy():
        made = long.begin(lambda: os.truncate(long.path, SMALL))
        waits = long.submit(lambda: long.view.mount.call_at_rest(lambda: None))
        wait_until(lambda: long.view.mount._long_changes._calls, "the call")
        long.view.unmount()
        with pytest.raises(OSError, match=r"."):
            made.result(60)
        with pytest.raises(LoopClosedError):
            waits.result(60)
    long.view._open()
    assert (long.root / "large").stat().st_size == LARGE
