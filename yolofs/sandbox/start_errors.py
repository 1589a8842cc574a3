"""What to tell of a command that cannot be started."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

from yolofs.errors import CommandNotFoundError, NotExecutableError
from yolofs.paths import display, in_shell

_MOST_LINKS = 40  # as the kernel


def start_error(
    word: bytes,
    number: int,
    *,
    outside: Callable[[bytes], bytes] | None = None,
    is_private: Callable[[bytes], bool] | None = None,
    directory: bytes = b".",
    search: bytes | None = None,
) -> CommandNotFoundError | NotExecutableError:
    """Return the error for a command, named by ``word``, whose start the system refused with an
    errno.

    ``outside`` gives our path of a path in the sandbox, ``is_private`` tells whether that is not
    what the view has there, and ``directory`` is the absolute path there of the command's start;
    without these we are in the sandbox already. ``search`` is ``PATH``; ours if it is None.
    """
    if b"/" not in word:
        return _error_of_name(word, number, outside, is_private, directory, search)
    shown = display(word)
    path = os.path.join(directory, word)
    explain = f"yolofs rule explain {in_shell(word)}"
    end = _end_of_links(path, outside)
    st = _stat(_ours(end, outside))
    if number == errno.ENOENT and st is None and end != path and os.path.islink(_ours(path, outside)):
        return CommandNotFoundError(
            f"{shown}: it leads to {display(end)}, which is not in the view", hint=_shown_by(end)
        )
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


def _error_of_name(
    word: bytes,
    number: int,
    outside: Callable[[bytes], bytes] | None,
    is_private: Callable[[bytes], bool] | None,
    directory: bytes,
    search: bytes | None,
) -> CommandNotFoundError | NotExecutableError:
    """Return the error for a command that was looked for in ``PATH``."""
    shown = display(word) or '""'
    paths = [os.path.join(directory, one, word) for one in _directories(search)] if word else []
    for path in paths:
        ours = _ours(path, outside)
        if os.path.lexists(ours) and not os.path.isdir(ours):
            return start_error(path, number, outside=outside, directory=directory)
    for path in paths if outside is not None else ():
        is_there = os.access(path, os.X_OK) and not os.path.isdir(path)
        if is_there and not (is_private is not None and is_private(path)):  # of a private one the run has told
            message = f"{shown}: {display(path)} of the host is not in the view"
            return CommandNotFoundError(message, hint=_shown_by(path))
    if number == errno.ENOENT:
        hint = "for a word that the shell knows by itself: yolofs run -- sh -c '…', or yolofs shell"
        return CommandNotFoundError(f"{shown}: there is no such command in the view", hint=hint)
    return NotExecutableError(f"{shown}: {os.strerror(number)}")


def _directories(search: bytes | None) -> list[bytes]:
    if search is None:
        search = os.environb.get(b"PATH", os.defpath.encode())
    return search.split(b":")


def _shown_by(path: bytes) -> str:
    """Return what says why the view does not show a file of the host, and what shows it."""
    directory = in_shell(os.path.dirname(path) or b"/")
    return f"yolofs rule explain {in_shell(path)}; if a rule hides it: yolofs rule read-only {directory}"


def _end_of_links(path: bytes, outside: Callable[[bytes], bytes] | None) -> bytes:
    """Return where a link at the end of a path leads in the sandbox, in which an absolute target is
    another file than ours.
    """
    for _ in range(_MOST_LINKS):
        try:
            target = os.readlink(_ours(path, outside))
        except OSError:
            return path
        path = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return path


def _ours(path: bytes, outside: Callable[[bytes], bytes] | None) -> bytes:
    return path if outside is None else outside(path)


def _stat(path: bytes) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None
