"""A run that goes on, with the processes that it is made of as the host sees them."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.program import COMMAND, DEADLINE_S, Program, wait_until

PYTHON = "/usr/bin/python3"
HASTY_S = 1
HASTY = (
    *COMMAND[: COMMAND.index("-m")],
    "-c",
    f"""\
from yolofs.cli import main
from yolofs.sandbox import forced_end
forced_end.GRACE_S = {HASTY_S}
raise SystemExit(main.main())
""",
)
"""The program, which gives a command less time to end after a signal."""


class Going:
    """A run of a command that prints ``ready`` when it is where the test wants it."""

    def __init__(
        self, yolofs: Program, *command: str, fd: int = subprocess.DEVNULL, program: Sequence[str] = COMMAND, **env: str
    ) -> None:
        self.process = subprocess.Popen(
            [*program, "run", "--no-review", *command],
            cwd=yolofs.project,
            env=os.environ | env,
            stdin=fd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # no terminal, as under an agent
        )
        self._inside: list[int] = []

    def wait_until_ready(self) -> None:
        """Wait for the command, and remember the processes."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line == b"ready\n", (line, self.process.stderr.read() if self.process.stderr and not line else b"")
        self._inside = [os.pidfd_open(pid) for pid in self._processes()]

    @property
    def bubblewrap(self) -> int:
        """The outer process of bubblewrap."""
        return _children(self.process.pid)[0]

    @property
    def init(self) -> int:
        """The first process of the sandbox."""
        return _children(self.bubblewrap)[0]

    @property
    def command(self) -> int:
        """The command itself."""
        return _children(self.init)[0]

    def _processes(self) -> list[int]:
        found, todo = [], [self.bubblewrap]
        while todo:
            pid = todo.pop()
            found.append(pid)
            todo += _children(pid)
        return found

    def end(self, timeout_s: float = DEADLINE_S) -> tuple[int, str, str]:
        """Wait for the end; return the exit code, and what it printed after ``ready``."""
        out, err = self.process.communicate(timeout=timeout_s)
        return self.process.returncode, out.decode(), err.decode()

    def check_gone(self) -> None:
        """Fail if a process that was there is left."""
        assert self._inside
        for fd in self._inside:
            assert select.select([fd], [], [], DEADLINE_S)[0], "a process of the run goes on"

    def close(self) -> None:
        """Kill what is left."""
        for fd in self._inside:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(fd, signal.SIGKILL)
            os.close(fd)
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def going(
    yolofs: Program, *command: str, fd: int = subprocess.DEVNULL, program: Sequence[str] = COMMAND
) -> Iterator[Going]:
    """Give a run whose command has said that it is ready, and goes on until it is told to end."""
    run = Going(yolofs, *command, fd=fd, program=program)
    try:
        run.wait_until_ready()
        yield run
    finally:
        run.close()


def state(pid: int) -> str:
    """Return the state of a process, as ps shows it."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def wait_for_state(pid: int, wanted: str) -> None:
    """Wait until a process is in a state."""
    wait_until(lambda: state(pid) == wanted, f"process {pid} is in state {wanted}")


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
