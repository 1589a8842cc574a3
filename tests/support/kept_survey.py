"""Does what :mod:`yolofs.daemon.runs.native_survey` does, but looks through what no test changes
once in a test run.

The machine's own directories hold a hundred thousand names, and each test begins with nothing kept:
to read them takes ten times what all else takes that such a daemon does.  The processes of a test
run share what one of them has found.
"""

from __future__ import annotations

import fcntl
import os

from yolofs.daemon.runs import native_survey

PLACE = "survey"
"""The directory in that for runtime in which it is kept."""
CHECKOUT = os.path.join(os.path.realpath(os.path.join(os.path.dirname(__file__), "../..")), "")
"""No test changes this, wherever it lies."""


def stays(directory: str) -> bool:
    """Tell whether no test changes a directory: what they make is below those for what is
    temporary.
    """
    temporary = ("/tmp/", "/var/tmp/", "/dev/shm/", os.path.join(os.environ.get("TMPDIR", "/tmp"), ""))
    return directory.startswith(CHECKOUT) or not directory.startswith(temporary)


def share(runtime_dir: str, common: str) -> None:
    """Have all users of a runtime directory keep their surveys in one common directory."""
    os.makedirs(common, exist_ok=True)
    os.symlink(common, os.path.join(runtime_dir, PLACE))


def kept(directory: bytes) -> bytes:
    """Return the report on a directory, from where it is kept if it is there."""
    place = os.path.join(os.environ["XDG_RUNTIME_DIR"], PLACE)
    os.makedirs(place, exist_ok=True)
    with open(os.path.join(os.fsencode(place), directory.replace(b"/", b"-")), "a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # another process may be looking through it
        file.seek(0)
        found = file.read()
        if not found.endswith(b"\0"):  # nobody has, or who did was killed
            found = b"\0".join((directory, *native_survey.Survey({}).find(directory), b""))
            file.truncate(0)
            file.write(found)
        return found[:-1]


def main(state: int, haste: int) -> None:
    """Report on each directory as soon as it is known."""
    native_survey.main(state, haste, _tell_what_stays if "XDG_RUNTIME_DIR" in os.environ else native_survey.read_wanted)


def _tell_what_stays() -> list[bytes]:
    """Report on those of the wanted directories that no test changes, and return the others."""
    changing = []
    for directory in native_survey.read_wanted():
        if stays(os.fsdecode(directory)):
            native_survey.write(kept(directory))
        else:
            changing.append(directory)
    return changing
