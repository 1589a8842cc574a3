"""A kill just after a hidden folder has come to a directory of base, or gone from it: the directory
has its time again after the next command.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.test_commit_signals import signalled
from tests.support.core_driver import CoreDriver
from tests.support.group_folders import GROUP, HIDDEN, directory_with_a_group, folder_of, folders
from tests.support.program import Program
from tests.support.second_disk import mounted_disk
from tests.support.user_identity import in_child
from yolofs.commit.apply import other_devices

pytestmark = [pytest.mark.timeout(120), pytest.mark.root_only]
BEFORE_NS = 1_500_000_000_123_456_789
HOST_NS = 1_600_000_000_000_000_000


@pytest.fixture
def place() -> Iterator[Path]:
    """Where a commit makes such folders."""
    with directory_with_a_group() as directory:
        yield directory


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A project in which ``far`` lies on another disk, with a new file staged below it."""
    project = tmp_path / "project"
    (project / "far").mkdir(parents=True)
    with mounted_disk(project / "far"):
        (project / "far/d").mkdir()
        view = CoreDriver(bytes(project))
        view.create(b"far/d/new", b"new", 0o644)
        view.close()
        os.utime(project / "far", ns=(BEFORE_NS, BEFORE_NS))
        yield project


def die_in_a_commit(project: Path, call: str) -> None:
    """Commit, and be killed at the end of the call that makes, or removes, the hidden folder."""
    far, where = project / "far", f"yolofs.commit.apply.other_devices:os.{call}"
    for at in range(1, 20):
        done = signalled(project, where, signal.SIGKILL, "commit", "--yes", at=at)
        assert done.returncode == -signal.SIGKILL
        if far.stat().st_mtime_ns != BEFORE_NS:
            return
        Program(project)("commit", "--roll-back")
    raise AssertionError(f"no {call} touched the directory")


@pytest.mark.parametrize("way", ["--continue", "--roll-back"])
@pytest.mark.parametrize("call", ["mkdir", "rmdir"])
def test_the_directory_of_a_hidden_folder_has_its_time_again_after_a_kill(project: Path, call: str, way: str) -> None:
    die_in_a_commit(project, call)
    program = Program(project)
    if call == "rmdir":
        way = "--continue"  # all steps are done
    program("commit", way)
    assert (project / "far").stat().st_mtime_ns == BEFORE_NS
    assert not list((project / "far").glob(".yolofs*"))
    assert (project / "far/d/new").exists() == (call == "rmdir")


def test_a_time_that_the_host_has_given_since_stays(project: Path) -> None:
    die_in_a_commit(project, "mkdir")
    os.utime(project / "far", ns=(HOST_NS, HOST_NS))
    Program(project)("commit", "--roll-back")
    assert (project / "far").stat().st_mtime_ns == HOST_NS


@pytest.mark.parametrize("call", ["mkdir", "rename"])
def test_a_directory_that_gives_its_group_has_its_time_again(place: Path, call: str) -> None:
    shared = place / "base/shared"
    os.utime(shared, ns=(BEFORE_NS, BEFORE_NS))

    def act() -> None:
        really = getattr(os, call)

        def killed(*arguments: object, **options: object) -> None:
            really(*arguments, **options)
            if options:  # notes are renamed, too, by whole paths
                os.kill(os.getpid(), signal.SIGKILL)

        setattr(os, call, killed)
        folder_of(folders(place), place, b"shared")

    assert in_child(act, is_root=False) == -signal.SIGKILL
    assert shared.stat().st_mtime_ns != BEFORE_NS
    assert in_child(lambda: other_devices.remove(bytes(place / "commit"), HIDDEN) and None, is_root=False) == 0
    assert shared.stat().st_mtime_ns == BEFORE_NS
    assert os.listdir(shared) == ["sub"]
    assert shared.stat().st_gid == GROUP
