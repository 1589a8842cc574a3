"""Commands that change base or end generations meet one failing call, which changes the disk or
reads, as on a full, failing or read-only disk.

Base is as before or as it is to be; the message has the reason and the way on, and the next command
ends well.
"""

from __future__ import annotations

import errno
import os
from functools import partial
from pathlib import Path

import pytest

from tests.crash import test_commands_killed, test_gc_killed
from tests.crash.test_commands_killed import Scene, early_in_switch, ends_of, fresh, interrupted
from tests.support.fault_points import points
from tests.support.injected_faults import Faults
from tests.support.killed_command import Ran, as_user, check_said, end_it, place_of, run, users
from tests.support.seed import dice
from yolofs.session.archive import has_ended_journal

pytestmark = pytest.mark.timeout(300)
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS)
ERRORS_OF_READING = (errno.EIO, errno.EACCES, errno.ESTALE)
OTHER_REASONS = {"full", "read-only", "permitted", "denied", "not readable"}
TOLD = ("could not be carried over", "could not be given back", "it cannot be read", "which were not found")
"""What is told, and does no harm: something stays staged, or is not as it was."""
CALLS = 2
"""So many of the calls of each command fail, others in each run; by night all, and of those that
read one at each place of the code.
"""
SCENES = test_commands_killed.ALL | {
    "commit": test_commands_killed.COMMIT,
    "gc": test_gc_killed.SCENES["gc"],
    "gc --generations": test_gc_killed.SCENES["generations"],
}
DRAWN = points([(name, reads) for reads in (False, True) for name in SCENES], "commands fail", some=3)
"""The commands to fail in this run, at calls that change the disk or that read; by night all of
both.
"""


@pytest.mark.parametrize(
    ("name", "reads", "is_root"),
    [
        pytest.param(name, reads, is_root, id=f"{name}-{is_root}-calls that {'read' if reads else 'change'}")
        for name, reads in DRAWN
        for is_root in users("commands fail", name)
    ],
)
def test_after_any_fault_base_is_as_before_the_command_or_as_after_it(
    monkeypatch: pytest.MonkeyPatch, name: str, is_root: bool, reads: bool
) -> None:
    as_user(partial(check, SCENES[name], is_root, reads), monkeypatch, is_root=is_root)


def check(scene: Scene, is_root: bool, reads: bool, place: Path) -> None:
    within, errors = (os.fsencode(place), ERRORS_OF_READING) if reads else (None, ERRORS)
    ends, whole = ends_of(scene, place, Faults(0, range(0), within=within))
    calls = one_of_each_place(whole) if reads else range(len(whole.calls))
    assert calls
    for number, call in enumerate(points(calls, "calls fail", scene.words, is_root, reads, some=CALLS)):
        error = errors[(number + is_root) % len(errors)]
        where = f"{errno.errorcode[error]} of call {call} of {len(whole.calls)}"
        project = fresh(scene, place)
        ran = run(project, *scene.words, faults=Faults(error, range(call, call + 1), within=within))
        check_failure(scene, ran, where)
        end_it(project, goes_back=bool(number % 2))
        if any(text in ran.err for text in TOLD) or (ran.code == scene.code and ends.has_come_but_for_links(project)):
            continue
        ends.check(scene, project, f"{where}: {ran.code} {ran.err}")


def one_of_each_place(whole: Ran) -> list[int]:
    """Return a call, drawn anew in each run, of those that are made at each place of the code."""
    calls: dict[int, list[int]] = {}
    for call, place in enumerate(whole.places):
        calls.setdefault(place, []).append(call)
    drawing = dice("places")
    return sorted(map(drawing.choice, calls.values()))


def check_failure(scene: Scene, ran: Ran, where: str) -> None:
    """See that a command that failed told why; gc has no more to say than the disk has."""
    check_said(ran)
    if ran.code not in (0, scene.code):
        reasons = {os.strerror(error) for error in (*ERRORS, *ERRORS_OF_READING)} | OTHER_REASONS
        assert any(reason.lower() in ran.err.lower() for reason in reasons), (where, ran)


@pytest.mark.parametrize("killed", [test_commands_killed.COMMIT, test_commands_killed.UNDO], ids=["commit", "undo"])
def test_whoever_finishes_a_commit_is_told_what_could_not_be_carried_over(
    monkeypatch: pytest.MonkeyPatch, killed: Scene
) -> None:
    scene = interrupted(killed, "commit", "--continue", where=early_in_switch)
    with place_of(monkeypatch, is_root=True) as place:
        project = fresh(scene, place)
        ran = run(project, *scene.words, faults=Faults(errno.EPERM, range(1 << 30), only="utime"))
        assert ran.code == 0, ran
        assert "times could not be carried over" in ran.err


@pytest.mark.parametrize("error", ERRORS_OF_READING)
def test_that_a_commit_has_ended_is_told_or_the_disk_is_to_blame(monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    """What the commit has put into base is in the store no more, and would be said to be
    missing.
    """
    with place_of(monkeypatch, is_root=True) as place:
        scene = test_commands_killed.COMMIT
        whole = run(fresh(scene, place), *scene.words, faults=Faults(0, range(0)))
        lines = test_commands_killed.at_the_end(whole)  # the same line may come before the end in another run
        session = next(filter(has_ended_journal, (killed_at(scene, place, line + 1) for line in lines)))
        counting = Faults(error, range(0), within=os.fsencode(place))
        with counting.at_work():
            assert has_ended_journal(session)
        assert counting.count > 20
        for call in range(counting.count):
            with Faults(error, range(call, call + 1), within=os.fsencode(place)).at_work():
                try:
                    assert has_ended_journal(session), call
                except OSError as failed:
                    assert failed.errno == error  # noqa: PT017 - either is right


def killed_at(scene: Scene, place: Path, line: int) -> bytes:
    """Return the session of a command that was killed at `line`."""
    project = fresh(scene, place)
    assert run(project, *scene.words, line=line).is_killed
    return os.path.realpath(os.path.join(project, b".yolofs"))
