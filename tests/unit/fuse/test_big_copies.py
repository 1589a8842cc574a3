"""Large files are copied up by a worker thread, and whatever happens meanwhile is not lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.plain_handlers import handlers_of, open_file
from yolofs.fuse.handlers import Handlers
from yolofs.fuse.results import PostponedError
from yolofs.overlay import CopyJob, Owner
from yolofs.store.store import Store

MIB = 1 << 20
BIG = os.urandom(MIB) * 3


def number_of(handlers: Handlers, name: bytes = b"f") -> int:
    attr = handlers.lookup(1, name).attr
    assert attr is not None
    return attr.number


def content(handlers: Handlers, name: bytes = b"f") -> bytes:
    handle = open_file(handlers, name)
    size = handlers.overlay.getattr(handlers.overlay.inodes.by_number[number_of(handlers, name)]).size
    data = handlers.read_job(handle, 0, size + 1)()
    handlers.release(handle)
    return data


def chmod(handlers: Handlers, mode: int) -> None:
    handlers.setattr(number_of(handlers), mode, None, None, None, None, None)


def copied_first(handlers: Handlers, request: Callable[[], object]) -> None:
    """See that a request waits for a copy, and make that, as the adapter does but in this
    thread.
    """
    with pytest.raises(PostponedError) as caught:
        request()
    copy(handlers, caught.value)


def copy(handlers: Handlers, error: PostponedError) -> None:
    job = handlers.overlay.copy_job(error.inode, size=error.size)
    job.run()
    handlers.overlay.take_copy(job)


def store_files(base: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(base / ".yolofs/files"))


def test_a_write_waits_for_the_copy_and_then_finds_it(base: Path) -> None:
    (base / "f").write_bytes(BIG)
    os.utime(base / "f", ns=(1, 2))
    (base / "f").chmod(0o640)
    with handlers_of(base) as handlers:
        handle = open_file(handlers, b"f", os.O_WRONLY)
        with pytest.raises(PostponedError) as caught:
            handlers.write(handle, 5, b"hello")
        assert store_files(base) == 0
        copy(handlers, caught.value)
        assert content(handlers) == BIG
        assert handlers.write(handle, 5, b"hello") == 5
        assert content(handlers) == BIG[:5] + b"hello" + BIG[10:]
        attr = handlers.getattr(number_of(handlers)).attr
        assert attr is not None
        assert attr.mode & 0o7777 == 0o640
        assert attr.size == len(BIG)
        assert store_files(base) == 1
    assert (base / "f").read_bytes() == BIG


def test_small_files_and_truncation_wait_for_nothing(base: Path) -> None:
    (base / "f").write_bytes(BIG)
    (base / "small").write_bytes(b"small")
    with handlers_of(base) as handlers:
        handlers.write(open_file(handlers, b"small", os.O_WRONLY), 0, b"S")
        handlers.write(open_file(handlers, b"f", os.O_WRONLY | os.O_TRUNC), 0, b"new")
        assert content(handlers) == b"new"


def test_a_truncation_copies_no_more_than_stays(base: Path) -> None:
    (base / "f").write_bytes(BIG)
    with handlers_of(base) as handlers:
        number = number_of(handlers)
        copied_first(handlers, lambda: handlers.setattr(number, None, None, None, 2 * MIB, None, None))
        handlers.setattr(number, None, None, None, 2 * MIB, None, None)
        assert content(handlers) == BIG[: 2 * MIB]


def test_metadata_that_changes_during_a_copy_up_stays(base: Path) -> None:
    (base / "f").write_bytes(BIG)
    with handlers_of(base) as handlers:
        handle = open_file(handlers, b"f", os.O_WRONLY)
        with pytest.raises(PostponedError) as caught:
            handlers.write(handle, 0, b"x")
        job = handlers.overlay.copy_job(caught.value.inode, size=None)
        chmod(handlers, 0o600)  # stages the metadata alone
        job.run()
        handlers.overlay.take_copy(job)
        copied_first(handlers, lambda: handlers.write(handle, 0, b"x"))  # the copy was of another state, to be sure
        handlers.write(handle, 0, b"x")
        attr = handlers.getattr(number_of(handlers)).attr
        assert attr is not None
        assert attr.mode & 0o777 == 0o600
        assert content(handlers) == b"x" + BIG[1:]
        assert store_files(base) == 1


def test_a_copy_that_base_has_overtaken_is_not_used(base: Path) -> None:
    (base / "f").write_bytes(BIG)
    with handlers_of(base) as handlers:
        handle = open_file(handlers, b"f", os.O_WRONLY)
        copied_first(handlers, lambda: handlers.write(handle, 0, b"x"))
        changed = BIG[::-1]
        with (base / "f").open("r+b") as file:
            file.write(changed)
        with handlers.copying_at_once():
            handlers.write(handle, 0, b"x")
        assert content(handlers) == b"x" + changed[1:]
        assert store_files(base) == 1


def test_a_write_after_a_snapshot_during_the_copy_does_not_change_the_snapshot(base: Path) -> None:
    (base / "f").write_bytes(BIG)
    with handlers_of(base) as handlers:
        handle = open_file(handlers, b"f", os.O_WRONLY)
        copied_first(handlers, lambda: handlers.write(handle, 0, b"1"))
        marker = handlers.overlay.store.next_ino
        handlers.overlay.mark(marker)
        handlers.write(handle, 0, b"1")
        staged = handlers.overlay.inodes.by_number[number_of(handlers)].staged
        assert staged is not None
        assert staged.ino >= marker, "an older number would count as part of the snapshot, or be written in place"
        handlers.write(handle, 0, b"2")
        assert content(handlers) == b"2" + BIG[1:]
        assert store_files(base) == 1


def test_a_change_of_metadata_after_a_snapshot_waits_for_the_copy_too(base: Path) -> None:
    with handlers_of(base) as handlers:
        opened, _ = handlers.create(1, b"f", 0o100644, os.O_WRONLY, Owner(os.getuid(), os.getgid()))
        handlers.write(opened.handle, 0, BIG)
        old = handlers.overlay.inodes.by_number[opened.number].staged
        assert old is not None
        handlers.overlay.mark(handlers.overlay.store.next_ino)
        copied_first(handlers, lambda: chmod(handlers, 0o600))
        chmod(handlers, 0o600)
        new = handlers.overlay.inodes.by_number[opened.number].staged
        assert new is not None
        assert new.ino != old.ino
        assert os.stat(handlers.overlay.store.path(old.ino)).st_mode & 0o777 == 0o644
        assert content(handlers) == BIG


def test_a_copy_that_nobody_uses_goes_with_the_file(base: Path) -> None:
    (base / "f").write_bytes(BIG)
    with handlers_of(base) as handlers:
        handle = open_file(handlers, b"f", os.O_WRONLY)
        copied_first(handlers, lambda: handlers.write(handle, 0, b"x"))
        assert store_files(base) == 1
        handlers.release(handle)
        handlers.forget([(number_of(handlers), 3)])
        assert store_files(base) == 0


def test_a_copy_that_an_abort_has_collected_is_not_missed(base: Path) -> None:
    (base / "f").write_bytes(BIG)
    with handlers_of(base) as handlers:
        handle = open_file(handlers, b"f", os.O_WRONLY)
        copied_first(handlers, lambda: handlers.write(handle, 0, b"x"))
        for ino in list(handlers.overlay.store):
            handlers.overlay.store.remove(ino)
        with handlers.copying_at_once():
            handlers.write(handle, 0, b"x")
        assert content(handlers) == b"x" + BIG[1:]


def job_for(handlers: Handlers) -> CopyJob:
    """Return the copy that a write waits for."""
    with pytest.raises(PostponedError) as caught:
        handlers.write(open_file(handlers, b"f", os.O_WRONLY), 0, b"x")
    return handlers.overlay.copy_job(caught.value.inode, size=caught.value.size)


def test_whoever_borrows_the_session_does_not_get_the_number_of_a_copy_that_waits(base: Path) -> None:
    (base / "f").write_bytes(BIG)
    with handlers_of(base) as handlers:
        job = job_for(handlers)
        store = handlers.overlay.store
        borrowed = Store(store.directory)
        assert borrowed.reserve() != job.ino
        job.run()
        job.discard()


def test_what_has_come_in_the_place_of_a_copy_is_not_thrown_away_with_it(base: Path) -> None:
    (base / "f").write_bytes(BIG)
    with handlers_of(base) as handlers:
        job = job_for(handlers)
        os.unlink(job.path)  # as whoever borrows the session and collects what nothing names
        Path(os.fsdecode(job.path)).write_bytes(b"staged by somebody else")
        job.run()
        job.discard()
        assert Path(os.fsdecode(job.path)).read_bytes() == b"staged by somebody else"


def test_what_has_come_in_the_place_of_a_copy_is_not_shown_for_it(base: Path) -> None:
    (base / "f").write_bytes(BIG)
    with handlers_of(base) as handlers:
        handle = open_file(handlers, b"f", os.O_WRONLY)
        job = job_for(handlers)
        job.run()
        handlers.overlay.take_copy(job)
        os.unlink(job.path)
        Path(os.fsdecode(job.path)).write_bytes(b"staged by somebody else")
        with handlers.copying_at_once():
            handlers.write(handle, 0, b"x")
        assert content(handlers) == b"x" + BIG[1:]
        assert Path(os.fsdecode(job.path)).read_bytes() == b"staged by somebody else"
