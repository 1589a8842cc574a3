"""A process of its own that writes a session's checkpoint: ``python -m
yolofs.daemon.upkeep.checkpointer PROJECT``.

Why a process: replaying a journal holds the interpreter lock, which the daemon that serves a mount
cannot spare.
"""

from __future__ import annotations

import os
import sys

from yolofs.errors import YolofsError
from yolofs.session.session import Session, SessionAccess

_NICE = 10
"""Nobody waits for it."""


def main(project: str) -> None:
    """Write the checkpoint of the session in a project, or end with a message."""
    os.nice(_NICE)
    try:
        with Session.open(os.fsencode(project), SessionAccess.READ) as session:
            session.write_checkpoint()
    except (YolofsError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1])
