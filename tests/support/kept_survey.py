"""Does what :mod:`yolofs.daemon.runs.native_survey` does, but looks through what no test changes
once in a test run.

The machine's own directories hold a hundred thousand names, and each test begins with nothing kept:
to read them takes ten times what all else takes that such a daemon does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from yolofs.daemon.runs import native_survey

CHECKOUT = os.path.join(os.path.realpath(os.path.join(os.path.dirname(__file__), "../..")), "")
"""No test changes this, wherever it lies."""


def stays(directory: str) -> bool:
    """Tell whether no test changes a directory: what they make is below those for what is
    temporary.
    """
    temporary = ("/tmp/", "/var/tmp/", "/dev/shm/", os.path.join(os.environ.get("TMPDIR", "/tmp"), ""))
    return directory.startswith(CHECKOUT) or not directory.startswith(temporary)


def kept(directory: bytes) -> bytes:
    """Return the report on a directory, from the run's own directory if it is there."""
    path = os.path.join(os.environb[b"XDG_RUNTIME_DIR"], b"survey" + directory.replace(b"/", b"-"))
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        found = b"\0".join((directory, *native_survey.Survey({}).find(directory)))
        new = path + b".%d" % os.getpid()
        with open(new, "wb") as writing:
            writing.write(found)
        os.rename(new, path)
        return found


def main(state: int, haste: int, directories: Sequence[str]) -> None:
    """Report on each directory as soon as it is known."""
    has_place = "XDG_RUNTIME_DIR" in os.environ
    try:
        for directory in directories:
            if has_place and stays(directory):
                native_survey.write(kept(os.fsencode(directory)))
    except BrokenPipeError:
        return
    changing = [directory for directory in directories if not (has_place and stays(directory))]
    native_survey.main(state, haste, changing)
