"""Wrapping a whole shell command of an agent as one argument of ``yolofs run``."""

from __future__ import annotations

import shlex
import shutil

_START = ("yolofs", "run", "--")
_SHELLS = ("bash", "sh")


def wrap(command: str) -> str:
    """Return the command that runs ``command`` in the sandbox: all of it, whatever ``;``, ``&&`` or
    ``|`` it holds.
    """
    shell = "bash" if shutil.which("bash") else "sh"  # agents write for bash
    return shlex.join([*_START, shell, "-c", command])


def is_wrapped(command: str) -> bool:
    """Tell whether a command is what :func:`wrap` makes, and nothing besides."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    is_run = len(words) == 6 and tuple(words[:3]) == _START and words[3] in _SHELLS and words[4] == "-c"
    return is_run and shlex.join(words) == command
