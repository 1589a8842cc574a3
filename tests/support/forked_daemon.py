"""A mount without the two commands: its daemon is a fork of the process from which commands are
forked, and is asked to end by the test itself.

A test about a mounted view needs no process for ``yolofs mount``, nor for ``yolofs unmount``; these
take half as long as the daemon.  What they say and refuse has tests of its own
(``tests/cli/test_mounting.py``).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support import forked
from yolofs.cli.project.which_project import session_directory
from yolofs.cli.sessions import unmounting
from yolofs.daemon.rpc import launch
from yolofs.daemon.rpc.protocol import unquote


class CannotForkError(Exception):
    """A fork would not be what a start would have been."""


class _Subprocess:
    """What :mod:`yolofs.daemon.rpc.launch` uses of ``subprocess``."""

    DEVNULL = subprocess.DEVNULL
    TimeoutExpired = subprocess.TimeoutExpired

    @staticmethod
    def Popen(command: Sequence[str], *, stdout: int, pass_fds: Sequence[int], **_: Any) -> forked.Started:  # noqa: N802 - its name
        """Start a daemon."""
        cwd = command[command.index("--project") + 1]
        started = forked.server().start_daemon(command, cwd=cwd, env=os.environ, log=stdout, ready=pass_fds[0])
        if started is None:
            raise CannotForkError
        return started


def mount(project: Path, root: Path | None) -> Path | None:
    """Do what ``yolofs mount`` does in a project, and return the mountpoint; None if the daemon
    cannot be forked.
    """
    place = os.path.realpath(os.fsencode(project))
    with suppress(CannotForkError), pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "subprocess", _Subprocess)
        shown = None if root is None else os.path.realpath(os.fsencode(project / root))
        started = launch.launch(place, session_directory(place), root=shown, in_foreground=False)
        assert isinstance(started.process, forked.Started)
        started.process.forget()
        return Path(os.fsdecode(unquote(started.info.mountpoint)))
    return None


def take_away(project: Path) -> None:
    """Do what ``yolofs unmount --force`` does."""
    unmounting.take_away(session_directory(os.path.realpath(os.fsencode(project))), force=True)
