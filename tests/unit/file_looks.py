"""Looking at files, and a function that the system refuses."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable


def read(path: bytes) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def mode_of(path: bytes) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def refusing(number: int) -> Callable[..., int]:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    return refuse
