"""A base of a few old files, commits of it that are killed, and what the host puts there with the
same inode numbers.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe
from yolofs.commit import Plan, execute
from yolofs.commit.apply.steps import Steps
from yolofs.paths import RelPath

OLD = 1_000_000_000_000_000_000


@pytest.fixture
def scribe(tmp_path: Path) -> CommitScribe:
    """A base with a few old files."""
    root = tmp_path / "base"
    root.mkdir()
    for name in ("a", "f", "h", "zz", "g1"):
        (root / name).write_text(f"base {name}\n")
        os.utime(root / name, ns=(OLD, OLD))
    os.link(root / "g1", root / "g2")
    return CommitScribe(os.fsencode(root), os.fsencode(tmp_path / "store"))


def at(scribe: CommitScribe, name: bytes) -> Path:
    return Path(os.fsdecode(scribe.base.path(RelPath(name))))


def killed_after(owner: type, method: str, is_last: Callable[..., bool], act: Callable[[], object]) -> None:
    """Do something in a child that is killed when a method has returned for which ``is_last``
    holds.
    """
    child = os.fork()
    if not child:
        really = getattr(owner, method)

        def do(self: object, *arguments: object, **named: object) -> None:
            really(self, *arguments, **named)
            if is_last(*arguments):
                os.kill(os.getpid(), signal.SIGKILL)

        setattr(owner, method, do)
        try:
            act()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), status


def all_done(scribe: CommitScribe, parking: bytes) -> Plan:
    """Leave a commit as a kill does when all steps are done and logged."""
    plan = scribe.plan()
    killed_after(
        Steps,
        "copy_kept_files",
        lambda *_: True,
        lambda: execute(plan, scribe.store, parking=parking, is_spare=lambda _: False),
    )
    return plan


def take_number(path: Path, number: int) -> None:
    """Make a file with an inode number just freed, if the filesystem gives it again."""
    for count in range(100):
        made = path.with_name(f"made {count}")
        made.touch()
        if made.stat().st_ino == number:
            made.rename(path)
            return


def put_directory_of_that_number(path: Path, number: int) -> bool:
    """Make a directory that has a number which has just become free; tell whether the filesystem
    gives it again.
    """
    for count in range(100):
        made = path.with_name(f"made {count}")
        made.mkdir()
        if made.stat().st_ino == number:
            made.rename(path)
            return True
    path.mkdir()
    return False
