"""Carries out a command on behalf of a program inside a sandbox.

``python -m yolofs.cli.guarded_command PROJECT PID DIRECTORY WORD…``: the daemon starts it, outside,
for the words that came through the restricted socket from process PID.
"""

from __future__ import annotations

import gc
import os
import sys

from yolofs.cli import main
from yolofs.cli.lean_msgspec import import_msgspec


def run(arguments: list[str]) -> int:
    """Carry out a command as the rules in force let programs in the view see it."""
    import_msgspec()
    from yolofs.cli.guard import SandboxGuard
    from yolofs.cli.options import GlobalOptions
    from yolofs.cli.output import fail
    from yolofs.cli.project.which_project import session_directory
    from yolofs.daemon.rpc.client import Client
    from yolofs.errors import DaemonError, YolofsError
    from yolofs.rules import RuleBook

    project, pid, directory, *words = arguments
    try:
        client = Client.connect(session_directory(os.fsencode(project)))
    except DaemonError:  # its other socket is gone: the user is told what to do
        client = None
    except YolofsError as error:
        fail(error.message, error.hint)
        return error.exit_code
    if client is None:
        sys.stderr.write("yolofs: the daemon has ended\n")
        return 1
    with client:
        guard = SandboxGuard(RuleBook(*client.rules().sets()), int(pid))
    return main.main(words, GlobalOptions(os.fsencode(directory), os.fsencode(project), guard))


if __name__ == "__main__":
    gc.set_threshold(main.GARBAGE_THRESHOLD)
    sys.exit(run(sys.argv[1:]))
