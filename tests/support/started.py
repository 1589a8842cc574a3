"""``yolofs`` running beside a test, as a fork if that is as good as a start."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Self

from tests.support import forked
from tests.support.program import COMMAND, DEADLINE_S


class Running:
    """A command that was forked, with what tests use of ``subprocess.Popen``; its streams are
    bytes.
    """

    def __init__(self, started: forked.Started, stdin: IO[bytes], out: IO[bytes], err: IO[bytes]) -> None:
        self._started = started
        self.pid = started.pid
        self.stdin, self.stdout, self.stderr = stdin, out, err
        self.poll, self.kill, self.terminate = started.poll, started.kill, started.terminate
        self.send_signal = started.send_signal

    @property
    def returncode(self) -> int | None:
        """How it ended, None if nobody has waited for that yet."""
        return self._started.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        return self._started.wait(timeout)

    def communicate(self, given: bytes = b"", timeout: float = DEADLINE_S) -> tuple[bytes, bytes]:
        """Give it its last input, which a pipe holds, read what it writes until its end, and return
        it.
        """
        if given:
            self.stdin.write(given)
        self.stdin.close()
        found = {self.stdout: b"", self.stderr: b""}
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            for open_one in (stream for stream in found if not stream.closed):
                selector.register(open_one, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(max(deadline - time.monotonic(), 0))
                if not ready:
                    raise subprocess.TimeoutExpired("yolofs", timeout)
                for key, _ in ready:
                    stream: Any = key.fileobj
                    data = os.read(key.fd, 65536)
                    found[stream] += data
                    if not data:
                        selector.unregister(stream)
                        stream.close()
        self.wait(max(deadline - time.monotonic(), 0.1))
        return found[self.stdout], found[self.stderr]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()
        self.wait()


def start(
    words: Sequence[str | Path], cwd: Path, *, has_input: bool = False, stdout: int = subprocess.PIPE
) -> Running | subprocess.Popen[bytes]:
    """Start ``yolofs`` with pipes for what it writes, and for its input if it has any; its output
    may go elsewhere.

    A pipe's reader here keeps nothing back, so that what has been read of it is all there was.
    """
    texts = [os.fspath(word) for word in words]
    with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
        null = _opened(theirs, os.open(os.devnull, os.O_RDWR), "wb")
        (inp, given), (out, written), (err, said) = (_pipe(theirs, ours, mode) for mode in ("rw", "wr", "wr"))
        streams = inp if has_input else null, {subprocess.PIPE: out, subprocess.DEVNULL: null}.get(stdout), err
        fds = [stdout if stream is None else stream.fileno() for stream in streams]
        started = forked.server().start(texts, cwd=str(cwd), env=os.environ, streams=(fds[0], fds[1], fds[2]))
        if started is not None:
            ours.pop_all()
            return Running(started, given, written, said)
    stdin = subprocess.PIPE if has_input else subprocess.DEVNULL
    return subprocess.Popen([*COMMAND, *texts], cwd=cwd, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, bufsize=0)


def _pipe(theirs: contextlib.ExitStack, ours: contextlib.ExitStack, ends: str) -> tuple[IO[bytes], IO[bytes]]:
    """Make a pipe; return the end of the command, which it reads or writes as ``ends`` says, and
    ours.
    """
    reading, writing = os.pipe()
    their, our = (reading, writing) if ends == "rw" else (writing, reading)
    return _opened(theirs, their, f"{ends[0]}b"), _opened(ours, our, f"{ends[1]}b")


def _opened(stack: contextlib.ExitStack, fd: int, mode: str) -> IO[bytes]:
    return stack.enter_context(open(fd, mode, buffering=0))
