"""Base lies on a disk in user space whose process has stopped, like a network filesystem without
its server: Ctrl-C ends each command, which names the path it waited for.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.program import Program, wait_until
from tests.support.required import do_without

pytestmark = [pytest.mark.mount, pytest.mark.timeout(180)]
FILESYSTEM = Path(__file__).parents[1] / "mount/loop_filesystem.py"


@pytest.fixture
def stopped(yolofs: Program) -> Iterator[Program]:
    """A project with changes on a disk whose process has stopped."""
    if importlib.util.find_spec("pyfuse3") is None:
        do_without("pyfuse3 is not installed, by which the test's own filesystem is mounted")
    disk = yolofs.project / "disk"
    disk.mkdir()
    command: list[str | Path] = [sys.executable, FILESYSTEM, disk, "forgets"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "mounted\n":
                do_without("a filesystem cannot be mounted here")
            yolofs("init")
            view = CoreDriver(bytes(yolofs.project))
            view.unlink(b"disk/others.one")
            view.close()
            process.send_signal(signal.SIGSTOP)
            yield yolofs
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()
    subprocess.run(["fusermount3", "-u", "-z", disk], check=True)


def is_waiting(pid: int) -> bool:
    """Tell whether a process waits for a disk in user space."""
    return Path(f"/proc/{pid}/wchan").read_text() == "request_wait_answer"


@pytest.mark.parametrize("words", [["status"], ["diff"], ["commit", "--yes"], ["commit", "--dry-run"]])
@pytest.mark.some(2)
def test_ctrl_c_ends_a_command_and_says_what_does_not_answer(stopped: Program, words: list[str]) -> None:
    command: list[str | Path] = [Path(sys.executable).with_name("yolofs"), *words]
    with subprocess.Popen(command, cwd=stopped.project, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: is_waiting(process.pid), "it waits for the disk")
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 128 + signal.SIGINT
    disk = stopped.project / "disk"
    assert said.startswith(f"yolofs: {disk}")
    assert "does not answer" in said
    assert "hint: once it answers again: yolofs status" in said
    assert not os.path.lexists(stopped.session / "commits")


@pytest.mark.parametrize(
    ("words", "code", "says", "again"),
    [
        (["status"], 1, "", "try again"),
        (["diff"], 1, "", "try again"),
        (["commit", "--yes"], 17, "nothing is committed: ", "yolofs commit"),
        (["commit", "--dry-run"], 17, "nothing is committed: ", "yolofs commit --dry-run"),
    ],
)
def test_a_disk_whose_process_is_gone_is_named_and_what_to_do(
    stopped: Program, words: list[str], code: int, says: str, again: str
) -> None:
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if bytes(stopped.project / "disk") in process.read_bytes().split(b"\0"):
                os.kill(int(process.parent.name), signal.SIGKILL)
                wait_until(lambda: not is_answering(stopped.project / "disk"), "it is gone")
    said = stopped.refused(*words, code=code)
    assert said.startswith(f"yolofs: {says}{stopped.project}/disk")
    assert f"hint: the process or the server behind that disk is gone: mount it again, then {again}\n" in f"{said}\n"


def is_answering(disk: Path) -> bool:
    try:
        (disk / "others.one").lstat()
    except OSError as error:
        return error.errno not in (errno.ENOTCONN, errno.ECONNABORTED)
    return True
