"""Every pair of kinds before and after a commit, and the host at work at that very path: while the
commit is interrupted, and between it and its undo.

Nothing of base's or the host's is lost; and only a user who was asked takes the host's things away.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.commit_model import contents, have_linked, scan
from tests.support.edits_of_a_path import EDITS
from tests.support.fault_points import and_more, points
from tests.support.kinds_matrix import Case, Kind, cases
from tests.support.undo_model import Commits
from tests.unit.commit.test_kinds import KilledError, broken_off
from yolofs.commit import execute, plan_commit, resume
from yolofs.commit.apply.recovery.taking_back import roll_back
from yolofs.commit.plan.kept_objects import KeptAndStore
from yolofs.commit.select.compose import compose
from yolofs.commit.undo.applied import Applied
from yolofs.commit.undo.inverse import invert
from yolofs.errors import CommitError, ConflictError
from yolofs.state.tree import Tree
from yolofs.system import syscalls

SOME = 2
"""So many moments and edits for each kind that base has, and so many edits before an undo; by night
all.
"""
MOST_STEPS = 12
FOLDERS = (b"parked", b"replaced", b"found")


@pytest.fixture(autouse=True)
def waits_for_no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No power failure is to be expected here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(syscalls, "sync_filesystem", lambda _: None)


def everything(case: Case) -> set[bytes]:
    """Return the content of all that is in base, staged, or kept by a commit."""
    found = contents(case.scribe.base.root) | contents(case.scribe.store.directory)
    commits = os.path.dirname(case.parking)
    for number, name in itertools.product(os.listdir(commits), FOLDERS):
        folder = os.path.join(commits, number, name)
        found |= contents(folder) if os.path.lexists(folder) else set()
    return found


def prepared(place: Path, before: Kind, number: int) -> Iterator[Case]:
    """Yield the cases, each with a directory for commits."""
    for case in cases(place / str(number), before):
        commits = os.path.join(os.path.dirname(case.parking), b"commits")
        os.mkdir(commits)
        yield case._replace(parking=os.path.join(commits, b"1"))


class Moment(NamedTuple):
    """The host's edit, the moment at which the commit is broken off, and the way to go on."""

    edit: str
    step: int
    after: bool
    goes_back: bool


MOMENTS = [
    Moment(edit, number, after, back)
    for edit in EDITS
    for number in range(MOST_STEPS)
    for after in (False, True)
    for back in (False, True)
]


@pytest.mark.parametrize("way", ["copied", "linked"])
@pytest.mark.parametrize("before", Kind, ids=lambda kind: kind.value)
def test_nothing_is_lost_that_the_host_does_while_it_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: Kind, way: str
) -> None:
    if way == "linked":
        have_linked(monkeypatch)
    interrupted: list[str] = []
    drawn = points(MOMENTS, "host", before, way, some=SOME)
    for number, moment in enumerate(and_more(drawn, MOMENTS, lambda: len(interrupted) > SOME)):
        for case in prepared(tmp_path, before, number):
            plan = case.scribe.plan()
            assert len(plan.steps) <= MOST_STEPS
            step = moment.step % max(1, len(plan.steps))
            if not broken_off(case, step, KilledError(), after=moment.after, plan=plan):
                continue
            where = f"{case.after} {moment}"
            interrupted.append(where)
            EDITS[moment.edit](case.scribe.base.root)
            had = everything(case)
            try:
                if not moment.goes_back:
                    resume(plan, case.scribe.store, parking=case.parking)
            except CommitError:  # the host is in the way: then it can be taken back
                moment = moment._replace(goes_back=True)
            if moment.goes_back:
                roll_back(plan, case.scribe.store, parking=case.parking, durable=False)
            assert had <= everything(case), where
            assert not [path for path in scan(case.scribe.base.root) if b".yolofs" in path], where
    assert len(interrupted) > SOME


@pytest.mark.parametrize("force", [False, True], ids=["asked", "forced"])
@pytest.mark.parametrize("before", Kind, ids=lambda kind: kind.value)
def test_nothing_is_lost_that_the_host_does_before_an_undo(tmp_path: Path, before: Kind, *, force: bool) -> None:
    undone: list[str] = []
    drawn = points(list(EDITS), "host", before, force, some=SOME)
    for number, edit in enumerate(and_more(drawn, EDITS, lambda: len(undone) > SOME)):
        for case in prepared(tmp_path, before, number):
            where = f"{case.after}: the host {edit}"
            commits, scribe = Commits(case.scribe, os.path.dirname(case.parking)), case.scribe
            commits.commit(1)
            commits.wait_for_clock(1)
            known = contents(scribe.base.root)
            EDITS[edit](scribe.base.root)
            had, of_host = everything(case), contents(scribe.base.root) - known
            inverse = invert(Applied.read(1, commits.parking(1)), scribe.base, scribe.store, force=force)
            if inverse.drifted and not force:  # which the command refuses
                continue
            store, tree = KeptAndStore(scribe.store, commits.directory), inverse.tree()
            try:
                plan = plan_commit(tree, scribe.base, store)
            except ConflictError:  # the directory is gone that something would be in
                continue
            view = scribe.expected()
            left = compose(tree, scribe.tree, scribe.base, scribe.store, commits.directory).records
            execute(plan, store, parking=commits.parking(2), durable=False)
            undone.append(where)
            assert had <= everything(case), where
            assert force or of_host <= contents(scribe.base.root), where
            commits.stage(Tree(left))
            assert scribe.expected() == view, where
    assert len(undone) > SOME
