"""A program in a pseudo-terminal, with somebody who reads and types."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import pyte

from tests.support import forked, may_mount
from tests.support.program import COMMAND, DEADLINE_S

_PRIVATE = re.compile(rb"\x1b\[(?:[<=>][0-9;]*[A-Za-z]|\?[0-9;]*[cmn])")
"""Questions about the terminal, such as vim asks: the screen that we keep takes them for something
else.
"""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


def start(
    words: Sequence[str],
    cwd: Path,
    env: dict[str, str],
    streams: tuple[int, int, int],
    command: Sequence[str] = COMMAND,
) -> subprocess.Popen[bytes] | forked.Started:
    """Start a command in a session of its own; ``yolofs`` as a fork, where that is as good."""
    started = forked.server().start(words, cwd=str(cwd), env=env, streams=streams) if command == COMMAND else None
    if started is not None:
        return started
    stdin, stdout, stderr = streams
    return subprocess.Popen(
        [*command, *words], cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
    )


class Terminal:
    """``yolofs`` (or another ``command``) with stdin, stderr and (unless it goes to a file) stdout
    at a terminal.
    """

    def __init__(
        self,
        project: Path,
        words: Sequence[str],
        *,
        stdout: int | None = None,
        size: tuple[int, int] | None = None,
        command: Sequence[str] = COMMAND,
        **env: str,
    ) -> None:
        """``size``: columns and rows; without one the terminal does not know its own."""
        if [*words[:1]] in (["mount"], ["run"], ["shell"]):
            may_mount.check()
        self._master, slave = pty.openpty()
        self._display = pyte.Screen(*(size or (100, 24)))
        self._lines: dict[int, str] = {}
        self._stream = pyte.ByteStream(self._display)
        if size is not None:
            self.resize(*size)
        self.seen = ""
        """All that has been shown, escapes included."""
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", **env}
        environment.pop("NO_COLOR", None) if "NO_COLOR" not in env else None
        streams = slave, slave if stdout is None else stdout, slave
        self.process = start(words, project, environment, streams, command)
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        if self._master >= 0:
            self.close()

    @property
    def text(self) -> str:
        """What has been shown, without colours and cursor movements."""
        return _ESCAPES.sub("", self.seen)

    @property
    def screen(self) -> str:
        """What the screen shows now, without spaces at the ends of lines.

        Only lines that have changed since the last look are put together again: the tests look
        after all that they read, and each look at the whole takes some milliseconds.
        """
        display = self._display
        for y in display.dirty:
            self._lines[y] = "".join([display.buffer[y][x].data for x in range(display.columns)]).rstrip()
        display.dirty.clear()
        return "\n".join([self._lines[y] for y in range(display.lines)]).rstrip()

    @property
    def foreground(self) -> int:
        """The process group to which Ctrl-C goes."""
        return os.tcgetpgrp(self._master)

    @property
    def modes(self) -> list[object]:
        """What the terminal does with what is typed, as stty(1) shows it."""
        return list(termios.tcgetattr(self._master))

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        self._display.resize(rows, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait_for_screen(self, *texts: str, gone: str | None = None) -> None:
        """Read until the screen shows all ``texts``, and not what has to be ``gone``."""
        deadline = time.monotonic() + DEADLINE_S
        while not all(text in self.screen for text in texts) or (gone is not None and gone in self.screen):
            assert self._read(deadline), f"not shown: {texts}, or not gone: {gone!r}, but:\n{self.screen}"

    def wait_for_line(self, pattern: str) -> None:
        """Read until a line of the screen begins as a regular expression says."""
        begins = re.compile(rf"^{pattern}", re.MULTILINE)
        deadline = time.monotonic() + DEADLINE_S
        while not begins.search(self.screen):
            assert self._read(deadline), f"no line begins with {pattern}, but:\n{self.screen}"

    def close(self) -> None:
        """Close the terminal under the program."""
        os.close(self._master)
        self._master = -1

    def wait_for(self, text: str, count: int = 1) -> None:
        """Read until ``text`` has been shown ``count`` times."""
        deadline = time.monotonic() + DEADLINE_S
        while self.text.count(text) < count:
            assert self._read(deadline), f"{text!r} is not shown, but:\n{self.text}"

    def type(self, text: str) -> None:
        """Type something."""
        os.write(self._master, text.encode())

    def type_until_gone(self, text: str, gone: str) -> None:
        """Type something again and again until the screen does not show ``gone``."""
        self.type_until(text, lambda: gone not in self.screen)

    def type_until(self, text: str, condition: Callable[[], bool]) -> None:
        """Type something again and again until what is shown fulfils a condition.

        For a program that throws away what is typed before it listens.
        """
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            self.type(text)
            again = min(time.monotonic() + 0.5, deadline)
            while not condition() and select.select([self._master], [], [], max(again - time.monotonic(), 0))[0]:
                assert self._read(deadline), f"it has ended:\n{self.screen}"
            assert time.monotonic() < deadline, f"{text!r} is typed in vain:\n{self.screen}"

    def wait(self) -> int:
        """Read to the end and return the exit code."""
        deadline = time.monotonic() + DEADLINE_S
        while self._read(deadline):
            pass
        return self.process.wait(max(deadline - time.monotonic(), 0.1))

    def _read(self, deadline: float) -> bool:
        """Read some more; False at the end."""
        ready, _, _ = select.select([self._master], [], [], max(deadline - time.monotonic(), 0))
        assert ready, f"nothing more is shown, and it does not end:\n{self.text}"
        try:
            data = os.read(self._master, 65536)
        except OSError:  # EIO: the last one has closed the other end
            return False
        self.seen += data.decode(errors="replace")
        self._stream.feed(_PRIVATE.sub(b"", data))
        return bool(data)
