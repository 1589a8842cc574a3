"""Prints what the user dropped at the end of the agent's next command, once."""

from __future__ import annotations

import os
import sys

from yolofs.cli.output import say, warn
from yolofs.errors import YolofsError
from yolofs.session.feedback import NAME


def say_new_feedback(project: bytes, directory: bytes) -> None:
    """Print what the user has dropped since, unless stderr is a terminal: then the user would read
    it.
    """
    if sys.stderr.isatty() or not os.path.lexists(os.path.join(directory, NAME)):
        return
    from yolofs.cli.project.project import looking  # most runs have nothing to tell
    from yolofs.cli.rules.in_force import hiding
    from yolofs.cli.show.feedback_lines import lines_of
    from yolofs.cli.show.listing import PathDisplay
    from yolofs.session.feedback import read, take_new

    try:
        if not read(directory).new:
            return
        guard = hiding(project)
        with looking(project) as session:
            path_display = PathDisplay(session.base.root, session.base.relative(session.project))
        for line in lines_of(take_new(directory), path_display, guard):
            say(line)
    except (YolofsError, OSError) as error:  # the exit code of the command counts
        warn(f"the notes on dropped changes cannot be read: {error}")
