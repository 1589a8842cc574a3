"""What a thread writes to the device while the mount ends reaches no other file."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import wait_until
from yolofs.fuse.direct.device import Device
from yolofs.fuse.direct.notices import Notices


@pytest.fixture
def other_file(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)
    yield fd
    os.close(fd)


def test_a_notice_after_the_end_is_written_nowhere(other_file: int) -> None:
    """Even where the number of the descriptor has been given to another file."""
    reading, writing = os.pipe()
    device = Device(writing)
    notices = Notices(device)
    device.close()
    os.dup2(other_file, writing)
    try:
        notices.forget_attributes(1)
        notices.forget_file(2)
        notices.forget_name(1, b"name")
        assert os.fstat(other_file).st_size == 0
        device.close()
        os.fstat(writing)  # closed once only: it is the other file's number by now
    finally:
        os.close(writing)
        os.close(reading)


def test_a_closed_device_keeps_its_descriptor_until_a_message_under_way_has_ended() -> None:
    reading, writing = os.pipe()
    device = Device(writing)
    message = b"x" * (1 << 20)  # more than the pipe takes
    sender = threading.Thread(target=device.send, args=(message,))
    sender.start()
    try:
        wait_until(lambda: not select.select([], [writing], [], 0)[1], "the pipe is full, and the message is under way")
        device.close()
        os.fstat(writing)
        device.send(b"more")
        read = b""
        while chunk := os.read(reading, 1 << 16):  # ends with the descriptor
            read += chunk
        assert read == message
    finally:
        sender.join()
        os.close(reading)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(writing)
