"""What to tell of a command that cannot be started."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

from yolofs.errors import CommandNotFoundError, NotExecutableError
from yolofs.paths import display, in_shell


def start_error(
    word: bytes, number: int, *, outside: Callable[[bytes], bytes] | None = None, directory: bytes = b"."
) -> CommandNotFoundError | NotExecutableError:
    """Return the error for a command, named by ``word``, whose start the system refused with an
    errno.

    ``outside`` gives our path of a path in the sandbox, and ``directory`` is the absolute path
    there of the command's start; without these we are in the sandbox already.
    """
    shown = display(word) or '""'
    if b"/" not in word:
        if number == errno.ENOENT:
            hint = "for a word that the shell knows by itself: yolofs run -- sh -c '…', or yolofs shell"
            return CommandNotFoundError(f"{shown}: there is no such command in the view", hint=hint)
        return NotExecutableError(f"{shown}: {os.strerror(number)}")
    path = os.path.join(directory, word)
    st = _stat(outside(path) if outside is not None else path)
    explain = f"yolofs rule explain {in_shell(word)}"
    if number == errno.ENOENT and st is not None:
        message = f"{shown}: the program that its first line names, or the loader that it needs, is missing in the view"
        return CommandNotFoundError(message, hint=f"yolofs run -- head -n 1 {in_shell(word)}")
    if number == errno.ENOENT:
        is_hidden = outside is None or os.path.lexists(path)  # in the view one cannot tell
        hint = (
            explain if is_hidden else f"look what there is: yolofs run -- ls {in_shell(os.path.dirname(word) or b'/')}"
        )
        return CommandNotFoundError(f"{shown}: there is no such command in the view", hint=hint)
    if st is not None and stat.S_ISDIR(st.st_mode):
        return NotExecutableError(f"{shown} is a directory", hint="name a program in it")
    if st is not None and not st.st_mode & 0o111:
        hint = f"yolofs run -- chmod +x {in_shell(word)}, or name the program that reads it"
        return NotExecutableError(f"{shown} is not executable", hint=hint)
    if number != errno.EACCES:
        return NotExecutableError(f"{shown}: {os.strerror(number)}", hint="name the program that reads it")
    return NotExecutableError(f"{shown}: {os.strerror(number)}", hint=explain)


def _stat(path: bytes) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None
