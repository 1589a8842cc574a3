"""Calls of commands that change base or end generations fail one at a time, as on a full, failing
or read-only disk.

Base is what it was or what it is to be, what is said is a sentence with the reason and the way on,
and the next command ends well.
"""

from __future__ import annotations

import errno
import os
from functools import partial
from pathlib import Path

import pytest

from tests.crash import test_commands_killed, test_gc_killed
from tests.crash.test_commands_killed import Scene, base_of, contents, fresh, view_of
from tests.support.fault_points import points
from tests.support.injected_faults import Faults
from tests.support.killed_command import Ran, as_user, check_said, end_it, run, users

pytestmark = pytest.mark.timeout(300)
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS)
CALLS = 3
"""So many of the calls of each command fail, others in each run; by night all."""
SCENES = test_commands_killed.SCENES | {
    "gc": test_gc_killed.SCENES["gc"],
    "gc --generations": test_gc_killed.SCENES["generations"],
}


@pytest.mark.parametrize(
    ("name", "is_root"), [(name, is_root) for name in SCENES for is_root in users("commands fail", name)]
)
def test_base_is_before_or_after(monkeypatch: pytest.MonkeyPatch, name: str, is_root: bool) -> None:
    as_user(partial(check, SCENES[name], is_root), monkeypatch, is_root=is_root)


def check(scene: Scene, is_root: bool, place: Path) -> None:
    project = fresh(scene, place)
    before, view_before = base_of(project), view_of(project)
    whole = run(project, *scene.words, faults=Faults(0, range(0)))
    assert whole.code == scene.code, whole
    after, view_after = base_of(project), view_of(project)
    count = len(whole.calls)
    for number, call in enumerate(points(range(count), "calls fail", scene.words, is_root, some=CALLS)):
        error = ERRORS[(number + is_root) % len(ERRORS)]
        where = f"{errno.errorcode[error]} of call {call} of {count}"
        project = fresh(scene, place)
        ran = run(project, *scene.words, faults=Faults(error, range(call, call + 1)))
        check_failure(scene, ran, where)
        end_it(project, goes_back=bool(number % 2))
        if "could not be carried over" in ran.err or "it cannot be read" in ran.err:  # told, and stays; no harm
            continue
        now = base_of(project)
        assert now in (before, after), where
        assert contents(project) >= set(scene.texts), where
        assert view_of(project) in (view_before, view_after), where
        if now == before:
            again = run(project, *scene.words)
            assert again.code == scene.code, (where, again)
        assert base_of(project) == after, where
        assert view_of(project) == view_after, where


def check_failure(scene: Scene, ran: Ran, where: str) -> None:
    """See that a command that failed told why; gc has no more to say than the disk has."""
    check_said(ran)
    if ran.code not in (0, scene.code):
        reasons = {os.strerror(error) for error in ERRORS} | {"full", "read-only", "permitted", "denied"}
        assert any(reason.lower() in ran.err.lower() for reason in reasons), (where, ran)
