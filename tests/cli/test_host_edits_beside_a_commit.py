"""The host edits a file while a commit is about to replace it: the commit is taken back, names it,
and the next one shows it as drift.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.looks import looks
from tests.support.program import Program, run_code, run_killed
from tests.support.required import do_without

pytestmark = pytest.mark.disk

CONFLICT = 9
NOT_PREPARED = 17
ROLLED_BACK = 18
_EDITED = """
import os, sys
from {module} import {kind} as kind
from yolofs.cli import main

def beside_the_host(*words, **options):
    global calls
    calls += 1
    if calls == 1:
        os.system({command!r})
    return really(*words, **options)

calls = 0
really = kind.{name}
kind.{name} = beside_the_host
sys.argv[0] = "yolofs"
main.program()
"""
MOMENTS = {
    "while it is made": ("yolofs.commit.apply.preparing", "Preparing", "make"),
    "before it is looked at": ("yolofs.commit.apply.preparing", "Preparing", "look"),
    "before the first step": ("yolofs.commit.apply.steps", "Steps", "do"),
}
METADATA: dict[str, tuple[str, Callable[[CoreDriver], None]]] = {
    "mode": ("file", lambda view: view.chmod(b"file", 0o600)),
    "time": ("file", lambda view: view.utimes(b"file", 10**18)),
    "owner": ("file", lambda view: view.chown(b"file", 1234, 1234)),
    "directory's mode": ("folder", lambda view: view.chmod(b"folder", 0o700)),
}
WAYS: dict[str, Callable[[CoreDriver], None]] = {
    "replaced": lambda view: view.overwrite(b"file", b"staged\n"),
    "removed": lambda view: view.unlink(b"file"),
    "replaced by another": lambda view: view.rename(b"other", b"file"),
    "written in place": lambda view: view.overwrite(b"linked", b"staged\n"),
    "another mode": lambda view: view.chmod(b"file", 0o600),
}


def staged(yolofs: Program, work: Callable[[CoreDriver], None]) -> Path:
    """Stage work in a project, and return it."""
    project = yolofs.project
    for name in ("file", "other", "linked"):
        (project / name).write_text(f"{name} of base\n")
    (project / "linked again").hardlink_to(project / "linked")
    view = CoreDriver(bytes(project))
    work(view)
    view.close()
    return project


def edited(way: str, project: Path) -> tuple[Path, str]:
    """Return the file that the host edits, and the command that does it."""
    path = project / ("linked" if "in place" in way else "file")
    return path, f"chmod 640 '{path}'" if way == "another mode" else f"echo the host >> '{path}'"


@pytest.mark.mount
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.some(7)
def test_what_the_host_edits_meanwhile_is_not_replaced(yolofs: Program, way: str, moment: str) -> None:
    project = staged(yolofs, WAYS[way])
    path, command = edited(way, project)
    module, kind, name = MOMENTS[moment]
    code = _EDITED.format(module=module, kind=kind, name=name, command=command)
    done = run_code(code, ("commit", "--yes"), project)
    assert done.returncode == (ROLLED_BACK if "step" in moment else NOT_PREPARED), done
    assert str(path) in done.stderr
    assert "the host has changed it while the commit ran" in done.stderr
    assert "base is as it was, and all stays staged" in done.stderr
    after = looks(project)
    assert path.read_text().endswith("of base\n" if way == "another mode" else "of base\nthe host\n")
    assert {"file", "other", "linked", "linked again"} <= after.keys()
    said = yolofs("commit", "--yes", code=CONFLICT).err
    assert str(path) in said
    yolofs("commit", "--yes", "--ours")
    assert looks(project) != after
    yolofs("undo", "--yes")
    assert looks(project) == after


@pytest.mark.mount
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("way", ["replaced", "written in place", "another mode"])
@pytest.mark.some(5)
def test_what_the_host_edits_while_an_undo_runs_is_not_replaced_either(yolofs: Program, way: str, moment: str) -> None:
    project = staged(yolofs, WAYS[way])
    path, command = edited(way, project)
    yolofs("commit", "--yes")
    module, kind, name = MOMENTS[moment]
    code = _EDITED.format(module=module, kind=kind, name=name, command=command)
    done = run_code(code, ("undo", "--yes"), project)
    assert done.returncode == (ROLLED_BACK if "step" in moment else NOT_PREPARED), done
    assert str(path) in done.stderr
    assert "the host has changed it while the commit ran" in done.stderr
    assert way == "another mode" or path.read_text() == "staged\nthe host\n"
    assert str(path) in yolofs("undo", "--yes", code=CONFLICT).err
    after = looks(project)
    yolofs("undo", "--yes", "--force")
    assert looks(project) != after


@pytest.mark.mount
@pytest.mark.parametrize("way", ["replaced", "removed", "replaced by another", "written in place"])
def test_a_commit_that_is_finished_names_what_the_host_had_edited_before(yolofs: Program, way: str) -> None:
    project = staged(yolofs, WAYS[way])
    path, command = edited(way, project)
    run_killed(("commit", "--yes"), project, module="commit.apply.execution", name="_do_from", after=False)
    os.system(command)
    before = path.read_bytes()
    said = yolofs("commit", "--continue").err
    assert f"the host had edited {path} meanwhile; that comes back by: yolofs undo 1 {path}" in said
    yolofs("undo", "--yes", "1", path, *project.glob("linked*" if path.name == "linked" else "file"))
    assert path.read_bytes() == before


def test_the_undo_that_is_named_then_can_be_typed_as_it_is(yolofs: Program) -> None:
    path = yolofs.project / "it's a name; with spaces"
    path.write_text("of base\n")
    view = CoreDriver(bytes(yolofs.project))
    view.overwrite(os.fsencode(path.name), b"staged\n")
    view.close()
    run_killed(("commit", "--yes"), yolofs.project, module="commit.apply.execution", name="_do_from", after=False)
    with path.open("a") as file:
        file.write("the host\n")
    program, *words = shlex.split(yolofs("commit", "--continue").err.partition("that comes back by: ")[2])
    assert program == "yolofs"
    yolofs(*words, "--yes")
    assert path.read_text() == "of base\nthe host\n"


def test_a_commit_that_is_finished_names_no_file_that_nobody_has_edited(yolofs: Program) -> None:
    project = staged(yolofs, WAYS["written in place"])
    run_killed(("commit", "--yes"), project, module="commit.apply.execution", name="_do_from", after=False)
    assert "the host" not in yolofs("commit", "--continue").err


@pytest.mark.mount
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a file immutable")
@pytest.mark.parametrize("flag", ["i", "a"])
@pytest.mark.parametrize("way", METADATA)
@pytest.mark.some(4)
def test_a_commit_of_metadata_of_what_becomes_immutable_is_taken_back(yolofs: Program, way: str, flag: str) -> None:
    name, work = METADATA[way]
    (yolofs.project / "folder").mkdir()
    project = staged(yolofs, work)
    path, before = project / name, looks(project)
    if subprocess.run(["chattr", f"+{flag}", project / "other"], check=False).returncode:
        do_without("no file can be immutable here")
    subprocess.run(["chattr", f"-{flag}", project / "other"], check=True)
    module, kind, call = MOMENTS["before the first step"]
    code = _EDITED.format(module=module, kind=kind, name=call, command=f"chattr +{flag} '{path}'")
    try:
        done = run_code(code, ("commit", "--yes"), project)
    finally:
        subprocess.run(["chattr", f"-{flag}", path], check=True)
    assert done.returncode == ROLLED_BACK, done
    assert str(path) in done.stderr
    assert "it is immutable or append-only (chattr)" in done.stderr
    assert looks(project) == before
    yolofs("commit", "--yes", "--ours")  # chattr has changed its ctime
    assert looks(project) != before or way == "owner"
