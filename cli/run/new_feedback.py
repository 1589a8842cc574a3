"""What the user tells the agent, at the end of its next command, once."""

from __future__ import annotations

import os
import sys

from yolofs.cli.output import say, warn
from yolofs.errors import YolofsError
from yolofs.session.feedback import NAME


def say_new_feedback(project: bytes, directory: bytes) -> None:
    """Say what the user has dropped since, unless it is a person who would read it: the user
    knows.
    """
    if sys.stderr.isatty() or not os.path.lexists(os.path.join(directory, NAME)):
        return
    from yolofs.cli.project import looking  # most runs have nothing to tell
    from yolofs.cli.rules.in_force import hiding
    from yolofs.cli.show.feedback_lines import lines_of
    from yolofs.cli.show.listing import Place
    from yolofs.session.feedback import read, take_new

    try:
        if not read(directory).new:
            return
        guard = hiding(project)
        with looking(project) as session:
            place = Place(session.base.root, session.base.relative(session.project))
        for line in lines_of(take_new(directory), place, guard):
            say(line)
    except (YolofsError, OSError) as error:  # the exit code of the command counts
        warn(f"what the user has said of dropped changes cannot be read: {error}")
