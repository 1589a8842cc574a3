"""Runs a command of yolofs in a process of its own, for the daemon, and keeps what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import trio

from yolofs.daemon.rpc.run_messages import LookResult
from yolofs.daemon.rpc.server import Result
from yolofs.errors import UsageError


class CommandRunner:
    """Runs commands for one connection, and keeps the output of the last one while it is sent."""

    def __init__(self) -> None:
        self._fd = -1
        """A file that holds stdout and then stderr; -1 as long as there is none."""

    def close(self) -> None:
        """Close the last output."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    async def run(self, module: str, words: Sequence[bytes], given: bytes | None = None) -> Result:
        """Run a module of yolofs with some words, and ``given`` on stdin; waits for its end.

        Cancelling this ends the process by SIGTERM, as Ctrl-C does.

        Raises:
            UsageError: a word cannot be given to a process.
        """
        if any(b"\0" in word for word in words):
            raise UsageError("a word or a path holds a NUL byte")
        self.close()
        self._fd = os.memfd_create("output", os.MFD_CLOEXEC)
        err_fd = os.memfd_create("errors", os.MFD_CLOEXEC)
        environment = {name: value for name, value in os.environ.items() if name != "YOLOFS_SOCKET"}
        try:
            done = await trio.run_process(
                [sys.executable, "-P", "-m", module, *words],
                stdin=given if given is not None else subprocess.DEVNULL,
                stdout=self._fd,
                stderr=err_fd,
                check=False,
                env=environment,
            )
            out_bytes, err_bytes = os.fstat(self._fd).st_size, os.fstat(err_fd).st_size
            os.lseek(self._fd, 0, os.SEEK_END)
            os.sendfile(self._fd, err_fd, 0, err_bytes)
        finally:
            os.close(err_fd)
        return Result(LookResult(done.returncode, out_bytes, err_bytes), self._fd)
