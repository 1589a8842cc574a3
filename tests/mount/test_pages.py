"""What the kernel has cached of a file's content: as long as it is true it stays, and what the host
changes goes.

The kernel leaves it to us to drop pages (``docs/design/kernel-options.md``), so each way in which
they can become wrong has its test here, in test_pages_of_staged.py or in test_host_changes.py.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.mount.pages import LONG_S, PAGE, Mounter, at, change, opened
from tests.support.core_in_python import core_in_python
from tests.support.program import DEADLINE_S, Program, wait_until
from yolofs.fuse.handlers import Handlers
from yolofs.fuse.libfuse.handshake import open_devices
from yolofs.fuse.results import EntryReply
from yolofs.overlay.inodes import NO_PAGES

pytestmark = pytest.mark.mount


def test_what_was_read_is_read_anew_after_its_new_attributes_were_told(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"old content")
    view = mounted(base_timeout_s=1.0)
    assert Path(at(view, "f")).read_bytes() == b"old content"
    change(base / "f", b"new")
    mtime_ns = (base / "f").stat().st_mtime_ns
    wait_until(lambda: os.stat(at(view, "f")).st_mtime_ns == mtime_ns, "the new attributes")
    assert Path(at(view, "f")).read_bytes() == b"new content"


def test_an_open_file_shows_what_the_host_changes_in_it_once_its_attributes_do(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"0" * 3 * PAGE)
    view = mounted(base_timeout_s=0.5)
    with opened(at(view, "f")) as fd:
        assert os.pread(fd, 3 * PAGE, 0) == b"0" * 3 * PAGE
        for number in range(1, 4):
            change(base / "f", b"%d" % number, 2 * PAGE)
            mtime_ns = (base / "f").stat().st_mtime_ns
            wait_until(lambda: os.fstat(fd).st_mtime_ns == mtime_ns, "the new attributes")  # noqa: B023 - called in this round
            assert os.pread(fd, PAGE, 2 * PAGE) == b"%d" % number + b"0" * (PAGE - 1)


def test_an_open_file_shows_a_change_by_the_host_though_nobody_asks_for_attributes(
    base: Path, mounted: Mounter
) -> None:
    (base / "f").write_bytes(b"0" * PAGE)
    (base / "replaced").write_bytes(b"kept")
    view = mounted(base_timeout_s=LONG_S)
    with opened(at(view, "f")) as fd, opened(at(view, "replaced")) as held:
        assert (os.pread(fd, 3, 0), os.pread(held, 9, 0)) == (b"000", b"kept")
        change(base / "f", b"new")
        (base / "other").write_bytes(b"another file")
        (base / "other").rename(base / "replaced")
        assert os.pread(fd, 3, 0) == b"000", "the kernel asks by itself: nothing is tested here"
        view.mount.look_at_open()
        assert os.pread(fd, 3, 0) == b"new"
        assert os.pread(held, 9, 0) == b"kept"
        change(base / "f", b"no2")
        view.mount.look_at_open()
        assert os.pread(fd, 3, 0) == b"no2"


@core_in_python
def test_whoever_reads_while_many_files_are_dropped_is_answered(
    base: Path, mounted: Mounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel drops no page that somebody reads, and as many threads wait for it as there
    are.
    """
    count = 12  # more than threads
    names = [f"changed{number}" for number in range(count)]
    for name in (*names, "slow"):
        (base / name).write_bytes(b"0" * (1 << 20))
    view = mounted(base_timeout_s=0.5)
    disk = threading.Event()
    read_job, getattr_ = Handlers.read_job, Handlers.getattr
    reads: list[int] = []
    looks: list[int] = []

    def slowly(self: Handlers, handle: int, offset: int, size: int) -> Callable[[], bytes]:
        reads.append(handle)
        job = read_job(self, handle, offset, size)
        return lambda: job() if disk.wait(DEADLINE_S) else b""

    def counted(self: Handlers, number: int) -> EntryReply:
        looks.append(number)
        return getattr_(self, number)

    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(opened(at(view, name))) for name in names]
        for fd in files:
            os.pread(fd, 1, 0)
        slow = stack.enter_context(opened(at(view, "slow")))
        monkeypatch.setattr(Handlers, "read", lambda *_: None)
        monkeypatch.setattr(Handlers, "read_job", slowly)
        with concurrent.futures.ThreadPoolExecutor(3 * count) as clients:
            stack.callback(disk.set)
            waiting: list[concurrent.futures.Future[Any]] = []
            waiting += [clients.submit(os.pread, slow, 1, number * (1 << 16)) for number in range(count)]
            wait_until(lambda: len(reads) >= count, "all threads to be taken")
            time.sleep(0.7)  # until the kernel takes its attributes for too old, of which nothing tells
            for name in names:
                change(base / name, b"new")
            monkeypatch.setattr(Handlers, "getattr", counted)
            waiting += [clients.submit(os.stat, fd) for fd in files]
            wait_until(lambda: len(set(looks)) == count, "what is to be dropped to stand before what is to be read")
            waiting += [clients.submit(os.pread, fd, 1, 1 << 19) for fd in files]
            wait_until(lambda: len(reads) == 2 * count, "all that is to be read")
            disk.set()
            done, stuck = concurrent.futures.wait(waiting, DEADLINE_S)
            if stuck:
                view.unmount()
            assert not stuck, f"{len(stuck)} of {len(done) + len(stuck)} are never answered"


def test_the_daemon_looks_after_what_is_open(tmp_path: Path) -> None:
    project = tmp_path / "p"
    project.mkdir()
    program = Program(project)
    program.start_session()
    (project / ".yolofs.toml").write_text('[rules]\n"/" = "allow"\n[mount]\nwatch = false\nbase_timeout = 600\n')
    program.trust()
    (project / "f").write_bytes(b"old")
    with program.mounted() as view, opened(view / "f") as fd:
        assert os.pread(fd, 3, 0) == b"old"
        change(project / "f", b"new")
        wait_until(lambda: os.pread(fd, 3, 0) == b"new", "what the host has written")


def test_at_base_timeout_0_an_open_file_shows_a_change_by_the_host_at_once(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"0" * PAGE)
    view = mounted(base_timeout_s=0.0)
    with opened(at(view, "f")) as fd:
        for number in range(9):
            change(base / "f", b"%d" % number)
            assert os.pread(fd, 1, 0) == b"%d" % number


def test_whoever_follows_a_log_reads_no_zeros(base: Path, mounted: Mounter) -> None:
    """A page that was cached while it was the last one holds zeros behind what the file had
    then.
    """
    log = base / "log"
    begin = b"begin".ljust(PAGE - 100, b".") + b"\n"  # so that few lines go beyond the page
    log.write_bytes(begin)
    view = mounted(base_timeout_s=0.5)
    stop = threading.Event()

    def append() -> None:
        with log.open("ab", buffering=0) as file:
            while not stop.is_set():
                file.write(b"a line of the host\n")
                time.sleep(0.002)  # so that the reader looks in between; how often it does is no matter

    thread = threading.Thread(target=append)
    thread.start()
    try:
        with opened(at(view, "log")) as fd:
            data = b""
            wrong = b""
            deadline = time.monotonic() + 4
            while (time.monotonic() < deadline or len(data) <= PAGE) and not wrong:
                size = os.fstat(fd).st_size
                data += os.pread(fd, size - len(data), len(data))
                wrong = data.replace(b"a line of the host\n", b"").removeprefix(begin).strip(b"a line of the host")
            assert not wrong, data[-200:]
    finally:
        stop.set()
        thread.join()


def test_until_the_kernel_has_dropped_pages_whoever_opens_the_file_has_it_do_so(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"old")
    view = mounted(base_timeout_s=LONG_S)
    with opened(at(view, "f")):
        (inode,) = (inode for inode in view.inodes() if inode.name == b"f")
        change(base / "f", b"new")

        def copied_up_and_opened() -> list[bool]:
            view.overlay.write(inode, 0, b"N")
            kept = [view.overlay.open(inode, os.O_RDONLY).pages for _ in range(2)]
            for _ in range(2):
                view.overlay.release(inode, writer=False)
            return kept

        assert view.mount.call(copied_up_and_opened) == [False, True]
    view.snapshot()
    view.travel(0)
    Path(at(view, "f")).read_bytes()
    view.travel(1)
    assert inode.paged == NO_PAGES


@pytest.mark.parametrize("is_open", [True, False])
def test_a_listing_is_not_told_again_with_the_old_size(base: Path, mounted: Mounter, is_open: bool) -> None:
    """The kernel would cut the file off, and have zeros there once it grows again."""
    (base / "f").write_bytes(b"old")
    view = mounted(base_timeout_s=LONG_S)

    def size_in_listing() -> int:
        with os.scandir(os.fsdecode(view.mountpoint)) as entries:
            return {entry.name: entry.stat().st_size for entry in entries}["f"]

    def size_told_anew() -> int:
        command = ["stat", "--cached=never", "--format=%s", at(view, "f")]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    assert [size_in_listing(), size_in_listing()] == [3, 3]
    with contextlib.ExitStack() as stack:
        fd = stack.enter_context(opened(at(view, "f")))
        assert os.pread(fd, 99, 0) == b"old"
        if not is_open:
            stack.close()
        change(base / "f", b"and new", 3)
        assert size_told_anew() == 10
        if not is_open:
            fd = stack.enter_context(opened(at(view, "f")))
        assert size_in_listing() == 10
        assert size_told_anew() == 10
        assert os.pread(fd, 99, 0) == b"oldand new"


def test_pages_are_dropped_by_whichever_name_a_file_is_opened(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"old")
    os.link(base / "f", base / "g")
    view = mounted(base_timeout_s=LONG_S)
    assert [Path(at(view, name)).read_bytes() for name in "fg"] == [b"old", b"old"]
    with opened(at(view, "f")) as fd:
        assert os.pread(fd, 3, 0) == b"old"
        change(base / "g", b"new")
        assert Path(at(view, "g")).read_bytes() == b"new"
        assert os.pread(fd, 3, 0) == b"new"


MAPPING = """
import mmap, os, sys
with open(sys.argv[1], "rb") as file:
    mapped = mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ)
    print(mapped[:3].decode(), flush=True)
    for line in sys.stdin:
        print(mapped[:3].decode(), flush=True)
"""


def test_a_mapping_shows_what_the_host_has_written(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"old" + b"0" * PAGE)
    view = mounted(base_timeout_s=LONG_S)
    command = [sys.executable, "-c", MAPPING, at(view, "f")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "old\n"
        change(base / "f", b"new")
        view.mount.look_at_open()
        process.stdin.write("\n")
        process.stdin.close()
        assert process.stdout.readline() == "new\n"


def test_what_is_open_keeps_its_content_over_a_travel_and_what_is_opened_has_the_other(
    base: Path, mounted: Mounter
) -> None:
    (base / "f").write_bytes(b"base" * PAGE)
    view = mounted(base_timeout_s=LONG_S)
    assert Path(at(view, "f")).read_bytes() == b"base" * PAGE
    Path(at(view, "f")).write_bytes(b"view" * PAGE)
    view.snapshot()
    with opened(at(view, "f")) as fd:
        view.travel(0)
        assert Path(at(view, "f")).read_bytes() == b"base" * PAGE
        assert os.pread(fd, 4 * PAGE, 0) == b"view" * PAGE
        change(base / "f", b"host")
        assert Path(at(view, "f")).read_bytes() == b"host" + b"base" * (PAGE - 1)
        view.travel(1)
        assert Path(at(view, "f")).read_bytes() == b"view" * PAGE


def test_readers_of_a_page_that_is_dropped_go_on(base: Path, mounted: Mounter) -> None:
    """Pages are dropped while they are being read: whoever does one must not wait for the other."""
    (base / "f").write_bytes(b"%8d" % 0 * 100_000)
    view = mounted(base_timeout_s=0.5)
    done = threading.Event()

    def read() -> None:
        with opened(at(view, "f")) as fd:
            while not done.is_set():
                os.pread(fd, 800_000, 0)
                os.fstat(fd)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for number in range(1, 200):
            change(base / "f", b"%8d" % number * 100_000)
            view.mount.look_at_open()
        with opened(at(view, "f")) as fd:
            assert os.pread(fd, 800_000, 0) == b"%8d" % 199 * 100_000
    finally:
        done.set()
        for thread in threads:
            thread.join(DEADLINE_S)
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("base_timeout_s", [0.0, 1.0])
def test_the_device_is_read_without_blocking(base: Path, mounted: Mounter, base_timeout_s: float) -> None:
    """A request that is withdrawn before it is read would stop the whole process else, whoever was
    agreed with.
    """
    (base / "f").write_bytes(b"f")
    before = open_devices()
    view = mounted(base_timeout_s=base_timeout_s)
    assert Path(at(view, "f")).read_bytes() == b"f"
    (device,) = open_devices() - before
    assert not os.get_blocking(device)
