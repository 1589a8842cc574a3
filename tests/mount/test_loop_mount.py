"""The device loop under pyfuse3, on real mounts: each test has a process with the filesystem of
loop_filesystem.py.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyfuse3
import pytest

pytestmark = pytest.mark.mount

DEADLINE_S = 60.0
PROGRAM = Path(__file__).with_name("loop_filesystem.py")
ROOT = Path(__file__).parent.parent.parent

TRIO_NAMES = {"Lock", "open_nursery", "lowlevel", "current_task", "current_trio_token", "wait_readable"}
"""What pyfuse3 asks its async library for in any session."""


class Filesystem:
    """A running ``loop_filesystem.py``."""

    def __init__(self, mountpoint: Path, modes: tuple[str, ...]) -> None:
        self.mountpoint = mountpoint
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(mountpoint), *modes],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        assert self._read_line() == "mounted"

    def _read_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip()

    def read(self, name: str) -> str:
        return (self.mountpoint / name).read_text()

    def command(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self._read_line() == "done"

    def report(self) -> dict[str, Any]:
        """Wait for the end, and return what the process tells about it."""
        last_line = self._read_line()
        assert self.process.wait(DEADLINE_S) == 0
        report = json.loads(last_line)
        assert isinstance(report, dict)
        return report


@pytest.fixture
def mountpoint(tmp_path: Path) -> Iterator[Path]:
    mountpoint = tmp_path / "mnt"
    mountpoint.mkdir()
    yield mountpoint
    if is_mounted(mountpoint):
        unmount(mountpoint, "-l")


@contextlib.contextmanager
def mounted(mountpoint: Path, *modes: str) -> Iterator[Filesystem]:
    filesystem = Filesystem(mountpoint, modes)
    try:
        yield filesystem
    finally:
        process = filesystem.process
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def unmount(mountpoint: Path, *options: str) -> None:
    """Unmount from outside; only root may use anything but fusermount3."""
    if os.geteuid() == 0 or shutil.which("fusermount3") is None:
        command = ["umount", *options]
    else:
        command = ["fusermount3", "-u", *("-z" for option in options if option == "-l")]
    subprocess.run([*command, str(mountpoint)], check=True)


def is_mounted(mountpoint: Path) -> bool:
    return f" {mountpoint} " in Path("/proc/self/mountinfo").read_text()


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        os.sched_yield()


class Opener(threading.Thread):
    """Opens a file and keeps the errno, 0 if it could be opened."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.path = path
        self.errno: int | None = None
        self.start()

    def run(self) -> None:
        try:
            self.path.open().close()
        except OSError as error:
            self.errno = error.errno
        else:
            self.errno = 0

    def result(self) -> int | None:
        self.join(DEADLINE_S)
        return self.errno


def test_pyfuse3_takes_its_async_library_from_the_global_that_the_loop_replaces(mountpoint: Path) -> None:
    with mounted(mountpoint, "no-trio") as filesystem:
        assert filesystem.read("hello") == "hello"
        filesystem.command("stop")
        report = filesystem.report()
    assert report["error"] == "", f"pyfuse3 {pyfuse3.__version__} calls trio past the device loop: {report['error']}"
    missing = (TRIO_NAMES | {"ClosedResourceError"}) - set(report["used of trio"])
    assert not missing, (
        f"pyfuse3 {pyfuse3.__version__} no longer looks up {sorted(missing)} in its global `trio`: "
        "yolofs.fuse.libfuse.backend has to be brought in line with it"
    )


@pytest.mark.parametrize("command", ["stop", "terminate"])
def test_the_loop_ends_when_told_and_the_mount_is_gone(mountpoint: Path, command: str) -> None:
    with mounted(mountpoint) as filesystem:
        assert filesystem.read("hello") == "hello"
        assert is_mounted(mountpoint)
        filesystem.command(command)
        report = filesystem.report()
    assert not is_mounted(mountpoint)
    assert (report["error"], report["is running"]) == ("", False)


def test_an_unmount_from_outside_ends_the_loop(mountpoint: Path) -> None:
    with mounted(mountpoint) as filesystem:
        assert filesystem.read("hello") == "hello"
        unmount(mountpoint)
        report = filesystem.report()
    assert (report["error"], report["is running"]) == ("", False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may abort a mount that is in use")
def test_an_unmount_by_force_takes_suspended_handlers_with_it(mountpoint: Path) -> None:
    with mounted(mountpoint) as filesystem:
        opener = Opener(mountpoint / "ask")
        until(lambda: filesystem.read("waiting") == "1")
        with contextlib.suppress(subprocess.CalledProcessError):
            unmount(mountpoint, "-f")  # aborts the connection; as long as the file is being opened, EBUSY
        report = filesystem.report()
        assert opener.result() == errno.ECONNABORTED
    assert (report["error"], report["closed handlers"], report["waiting handlers"]) == ("", 1, 0)


def test_a_suspended_handler_answers_with_an_error_when_the_loop_stops(mountpoint: Path) -> None:
    with mounted(mountpoint) as filesystem:
        openers = [Opener(mountpoint / f"ask.{number}") for number in range(10)]
        until(lambda: filesystem.read("waiting") == "10")
        filesystem.command("stop")
        assert [opener.result() for opener in openers] == [errno.EIO] * 10
        report = filesystem.report()
    assert (report["error"], report["closed handlers"], report["waiting handlers"]) == ("", 10, 0)


def test_a_thousand_suspended_handlers_do_not_stop_the_service(mountpoint: Path) -> None:
    with mounted(mountpoint) as filesystem:
        openers = [Opener(mountpoint / f"ask.{number}") for number in range(1000)]
        until(lambda: filesystem.read("waiting") == "1000")
        assert [filesystem.read(f"file.{number}") for number in range(50)] == [f"file.{n}" for n in range(50)]
        assert filesystem.read("answer") == "answer"
        assert [opener.result() for opener in openers] == [0] * 1000
        assert filesystem.read("waiting") == "0"
        filesystem.command("stop")
        assert filesystem.report()["error"] == ""


def test_a_handler_that_fails_ends_the_loop_with_its_exception(mountpoint: Path) -> None:
    with mounted(mountpoint) as filesystem:
        opener = Opener(mountpoint / "fail")
        report = filesystem.report()
        assert opener.result() == errno.ECONNABORTED
    assert report["error"] == "ValueError('a handler failed')"


def test_a_handler_may_wait_for_a_worker_thread(mountpoint: Path) -> None:
    with mounted(mountpoint) as filesystem:
        assert filesystem.read("thread") == "yolofs-worker-0"
        filesystem.command("stop")
        assert filesystem.report()["error"] == ""


def test_a_paused_loop_leaves_requests_in_the_kernel(mountpoint: Path) -> None:
    with mounted(mountpoint) as filesystem:
        filesystem.command("pause")
        opener = Opener(mountpoint / "file")
        filesystem.command("pause")
        filesystem.command("resume")
        assert opener.errno is None
        filesystem.command("resume")
        assert opener.result() == 0
        filesystem.command("stop")
        assert filesystem.report()["error"] == ""


def test_a_request_withdrawn_before_it_is_read_does_no_harm(mountpoint: Path) -> None:
    with mounted(mountpoint, "early") as filesystem:
        assert [filesystem.read(f"file.{number}") for number in range(50)] == [f"file.{n}" for n in range(50)]
        filesystem.command("stop")
        assert filesystem.report()["error"] == ""


def test_the_loop_is_told_about_changes_of_the_mount_table(mountpoint: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with mounted(mountpoint) as filesystem:
        before = int(filesystem.read("table"))
        with mounted(other) as second:
            until(lambda: int(filesystem.read("table")) > before)
            second.command("stop")
            second.report()
        filesystem.command("stop")
        assert filesystem.report()["error"] == ""
