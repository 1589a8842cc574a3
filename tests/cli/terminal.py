"""A program in a pseudo-terminal, with somebody who reads and types."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.cli.program import COMMAND, DEADLINE_S

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """``yolofs`` with stdin and stderr (and stdout, unless it goes to a file) at a terminal."""

    def __init__(self, project: Path, words: Sequence[str], *, stdout: int | None = None, **env: str) -> None:
        self._master, slave = pty.openpty()
        self.seen = ""
        """All that has been shown, escapes included."""
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", **env}
        environment.pop("NO_COLOR", None) if "NO_COLOR" not in env else None
        self.process = subprocess.Popen(
            [*COMMAND, *words],
            cwd=project,
            env=environment,
            stdin=slave,
            stdout=slave if stdout is None else stdout,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    @property
    def text(self) -> str:
        """What has been shown, without colours and cursor movements."""
        return _ESCAPES.sub("", self.seen)

    def wait_for(self, text: str, count: int = 1) -> None:
        """Read until ``text`` has been shown ``count`` times."""
        deadline = time.monotonic() + DEADLINE_S
        while self.text.count(text) < count:
            assert self._read(deadline), f"{text!r} is not shown, but:\n{self.text}"

    def type(self, text: str) -> None:
        """Type something."""
        os.write(self._master, text.encode())

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
        return bool(data)
