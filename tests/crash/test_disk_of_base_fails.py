"""The disk of base fails in the middle of a commit, and loses all that was not durable: the
session, on another disk, must not claim more.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.at_a_call import program_in_which
from tests.crash.commit_or_undo import ready_for
from tests.support.looks import exactly, tree_of
from tests.support.program import run_code
from tests.support.sharing_disk import disk_image

pytestmark = [pytest.mark.timeout(300), pytest.mark.mount]
# FS_IOC_SHUTDOWN, without what was not synced
_FAILING = program_in_which("fcntl.ioctl(os.open(place, os.O_RDONLY), 0x8004587D, struct.pack('I', 2))")
INTERRUPTED = 12


@pytest.fixture(params=["ext4", "xfs"])
def disk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A disk for base."""
    monkeypatch.setenv("YOLOFS_STATE", str(tmp_path / "state"))
    with disk_image(request.param, tmp_path) as disk:
        yield disk


def mount_anew(disk: Path) -> None:
    """Mount what the disk has, as after a reset.

    It is a copy of the image: another mount namespace may hold on to the disk that has failed.
    """
    image = disk.with_suffix(".image")
    copy = image.with_suffix(".copy")
    subprocess.run(["cp", "--sparse=always", image, copy], check=True)
    copy.rename(image)
    subprocess.run(["umount", "--lazy", disk], check=True)
    options = "loop,nouuid" if disk.name == "xfs" else "loop"
    subprocess.run(["mount", "-o", options, image, disk], check=True)


def commit_failing(project: Path, where: str, at: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command over whose ``at``-th call of a function the disk fails."""
    return run_code(_FAILING, [f"yolofs.commit.apply.{where}", str(at), str(project.parent), *words], project)


@pytest.mark.parametrize("words", [("commit", "--yes"), ("undo", "--yes")], ids=["commit", "undo"])
@pytest.mark.parametrize("goes_back", [False, True], ids=["continue", "roll back"])
@pytest.mark.parametrize(("where", "at"), [("steps:Steps.do", 9), ("steps:Steps.sync", 1)], ids=["step", "sync"])
@pytest.mark.some(3)
def test_steps_that_the_failing_disk_has_lost_do_not_count_as_done(
    disk: Path, words: tuple[str, ...], goes_back: bool, where: str, at: int
) -> None:
    project = disk / "project"
    program, expected = ready_for(words[0], project)
    subprocess.run(["sync", "--file-system", project], check=True)
    before = exactly(project)
    done = commit_failing(project, where, at, *words)
    assert done.returncode == INTERRUPTED, done.stderr
    assert "Input/output error" in done.stderr
    assert "()" not in done.stderr
    mount_anew(disk)
    assert "interrupted" in program("status").err
    program("commit", "--roll-back" if goes_back else "--continue")
    if goes_back:
        assert exactly(project) == before
        program(*words)
    assert tree_of(project) == expected
    assert not [path for path in disk.rglob(".yolofs-*") if path.is_dir()]
