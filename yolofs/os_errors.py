"""What an error of the operating system means to the user: a sentence, and the next thing to do."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

from yolofs.errors import NotPreparedError, YolofsError, reason
from yolofs.paths import display, is_below, is_in
from yolofs.registry.state_directory import state_above, state_directory

_OF_DISKS = {
    errno.EIO: "the disk reports an error: read what the system's log says about it (dmesg)",
    errno.ESTALE: "the disk was replaced or mounted anew: check that the right one is there",
    errno.EACCES: "check that you may read it",
    **dict.fromkeys(
        (errno.ENOTCONN, errno.ECONNABORTED, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH),
        "the process or the server behind that disk is gone: mount it again",
    ),
}


_DESCRIPTORS = b"/proc/self/fd/"


def explain_os_error(error: OSError, *, then: str = "try again") -> tuple[str, str]:
    """Return the failure with the paths in the error, and a hint, empty if there is none.

    ``then`` says what to do when the user has done what the hint says.
    """
    names = [os.fsencode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    hint = _hint(error.errno, names)
    return ": ".join([*map(display, names), error.strerror or repr(error)]), hint and f"{hint}, then {then}"


def reason_and_path(error: OSError) -> str:
    """Return what the system says of an error, and the path that it names, in brackets.

    If a path begins with an open descriptor, its target is told.
    """
    where = f" ({display(_spelled(os.fsencode(error.filename)))})" if isinstance(error.filename, str | bytes) else ""
    return f"{reason(error)}{where}"


def _spelled(path: bytes) -> bytes:
    if not path.startswith(_DESCRIPTORS):
        return path
    number, slash, rest = path[len(_DESCRIPTORS) :].partition(b"/")
    try:
        return os.readlink(_DESCRIPTORS + number) + slash + rest
    except OSError:  # it was closed
        return path


@contextlib.contextmanager
def said_as(error_type: type[YolofsError], sentence: str, *, again: str, place: bytes) -> Iterator[None]:
    """Have what the system refuses in a block said as a ``sentence`` with the reason, and what to
    do ``again`` then.

    ``place`` stands for a path where the error names none.

    Raises:
        YolofsError: of that type, if anything was refused.
    """
    try:
        yield
    except OSError as error:
        what, hint = explain_os_error(error, then=again)
        if not isinstance(error.filename, str | bytes):
            what = f"{display(place)}: {what}"
        raise error_type(f"{sentence}: {what}", hint=hint or f"fix that, and then: {again}") from error


@contextlib.contextmanager
def base_errors_said(root: bytes, *, without: bytes, again: str) -> Iterator[None]:
    """Have it said when something below ``root`` cannot be read in a block that changes nothing
    there, or is gone that lay there a moment before: the host is at work.

    Paths in the directory ``without`` do not count.  ``again`` is the command to repeat.

    Raises:
        NotPreparedError: something was gone, or could not be read.
    """
    try:
        yield
    except OSError as error:
        path = os.fsencode(error.filename) if isinstance(error.filename, str | bytes) else b""
        if not path.startswith(b"/") or not is_in(path, root) or is_below(path, without):
            raise
        what, hint = explain_os_error(error, then=again)
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            what, hint = f"another program has just taken {display(path)} away", f"when that program is done: {again}"
        raise NotPreparedError(f"nothing is committed: {what}", hint=hint or f"fix that, and then: {again}") from error


def _hint(number: int | None, names: list[bytes]) -> str:
    try:
        directory = next(filter(None, map(state_above, names)), None) or state_directory()
    except YolofsError:  # which would have been said before
        return ""
    state = display(directory)
    if number in (errno.ENOSPC, errno.EDQUOT):
        return f"yolofs keeps its files in {state}: make room there, or on the disk of the session"
    if number == errno.EROFS:
        return f"yolofs keeps its files in {state}, or on the disk of the project: make that writable"
    if number not in _OF_DISKS and any(is_below(name, directory) for name in names):
        return f"yolofs keeps its files in {state}: check that you may read and write there"
    return _OF_DISKS.get(number or 0, "")
