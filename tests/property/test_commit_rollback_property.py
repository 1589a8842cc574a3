"""However a commit is broken off, and however often, it can be taken back or finished: base is as
before, or as after.

It is killed at any line of its code, and so is what takes it back or finishes it; a power failure
takes lines of its log away; and the host is at work in base meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FrameType
from typing import Any, NamedTuple, NoReturn

import pytest
from hypothesis import event, example, given, note
from hypothesis import strategies as st

from tests.property.test_commit_property import (
    Operation,
    fill_base,
    hard_links,
    has_second_device,
    perform_all,
    programs,
)
from tests.support.commit_model import CommitScribe, Node, contents, is_spare, lacks_renameat2, scan
from tests.support.host_edits import Edit, Host, works
from tests.support.model_steps import so_many
from yolofs.commit import Plan, execute, find_conflicts, resume
from yolofs.commit.apply.linking import Spare, is_spare_never
from yolofs.commit.apply.recovery.rollback import RollbackSteps
from yolofs.commit.apply.recovery.taking_back import roll_back
from yolofs.commit.apply.steps import Steps
from yolofs.commit.plan.plan import Step
from yolofs.errors import CommitError
from yolofs.paths import RelPath
from yolofs.state.drift import may_have_drifted
from yolofs.store import restored
from yolofs.store.interfaces import StoreFiles
from yolofs.store.restored import InodeCtime

BROKEN = ("yolofs.commit.apply.", "yolofs.store.copying", "yolofs.store.file_data")
"""With what the names of the modules begin at whose lines a process is killed."""


class Kill(NamedTuple):
    """When a process is killed: that many lines after it has begun with that step, counted from the
    first it does.
    """

    step: int
    line: int


class Attempt(NamedTuple):
    """What somebody does about a commit that was interrupted: he takes it back or goes on, and may
    be killed.
    """

    goes_back: bool
    kill: Kill | None
    lost: int
    """So many lines of the log a power failure has taken away, before."""


kills = st.builds(Kill, st.integers(0, 12), st.integers(0, 120))
lost = st.sampled_from((0, 0, 0, 1, 2, 1000))
attempts = st.lists(st.builds(Attempt, st.booleans(), kills, lost), max_size=4)
ends = st.builds(Attempt, st.booleans(), st.none(), lost)


def dies(kill: Kill | None, act: Callable[[], object]) -> bool:
    """Do something, in a child that is killed then; return whether it came to its end."""
    if kill is None:
        act()
        return True
    child = os.fork()
    if not child:
        _act_and_die(kill, act)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or (os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0), status
    return not os.WIFSIGNALED(status)


def _act_and_die(kill: Kill, act: Callable[[], object]) -> NoReturn:
    count, steps = 0, 0

    def trace(frame: FrameType, what: str, _: object) -> Any:
        nonlocal count
        if not frame.f_globals.get("__name__", "").startswith(BROKEN):
            return None
        if what == "line":
            count += 1
            if count > kill.line:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    def counting(really: Callable[..., None]) -> Callable[..., None]:
        def do(self: Steps, step: Step, *arguments: object, **named: object) -> None:
            nonlocal steps
            steps += 1
            if steps == kill.step + 1:
                sys.settrace(trace)
                for frame in _frames():
                    frame.f_trace = trace
            really(self, step, *arguments, **named)

        return do

    try:
        # in this child alone, which ends in here
        Steps.do = counting(Steps.do)  # type: ignore[method-assign]
        RollbackSteps.undo = counting(RollbackSteps.undo)  # type: ignore[method-assign]
        act()
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the parent has to know
        sys.settrace(None)
        traceback.print_exc()
        os._exit(1)


def _frames() -> Iterator[FrameType]:
    """Yield the frames of the commit that are running already: they are traced from now on, too."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(BROKEN):
            yield frame
        frame = frame.f_back


def lose_lines(parking: bytes, number: int) -> None:
    """Do to the log what a power failure may: its end is missing."""
    path = os.path.join(parking, b"progress")
    with contextlib.suppress(FileNotFoundError), open(path, "r+b") as file:
        lines = file.readlines()
        file.truncate(sum(map(len, lines[: max(0, len(lines) - number)])))


@contextlib.contextmanager
def staged(
    program: list[Operation],
    links: list[tuple[bytes, ...]],
    session: str | None = None,
    modes: Sequence[tuple[bytes, int]] = (),
) -> Iterator[tuple[CommitScribe, bytes]]:
    """Run a program on a view as :func:`after` does, with the real time, so that conflicts can be
    told.

    ``modes`` are those of some directories of base.
    """
    with tempfile.TemporaryDirectory() as base, tempfile.TemporaryDirectory(dir=session) as own:
        root = os.fsencode(base) + b"/base"
        os.mkdir(root)
        fill_base(root, links)
        for path, mode in modes:
            os.chmod(os.path.join(root, path), mode)
        scribe = CommitScribe(root, os.fsencode(own) + b"/store")
        scribe._clock = time.time_ns()
        perform_all(scribe, program)
        os.mkdir(os.fsencode(own) + b"/commits")
        yield scribe, os.fsencode(own) + b"/commits/1"


def whole(root: bytes) -> dict[bytes, tuple[Node, int]]:
    """Return all that a directory is, and the inode numbers."""
    return {path: (node, os.lstat(os.path.join(root, path)).st_ino) for path, node in scan(root).items()}


class BrokenOff:
    """A commit or an undo that is broken off and gone on with.

    ``parking`` is its directory, ``notes`` the directory in which it is noted what taking it back
    has put in its place again.
    """

    def __init__(self, plan: Plan, store: StoreFiles, parking: bytes, notes: bytes) -> None:
        self.plan = plan
        self.store = store
        self.parking = parking
        self.found: list[RelPath] = []
        """Where the host had put or changed something, as was told."""
        self._notes = notes
        for line in plan.lines():
            note(line)
        assert Plan.decode(plan.encode()) == plan

    def begin(self, kill: Kill, is_spare: Spare = is_spare_never) -> bool:
        """Do it, until it is killed; return whether it was."""
        act = partial(execute, self.plan, self.store, parking=self.parking, is_spare=is_spare, durable=False)
        return not dies(kill, act)

    def has(self, name: bytes) -> bool:
        """Tell whether its directory has that."""
        return os.path.lexists(os.path.join(self.parking, name))

    def go_on(self, attempt: Attempt) -> bool:
        """Take it back or go on with it; return whether that came to its end, and did not fail."""
        note(f"{attempt}")
        lose_lines(self.parking, attempt.lost)
        act = self._take_back if attempt.goes_back else self._finish
        return dies(attempt.kill, act if attempt.kill is None else partial(dies_if_it_fails, act))

    def _take_back(self) -> None:
        self.found += roll_back(
            self.plan,
            self.store,
            parking=self.parking,
            restored=lambda found, _: restored.add(self._notes, {one.inode_ctime for one in found}),
            durable=False,
        ).found

    def _finish(self) -> None:
        self.found += resume(self.plan, self.store, parking=self.parking).found

    def go_on_to_the_end(self, attempts: Sequence[Attempt]) -> bool:
        """Go on with it as often as it is broken off; return whether it was taken back."""
        goes_back = False
        for attempt in attempts:
            if self.has(b"done") or not self.has(b"plan.json"):
                event("it was at its very end")
                break
            goes_back = attempt.goes_back and not self.has(b"settled")
            if self.go_on(attempt._replace(goes_back=goes_back)):
                break
            event("it was broken off once more")
        return goes_back


def commit_of(scribe: CommitScribe, parking: bytes) -> BrokenOff:
    return BrokenOff(scribe.plan(), scribe.store, parking, os.path.dirname(parking))


def conflicts_of(scribe: CommitScribe, known: set[InodeCtime]) -> list[RelPath]:
    found = find_conflicts(scribe.tree, scribe.base, scribe.store, restored=known)
    assert may_have_drifted(scribe.tree, scribe.base, scribe.store, known) or not found
    return found


def check(
    program: list[Operation],
    links: list[tuple[bytes, ...]],
    kill: Kill,
    some: list[Attempt],
    end: Attempt,
    session: str | None = None,
    modes: Sequence[tuple[bytes, int]] = (),
) -> None:
    with staged(program, links, session, modes) as (scribe, parking):
        root = scribe.base.root
        before, expected, had = whole(root), scribe.expected(), contents(root)
        conflicts = conflicts_of(scribe, set())
        run = commit_of(scribe, parking)
        if not run.plan.steps or not run.begin(kill, is_spare):
            event("it was not broken off")
            return
        if run.go_on_to_the_end((*some, end)):
            event("taken back")
            assert whole(root) == before
            assert not run.found
            assert not os.path.lexists(parking)
            assert conflicts_of(scribe, restored.read(os.path.dirname(parking))) == conflicts
            scribe.commit(parking)
        else:
            event("finished")
        assert scan(root) == expected
        assert had <= contents(root) | contents(parking + b"/replaced")
        assert os.listdir(parking + b"/parked") == os.listdir(parking + b"/new") == []


def check_with_host(
    program: list[Operation],
    links: list[tuple[bytes, ...]],
    kill: Kill,
    work: list[list[Edit]],
    some: list[Attempt],
    end: Attempt,
    session: str | None = None,
) -> None:
    """``work``: what the host does after each time that it is broken off."""
    with staged(program, links, session) as (scribe, parking):
        root = scribe.base.root
        run, had = commit_of(scribe, parking), contents(root)
        if not run.plan.steps or not run.begin(kill, is_spare):
            return
        check_work_of_host(run, root, had, work, [*some, end])


def check_work_of_host(
    run: BrokenOff, root: bytes, had: set[bytes], work: list[list[Edit]], attempts: list[Attempt]
) -> None:
    """Have the host at work each time that it is broken off: nothing that was in base (``had``) or
    comes is lost.
    """
    host, tells = Host(root), False
    for number, attempt in enumerate(attempts):
        if run.has(b"done") or not run.has(b"plan.json"):
            break
        host.act(work[number] if number < len(work) else [])
        goes_back = attempt.goes_back and not run.has(b"settled")
        try:
            if run.go_on(attempt._replace(goes_back=goes_back)):
                event("taken back" if goes_back else "finished")
                tells = attempt.kill is None  # else it is a child that was told of what was found
                break
        except CommitError as error:
            event("the host is in the way")
            note(error.message)
    if run.has(b"plan.json") and not run.has(b"done") and not run.has(b"settled"):
        event("only the way back is open")
        tells = run.go_on(Attempt(True, None, 0))
        assert tells
    commits = os.path.dirname(run.parking)
    there = contents(root) | (contents(commits) if os.path.lexists(commits) else set())
    assert host.written <= there
    assert had - host.thrown_away <= there
    for name in os.listdir(run.parking + b"/found") if tells and run.has(b"found") else ():
        number = int(name.rstrip(b"+").removesuffix(b"-placed"))
        paths = {step.path for step in run.plan.steps if getattr(step, "number", None) == number}
        assert not paths.isdisjoint(run.found), (name, run.found)


def dies_if_it_fails(act: Callable[[], object]) -> None:
    """Let it be the same to be killed and to fail, as the host is in the way."""
    try:
        act()
    except CommitError:
        os.kill(os.getpid(), signal.SIGKILL)


few = so_many(ci=6, nightly=3000)


@few
@given(programs, hard_links, kills, works, attempts, ends)
@example(  # the host has written to a new file, and going on has put that into the log
    [("write", (4, None), b""), ("chown", (0, None), 7, 8), ("recreate", (1, None)), ("write", (18, b"b"), b"")],
    [(b"b", b"a", b"link"), (b"b", b"a", b"b"), (b"b", b"d/a", b"link"), (b"b", b"c", b"link")],
    Kill(2, 0),
    [[("write", 10, 0)]],
    [Attempt(False, Kill(0, 0), 1)],
    Attempt(True, None, 0),
)
def test_nothing_that_was_in_base_meanwhile_is_lost(
    program: list[Operation],
    links: list[tuple[bytes, ...]],
    kill: Kill,
    work: list[list[Edit]],
    some: list[Attempt],
    end: Attempt,
) -> None:
    check_with_host(program, links, kill, work, some, end)


@pytest.mark.skipif(not has_second_device(), reason="there is no second device to write to")
@few
@given(programs, hard_links, kills, works, attempts, ends)
@example(  # a file that was written over is gone, and what it was lies on the other device
    [("mkdir", (1, b"a")), ("write", (34, None), b"")],
    [
        *((b"b", path, name) for path, name in ((b"a", b"link"), (b"d", b"link"), (b"d/a", b"link"), (b"d/a", b"b"))),
        (b"c/a/b", b"d/d", b"link"),
    ],
    Kill(2, 0),
    [[("remove", 2, 0), ("symlink", 0, 0)]],
    [],
    Attempt(False, None, 0),
)
@example(  # the host has moved the directory on another device that something was taken from
    [("remove", (1, None)), ("rename", (2, b"c"), (1, None))],
    [],
    Kill(3, 0),
    [[("move", 0, 0)]],
    [],
    Attempt(False, None, 0),
)
def test_nothing_that_was_in_base_meanwhile_is_lost_where_the_session_is_on_another_device(
    program: list[Operation],
    links: list[tuple[bytes, ...]],
    kill: Kill,
    work: list[list[Edit]],
    some: list[Attempt],
    end: Attempt,
) -> None:
    check_with_host(program, links, kill, work, some, end, session="/dev/shm")


@given(programs, hard_links, kills, attempts, ends)
@example(  # nothing that was parked is parked again where the log was lost
    [("exchange", b"b", b"e f"), ("rename", b"d/b", b"a/x")], [], Kill(4, 0), [], Attempt(False, None, 1000)
)
@example(  # another name of a parked file lies at its target, in a directory that moves later
    [("rename", b"d/d", b"x"), ("mkdir", b"d/d"), ("rename", b"x/\xff\xfe", b"d/d/b")],
    [(b"d/d/\xff\xfe", b"d/d", b"b")],
    Kill(1, 0),
    [],
    Attempt(True, None, 0),
)
@example(  # the link that is taken away again has changed the ctime of the file that it named
    [("link_metadata", (2, None), (1, b"a"))], [], Kill(1, 0), [], Attempt(True, None, 0)
)
@example(  # a file is given nothing back that was to be replaced by another one
    [
        ("rename", (18, None), (12, None)),
        ("mkdir", (1, b"a")),
        ("write", (15, b"b"), b""),
        ("utime_any", (35, None), 100_000_000_000_000_000),
    ],
    [],
    Kill(0, 0),
    [],
    Attempt(True, None, 0),
)
@example(  # what was made and taken away is made once more
    [("write", b"x", b"new"), ("mkdir", b"y"), ("write", b"y/z", b"new")],
    [],
    Kill(2, 50),
    [Attempt(True, Kill(4, 50), 0)],
    Attempt(False, None, 0),
)
def test_a_broken_off_commit_is_taken_back_or_finished(
    program: list[Operation], links: list[tuple[bytes, ...]], kill: Kill, some: list[Attempt], end: Attempt
) -> None:
    check(program, links, kill, some, end)


@given(programs, hard_links, kills, attempts, ends)
def test_a_broken_off_commit_is_taken_back_or_finished_without_renameat2(
    program: list[Operation], links: list[tuple[bytes, ...]], kill: Kill, some: list[Attempt], end: Attempt
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        lacks_renameat2(patch)
        check(program, links, kill, some, end)


@pytest.mark.skipif(not has_second_device(), reason="there is no second device to write to")
@given(programs, hard_links, kills, attempts, ends)
@example([("exchange", b"b", b"e f")], [], Kill(4, 0), [], Attempt(True, None, 0))  # it was aside, not parked
@example([("exchange", b"d/a/a", b"c/d")], [], Kill(3, 0), [], Attempt(False, None, 0))
@example([("mkdir", b"c/x")], [], Kill(1, 0), [], Attempt(True, None, 2))  # known though the log was lost
def test_a_broken_off_commit_is_taken_back_or_finished_with_the_session_on_another_device(
    program: list[Operation], links: list[tuple[bytes, ...]], kill: Kill, some: list[Attempt], end: Attempt
) -> None:
    check(program, links, kill, some, end, session="/dev/shm")
