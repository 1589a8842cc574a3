"""Descriptors that another thread closes: when, how many may wait, and what goes wrong."""

from __future__ import annotations

import errno
import logging
import os
import resource
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from yolofs.fuse.cache import freeing as module
from yolofs.fuse.cache.freeing import Freeing

BATCH = 32


class Later:
    """What was to be called later."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, Callable[[], object]]] = []

    def __call__(self, delay_s: float, fn: Callable[[], object], /) -> None:
        self.calls.append((delay_s, fn))


class Closings:
    """Stands in for the end of a file: notes which descriptor is closed, in which thread, and may
    be slow or fail.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.closed: list[int] = []
        self.by_loop: list[int] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.failing: dict[int, int] = {}
        self.is_slow = True
        self.now_ns = 0
        """The clock, which only the loop's closings move."""
        self._loop = threading.get_ident()
        self._close = os.close
        monkeypatch.setattr(os, "close", self)

    def __call__(self, fd: int) -> None:
        if threading.get_ident() == self._loop:
            self.by_loop.append(fd)
            self.now_ns += 100_000 if self.is_slow else 2000
        else:
            assert self.may_go_on.wait(20)
        self._close(fd)
        self.closed.append(fd)
        if fd in self.failing:
            raise OSError(self.failing[fd], os.strerror(self.failing[fd]))


@pytest.fixture
def closings(monkeypatch: pytest.MonkeyPatch) -> Closings:
    return Closings(monkeypatch)


@pytest.fixture
def later() -> Later:
    return Later()


@pytest.fixture
def freeing(later: Later, closings: Closings) -> Iterator[Freeing]:
    freeing = Freeing(later, max_count=100, clock_ns=lambda: closings.now_ns)
    freeing._slow_for = 1000
    yield freeing
    closings.may_go_on.set()
    freeing.end(20)


def descriptors(path: Path, count: int, size: int = 0) -> list[int]:
    """Open so many files that were removed."""
    opened = []
    for _ in range(count):
        fd = os.open(path / "f", os.O_RDWR | os.O_CREAT | os.O_EXCL)
        os.write(fd, b"x" * size)
        os.unlink(path / "f")
        opened.append(fd)
    return opened


def is_open(fd: int) -> bool:
    return os.path.lexists(f"/proc/self/fd/{fd}")


def test_a_few_descriptors_are_closed_together_after_a_delay(
    freeing: Freeing, later: Later, closings: Closings, tmp_path: Path
) -> None:
    fds = descriptors(tmp_path, 3)
    for fd in fds:
        freeing.close(fd)
    assert [delay_s for delay_s, _ in later.calls] == [0.01]
    assert all(map(is_open, fds))
    assert freeing.count == 3
    later.calls.pop()[1]()
    freeing.wait()
    assert closings.closed == fds
    assert closings.by_loop == []
    assert freeing.count == 0
    assert not any(map(is_open, fds))
    freeing.close(descriptors(tmp_path, 1)[0])
    assert len(later.calls) == 1, "the next one has its time, too"


def test_many_are_closed_in_the_order_in_which_they_came_without_waiting_for_their_time(
    freeing: Freeing, later: Later, closings: Closings, tmp_path: Path
) -> None:
    fds = descriptors(tmp_path, 2 * BATCH)
    for fd in fds:
        freeing.close(fd)
    freeing.wait()
    assert closings.closed == fds
    assert freeing.count == 0
    later.calls.pop()[1]()  # finds nothing
    assert later.calls == []


def test_the_loop_closes_the_files_that_are_too_many_to_wait(
    freeing: Freeing, closings: Closings, tmp_path: Path
) -> None:
    closings.may_go_on.clear()
    fds = descriptors(tmp_path, 103)
    for fd in fds:
        freeing.close(fd)
    assert freeing.count == 100
    assert closings.by_loop == closings.closed == fds[100:]
    closings.may_go_on.set()
    assert freeing.drain()
    assert sorted(closings.closed) == sorted(fds)


def test_descriptors_beyond_the_limit_are_closed_by_the_loop_but_one_large_file_may_wait(
    freeing: Freeing, closings: Closings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_BYTES", 4096)
    large, small, empty = *descriptors(tmp_path, 2, 1 << 20), *descriptors(tmp_path, 1)
    freeing.close(large)
    assert closings.closed == []
    freeing.close(small)
    freeing.close(empty)
    assert closings.by_loop == closings.closed == [small, empty]
    assert freeing.drain()
    freeing.close(again := descriptors(tmp_path, 1, 1 << 20)[0])
    assert is_open(again)


def test_what_takes_long_to_free_is_not_closed_by_the_loop_until_very_much_waits(
    freeing: Freeing, closings: Closings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_BYTES", 4096)
    monkeypatch.setattr(module, "_LONG_BYTES", 1 << 20)
    monkeypatch.setattr(module, "_MAX_LONG_BYTES", 3 << 20)
    long = descriptors(tmp_path, 4, 1 << 20)
    for fd in long[:3]:
        freeing.close(fd)
    assert closings.closed == []
    freeing.close(short := descriptors(tmp_path, 1)[0])
    freeing.close(long[3])
    assert closings.by_loop == closings.closed == [short, long[3]]
    assert freeing.drain()
    assert sorted(closings.closed) == sorted([*long, short])


def test_the_limit_on_descriptors_is_kept_away_from(
    later: Later, closings: Closings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    freeing = Freeing(later)
    freeing._slow_for = 9
    fds = descriptors(tmp_path, 9)
    for fd in fds:
        freeing.close(fd)
    assert closings.by_loop == fds[8:]
    freeing.end(20)
    assert sorted(closings.closed) == sorted(fds)


def test_as_long_as_closing_is_quick_the_loop_does_it(
    freeing: Freeing, later: Later, closings: Closings, tmp_path: Path
) -> None:
    freeing._slow_for = 0
    closings.is_slow = False
    fds = descriptors(tmp_path, 100)
    for fd in fds:
        freeing.close(fd)
    assert closings.by_loop == closings.closed == fds
    assert later.calls == []


def test_after_a_slow_close_the_next_64_are_handed_over_and_then_one_is_tried(
    freeing: Freeing, closings: Closings, tmp_path: Path
) -> None:
    freeing._slow_for = 0
    fds = descriptors(tmp_path, 70)
    for fd in fds:
        freeing.close(fd)
    assert closings.by_loop == [fds[0], fds[65]]
    freeing.drain()
    assert sorted(closings.closed) == sorted(fds)


def test_a_large_file_is_handed_over_in_any_case(freeing: Freeing, closings: Closings, tmp_path: Path) -> None:
    freeing._slow_for = 0
    closings.is_slow = False
    (large,) = descriptors(tmp_path, 1, 1 << 20)
    freeing.close(large)
    assert closings.by_loop == []
    assert freeing.drain()
    assert closings.closed == [large]


def test_a_directory_is_handed_over_and_the_files_that_follow_are_not(
    freeing: Freeing, closings: Closings, tmp_path: Path
) -> None:
    freeing._slow_for = 0
    closings.is_slow = False
    (tmp_path / "d").mkdir()
    directory = os.open(tmp_path / "d", os.O_RDONLY)
    files = descriptors(tmp_path, 2)
    for fd in (directory, *files):
        freeing.close(fd)
    assert closings.by_loop == files
    assert freeing.drain()
    assert closings.closed == [*files, directory]


def test_settle_tells_whether_a_descriptor_was_waiting(freeing: Freeing, closings: Closings, tmp_path: Path) -> None:
    assert not freeing.drain()
    fds = descriptors(tmp_path, 2)
    for fd in fds:
        freeing.close(fd)
    assert freeing.drain()
    assert closings.closed == fds
    assert not freeing.drain()


def test_a_close_that_fails_is_logged_and_the_next_descriptors_are_closed(
    freeing: Freeing, closings: Closings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fds = descriptors(tmp_path, 3)
    closings.failing[fds[1]] = errno.EIO
    for fd in fds:
        freeing.close(fd)
    assert freeing.drain()
    assert closings.closed == fds
    assert freeing.count == 0
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "a store inode that was removed: [Errno 5] Input/output error"
    ]


def test_without_a_thread_the_loop_closes_the_descriptors(
    freeing: Freeing, closings: Closings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    fds = descriptors(tmp_path, 2)
    for fd in fds:
        freeing.close(fd)
    assert freeing.drain()
    assert closings.by_loop == fds
    assert freeing.count == 0


def test_ending_the_freeing_leaves_no_descriptor_and_no_thread(
    later: Later, closings: Closings, tmp_path: Path
) -> None:
    before = set(threading.enumerate())
    freeing = Freeing(later)
    freeing._slow_for = BATCH + 1
    fds = descriptors(tmp_path, BATCH + 1)
    for fd in fds:
        freeing.close(fd)
    freeing.end()
    assert closings.closed == fds
    assert set(threading.enumerate()) <= before  # others may have ended meanwhile
    freeing.end()


def test_the_end_does_not_wait_for_a_dead_disk(freeing: Freeing, closings: Closings, tmp_path: Path) -> None:
    closings.may_go_on.clear()
    fds = descriptors(tmp_path, 1)
    freeing.close(fds[0])
    freeing.end(0)
    assert is_open(fds[0])
