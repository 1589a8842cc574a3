"""Does what :mod:`yolofs.daemon.runs.native_survey` does, but looks through what no test changes
once in a test run.

The machine's own directories hold a hundred thousand names, and each test begins with nothing kept:
to read them takes ten times what all else takes that such a daemon does.
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


def kept(directory: bytes) -> bytes:
    """Return the report on a directory, from the run's own directory if it is there."""
    path = os.path.join(os.environb[b"XDG_RUNTIME_DIR"], b"survey" + directory.replace(b"/", b"-"))
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        found = b"\0".join((directory, *SURVEY["Survey"]({}).find(directory)))
        new = path + b".%d" % os.getpid()
        with open(new, "wb") as writing:
            writing.write(found)
        os.rename(new, path)
        return found


def main(state: int, haste: int, directories: list[str]) -> None:
    """Report on each directory as soon as it is known."""
    changing = []
    try:
        for name in directories:
            stays = name.startswith(CHECKOUT) or not name.startswith(TEMPORARY)
            if stays and "XDG_RUNTIME_DIR" in os.environ:
                SURVEY["write"](kept(os.fsencode(name)))
            else:
                changing.append(name)
    except BrokenPipeError:
        return
    SURVEY["main"](state, haste, changing)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
