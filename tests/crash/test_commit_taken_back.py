"""A commit that fails, or that its user ends, is taken back by the program itself, under a mount
and without one.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.crash.commit_or_undo import ready_for
from tests.support.core_driver import CoreDriver
from tests.support.every_kind_of_step import prepare
from tests.support.fault_points import points
from tests.support.file_flags import APPEND, IMMUTABLE, flagged, set_flag
from tests.support.looks import exactly, tree_of
from tests.support.program import Program, run_code

pytestmark = [pytest.mark.timeout(300), pytest.mark.mount]
HALF_WAY, NOT_PREPARED, TAKEN_BACK, INTERRUPTED = 12, 17, 18, 130
FAILING = """
import errno, os, signal, sys
from yolofs.cli import main
from yolofs.commit.apply import steps
really_do = steps.Steps.do
done = 0
def do(self, step):
    global done
    if done == int(sys.argv[1]):
        {act}
    done += 1
    really_do(self, step)
steps.Steps.do = do
raise SystemExit(main.main(["commit", "--yes"]))
"""
FAILURES = {
    "the disk failed": ("raise OSError(errno.EIO, os.strerror(errno.EIO))", TAKEN_BACK),
    "no room": ("raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))", TAKEN_BACK),
    "read-only": ("raise OSError(errno.EROFS, os.strerror(errno.EROFS))", TAKEN_BACK),
    "Ctrl-C": ("os.kill(os.getpid(), signal.SIGINT)", INTERRUPTED),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", 128 + signal.SIGTERM),
    "a closed terminal": ("os.kill(os.getpid(), signal.SIGHUP)", 128 + signal.SIGHUP),
}
LATE = """
import os, signal, sys
import {module} as module
from yolofs.cli import main
really = module.{name}
def late(*args, **kwargs):
    result = really(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGINT)
    return result
module.{name} = late
raise SystemExit(main.main(sys.argv[1:]))
"""
KILLED = "os.kill(os.getpid(), signal.SIGKILL)"
STEP = 12


def commit_failing(project: Path, act: str, step: int = STEP) -> subprocess.CompletedProcess[str]:
    return run_code(FAILING.format(act=act), [str(step)], project)


@pytest.mark.parametrize(
    ("failure", "is_mounted"), points(list(itertools.product(FAILURES, [False, True])), "taken back", some=4)
)
def test_a_commit_that_fails_leaves_base_as_it_was_and_all_staged(
    tmp_path: Path, failure: str, is_mounted: bool
) -> None:
    project = tmp_path / "project"
    expected = prepare(project)
    before = exactly(project)
    program = Program(project)
    act, code = FAILURES[failure]
    if is_mounted:
        program("mount")
    try:
        done = commit_failing(project, act)
        assert done.returncode == code, done.stderr
        assert "the commit was taken back: " in done.stderr
        assert "base is as it was, and all stays staged" in done.stderr
        assert exactly(project) == before
        assert "interrupted" not in program("status").err
        assert program("status", "--json").json["drift"] == [], "what was put back is no change by the host"
        if is_mounted:
            view = program.session / "mnt"
            mine = Path(f"{view}{project}") if not (view / "c").exists() else view
            assert (mine / "c").read_bytes() == b"new c"
        program("commit", "--yes")
        assert tree_of(project) == expected
    finally:
        if is_mounted:
            program("unmount")


@pytest.mark.parametrize("words", [("commit", "--yes"), ("undo", "--yes")], ids=["commit", "undo"])
@pytest.mark.parametrize("when", ["as it is done", "as it is put away", "as it is told"])
@pytest.mark.some(3)
def test_ctrl_c_that_comes_too_late_is_told_what_is_done(tmp_path: Path, words: tuple[str, ...], when: str) -> None:
    project = tmp_path / "project"
    program, expected = ready_for(words[0], project)
    module, name = {
        "as it is done": ("yolofs.commit.apply.execution", "_complete"),
        "as it is put away": ("yolofs.session.commit", "put_away"),
        "as it is told": (
            "yolofs.cli.commit.undoing" if words[0] == "undo" else "yolofs.cli.commit.committing_changes",
            "remove_tidied",
        ),
    }[when]
    if (when, words[0]) == ("as it is put away", "undo"):
        module = "yolofs.session.undo"
    code = LATE.format(module=module, name=name)
    done = run_code(code, words, project)
    assert done.returncode == 0, done.stderr
    number = 2 if words[0] == "undo" else 1
    assert f"commit {number}" in done.stderr
    assert tree_of(project) == expected
    assert "interrupted" not in program("status").err


def test_a_directory_that_cannot_be_closed_again_hides_no_failure(tmp_path: Path) -> None:
    project = tmp_path / "project"
    prepare(project)
    before = exactly(project)
    program = Program(project)
    act = (
        "from yolofs.commit.apply.directories import Directories; really = Directories.release; said = []\n"
        "        def release(self):\n"
        "            really(self)\n"
        "            if not said: said.append(1); raise PermissionError(errno.EPERM, 'closing')\n"
        "        Directories.release = release\n"
        "        raise OSError(errno.EIO, os.strerror(errno.EIO))"
    )
    done = commit_failing(project, act)
    assert done.returncode == TAKEN_BACK, done.stderr
    assert "Input/output error" in done.stderr
    assert exactly(project) == before
    assert "interrupted" not in program("status").err


@pytest.mark.parametrize("act", ["signal.SIGINT", "signal.SIGKILL"])
def test_a_commit_that_dies_before_its_plan_is_written_leaves_nothing(tmp_path: Path, act: str) -> None:
    project = tmp_path / "project"
    prepare(project)
    before = exactly(project)
    program = Program(project)
    code = LATE.format(module="yolofs.session.commit", name="_write_rest").replace("signal.SIGINT", act)
    words = ("commit", "--yes", "c")
    done = run_code(code, words, project)
    assert done.returncode == (130 if act == "signal.SIGINT" else -signal.SIGKILL), done.stderr
    assert exactly(project) == before
    program("abort", "--yes")
    assert not list((program.session / "commits").iterdir())
    assert not [path for path in (program.session / "files").rglob("*") if path.is_file()]


def test_a_killed_commit_is_taken_back_by_roll_back(tmp_path: Path) -> None:
    project = tmp_path / "project"
    expected = prepare(project)
    before = exactly(project)
    program = Program(project)
    assert commit_failing(project, KILLED).returncode == -signal.SIGKILL
    assert exactly(project) != before
    said = program.refused("commit", "--yes", code=12)
    assert "yolofs commit --continue finishes it, yolofs commit --roll-back takes it back" in said
    assert "go with no other option" in program.refused("commit", "--roll-back", "--continue", code=2)
    done = program("commit", "--roll-back")
    assert "commit 1, which was interrupted, is taken back; base is as it was, and all stays staged" in done.err
    assert exactly(project) == before
    assert "nothing to do" in program("commit", "--roll-back").err
    assert not list((program.session / "commits").iterdir())
    program("commit", "--yes")
    assert tree_of(project) == expected


def test_rolling_back_keeps_and_names_a_file_that_the_host_put_in_the_way(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a").write_text("base\n")
    view = CoreDriver(os.fsencode(project))
    view.overwrite(b"a", b"the view's\n")
    view.create(b"b", b"new", 0o640)
    view.close()
    program = Program(project)
    commit_failing(project, KILLED, 2)
    assert (project / "a").read_text() == "the view's\n"
    (project / "a").write_text("the host's\n")
    done = program("commit", "--roll-back")
    assert f"what the host had put at {project}/a meanwhile lies in" in done.err
    assert (project / "a").read_text() == "base\n"
    assert [path.read_text() for path in (program.session / "commits/1/found").iterdir()] == ["the host's\n"]
    assert "interrupted" not in program("status").err
    program("commit", "--yes", "b")
    assert (project / "b").read_text() == "new"
    kept = [path.name for path in (program.session / "commits").iterdir() if path.is_dir()]
    assert sorted(kept) == ["1", "2"]


def test_a_conflict_that_was_overridden_is_one_again_after_it_was_taken_back(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a").write_text("base\n")
    view = CoreDriver(os.fsencode(project))
    view.unlink(b"a")
    view.create(b"b", b"new", 0o640)
    view.close()
    (project / "a").write_text("the host was here\n")
    program = Program(project)
    program("commit", "--yes", code=9)
    script = FAILING.format(act=FAILURES["no room"][0]).replace('"--yes"', '"--yes", "--force"')
    assert run_code(script, ["1"], project).returncode == TAKEN_BACK
    assert (project / "a").read_text() == "the host was here\n"
    program("commit", "--yes", code=9)


# ---- what is seen before anything is done


@pytest.mark.parametrize("flag", [IMMUTABLE, APPEND], ids=["immutable", "append-only"])
@pytest.mark.parametrize("name", ["c", "e", "f"])
@pytest.mark.some(3)
def test_an_immutable_file_stops_a_commit_before_it_begins(tmp_path: Path, name: str, flag: int) -> None:
    project = tmp_path / "project"
    expected = prepare(project)
    before = exactly(project)
    program = Program(project)
    with flagged(project / name, flag):
        said = program("commit", "--yes", code=NOT_PREPARED).err
    assert (
        f"the commit was not begun: {project / name}: it is immutable or append-only (chattr); base is as it was"
        in said
    )
    assert exactly(project) == before
    program("commit", "--yes")
    assert tree_of(project) == expected


FLAGGED = """
        from tests.support.file_flags import set_flag
        set_flag({path!r}, {flag})"""


@pytest.mark.parametrize("flag", [IMMUTABLE, APPEND], ids=["immutable", "append-only"])
@pytest.mark.parametrize("name", ["c", "e/x", "g/one1", "g/other2"])
@pytest.mark.some(3)
def test_a_commit_is_taken_back_though_a_file_that_it_had_not_touched_is_immutable(
    tmp_path: Path, name: str, flag: int
) -> None:
    project = tmp_path / "project"
    expected = prepare(project)
    before = exactly(project)
    with flagged(project, flag):  # or the test is skipped here
        pass
    program = Program(project)
    done = commit_failing(project, FLAGGED.format(path=str(project / name), flag=flag), 0)
    set_flag(project / name, 0)
    assert done.returncode == TAKEN_BACK, done.stderr
    assert "base is as it was, and all stays staged" in done.stderr
    assert exactly(project) == before
    program("commit", "--yes", "--ours")  # the flag has changed the file's ctime
    assert tree_of(project) == expected


@pytest.mark.parametrize(("name", "named"), [("g/one1", "g/one1"), ("e", "e/link")])
def test_what_is_immutable_is_taken_back_when_it_is_so_no_longer(tmp_path: Path, name: str, named: str) -> None:
    project = tmp_path / "project"
    prepare(project)
    before = exactly(project)
    with flagged(project, IMMUTABLE):  # or the test is skipped here
        pass
    program = Program(project)
    failing = FLAGGED.format(path=str(project / name), flag=IMMUTABLE)
    done = commit_failing(project, f"{failing}\n        {FAILURES['no room'][0]}", 23)
    assert done.returncode == HALF_WAY, done.stderr
    assert "could not be undone: Operation not permitted (" in done.stderr
    assert f"{named})" in done.stderr
    assert "/proc/self" not in done.stderr
    set_flag(project / name, 0)
    assert "could not be given back" not in program("commit", "--roll-back").err
    assert exactly(project) == before


READ_ONLY = """
        import ctypes
        assert ctypes.CDLL(None).mount(None, os.fsencode("e"), None, 1 | 32 | 4096, None) == 0"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a directory read-only")
@pytest.mark.parametrize("is_mounted", [False, True], ids=["unmounted", "mounted"])
def test_a_commit_is_taken_back_though_a_disk_that_it_had_not_touched_is_read_only(
    tmp_path: Path, is_mounted: bool
) -> None:
    project = tmp_path / "project"
    expected = prepare(project)
    before = exactly(project)
    program = Program(project)
    libc = ctypes.CDLL(None, use_errno=True)
    place = bytes(project / "e")
    assert libc.mount(place, place, None, 4096, None) == 0
    try:
        if is_mounted:
            program("mount")
        done = commit_failing(project, READ_ONLY)
        assert done.returncode == TAKEN_BACK, done.stderr
        assert "Read-only file system; base is as it was, and all stays staged" in done.stderr
        assert ("mounted at" in program("status").out) == is_mounted
    finally:
        if is_mounted:
            program("unmount")
        assert libc.umount2(place, 2) == 0
    assert exactly(project) == before
    program("commit", "--yes")
    assert tree_of(project) == expected


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a directory read-only")
def test_a_read_only_mount_stops_a_commit_before_it_begins(tmp_path: Path) -> None:
    project = tmp_path / "project"
    expected = prepare(project)
    before = exactly(project)
    libc = ctypes.CDLL(None, use_errno=True)
    place = bytes(project / "e")
    bind, read_only = 4096, 1 | 32 | 4096
    assert libc.mount(place, place, None, bind, None) == 0
    try:
        assert libc.mount(None, place, None, read_only, None) == 0
        said = Program(project)("commit", "--yes", code=NOT_PREPARED).err
        assert (
            f"the commit was not begun: {project}/e/x: Read-only file system; base is as it was, and all stays staged"
            in said
        )
        assert exactly(project) == before
    finally:
        assert libc.umount2(place, 2) == 0
    Program(project)("commit", "--yes")
    assert tree_of(project) == expected
