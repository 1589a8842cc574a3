"""A commit was interrupted, and now the filesystem that a part of it is about is not mounted, or
another one covers a directory: nothing goes on or back until that is put right.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.crash.at_a_call import program_in_which
from tests.crash.test_commit_signals import signalled
from tests.support.core_driver import CoreDriver
from tests.support.fault_points import points
from tests.support.looks import exactly, tree_of
from tests.support.planting import interrupt_commit
from tests.support.program import Program, run_code
from tests.support.second_disk import mounted_disk

pytestmark = [pytest.mark.timeout(300), pytest.mark.mount]
_UNMOUNTED = program_in_which("subprocess.run(['umount', '-l', place], check=True); os.kill(os.getpid(), 9)")
WAYS = ("--continue", "--roll-back")
STEPS = range(1, 13)


@contextmanager
def mounted(source: Path, place: Path) -> Iterator[None]:
    """Have a directory mounted at a place, until the block has let go of it."""
    with mounted_disk(place, source=source):
        yield


def prepare(project: Path) -> Program:
    """Stage something in two directories, of which one may be a disk."""
    for directory in ("d", "e"):
        for number in range(4):
            (project / directory / f"{directory}{number}").write_text(f"{number}\n")
    view = CoreDriver(bytes(project))
    for name in (b"d", b"e"):
        for number in range(3):
            view.append(b"%b/%b%d" % (name, name, number), b"more\n")
    view.mkdir(b"d/new", 0o755)
    view.create(b"d/new/file", b"made", 0o644)
    view.unlink(b"d/d3")
    view.rename(b"e/e3", b"e/e4")
    view.close()
    return Program(project)


def check_refused(program: Program, place: Path, why: str) -> None:
    """See that nothing is done, and that it is said why."""
    before = exactly(place)
    assert why in program("status").err
    for way in WAYS:
        refused = program("commit", way, code=None)
        assert refused.code
        assert why in refused.err
        assert "hint: " in refused.err
    assert exactly(place) == before


@pytest.mark.parametrize(("step", "way"), points([(step, way) for step in STEPS for way in WAYS], "away", some=3))
def test_nothing_goes_on_or_back_without_the_disk(tmp_path: Path, step: int, way: str) -> None:
    project, disk = tmp_path / "project", tmp_path / "disk"
    for path in (project / "d", project / "e", disk):
        path.mkdir(parents=True)
    with mounted(disk, project / "d"):
        program = prepare(project)
        before = exactly(project)
        interrupt_commit(project, step)
    check_refused(program, project, f"the filesystem that was mounted at {project / 'd'} is not there")
    with mounted(disk, project / "d"):
        program("commit", way)
        if way == "--roll-back":
            assert exactly(project) == before
            program("commit", "--yes")
        assert (project / "d/new/file").read_text() == "made"
        assert sorted(path.name for path in (project / "d").iterdir()) == ["d0", "d1", "d2", "new"]
        assert {(project / f"d/d{number}").read_text() for number in range(3)} == {f"{n}\nmore\n" for n in range(3)}


@pytest.mark.parametrize(("step", "way"), points([(step, way) for step in STEPS for way in WAYS], "over", some=3))
def test_nothing_goes_on_or_back_below_another_disk(tmp_path: Path, step: int, way: str) -> None:
    project, other = tmp_path / "project", tmp_path / "other"
    for path in (project / "d", project / "e", other):
        path.mkdir(parents=True)
    (other / "d3").write_text("of another disk\n")
    program = prepare(project)
    before, view = exactly(project), CoreDriver(bytes(project))
    expected = view.tree()
    view.close()
    interrupt_commit(project, step)
    with mounted(other, project / "d"):
        check_refused(program, project, f"another filesystem has been mounted at {project / 'd'} meanwhile")
    assert [path.name for path in other.iterdir()] == ["d3"]
    program("commit", way)
    if way == "--roll-back":
        assert exactly(project) == before
        program("commit", "--yes")
    assert tree_of(project) == expected


@pytest.mark.parametrize("command", ["gc", "abort", "commit"])
def test_what_a_killed_commit_has_made_on_a_disk_is_removed_when_that_is_there_again(
    tmp_path: Path, command: str
) -> None:
    project, disk = tmp_path / "project", tmp_path / "disk"
    for path in (project / "d", project / "e", disk):
        path.mkdir(parents=True)
    with mounted(disk, project / "d"):
        program = prepare(project)
        before = exactly(project)
        signalled(project, "yolofs.commit.apply.preparing:Preparing.make", signal.SIGKILL, "commit", "--yes")
        assert list(disk.glob(".yolofs-*"))
    if command == "commit":
        program("commit", "--yes", "e")
        program("undo", "--yes")
    else:
        program(command, *(["--yes"] if command == "abort" else []))
    program("gc")
    with mounted(disk, project / "d"):
        program("gc")
        assert not list(disk.glob(".yolofs-*"))
        assert not [path.name for path in (program.session / "commits").iterdir() if path.name.startswith("gone-")]
        assert exactly(project) == before


@pytest.fixture
def left_on_a_disk(tmp_path: Path) -> Program:
    """A project in which a commit was killed that was making something on a disk; this has been
    taken away, and what was staged is dropped.
    """
    project, disk = tmp_path / "project", tmp_path / "disk"
    for path in (project / "d", project / "e", disk):
        path.mkdir(parents=True)
    with mounted(disk, project / "d"):
        program = prepare(project)
        signalled(project, "yolofs.commit.apply.preparing:Preparing.make", signal.SIGKILL, "commit", "--yes")
    program("abort", "--yes")
    return program


def put_aside(program: Program) -> list[Path]:
    """Return the directories of commits that are no more, of which something has to be removed."""
    return [path for path in (program.session / "commits").iterdir() if path.name.startswith("gone-")]


def test_a_dry_run_of_gc_does_not_promise_what_waits_for_a_disk(left_on_a_disk: Program) -> None:
    assert put_aside(left_on_a_disk)
    for _ in range(2):
        foretold = left_on_a_disk("gc", "--dry-run", "--json").json["freed_bytes"]
        assert left_on_a_disk("gc", "--json").json["freed_bytes"] == foretold
    assert left_on_a_disk("gc", "--dry-run", "--json").json["freed_bytes"] == 0


def test_what_waits_for_a_disk_that_was_thrown_away_ends_after_90_days(left_on_a_disk: Program) -> None:
    for days in (89, 91):
        (gone,) = put_aside(left_on_a_disk)
        made = time.time() - days * 86_400
        os.utime(gone / "far", (made, made))
        foretold = left_on_a_disk("gc", "--dry-run", "--json").json["freed_bytes"]
        assert left_on_a_disk("gc", "--json").json["freed_bytes"] == foretold
        assert bool(foretold) == (days > 90)
    assert not put_aside(left_on_a_disk)


def test_a_disk_that_is_away_keeps_nothing_of_a_commit_that_has_ended(tmp_path: Path) -> None:
    project, disk = tmp_path / "project", tmp_path / "disk"
    for path in (project / "d", project / "e", disk):
        path.mkdir(parents=True)
    (project / ".yolofs.toml").write_text("[keep_commits]\ncount = 1\n")
    with mounted(disk, project / "d"):
        program = prepare(project)
        program.trust()
        program("commit", "--yes")
        assert (program.session / "commits/1/far").exists()
    view = CoreDriver(bytes(project))
    view.create(b"e/another", b"new\n", 0o644)
    view.close()
    program("commit", "--yes")
    program("gc")
    assert [path.name for path in (program.session / "commits").iterdir() if path.is_dir()] == ["2"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk that is mounted in the project of a test, until somebody unmounts it."""
    disk, place = tmp_path / "disk", tmp_path / "project/d"
    for path in (place, tmp_path / "project/e", disk):
        path.mkdir(parents=True)
    subprocess.run(["mount", "--bind", disk, place], check=True)
    yield disk
    subprocess.run(["umount", "-l", place], check=False, stderr=subprocess.DEVNULL)


@pytest.mark.some(1)
@pytest.mark.parametrize("step", [3, 9])
def test_a_mount_of_the_view_stays_while_the_disk_is_away(disk: Path, step: int) -> None:
    project = disk.parent / "project"
    place = project / "d"
    program = prepare(project)
    before = exactly(project)
    with program.mounted(expected_in_log=("can neither be finished nor taken back",)) as view:
        (view / "e/born").write_text("born\n")  # of which base gets the store inode itself
        words = ["yolofs.commit.apply.steps:Steps.do", str(step), str(place), "commit", "--yes"]
        assert run_code(_UNMOUNTED, words, project).returncode == -signal.SIGKILL
        assert f"the filesystem that was mounted at {place} is not there" in program("status").err
        shown = [(view / f"e/{name}").read_text() for name in ("e0", "e1", "e2", "e4", "born")]
        assert shown == ["0\nmore\n", "1\nmore\n", "2\nmore\n", "3\n", "born\n"]
        with pytest.raises(OSError, match="Read-only"):
            (view / "made").touch()
        assert not list(place.iterdir())
        with mounted(disk, place):
            program("commit", "--roll-back")
            assert exactly(project) == before
            (view / "made").touch()
            program("commit", "--yes")
            assert (place / "new/file").read_text() == "made"
