"""A run that does one thing after another, when it is told to: several of them can go on side by
side.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from tests.support.program import Program
from tests.support.started import start

_DEADLINE_S = 60


class Stepped:
    """A shell in ``yolofs run``, fed line by line."""

    def __init__(self, yolofs: Program, *options: str) -> None:
        self._process = start(["run", *options, "sh"], yolofs.project, has_input=True)
        self.number = int(self.do("echo $YOLOFS_RUN"))

    def do(self, command: str) -> str:
        """Carry out a command and return what it printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\necho '<done>'\n".encode())
        out = ""
        for line in self._process.stdout:
            if line == b"<done>\n":
                return out
            out += line.decode()
        raise AssertionError(f"it ended: {out}")

    def end(self) -> list[str]:
        """Let it end, and return the lines of its summary."""
        _, said = self._process.communicate(timeout=_DEADLINE_S)
        assert self._process.returncode == 0, said
        return said.decode().splitlines()

    def end_as_json(self) -> Any:
        """Let it end, and return its summary."""
        return json.loads(self.end()[-1])

    def stop(self) -> None:
        """Kill it if it is still there."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


@contextlib.contextmanager
def stepped(yolofs: Program, *options: str) -> Iterator[Stepped]:
    """Give a run that waits for what to do."""
    run = Stepped(yolofs, *options)
    try:
        yield run
    finally:
        run.stop()
