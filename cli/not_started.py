"""What to tell of a command that cannot be started."""

from __future__ import annotations

import errno
import os

from yolofs.errors import CommandNotFoundError, NotExecutableError
from yolofs.paths import display, in_shell


def not_started(word: bytes, number: int) -> CommandNotFoundError | NotExecutableError:
    """Return the error for a command, named by ``word``, whose start the system refused with an errno."""
    shown = display(word) or '""'
    explain = f"yolofs rule explain {in_shell(word)}" if b"/" in word else ""
    if number == errno.ENOENT:
        hint = explain or "for a word that the shell knows by itself: yolofs run -- sh -c '…', or yolofs shell"
        return CommandNotFoundError(f"{shown}: there is no such command in the view", hint=hint)
    return NotExecutableError(f"{shown}: {os.strerror(number)}", hint=explain)
