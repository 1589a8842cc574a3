"""What is written while the mount is paused, to readers that take nothing meanwhile."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from yolofs.cli.project import deferred_output as module
from yolofs.cli.project.deferred_output import deferred_output


class _Clock:
    """Goes on by a tenth of a second with each look."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        self.now_s += 0.1
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@contextlib.contextmanager
def small_pipes() -> Iterator[dict[str, int]]:
    """Make stdout and stderr pipes of one page for the time of the block, and give the ends that
    are read.
    """
    ends, before = {}, {name: getattr(sys, name) for name in ("stdout", "stderr")}
    try:
        for name in before:
            ends[name], writing = os.pipe()
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
            setattr(sys, name, open(writing, "w"))  # noqa: SIM115 - closed below
        yield ends
    finally:
        for name, stream in before.items():
            getattr(sys, name).close()
            setattr(sys, name, stream)
        for end in ends.values():
            os.close(end)


def test_whoever_takes_nothing_of_both_streams_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = _Clock()
    monkeypatch.setattr(module, "time", clock)
    text = "x" * 6000 + "\n"
    with small_pipes() as pipes:
        with deferred_output(os.fsencode(tmp_path)):
            for stream in (sys.stdout, sys.stderr, sys.stdout):
                stream.write(text)
                stream.flush()
            waited_s = clock.now_s
            for end in pipes.values():
                fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 1 << 16)
        assert waited_s < 2 * module._PATIENCE_S
        assert os.read(pipes["stdout"], 100_000) == text.encode() * 2
        assert os.read(pipes["stderr"], 100_000) == text.encode()


def test_whoever_reads_one_stream_gets_that_at_once(tmp_path: Path) -> None:
    with small_pipes() as pipes, deferred_output(os.fsencode(tmp_path)):
        sys.stdout.write("x" * 6000)
        sys.stdout.flush()
        sys.stderr.write("said\n")
        sys.stderr.flush()
        assert os.read(pipes["stderr"], 100) == b"said\n"
        fcntl.fcntl(pipes["stdout"], fcntl.F_SETPIPE_SZ, 1 << 16)
