"""Does what :mod:`yolofs.daemon.runs.native_survey` does, but looks through what no test changes
once in a test run.

Each daemon with a view of the machine has a survey made, and the machine's own directories hold a
hundred thousand names: that takes ten times what all else takes that such a daemon does.
"""

from __future__ import annotations

import os
import runpy
import sys

TEMPORARY = ("/tmp/", "/var/tmp/", "/dev/shm/", os.path.join(os.environ.get("TMPDIR", "/tmp"), ""))
"""What tests make is below these, and always looked through."""
CHECKOUT = os.path.join(os.path.realpath(os.path.join(os.path.dirname(__file__), "../..")), "")
"""No test changes this, wherever it lies."""
SURVEY = runpy.run_path(os.path.join(os.path.dirname(__file__), "../../daemon/runs/native_survey.py"))


def report(directory: bytes) -> bytes:
    """Return what a survey says of a directory."""
    return b"\0".join((directory, *SURVEY["find"](directory))) + b"\0\0"


def kept(directory: bytes) -> bytes:
    """Return the same, from the run's own directory if it is there."""
    path = os.path.join(os.environb[b"XDG_RUNTIME_DIR"], b"survey" + directory.replace(b"/", b"-"))
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        found = report(directory)
        new = path + b".%d" % os.getpid()
        with open(new, "wb") as writing:
            writing.write(found)
        os.rename(new, path)
        return found


def main(niceness: int, directories: list[bytes]) -> None:
    """Report on each directory as soon as it is known."""
    os.nice(niceness)
    for directory in directories:
        name = os.fsdecode(directory)
        stays = name.startswith(CHECKOUT) or not name.startswith(TEMPORARY)
        try:
            SURVEY["_write"](kept(directory) if stays and "XDG_RUNTIME_DIR" in os.environ else report(directory))
        except BrokenPipeError:
            return


if __name__ == "__main__":
    main(int(sys.argv[1]), list(map(os.fsencode, sys.argv[2:])))
