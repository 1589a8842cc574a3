"""Commits that fail at a step, for tests of how they are taken back."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.support.commit_model import CommitScribe, Node, scan
from yolofs.commit import Plan, execute
from yolofs.commit.apply import step_log
from yolofs.commit.apply.recovery.rollback import RollbackSteps
from yolofs.commit.apply.recovery.taking_back import roll_back
from yolofs.commit.apply.steps import Steps
from yolofs.commit.plan.plan import Step
from yolofs.paths import RelPath

OLD = 1_400_000_000_000_000_007


def make_scribe(tmp_path: Path) -> CommitScribe:
    root = tmp_path / "base"
    for name in ("d/sub", "e", "f/deep", "g", "h"):
        (root / name).mkdir(parents=True)
    for name in ("a", "b", "c", "d/x", "d/sub/y", "e/x", "f/1", "f/deep/2", "g/one", "g/two", "h/x", "h/y"):
        (root / name).write_bytes(b"base " + name.encode())
    for name in ("one", "two"):
        os.link(root / f"g/{name}", root / f"g/other {name}")
    (root / "soft").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    for path in sorted(scan(os.fsencode(root)), reverse=True):
        os.utime(os.path.join(os.fsencode(root), path), ns=(OLD, OLD), follow_symlinks=False)
    return CommitScribe(os.fsencode(root), os.fsencode(tmp_path / "store"))


def work(scribe: CommitScribe) -> None:
    scribe.exchange(b"a", b"b")
    scribe.write(b"c", b"new c")
    scribe.chmod(b"e/x", 0o600)
    scribe.mkdir(b"new", 0o750)
    scribe.write(b"new/file", b"made")
    scribe.link(b"new/file", b"e/link")
    scribe.symlink(b"new/soft", b"somewhere")
    scribe.rename(b"f", b"new/f")
    scribe.remove(b"new/f/1")
    scribe.remove(b"d")
    scribe.write(b"d", b"a file now")
    scribe.write(b"g/one", b"both names")
    scribe.remove(b"g/two")
    scribe.remove(b"soft")
    scribe.rename(b"pipe", b"soft")
    scribe.chmod(b"h", 0o700)
    scribe.rename(b"h/x", b"h/z")
    scribe.link_metadata(b"h/y", b"h/w")


def whole(scribe: CommitScribe) -> dict[bytes, tuple[Node, int]]:
    """Return all that base is, and the inode numbers: nothing is to come back as a copy."""
    root = scribe.base.root
    return {path: (node, os.lstat(os.path.join(root, path)).st_ino) for path, node in scan(root).items()}


def failing_at(number: int, error: BaseException, *, after: bool) -> Callable[[Steps, Step], None]:
    """Return what does steps, and fails at step ``number`` before or after it is done."""
    really, count = Steps.do, 0

    def do(self: Steps, step: Step) -> None:
        nonlocal count
        count += 1
        if count == number + 1 and not after:
            raise error
        really(self, step)
        if count == number + 1:
            raise error

    return do


def fail_at(monkeypatch: pytest.MonkeyPatch, number: int, *, after: bool, error: BaseException) -> None:
    """Have step ``number`` fail, before or after it was done."""
    monkeypatch.setattr(Steps, "do", failing_at(number, error, after=after))


def steps_of(scribe: CommitScribe) -> int:
    return len(scribe.plan().steps)


def interrupted(scribe: CommitScribe, parking: bytes, number: int) -> Plan:
    """Leave a commit as a kill after ``number`` steps does."""

    class KilledError(BaseException):
        pass

    plan = scribe.plan()
    with pytest.MonkeyPatch.context() as patch:
        fail_at(patch, number, after=False, error=KilledError())
        with pytest.raises(KilledError):
            execute(plan, scribe.store, parking=parking, durable=False)
    return plan


def stops_at(number: int, plan: Plan, scribe: CommitScribe, parking: bytes) -> bool:
    """Take a commit back until so many steps are undone; return whether there were more."""

    class KilledError(BaseException):
        pass

    really, count = RollbackSteps.undo, 0

    def undo(self: RollbackSteps, step: Step, said: step_log.LoggedStep | None, *, is_next: bool) -> None:
        nonlocal count
        count += 1
        if count == number + 1:
            raise KilledError
        really(self, step, said, is_next=is_next)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RollbackSteps, "undo", undo)
        try:
            roll_back(plan, scribe.store, parking=parking, durable=False)
        except KilledError:
            return True
    return False


def killed_between_renames(plan: Plan, scribe: CommitScribe, parking: bytes, *, after: bool) -> None:
    """Take a commit back until the first old thing is in its place again, and before (or just
    after) what was there is moved off.
    """

    class KilledError(BaseException):
        pass

    really = RollbackSteps._move_off

    def move_off(self: RollbackSteps, *args: Any, **options: Any) -> None:
        if after:
            really(self, *args, **options)
        raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RollbackSteps, "_move_off", move_off)
        with pytest.raises(KilledError):
            roll_back(plan, scribe.store, parking=parking, durable=False)


def at(scribe: CommitScribe, name: bytes) -> Path:
    return Path(os.fsdecode(scribe.base.path(RelPath(name))))


def fail(number: int) -> NoReturn:
    raise OSError(number, os.strerror(number))
