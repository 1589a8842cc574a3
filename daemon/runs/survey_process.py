"""Starts the process that looks through the directories that runs are to get straight from base.

The daemon starts the first one before it imports what takes long: by the time that it serves, the
survey is done.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

from yolofs.daemon.runs import native_survey

STATE_OPTION = "--state-fd"
"""The option by which whoever starts a daemon passes it the state directory."""
_HASTE = 256
"""After how many directories read by the first survey nobody waits for it any more; directories
that it knows do not count.
"""


class SurveyProcess(NamedTuple):
    """A process (:mod:`yolofs.daemon.runs.native_survey`), and our ends of its pipes."""

    process: subprocess.Popen[bytes]
    wanted: int
    """Takes what it is to look through; it waits for the end of that."""
    reports: int


def start(state: int, *, is_first: bool) -> SurveyProcess:
    """Start a survey that keeps what it finds in the open directory ``state``, -1 for nowhere.

    Raises:
        OSError: that cannot be done.
    """
    command = [sys.executable, "-I", "-S", native_survey.__file__, str(state), str(haste(is_first=is_first))]
    reading, wanted = os.pipe()
    reports, writing = os.pipe()
    try:
        kept = [state] if state >= 0 else []
        process = subprocess.Popen(command, stdin=reading, stdout=writing, pass_fds=kept)
    except BaseException:
        os.close(wanted)
        os.close(reports)
        raise
    finally:
        os.close(reading)
        os.close(writing)
    return SurveyProcess(process, wanted, reports)


def haste(*, is_first: bool) -> int:
    """Return how many directories are read in haste."""
    return _HASTE if is_first else 0


def start_first(words: list[str]) -> SurveyProcess | None:
    """Start the first survey of a daemon with this command line.  Return None if the daemon was
    passed no state directory, or nothing can be started now.
    """
    if words[:1] != [STATE_OPTION]:
        return None
    state = int(words[1])
    try:
        return start(state, is_first=True)
    except OSError:  # the daemon tries again, and says why it cannot
        return None
    finally:
        os.close(state)
