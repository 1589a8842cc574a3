"""The command line in a child that kills itself at one line of its code, or of whose calls some
fail.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import IO, Any, NamedTuple, NoReturn

import pytest

import yolofs
from tests.support import core_driver
from tests.support.fault_points import points
from tests.support.injected_faults import Faults
from tests.support.memory_disk import memory_directory
from tests.support.model_steps import is_nightly
from tests.support.new_process import forget_what_was_read
from tests.support.seed import dice
from tests.support.user_identity import NOBODY, USERS, in_child
from yolofs.cli import main
from yolofs.commit.apply.commit_directory import DONE, MADE, SETTLED
from yolofs.overlay import Owner
from yolofs.session.session import Session, SessionAccess

TRACED = (
    "cli.commands.commit",
    "cli.commands.gc",
    "cli.commands.undo",
    "cli.commit",
    "commit",
    "journal",
    "registry",
    "session",
    "state.checkpoint",
    "state.kept_bases",
    "store.copying",
    "store.file_data",
    "store.restored",
    "store.store",
    "system.cache_files",
    "system.syscalls",
)
_FRAMES = 5
for _name in ("termios", "tempfile", *(one.name for one in pkgutil.walk_packages(yolofs.__path__, "yolofs."))):
    importlib.import_module(_name)  # a child's lines are those of the work, and an ordinary user may not read Python's


class Ran(NamedTuple):
    """What has become of a command."""

    code: int
    """Its exit code; minus the signal that ended it."""
    lines: int
    """How many traced lines it ran, if it came to its end and its calls were counted without a
    fault among them; else 0.
    """
    calls: tuple[int, ...]
    """The line of each call that can be failed, if they were counted; 0 for a call that reads."""
    switch: tuple[int, ...]
    """Those at which it was changing base; none of calls that read."""
    places: tuple[int, ...]
    """For each of the calls a number that those have in common that are made at the same place of
    the code.
    """
    out: str
    err: str

    @property
    def is_killed(self) -> bool:
        """Whether it was killed."""
        return self.code == -signal.SIGKILL

    @property
    def json(self) -> Any:
        """Its stdout as a JSON document."""
        return json.loads(self.out)


def run(project: bytes, *words: str, line: int = 0, faults: Faults | None = None) -> Ran:
    """Run a command in a project, killed before its ``line``-th line, or with ``faults``.

    The number of a line depends on the frames around its calls, so a command is killed under the
    same ones as it was counted.
    """
    if line and faults is None:
        faults = Faults(0, range(0))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as told:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if not child:
            _be(project, words, line, faults, out, err, told)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for file in (out, err, told):
            file.seek(0)
        numbers = [tuple(map(int, line.split())) for line in told.read().split(b"\n")]
        (lines,), calls, switch, places = numbers if len(numbers) == 4 else ((0,), (), (), ())
        return Ran(
            code, lines, calls, switch, places, out.read().decode(errors="replace"), err.read().decode(errors="replace")
        )


def _be(
    project: bytes, words: tuple[str, ...], line: int, faults: Faults | None, out: IO[bytes], err: IO[bytes], told: Any
) -> NoReturn:
    """Be the child."""
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 - for the whole process
        os.chdir(project)
        forget_what_was_read()
        count = 0
        pid = os.getpid()
        known: dict[str, bool] = {}

        def trace(frame: FrameType, event: str, _: object) -> Any:
            nonlocal count
            name = frame.f_globals.get("__name__", "")
            if name not in known:
                known[name] = name.startswith(tuple(f"yolofs.{one}" for one in TRACED))
            if not known[name] or frame.f_code.co_name == "<module>":
                return None
            if event == "line":
                count += 1
                if count == line:
                    os.kill(pid, signal.SIGKILL)
            return trace

        calls: list[int] = []
        switch: list[int] = []
        places: list[int] = []
        numbers: dict[object, int] = {}

        def note() -> None:
            calls.append(count)
            places.append(numbers.setdefault(_place_of(sys._getframe()), len(numbers)))
            if not reads and is_in_switch(project):
                switch.append(count)

        is_counted = faults is not None and not faults.bad and not line
        reads = faults is not None and faults.reads
        if faults is not None and is_counted:
            faults.before_each = note
        with faults.at_work() if faults is not None else nullcontext():
            if line or (is_counted and not reads):  # else nobody asks which line it is at: that takes long
                sys.settrace(trace)
            code = main.main(words)
            sys.settrace(None)
        sys.stdout.flush()
        sys.stderr.flush()
        told.write(b"\n".join(b" ".join(b"%d" % one for one in some) for some in ((count,), calls, switch, places)))
        told.flush()
        os._exit(code)
    except BaseException as error:  # noqa: BLE001 - the parent has to know
        os.write(2, f"Traceback: {error!r}".encode())
        os._exit(99)


def _place_of(frame: FrameType | None) -> object:
    """Return what tells a place of the code from which something is called: the innermost of its
    frames.
    """
    found: list[object] = []
    while frame is not None and len(found) < _FRAMES:
        if frame.f_globals.get("__name__", "").startswith("yolofs."):
            found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


def is_in_switch(project: bytes) -> bool:
    """Tell whether a commit of a project has all it needs, and is not done."""
    return any(MADE in notes and DONE not in notes for notes in _notes_of_commits(project))


def is_settled(project: bytes) -> bool:
    """Tell whether all steps of a commit of a project are durable, and it is not done."""
    return any(SETTLED in notes and DONE not in notes for notes in _notes_of_commits(project))


def _notes_of_commits(project: bytes) -> Iterator[list[bytes]]:
    commits = os.path.join(os.path.realpath(os.path.join(project, b".yolofs")), b"commits")
    for name in os.listdir(commits) if os.path.isdir(commits) else ():
        path = os.path.join(commits, name)
        is_one = name.isdigit() and os.path.isdir(path)  # and not one that is being removed
        yield os.listdir(path) if is_one else []


def check_said(ran: Ran) -> None:
    """Check that a command that failed says one sentence with the reason and the way on, and no
    traceback.
    """
    assert "Traceback" not in ran.err, ran.err
    assert "should not have happened" not in ran.err, ran.err
    if ran.code:
        assert "yolofs: " in ran.err, ran
        assert "hint: " in ran.err, ran


def is_interrupted(project: bytes) -> bool:
    """Tell whether a commit was interrupted."""
    with Session.open(project, SessionAccess.WRITE) as session:
        return session.interrupted_commit() is not None


def end_it(project: bytes, *, goes_back: bool) -> str:
    """Settle an interrupted commit as the next command advises; return the outcome."""
    if not is_interrupted(project):
        return "nothing"
    status = run(project, "status")
    assert status.code == 0, status
    assert "yolofs commit --continue" in status.err, status
    if goes_back:
        back = run(project, "commit", "--roll-back")
        check_said(back)
        if back.code == 0:
            return "taken back"
    on = run(project, "commit", "--continue")
    assert on.code == 0, on
    return "finished"


@contextmanager
def place_of(patch: pytest.MonkeyPatch, *, is_root: bool) -> Iterator[Path]:
    """Give a directory in memory with a home and the state directory of root, or of an ordinary
    user.
    """
    with memory_directory() as directory:
        home = directory / "home"
        home.mkdir(0o700)
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_STATE_HOME", str(directory / "state"))
        for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
            patch.delenv(name, raising=False)
        if not is_root:
            for one in (directory, home, directory / "state"):
                os.chown(one, NOBODY, NOBODY)
        yield directory


def as_user(check: Callable[[Path], None], patch: pytest.MonkeyPatch, *, is_root: bool) -> None:
    """Do a check in a directory in memory as root, or all of it, with its commands, as an ordinary
    user.
    """
    with place_of(patch, is_root=is_root or os.geteuid() != 0) as place:
        if is_root:
            check(place)
            return
        with pytest.MonkeyPatch.context() as owner:
            ids = os.geteuid() or NOBODY, os.getegid() or NOBODY
            owner.setattr(core_driver, "OWNER", Owner(*ids))
            assert in_child(lambda: check(place), is_root=False) == 0


def users(*what: object) -> list[bool]:
    """Return as whom something is tried: by night as both users, else as one, drawn for
    ``what``.
    """
    return points(USERS, "users", *what, some=1)


def kill_points(whole: Ran, share: int, shares: int, some: int) -> list[int]:
    """Return lines to die before, for one share: some of any, of calls that change the disk, and of
    such to base.

    They are others in each run (:mod:`tests.support.seed`).  By night those of all calls that
    change the disk come first: a kill anywhere else leaves the same as the call before.
    """
    drawing = dice("kill points", share)
    found = []
    for point in range(some):
        place = (point * shares + share + drawing.random()) / (some * shares)
        lines = (range(whole.lines), whole.calls, whole.switch or whole.calls)[point % 3]
        found.append(1 + lines[int(place * len(lines))])
    if is_nightly():
        found = [1 + line for line in sorted(set(whole.calls))[share::shares]] + found
    return [min(line, whole.lines) for line in found]
