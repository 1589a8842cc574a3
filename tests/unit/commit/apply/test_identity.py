"""What the host does while a commit is interrupted is told from the commit's own by identity, also where it got the
same inode number, or kept the size and the time.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe
from yolofs.commit import Plan, execute, resume
from yolofs.commit.apply.places import Spot
from yolofs.commit.apply.rollback import BackSteps
from yolofs.commit.apply.steps import Steps
from yolofs.commit.apply.taking_back import roll_back
from yolofs.commit.plan.plan import Rewrite, Step
from yolofs.paths import RelPath
from yolofs.store import copying
from yolofs.system import syscalls

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


@pytest.fixture
def parking(tmp_path: Path) -> bytes:
    """The commit's directory."""
    return os.fsencode(tmp_path / "commits" / "1")


def at(scribe: CommitScribe, name: bytes) -> Path:
    return Path(os.fsdecode(scribe.base.path(RelPath(name))))


def killed_after(owner: type, method: str, is_last: Callable[..., bool], act: Callable[[], object]) -> None:
    """Do something in a child that is killed when a method has returned for which ``is_last`` holds."""
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
        "copy_apart",
        lambda *_: True,
        lambda: execute(plan, scribe.store, parking=parking, is_spare=lambda _: False),
    )
    return plan


def found_in(parking: bytes) -> set[str]:
    folder = Path(os.fsdecode(parking)) / "found"
    return {path.read_text() for path in folder.iterdir()} if folder.exists() else set()


def test_a_copy_in_found_is_durable_before_the_file_is_written_over(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    scribe.write(b"g1", b"staged")
    plan = scribe.plan()
    killed_after(Steps, "_back_up", lambda *_: True, lambda: execute(plan, scribe.store, parking=parking))
    at(scribe, b"g2").write_text("the host's\n")
    calls: list[str] = []
    really_copy, really_sync = copying.copy_data, os.fsync

    def copy_data(source: int, target: int, size: int) -> None:
        calls.append(f"write {os.path.basename(os.readlink(f'/proc/self/fd/{target}'))}")
        really_copy(source, target, size)

    def fsync(fd: int) -> None:
        calls.append(f"sync {os.path.basename(os.readlink(f'/proc/self/fd/{fd}'))}")
        really_sync(fd)

    monkeypatch.setattr(copying, "copy_data", copy_data)
    monkeypatch.setattr(os, "fsync", fsync)
    resume(plan, scribe.store, parking=parking)
    assert found_in(parking) == {"the host's\n"}
    before = calls[: calls.index("write g1")]
    assert "sync found" in before, calls
    assert before[before.index("sync found") - 1].startswith("sync "), calls


def test_an_edit_of_a_new_file_that_keeps_size_and_time_is_kept(scribe: CommitScribe, parking: bytes) -> None:
    scribe.write(b"n", b"AAAA")
    plan = all_done(scribe, parking)
    was = at(scribe, b"n").stat().st_mtime_ns
    at(scribe, b"n").write_text("HOST")
    os.utime(at(scribe, b"n"), ns=(was, was))
    assert roll_back(plan, scribe.store, parking=parking).found == [b"n"]
    assert found_in(parking) == {"HOST"}


def test_a_new_file_with_a_link_that_nobody_touched_is_not_taken_for_the_hosts(
    scribe: CommitScribe, parking: bytes
) -> None:
    scribe.write(b"n", b"AAAA")
    scribe.link(b"n", b"n2")
    plan = all_done(scribe, parking)
    assert not any(roll_back(plan, scribe.store, parking=parking))


def test_an_edit_of_a_file_written_in_place_that_keeps_size_and_time_is_kept(
    scribe: CommitScribe, parking: bytes
) -> None:
    scribe.write(b"g1", b"AAAA")
    plan = all_done(scribe, parking)
    was = at(scribe, b"g2").stat().st_mtime_ns
    at(scribe, b"g2").write_text("HOST")
    os.utime(at(scribe, b"g2"), ns=(was, was))
    assert roll_back(plan, scribe.store, parking=parking).found == [b"g1"]
    assert found_in(parking) == {"HOST"}
    assert at(scribe, b"g1").read_text() == "base g1\n"


@pytest.mark.parametrize("change", ["content", "mode"])
def test_what_is_done_to_a_file_whose_known_names_go_is_durable_before_anything_moves(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Its other name is one that nobody has looked at: after a power cut it could not be found by the one that went."""
    if change == "content":
        scribe.write(b"g1", b"staged")
    else:
        scribe.chmod(b"g1", 0o600)
    scribe.remove(b"g1")
    plan = scribe.plan()
    calls: list[str] = []
    really_do, really_sync = Steps.do, syscalls.sync_filesystem

    def do(self: Steps, step: Step) -> None:
        calls.append(type(step).__name__)
        really_do(self, step)

    def sync(fd: int) -> None:
        calls.append("sync")
        really_sync(fd)

    monkeypatch.setattr(Steps, "do", do)
    monkeypatch.setattr(syscalls, "sync_filesystem", sync)
    execute(plan, scribe.store, parking=parking)
    first = calls.index("Rewrite" if change == "content" else "SetMetadata")
    assert calls[first + 1] == "sync", calls
    assert first + 1 < calls.index("Remove"), calls


def test_a_backup_that_is_made_late_is_durable_before_the_file_is_written_over(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host has written to the file since its backup was made before the first step."""
    scribe.write(b"g1", b"staged")
    plan = scribe.plan()
    calls: list[str] = []
    really_back_up, really_copy, really_sync = Steps._back_up, copying.copy_data, os.fsync

    def back_up(self: Steps, spot: Spot, st: os.stat_result, step: Rewrite) -> None:
        at(scribe, b"g2").write_text("the host's\n")
        really_back_up(self, spot, os.stat(at(scribe, b"g2")), step)
        calls.append("backed up")

    def copy_data(source: int, target: int, size: int) -> None:
        calls.append(f"write {os.path.basename(os.readlink(f'/proc/self/fd/{target}'))}")
        really_copy(source, target, size)

    def fsync(fd: int) -> None:
        calls.append(f"sync {os.readlink(f'/proc/self/fd/{fd}').rpartition('/commits/1')[2]}")
        really_sync(fd)

    monkeypatch.setattr(Steps, "_back_up", back_up)
    monkeypatch.setattr(copying, "copy_data", copy_data)
    monkeypatch.setattr(os, "fsync", fsync)
    execute(plan, scribe.store, parking=parking)
    number = next(step.number for step in plan.steps if isinstance(step, Rewrite))
    before = calls[: calls.index("backed up")]
    assert before[-2:] == [f"sync /new/{number}", "sync /replaced"], calls
    assert (Path(os.fsdecode(parking)) / f"replaced/{number}").read_text() == "the host's\n"
    assert calls.index("write g1") > len(before)


def test_what_is_written_back_is_durable_before_its_backup_goes(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    scribe.write(b"g1", b"staged")
    plan = scribe.plan()
    killed_after(
        Steps, "do", lambda step: isinstance(step, Rewrite), partial(execute, plan, scribe.store, parking=parking)
    )
    calls: list[str] = []
    really_copy, really_sync, really_clear = copying.copy_data, syscalls.sync_filesystem, BackSteps.clear_backups

    def copy_data(source: int, target: int, size: int) -> None:
        calls.append("write back")
        really_copy(source, target, size)

    def sync(fd: int) -> None:
        calls.append("sync")
        really_sync(fd)

    def clear_backups(self: BackSteps) -> None:
        calls.append("clear")
        really_clear(self)

    monkeypatch.setattr(copying, "copy_data", copy_data)
    monkeypatch.setattr(syscalls, "sync_filesystem", sync)
    monkeypatch.setattr(BackSteps, "clear_backups", clear_backups)
    roll_back(plan, scribe.store, parking=parking)
    assert calls == ["write back", "sync", "clear"]
    assert at(scribe, b"g2").read_text() == "base g1\n"
