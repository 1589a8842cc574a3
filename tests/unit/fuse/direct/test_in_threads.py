"""What has to wait for a disk is carried out, and answered, by another thread."""

from __future__ import annotations

import errno
import os
import struct
import threading
from pathlib import Path

import pytest

from tests.unit.fuse.direct.kernel import Kernel, kernel_of
from yolofs.fuse.direct.kernel_protocol import Opcode

V6_18 = (44, 0x73FFFFFB)


def opened(kernel: Kernel, name: bytes) -> int:
    """Make a file and return its handle."""
    body = struct.pack("=IIII", os.O_RDWR | os.O_CREAT, 0o100644, 0o022, 0) + name + b"\0"
    error, answer = kernel.ask(Opcode.CREATE, body)
    assert error == 0
    return int(struct.unpack_from("=Q", answer, 128)[0])


def fsync(handle: int) -> bytes:
    return struct.pack("=QII", handle, 0, 0)


def test_a_thread_answers_without_the_loop(base: Path) -> None:
    """Which does not even run here."""
    with kernel_of(base) as (kernel, _):
        kernel.begin(*V6_18)
        assert kernel.ask(Opcode.FSYNC, fsync(opened(kernel, b"file"))) == (0, b"")
        assert kernel.ask(Opcode.FSYNCDIR, fsync(0)) == (0, b"")


@pytest.mark.parametrize(
    ("raised", "expected"), [(OSError(errno.ENOSPC, "full"), errno.ENOSPC), (ValueError("a defect"), errno.EIO)]
)
def test_an_error_in_a_thread_is_answered_with_its_errno(
    base: Path, monkeypatch: pytest.MonkeyPatch, raised: Exception, expected: int
) -> None:
    def fail(_: int) -> None:
        raise raised

    with kernel_of(base) as (kernel, _):
        kernel.begin(*V6_18)
        handle = opened(kernel, b"file")
        monkeypatch.setattr(os, "fsync", fail)
        assert kernel.ask(Opcode.FSYNC, fsync(handle)) == (expected, b"")


def test_what_is_read_in_a_thread_comes_with_its_length(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (base / "file").write_bytes(b"content")

    def not_in_memory(*_: object) -> int:
        raise BlockingIOError

    with kernel_of(base) as (kernel, _):
        kernel.begin(*V6_18)
        number = struct.unpack_from("=Q", kernel.ask(Opcode.LOOKUP, b"file\0")[1])[0]
        handle = struct.unpack_from("=Q", kernel.ask(Opcode.OPEN, struct.pack("=II", os.O_RDONLY, 0), number)[1])[0]
        monkeypatch.setattr(os, "preadv", not_in_memory)
        asked = struct.pack("=QQIIQII", handle, 3, 100, 0, 0, 0, 0)
        assert kernel.ask(Opcode.READ, asked, number) == (0, b"tent")


def test_as_the_mount_ends_what_threads_are_at_work_on_is_answered(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And answered again when the thread comes back, which the kernel takes for nothing."""
    has_begun, may_end = threading.Event(), threading.Event()

    def slowly(_: int) -> None:
        has_begun.set()
        assert may_end.wait(60)

    with kernel_of(base) as (kernel, _):
        kernel.begin(*V6_18)
        handle = opened(kernel, b"file")
        monkeypatch.setattr(os, "fsync", slowly)
        kernel.send(Opcode.FSYNC, fsync(handle))
        assert has_begun.wait(60)
        kernel.run_until_stopped()
        assert kernel.answer() == (errno.EIO, b"")
        may_end.set()
        assert kernel.answer() == (0, b"")


def test_without_a_single_thread_a_request_fails(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    with kernel_of(base) as (kernel, _):
        kernel.begin(*V6_18)
        handle = opened(kernel, b"file")
        monkeypatch.setattr(threading.Thread, "start", refuse)
        assert kernel.ask(Opcode.FSYNC, fsync(handle)) == (errno.EIO, b"")
