"""The disk of base is remounted read-only, as the kernel does it when that disk fails: in the
middle of a commit, or before an undo.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.at_a_call import program_in_which
from tests.crash.commit_or_undo import ready_for
from tests.support.core_driver import CoreDriver
from tests.support.every_kind_of_step import prepare
from tests.support.looks import exactly, tree_of
from tests.support.program import Program, run_code
from tests.support.sharing_disk import disk_image

pytestmark = [pytest.mark.timeout(300), pytest.mark.mount]
_REMOUNTING = program_in_which("subprocess.run(['mount', '-o', 'remount,ro', place], check=True)")
NOT_BEGUN, INTERRUPTED = 17, 12


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A disk for base; the session is on another: where it has files open nobody can remount."""
    monkeypatch.setenv("YOLOFS_STATE", str(tmp_path / "state"))
    with disk_image("ext4", tmp_path) as disk:
        yield disk


def remount(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", disk], check=True)


def commit_remounted(project: Path, where: str, at: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command over whose ``at``-th call of a function the disk becomes read-only."""
    return run_code(_REMOUNTING, [f"yolofs.commit.apply.{where}", str(at), str(project.parent), *words], project)


def check_refused(program: Program, *words: str) -> None:
    """See that a command tells what is the matter, and the way on."""
    refused = program(*words, code=None)
    assert refused.code
    assert "Read-only file system" in refused.err or "is read-only" in refused.err
    assert "hint: " in refused.err


@pytest.mark.parametrize("words", [("commit", "--yes"), ("undo", "--yes")], ids=["commit", "undo"])
@pytest.mark.parametrize("goes_back", [False, True], ids=["continue", "roll back"])
@pytest.mark.some(2)
def test_a_switch_that_a_read_only_disk_stopped_goes_on_either_way_once_that_is_writable(
    disk: Path, words: tuple[str, ...], goes_back: bool
) -> None:
    project = disk / "project"
    program, expected = ready_for(words[0], project)
    before = exactly(project)
    done = commit_remounted(project, "steps:Steps.do", 9, *words)
    assert done.returncode == INTERRUPTED, done.stderr
    assert "it could not be taken back either" in done.stderr
    assert "nothing is lost; fix that" in done.stderr
    half = exactly(project)
    for way in ("--continue", "--roll-back"):
        check_refused(program, "commit", way)
    assert exactly(project) == half
    assert "interrupted" in program("status").err
    remount(disk, "rw")
    program("commit", "--roll-back" if goes_back else "--continue")
    if goes_back:
        assert exactly(project) == before
        program(*words)
    assert tree_of(project) == expected
    assert not [path for path in disk.rglob(".yolofs-*") if path.is_dir()]


def test_what_cannot_be_removed_from_a_read_only_disk_is_told_by_its_path(disk: Path) -> None:
    project = disk / "project"
    project.mkdir()
    (project / "gone").touch()
    view = CoreDriver(bytes(project))
    view.unlink(b"gone")
    view.create(b"new", b"new", 0o644)
    view.close()
    before = exactly(project)
    done = commit_remounted(project, "steps:Steps.do", 1, "commit", "--yes")
    assert done.returncode == INTERRUPTED, done.stderr
    (hidden,) = [path for path in disk.rglob(".yolofs-*-new") if path.is_dir()]
    told = f"taking the commit back could not be ended: Read-only file system ({hidden})"
    assert told in done.stderr
    program = Program(project)
    assert told in program("commit", "--roll-back", code=INTERRUPTED).err
    remount(disk, "rw")
    program("commit", "--roll-back")
    assert exactly(project) == before


@pytest.mark.parametrize("where", ["preparing:Preparing._make", "steps:Steps.look"])
def test_a_disk_that_turns_read_only_before_the_switch_leaves_base_as_it_was(disk: Path, where: str) -> None:
    project = disk / "project"
    expected = prepare(project)
    before = exactly(project)
    done = commit_remounted(project, where, 1, "commit", "--yes")
    assert done.returncode == NOT_BEGUN, done.stderr
    assert re.search(f"not begun: {project}[^:]*: Read-only file system", done.stderr)
    assert "base is as it was, and all stays staged" in done.stderr
    hidden = [path.relative_to(project) for path in project.rglob(".yolofs-*")]  # nobody can remove it now
    now = {path: what for path, what in exactly(project).items() if ".yolofs-" not in path}
    assert now.pop(str(project))[:-1] == before.pop(str(project))[:-1]
    assert now == before
    program = Program(project)
    check_refused(program, "commit", "--yes")
    remount(disk, "rw")
    program("commit", "--yes")
    assert tree_of(project) == expected
    assert not [path for path in hidden if (project / path).exists()]


def test_an_undo_on_a_read_only_disk_is_refused(disk: Path) -> None:
    project = disk / "project"
    prepare(project)
    expected = tree_of(project)
    program = Program(project)
    program("commit", "--yes")
    before = exactly(project)
    remount(disk, "ro")
    check_refused(program, "undo", "--yes")
    assert exactly(project) == before
    assert "interrupted" not in program("status").err
    remount(disk, "rw")
    program("undo", "--yes")
    assert tree_of(project) == expected
