"""A commit or an undo is killed before each of its steps and after it, as root and as an ordinary
user, in directories that forbid writing: the same user finishes it or takes it back, and no
directory stays opened up.
"""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe, Node, have_linked, scan
from tests.support.fault_points import points
from tests.support.memory_disk import memory_directory
from tests.support.rolling_back import make_scribe, work
from tests.support.undo_model import Commits, Undo
from tests.support.user_identity import NOBODY, USERS, in_child
from yolofs.commit import execute, resume
from yolofs.commit.apply.recovery.taking_back import roll_back
from yolofs.commit.apply.steps import Steps
from yolofs.commit.plan.plan import Plan, Step
from yolofs.state.tree import Tree
from yolofs.store.interfaces import StoreFiles
from yolofs.system import syscalls

POINTS = 4
"""So many of the moments before and after steps, but for a run by night, which takes all."""
CLOSED = {b"d/sub": 0o555, b"d": 0o500, b"e": 0o555, b"f": 0o511, b"g": 0o400, b"": 0o555}
"""Modes of directories that the commit works in; the deepest come first."""


@pytest.fixture(params=["copied", "linked"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """New files come into base as copies, or store inodes do themselves."""
    if request.param == "linked":
        have_linked(monkeypatch)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that every user may work in; nobody waits for a disk there."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "sync", lambda: None)
    monkeypatch.setattr(syscalls, "sync_filesystem", lambda _: None)
    with memory_directory() as directory:
        directory.chmod(0o711)
        yield directory


def make(place: Path, *, is_root: bool) -> tuple[CommitScribe, Plan, bytes]:
    """Return what is staged over a base, with closed directories, its plan and where to commit."""
    scribe = make_scribe(place)
    work(scribe)
    plan, root = scribe.plan(), scribe.base.root
    for tree in (root, scribe.store.directory, os.fsencode(place)):
        for path in scan(tree) if not is_root else ():
            os.chown(os.path.join(tree, path), NOBODY, NOBODY, follow_symlinks=False)
    for path, mode in CLOSED.items():
        os.chmod(os.path.join(root, path), mode)
    return scribe, plan, os.fsencode(place / "commit")


def killed(plan: Plan, store: StoreFiles, parking: bytes, number: int, *, after: bool) -> None:
    """Carry a plan out, and die before step ``number``, or after it."""
    really, count = Steps.do, 0

    def do(self: Steps, step: Step) -> None:
        nonlocal count
        if count == number and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        really(self, step)
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    Steps.do = do  # type: ignore[method-assign]  # in a child, which ends: nothing has to be put back
    execute(plan, store, parking=parking)


def without_owners(nodes: dict[bytes, Node]) -> dict[bytes, Node]:
    return {path: node._replace(owner=(0, 0)) for path, node in nodes.items()}


def modes(nodes: dict[bytes, Node]) -> dict[bytes, int]:
    return {path: node.mode for path, node in nodes.items() if node.kind == stat.S_IFDIR}


@pytest.mark.parametrize("goes_back", [False, True], ids=["finished", "taken back"])
@pytest.mark.parametrize("is_root", USERS, ids=lambda one: f"root {one}")
@pytest.mark.some(4)
def test_a_commit_killed_at_a_step_is_brought_to_its_end_by_the_same_user(
    place: Path, goes_back: bool, is_root: bool
) -> None:
    scribe, plan, parking = make(place / "whole", is_root=is_root)
    assert in_child(lambda: execute(plan, scribe.store, parking=parking), is_root=is_root) == 0
    after = scan(scribe.base.root)
    for point in points(range(2 * len(plan.steps)), goes_back, is_root, some=POINTS):
        where = f"killed {('before', 'after')[point % 2]} step {point // 2}: {plan.steps[point // 2]}"
        scribe, plan, parking = make(place / str(point), is_root=is_root)
        before, root = scan(scribe.base.root), scribe.base.root
        die = partial(killed, plan, scribe.store, parking, point // 2, after=bool(point % 2))
        assert in_child(die, is_root=is_root) == -signal.SIGKILL, where
        end = partial(roll_back if goes_back else resume, plan, scribe.store, parking=parking)
        ended = in_child(end, is_root=is_root)
        assert ended == 0, where
        if goes_back:
            assert scan(root) == before, where
        else:
            assert modes(scan(root)) == modes(after), where
            assert without_times(scan(root)) == without_times(after), where


def without_times(nodes: dict[bytes, Node]) -> dict[bytes, Node]:
    return {path: node._replace(mtime_ns=0) for path, node in without_owners(nodes).items()}


def make_undo(place: Path, *, is_root: bool) -> tuple[Undo, bytes, bytes, dict[bytes, Node]]:
    """Return the undo of the same user's commit, the directory to do it in, base, and base from
    before the commit.
    """
    scribe, plan, _ = make(place, is_root=is_root)
    root, commits = scribe.base.root, Commits(scribe, os.fsencode(place / "commits"))
    before = scan(root)
    os.mkdir(commits.directory)
    if not is_root:
        os.chown(commits.directory, NOBODY, NOBODY)
    assert in_child(partial(execute, plan, scribe.store, parking=commits.parking(1)), is_root=is_root) == 0
    commits.stage(Tree())
    undo = commits.prepare(1)
    for path in scan(scribe.store.directory) if not is_root else ():
        os.chown(os.path.join(scribe.store.directory, path), NOBODY, NOBODY, follow_symlinks=False)
    return undo, commits.parking(2), root, before


@pytest.mark.parametrize("goes_back", [False, True], ids=["finished", "taken back"])
@pytest.mark.parametrize("is_root", points(USERS, "undo at a step", some=1), ids=lambda one: f"root {one}")
def test_an_undo_killed_at_a_step_is_brought_to_its_end_by_the_same_user(
    place: Path, goes_back: bool, is_root: bool
) -> None:
    undo, *_ = make_undo(place / "whole", is_root=is_root)
    steps = undo.plan.steps
    assert len(steps) > 20
    for point in points(range(2 * len(steps)), "undo", goes_back, is_root, some=POINTS):
        where = f"killed {('before', 'after')[point % 2]} step {point // 2}: {steps[point // 2]}"
        undo, parking, root, before = make_undo(place / str(point), is_root=is_root)
        after = scan(root)
        die = partial(killed, undo.plan, undo.store, parking, point // 2, after=bool(point % 2))
        assert in_child(die, is_root=is_root) == -signal.SIGKILL, where
        end = partial(roll_back if goes_back else resume, undo.plan, undo.store, parking=parking)
        assert in_child(end, is_root=is_root) == 0, where
        assert scan(root) == (after if goes_back else before), where


@pytest.mark.root_only
def test_a_file_in_a_closed_directory_gets_its_metadata_after_a_kill(place: Path) -> None:
    """Nobody could look at it before the first step; that does not make it the host's."""
    base = place / "base"
    (base / "closed/below").mkdir(parents=True)
    (base / "closed/below/file").write_bytes(b"file")
    (base / "seen").write_bytes(b"seen")
    scribe = CommitScribe(os.fsencode(base), os.fsencode(place / "store"))
    for path in (b"closed/below/file", b"seen"):
        scribe.chmod(path, 0o640)
    plan = scribe.plan()
    for owned in (place, *place.rglob("*")):
        os.chown(owned, NOBODY, NOBODY)
    (base / "closed").chmod(0)
    parking = os.fsencode(place / "commit")
    assert in_child(lambda: killed(plan, scribe.store, parking, 0, after=False), is_root=False) == -signal.SIGKILL
    assert in_child(lambda: resume(plan, scribe.store, parking=parking), is_root=False) == 0
    assert [stat.S_IMODE((base / name).stat().st_mode) for name in ("seen", "closed/below/file")] == [0o640] * 2
    assert stat.S_IMODE((base / "closed").stat().st_mode) == 0
