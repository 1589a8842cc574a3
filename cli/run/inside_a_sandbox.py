"""``yolofs`` inside a sandbox: it asks the daemon to do what may be done there, and prints the
answer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from yolofs.cli.options import start_directory
from yolofs.cli.output import fail
from yolofs.daemon.rpc.client import Client
from yolofs.errors import DaemonError, UsageError, YolofsError

_CHUNK_BYTES = 1 << 16
LOCAL = frozenset({"run", "shell", "hook"})
"""Commands that do the same inside as outside."""


def main(words: Sequence[str], socket_path: str, check: Callable[[str], None]) -> int:
    """Carry out a command line and return the exit code.

    ``check`` is given the first word of one that is refused, and raises if it is no command at all.
    """
    try:
        try:
            return carry_out(words, socket_path)
        except UsageError:
            check(words[0])
            raise
    except YolofsError as error:
        fail(error.message, error.hint)
        return error.exit_code


def carry_out(words: Sequence[str], socket_path: str, *, out: int = 1) -> int:
    """Carry out a command line and return the exit code; what it says goes to the descriptor
    ``out``, and to stderr.

    Raises:
        YolofsError: it may not be done here, or nobody answers.
    """
    with _connect(os.fsencode(socket_path)) as client:
        answer = client.look([os.fsencode(word) for word in words], start_directory())
        _copy(answer.fd, 0, answer.out_bytes, out)
        _copy(answer.fd, answer.out_bytes, answer.err_bytes, 2)
        return answer.code


def _connect(path: bytes) -> Client:
    try:
        return Client(path)
    except OSError as error:
        raise DaemonError(
            f"the session cannot be reached from here: {error.strerror}", hint="outside of the sandbox: yolofs status"
        ) from None


def _copy(fd: int, start: int, length: int, target: int) -> None:
    sys.stdout.flush()
    while length and (data := os.pread(fd, min(length, _CHUNK_BYTES), start)):
        start += len(data)
        length -= len(data)
        while data:
            data = data[os.write(target, data) :]
