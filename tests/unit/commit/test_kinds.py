"""Every pair of kinds before and after a commit, whatever is done with it: done, finished after a
kill, taken back.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commit_model import contents
from tests.support.kinds_matrix import Case, Kind, cases, kind_of, pairs
from tests.support.rolling_back import failing_at
from tests.support.undo_model import Commits
from yolofs.commit import Plan, execute, resume
from yolofs.commit.apply.recovery.taking_back import roll_back
from yolofs.commit.apply.steps import Steps
from yolofs.errors import RolledBackError
from yolofs.store.interfaces import StoreFiles
from yolofs.system import syscalls


@pytest.fixture(autouse=True)
def waits_for_no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No power failure is to be expected here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(syscalls, "sync_filesystem", lambda _: None)


class KilledError(BaseException):
    """Ends a commit as a kill does."""


def broken_off(
    case: Case,
    number: int,
    error: BaseException,
    *,
    after: bool,
    plan: Plan | None = None,
    store: StoreFiles | None = None,
) -> bool:
    """Commit, but have step ``number`` fail, before or after it is done; return whether there is
    such a step.
    """
    plan, store = plan or case.scribe.plan(), store or case.scribe.store
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Steps, "do", failing_at(number, error, after=after))
        try:
            execute(plan, store, parking=case.parking, durable=False)
        except (KilledError, RolledBackError):
            return True
    assert len(plan.steps) <= number
    return False


def done(case: Case) -> None:
    had, plan = contents(case.scribe.base.root), case.scribe.plan()
    case.scribe.commit(case.parking)
    assert case.now().nodes == case.new
    if plan.steps:
        assert had <= contents(case.scribe.base.root) | contents(os.path.join(case.parking, b"replaced"))


def taken_back(case: Case) -> None:
    number = 0
    while True:
        for after in (False, True):
            failure = OSError(errno.EIO, os.strerror(errno.EIO))
            if not broken_off(case, number, failure, after=after):
                assert case.now().nodes == case.new
                return
            assert case.now() == case.old, f"step {number}"
            assert not os.path.lexists(case.parking)
        number += 1


def finished_or_taken_back_after_a_kill(case: Case) -> None:
    number = 0
    while True:
        plan = case.scribe.plan()
        if not broken_off(case, number, KilledError(), after=bool(number % 2)):
            assert case.now().nodes == case.new
            return
        roll_back(plan, case.scribe.store, parking=case.parking, durable=False)
        assert case.now() == case.old, f"step {number}"
        number += 1


def finished_after_a_kill(case: Case) -> None:
    plan = case.scribe.plan()
    if plan.steps:
        assert broken_off(case, len(plan.steps) // 2, KilledError(), after=True)
        resume(plan, case.scribe.store, parking=case.parking)
    assert case.now().nodes == case.new


def undone(case: Case) -> None:
    commits = Commits(case.scribe, os.path.join(os.path.dirname(case.parking), b"commits"))
    commits.commit(1)
    commits.undo(1, by=2)
    assert case.now().nodes == case.old.nodes
    for path, inode in case.now().inodes.items():  # the very files come back
        assert case.old.nodes[path].kind == stat.S_IFDIR or case.old.inodes[path] == inode, path
    assert case.scribe.expected() == case.new
    commits.commit(3)
    assert case.now().nodes == case.new
    commits.undo(3, by=4)
    assert case.now().nodes == case.old.nodes


def undone_after_kills(case: Case) -> None:
    """An undo that is killed at each of its steps is taken back, and the last time finished."""
    commits = Commits(case.scribe, os.path.join(os.path.dirname(case.parking), b"commits"))
    commits.commit(1)
    new, number, is_killed = case.now(), 0, True
    while is_killed:
        undo = commits.prepare(1)
        case = case._replace(parking=commits.parking(2))
        is_killed = broken_off(case, number, KilledError(), after=bool(number % 2), plan=undo.plan, store=undo.store)
        if is_killed and number < len(undo.plan.steps) - 1:
            roll_back(undo.plan, undo.store, parking=case.parking, durable=False)
            assert case.now() == new, f"step {number}"
        elif is_killed:
            resume(undo.plan, undo.store, parking=case.parking)
            is_killed = False
        number += 1
    assert case.now().nodes == case.old.nodes


WAYS: dict[str, Callable[[Case], None]] = {
    "commit": done,
    "roll-back": taken_back,
    "roll-back after a kill": finished_or_taken_back_after_a_kill,
    "finished after a kill": finished_after_a_kill,
    "undo": undone,
    "undo after kills": undone_after_kills,
}
"""What is done with each case, staged and nothing of it committed; it checks by itself what is to
come of it.
"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("before", Kind, ids=lambda kind: kind.value)
def test_every_kind_becomes_every_other(tmp_path: Path, before: Kind, way: str) -> None:
    seen = []
    for case in cases(tmp_path, before):
        seen.append((kind_of(case.old.nodes), kind_of(case.new)))
        WAYS[way](case)
    assert set(seen) == {pair for pair in pairs() if pair[0] is before}
    assert len(seen) == len(Kind)


def test_the_matrix_has_all_pairs_of_the_kinds_of_files() -> None:
    names = "absent file/empty directory/full directory/symlink/dangling symlink/fifo/hard link".replace(" ", "/", 1)
    assert [kind.value for kind in Kind] == names.split("/")
    assert len(pairs()) == 64
