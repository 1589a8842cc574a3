"""What the host does while a commit is interrupted is told from the commit's own by identity, also
where it got the same inode number, or kept the size and the time.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe
from tests.support.old_base import all_done, at, killed_after, put_directory_of_that_number, scribe, take_number
from yolofs.commit import Plan, execute, resume
from yolofs.commit.apply import execution, kept_copies
from yolofs.commit.apply.recovery.rollback import RollbackSteps
from yolofs.commit.apply.recovery.taking_back import roll_back
from yolofs.commit.apply.step_log import Log
from yolofs.commit.apply.steps import Steps
from yolofs.commit.plan.plan import Create, Rewrite, Step
from yolofs.errors import CommitError
from yolofs.store import file_data
from yolofs.store.copying import PathDescriptor
from yolofs.system import syscalls

__all__ = ["scribe"]


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
    really_copy, really_sync = file_data.copy_data, os.fsync

    def name_of(fd: int) -> str:
        return "/".join(os.readlink(f"/proc/self/fd/{fd}").split("/")[-2:])

    def copy_data(source: int, target: int, size: int) -> None:
        calls.append(f"write {name_of(target)}")
        really_copy(source, target, size)

    def fsync(fd: int) -> None:
        calls.append(f"sync {name_of(fd)}")
        really_sync(fd)

    monkeypatch.setattr(file_data, "copy_data", copy_data)
    monkeypatch.setattr(os, "fsync", fsync)
    resume(plan, scribe.store, parking=parking)
    assert found_in(parking) == {"the host's\n"}
    before = calls[: calls.index("write base/g1")]
    (rewrite,) = (step for step in plan.steps if isinstance(step, Rewrite))
    assert before[-3:] == [f"sync new/{rewrite.number}", "sync 1/found", "sync commits/1"]


def test_an_edit_of_a_new_file_that_keeps_size_and_time_is_kept(scribe: CommitScribe, parking: bytes) -> None:
    scribe.write(b"n", b"AAAA")
    plan = all_done(scribe, parking)
    was = at(scribe, b"n").stat().st_mtime_ns
    at(scribe, b"n").write_text("HOST")
    os.utime(at(scribe, b"n"), ns=(was, was))
    assert roll_back(plan, scribe.store, parking=parking).found == [b"n"]
    assert found_in(parking) == {"HOST"}


@pytest.mark.parametrize("name", [b"n", b"a"], ids=["new", "in the place of another"])
def test_an_edit_of_a_new_file_that_the_log_does_not_name_yet_is_kept(
    scribe: CommitScribe, parking: bytes, name: bytes
) -> None:
    scribe.write(name, b"AAAA")
    plan = scribe.plan()
    killed_after(
        Steps, "do", lambda step: isinstance(step, Create), partial(execute, plan, scribe.store, parking=parking)
    )
    was = at(scribe, name).stat().st_mtime_ns
    at(scribe, name).write_text("HOST")
    os.utime(at(scribe, name), ns=(was, was))
    assert roll_back(plan, scribe.store, parking=parking).found == [name]
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
    """Its other name is one that nobody has looked at: after a power cut it could not be found by
    the one that went.
    """
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
    """It could not be made before the first step."""
    scribe.write(b"g1", b"staged")
    plan = scribe.plan()
    calls: list[str] = []
    really_back_up, really_copy, really_sync = Steps._back_up, file_data.copy_data, os.fsync

    def back_up(self: Steps, thing: PathDescriptor, st: os.stat_result, step: Rewrite) -> None:
        at(scribe, b"g2").write_text("the host's\n")
        self._made.pop(step.number)
        really_back_up(self, thing, os.stat(at(scribe, b"g2")), step)
        calls.append("backed up")

    def copy_data(source: int, target: int, size: int) -> None:
        calls.append(f"write {os.path.basename(os.readlink(f'/proc/self/fd/{target}'))}")
        really_copy(source, target, size)

    def fsync(fd: int) -> None:
        calls.append(f"sync {os.readlink(f'/proc/self/fd/{fd}').rpartition('/commits/1')[2]}")
        really_sync(fd)

    monkeypatch.setattr(Steps, "_back_up", back_up)
    monkeypatch.setattr(file_data, "copy_data", copy_data)
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
    really_copy, really_sync, really_clear = file_data.copy_data, syscalls.sync_filesystem, RollbackSteps.clear_backups

    def copy_data(source: int, target: int, size: int) -> None:
        calls.append("write back")
        really_copy(source, target, size)

    def sync(fd: int) -> None:
        calls.append("sync")
        really_sync(fd)

    def clear_backups(self: RollbackSteps) -> None:
        calls.append("clear")
        really_clear(self)

    monkeypatch.setattr(file_data, "copy_data", copy_data)
    monkeypatch.setattr(syscalls, "sync_filesystem", sync)
    monkeypatch.setattr(RollbackSteps, "clear_backups", clear_backups)
    roll_back(plan, scribe.store, parking=parking)
    assert calls == ["write back", "sync", "clear"]
    assert at(scribe, b"g2").read_text() == "base g1\n"


def put_another(path: Path, mode: int = 0o644) -> None:
    """Put a file of the host's where one of base is, which keeps its number under another name."""
    path.rename(path.with_name(f"was {path.name}"))
    path.write_text("the host's\n")
    path.chmod(mode)


def test_a_file_of_the_hosts_is_not_written_back_over(scribe: CommitScribe, parking: bytes) -> None:
    """Killed before the log says that the file was written that was there."""
    scribe.write(b"g1", b"staged")
    plan = scribe.plan()
    killed_after(
        Steps, "do", lambda step: isinstance(step, Rewrite), partial(execute, plan, scribe.store, parking=parking)
    )
    put_another(at(scribe, b"g1"))
    roll_back(plan, scribe.store, parking=parking)
    assert at(scribe, b"g1").read_text() == "the host's\n"


def test_a_file_of_the_hosts_is_not_closed_for_one_that_may_have_been_opened_up(
    scribe: CommitScribe, parking: bytes
) -> None:
    at(scribe, b"g1").chmod(0o444)
    scribe.write(b"g1", b"staged")
    plan = scribe.plan()
    killed_after(Steps, "look", lambda *_: True, lambda: execute(plan, scribe.store, parking=parking))
    put_another(at(scribe, b"g1"), 0o644)
    roll_back(plan, scribe.store, parking=parking)
    assert at(scribe, b"g1").stat().st_mode & 0o777 == 0o644


def test_what_went_with_a_directory_of_the_hosts_is_told_though_another_is_in_its_place(
    scribe: CommitScribe, parking: bytes
) -> None:
    scribe.mkdir(b"new", 0o755)
    scribe.rename(b"a", b"new/a")
    plan = all_done(scribe, parking)
    at(scribe, b"new").rename(at(scribe, b"moved"))
    at(scribe, b"a").write_text("the host's\n")
    assert roll_back(plan, scribe.store, parking=parking).gone_with_directory == [b"a"]
    assert at(scribe, b"a").read_text() == "the host's\n"
    assert at(scribe, b"moved/a").read_text() == "base a\n"


@pytest.mark.parametrize("is_moved", [True, False])
def test_what_the_host_has_put_where_something_went_is_not_taken_out_again(
    scribe: CommitScribe, parking: bytes, is_moved: bool
) -> None:
    if is_moved:
        scribe.rename(b"a", b"z")
    else:
        scribe.remove(b"a")
    plan = all_done(scribe, parking)
    if is_moved:
        number = at(scribe, b"z").stat().st_ino
        at(scribe, b"z").unlink()
        take_number(at(scribe, b"a"), number)
    at(scribe, b"a").write_text("the host's\n")
    resume(plan, scribe.store, parking=parking)
    assert at(scribe, b"a").read_text() == "the host's\n"


@pytest.mark.parametrize("is_moved", [True, False], ids=["moved", "removed"])
def test_a_new_directory_of_the_host_with_the_old_number_is_not_removed_or_moved(
    tmp_path: Path, parking: bytes, is_moved: bool
) -> None:
    """Killed before the step: the host removes the empty directory, and makes another, which has
    its number.
    """
    directory = tmp_path / "base/d"
    directory.mkdir(parents=True)
    (tmp_path / "base/first").touch()
    scribe = CommitScribe(os.fsencode(tmp_path / "base"), os.fsencode(tmp_path / "store"))
    if is_moved:
        scribe.rename(b"d", b"e")
    else:
        scribe.remove(b"d")
    plan = scribe.plan()
    killed_after(Log, "cut", lambda *_: True, partial(execute, plan, scribe.store, parking=parking))
    number = directory.stat().st_ino
    directory.rmdir()
    put_directory_of_that_number(directory, number)
    (directory / "the host's").touch()
    with contextlib.suppress(CommitError):
        resume(plan, scribe.store, parking=parking)
    assert (directory / "the host's").exists()


@pytest.mark.parametrize("way", [resume, roll_back])
def test_a_directory_of_the_hosts_is_not_taken_for_the_one_that_went(
    tmp_path: Path, parking: bytes, way: Callable[..., object]
) -> None:
    directory = tmp_path / "base/d"
    (tmp_path / "base").mkdir()
    directory.mkdir()
    scribe = CommitScribe(os.fsencode(tmp_path / "base"), os.fsencode(tmp_path / "store"))
    scribe.rename(b"d", b"e")
    plan = all_done(scribe, parking)
    number = (tmp_path / "base/e").stat().st_ino
    (tmp_path / "base/e").rmdir()
    put_directory_of_that_number(directory, number)
    (directory / "the host's").touch()
    with contextlib.suppress(CommitError):  # what was to be finished is gone
        way(plan, scribe.store, parking=parking)
    assert (directory / "the host's").exists()
    assert not (tmp_path / "base/e").exists()


def test_a_directory_of_the_hosts_is_not_taken_away_for_one_that_the_commit_made(
    tmp_path: Path, parking: bytes
) -> None:
    (tmp_path / "base").mkdir()
    scribe = CommitScribe(os.fsencode(tmp_path / "base"), os.fsencode(tmp_path / "store"))
    scribe.mkdir(b"new", 0o755)
    plan = all_done(scribe, parking)
    directory = tmp_path / "base/new"
    number = directory.stat().st_ino
    directory.rmdir()
    put_directory_of_that_number(directory, number)
    roll_back(plan, scribe.store, parking=parking)
    assert directory.is_dir()


def put_file_of_that_number(path: Path, number: int) -> None:
    """Make a file with two names and a freed inode number, if the filesystem gives it again."""
    take_number(path, number)
    path.write_text("the host's\n")
    path.with_name("the host's other name").hardlink_to(path)


def test_a_file_of_several_names_of_the_hosts_is_not_taken_for_the_one_that_went(
    scribe: CommitScribe, parking: bytes
) -> None:
    scribe.rename(b"a", b"z")
    plan = all_done(scribe, parking)
    number = at(scribe, b"z").stat().st_ino
    at(scribe, b"z").unlink()
    put_file_of_that_number(at(scribe, b"a"), number)
    resume(plan, scribe.store, parking=parking)
    assert at(scribe, b"a").read_text() == "the host's\n"
    assert not at(scribe, b"z").exists()


def test_metadata_of_a_file_of_the_hosts_is_not_set(scribe: CommitScribe, parking: bytes) -> None:
    scribe.chmod(b"a", 0o600)
    plan = scribe.plan()
    number = at(scribe, b"a").stat().st_ino
    killed_after(Log, "cut", lambda *_: True, partial(execute, plan, scribe.store, parking=parking))
    at(scribe, b"a").unlink()
    take_number(at(scribe, b"a"), number)
    at(scribe, b"a").write_text("the host's\n")
    at(scribe, b"a").chmod(0o640)
    resume(plan, scribe.store, parking=parking)
    assert at(scribe, b"a").stat().st_mode & 0o777 == 0o640


def opened_up(tmp_path: Path, parking: bytes) -> tuple[CommitScribe, Plan, Path]:
    """Do a commit, short of its end, that has to open a directory up."""
    directory = tmp_path / "base/d"
    directory.mkdir(parents=True)
    directory.chmod(0o500)
    scribe = CommitScribe(os.fsencode(tmp_path / "base"), os.fsencode(tmp_path / "store"))
    scribe.write(b"d/n", b"staged")
    plan = all_done(scribe, parking)
    return scribe, plan, directory


@pytest.mark.parametrize("way", [resume, roll_back])
def test_a_directory_of_the_hosts_is_not_closed_for_one_that_was_opened_up(
    tmp_path: Path, parking: bytes, way: Callable[..., object]
) -> None:
    scribe, plan, directory = opened_up(tmp_path, parking)
    directory.rename(tmp_path / "base/was d")
    directory.mkdir(0o700)
    way(plan, scribe.store, parking=parking)
    assert directory.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("way", [resume, roll_back])
def test_a_directory_that_a_killed_commit_has_opened_up_is_closed_again(
    tmp_path: Path, parking: bytes, way: Callable[..., object]
) -> None:
    scribe, plan, directory = opened_up(tmp_path, parking)
    directory.chmod(0o700)
    way(plan, scribe.store, parking=parking)
    assert directory.stat().st_mode & 0o777 == 0o500


def test_which_file_a_removed_name_was_of_is_known_before_a_copy_takes_its_place(
    scribe: CommitScribe, parking: bytes
) -> None:
    file = at(scribe, b"g1").stat()
    scribe.remove(b"g1")
    plan = scribe.plan()
    child = os.fork()
    if not child:
        really = kept_copies.put_in_place

        def put_in_place(copies: list[kept_copies.KeptCopy], new: bytes) -> dict[int, kept_copies.Ctimes]:
            ctimes = really(copies, new)
            os.kill(os.getpid(), signal.SIGKILL)
            return ctimes

        # the child alone is patched; mypy takes what a module imports for no attribute of it
        # in a child, which ends: nothing has to be put back
        execution.put_in_place = put_in_place  # type: ignore[attr-defined]
        execute(plan, scribe.store, parking=parking)
        os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    resume(plan, scribe.store, parking=parking)
    assert list(kept_copies.files_of_kept_copies(parking).values()) == [(file.st_dev, file.st_ino)]


def lose_log(parking: bytes) -> None:
    """Do what a power cut may: the disk has all that the steps did, and nothing of the log."""
    os.truncate(os.path.join(parking, b"progress"), 0)


def test_a_file_that_was_written_before_one_of_its_names_went_is_not_looked_for_there_again(
    scribe: CommitScribe, parking: bytes
) -> None:
    """Nobody has looked at its other name, so the steps know it by the one that goes."""
    scribe.write(b"g1", b"staged")
    scribe.remove(b"g1")
    plan = scribe.plan()
    assert [type(step).__name__ for step in plan.steps[:2]] == ["Rewrite", "Remove"]
    killed_after(Steps, "copy_kept_files", lambda *_: True, lambda: execute(plan, scribe.store, parking=parking))
    lose_log(parking)
    resume(plan, scribe.store, parking=parking)
    assert at(scribe, b"g2").read_text() == "staged"
    assert not at(scribe, b"g1").exists()
    number = getattr(plan.steps[1], "number")  # noqa: B009 - not every kind of step has one
    assert (Path(os.fsdecode(parking)) / f"replaced/{number}").read_text() == "base g1\n"


def test_a_file_of_the_hosts_where_something_was_moved_to_is_not_taken_for_that(
    scribe: CommitScribe, parking: bytes
) -> None:
    scribe.rename(b"a", b"moved")
    plan = all_done(scribe, parking)
    lose_log(parking)
    at(scribe, b"moved").unlink()
    at(scribe, b"zz").rename(at(scribe, b"moved"))
    with pytest.raises(CommitError, match="No such file or directory"):
        resume(plan, scribe.store, parking=parking)
    assert at(scribe, b"moved").read_text() == "base zz\n"
