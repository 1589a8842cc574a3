"""A commit, or the end of one, in a process that kills itself at one of its lines."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from tests.support.new_process import forget_what_was_read
from yolofs.commit.select.selection import Selection
from yolofs.paths import RelPath
from yolofs.session.commit import commit
from yolofs.session.ending_interrupted import finish_interrupted
from yolofs.session.session import Session, SessionAccess

TRACED = (
    "commit",
    "journal",
    "registry",
    "session",
    "store.copying",
    "store.file_data",
    "store.store",
    "system.cache_files",
    "system.syscalls",
)


def killed_at(line: int, project: bytes, paths: tuple[bytes, ...] = (b"",)) -> int:
    """Commit ``paths`` in a child that kills itself at its ``line``-th line; return how many it ran
    if it did not.
    """

    def act(session: Session) -> None:
        commit(session, selection=Selection(session.regions, paths=tuple(map(RelPath, paths))))

    return dies_at(line, project, act)


def dies_at(line: int, project: bytes, act: Callable[[Session], object]) -> int:
    """Do something in a child that kills itself at its ``line``-th line; return how many it ran if
    it did not.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _act_and_die(line, project, act, writing)
    os.close(writing)
    with open(reading, "rb") as answer:
        said = answer.read()
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or (os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0), status
    return int(said or b"0")


def _act_and_die(line: int, project: bytes, act: Callable[[Session], object], writing: int) -> None:
    count = 0
    traced = tuple(f"yolofs.{name}" for name in TRACED)
    known: dict[str, bool] = {}

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        name = frame.f_globals.get("__name__", "")
        if name not in known:
            known[name] = name.startswith(traced)
        if not known[name]:
            return None
        if event == "line":
            count += 1
            if count == line:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    forget_what_was_read()
    try:
        with Session.open(project, SessionAccess.WRITE) as session:
            sys.settrace(trace)
            act(session)
            sys.settrace(None)
        os.write(writing, b"%d" % count)
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - the parent has to know
        os.write(2, repr(error).encode())
        os._exit(1)


def has_way_back(project: bytes) -> bool:
    """Tell whether a commit was interrupted, and that before all of it was durable."""
    with Session.open(project, SessionAccess.WRITE) as session:
        found = session.interrupted()
        if found is not None and found.way_back is None:
            finish_interrupted(session)
        return found is not None and found.way_back is not None
