"""What a thread waits for."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tests.support.program import wait_until
from yolofs.system.silent_disks import _CALLS, waits_for


@pytest.mark.skipif(os.uname().machine not in _CALLS, reason="the numbers of its system calls are not known")
@pytest.mark.skipif(not os.path.exists("/proc/self/syscall"), reason="the kernel does not tell")
@pytest.mark.parametrize("way", ["a path", "a name in a directory", "a descriptor"])
def test_the_path_that_a_thread_waits_for_is_told(tmp_path: Path, way: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    directory = os.open(tmp_path, os.O_RDONLY)
    numbers: list[int] = []
    other_end = os.open(pipe, os.O_RDWR) if way == "a descriptor" else -1

    def wait() -> None:
        numbers.append(threading.get_native_id())
        fd = os.open("pipe", os.O_RDONLY, dir_fd=directory) if way != "a path" else os.open(pipe, os.O_RDONLY)
        os.read(fd, 1)
        os.close(fd)

    thread = threading.Thread(target=wait)
    thread.start()
    wait_until(lambda: numbers and waits_for(numbers[0]) == bytes(pipe), "it waits there")
    writer = os.open(pipe, os.O_WRONLY)
    os.write(writer, b"x")
    thread.join()
    for fd in (directory, writer, *([other_end] if other_end >= 0 else [])):
        os.close(fd)


def test_what_a_thread_that_is_gone_waits_for_is_nothing() -> None:
    assert waits_for(1 << 30) == b""
