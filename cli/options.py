"""The options before the command, as commands see them."""

from __future__ import annotations

import contextlib
import errno
import os
from contextvars import ContextVar
from typing import TYPE_CHECKING

import msgspec

from yolofs.errors import UsageError, YolofsError
from yolofs.paths import display

if TYPE_CHECKING:  # what it needs takes time to import
    from yolofs.cli.guard import Guard


INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""
WRONG_USAGE = 2
"""The exit code of a command line that makes no sense."""


class GlobalOptions(msgspec.Struct, frozen=True):
    """The options before the command."""

    start: bytes = b"."
    """The directory to look for the project from."""
    project: bytes | None = None
    """The project, where it is known already."""
    guard: Guard | None = None
    """What limits the one on whose behalf the command runs; None for the user."""


_current: ContextVar[GlobalOptions] = ContextVar("options")


def set_options(options: GlobalOptions) -> None:
    """Say what the options before the command are."""
    _current.set(options)


def options() -> GlobalOptions:
    """Return the options before the command that runs."""
    return _current.get(GlobalOptions())


def start_directory() -> bytes:
    """Return the directory that the command starts from, absolute: the current one, or that of
    ``-C``.

    Raises:
        UsageError: the current one has been removed.
    """
    try:
        return os.path.abspath(options().start)
    except FileNotFoundError:
        from yolofs.registry.search import hint_of_gone  # hardly a command comes here

        hint = hint_of_gone(_was_current()) or "cd to one that does"
        raise UsageError("the current directory no longer exists", hint=hint) from None


def _was_current() -> bytes:
    """Return where the current directory was, which has been removed."""
    return os.readlink(b"/proc/self/cwd").removesuffix(b" (deleted)")


def not_entered(directory: bytes, *, is_start: bool) -> YolofsError:
    """Return the error for a directory that this user may not enter; with ``is_start`` the command
    starts there.
    """
    with contextlib.suppress(OSError):  # the current one was removed
        directory = os.path.abspath(directory)
    hint = "cd to a directory that you may enter, or: yolofs -C DIR ..." if is_start else "name one that you may enter"
    return YolofsError(f"{display(directory)} may not be entered: {os.strerror(errno.EACCES)}", hint=hint)
