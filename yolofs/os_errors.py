"""What an error of the operating system means to the user: a sentence, and the next thing to do."""

from __future__ import annotations

import errno
import os

from yolofs.errors import YolofsError
from yolofs.paths import display
from yolofs.sessions.state import state_directory


def explain_os_error(error: OSError) -> tuple[str, str]:
    """Return what failed, with the paths that the error names, and a hint; that is empty where there is none."""
    names = [os.fsencode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    return ": ".join([*map(display, names), error.strerror or repr(error)]), _hint(error.errno)


def _hint(number: int | None) -> str:
    try:
        state = display(state_directory())
    except YolofsError:  # which would have been said before
        return ""
    if number in (errno.ENOSPC, errno.EDQUOT):
        return f"what yolofs keeps lies in {state}: make room there, or where the session lies, then again"
    if number == errno.EROFS:
        return f"what yolofs keeps lies in {state}, or on the disk of the project: make that writable, then again"
    return ""
