"""Base lies on a disk in user space (bindfs), of which the kernel remembers names that are gone."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.program import Program, wait_until
from tests.support.required import do_without

pytestmark = pytest.mark.mount


@pytest.fixture
def on_bindfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    if shutil.which("bindfs") is None:
        do_without("there is no bindfs")
    monkeypatch.setenv("YOLOFS_STATE", str(tmp_path / "state"))
    (tmp_path / "disk/project").mkdir(parents=True)
    (tmp_path / "shown").mkdir()
    with subprocess.Popen(["bindfs", "-f", tmp_path / "disk", tmp_path / "shown"]) as serving:
        wait_until(lambda: os.path.ismount(tmp_path / "shown"), "bindfs to serve")
        try:
            program = Program(tmp_path / "shown/project")
            program.start_session()
            yield program
        finally:
            subprocess.run(["umount", "--lazy", tmp_path / "shown"], check=True)
            serving.kill()  # another mount namespace may hold on to what it serves


def test_an_undo_does_not_say_that_a_file_with_one_name_has_lost_others(on_bindfs: Program) -> None:
    project = on_bindfs.project
    for name in ("edited", "removed", "linked"):
        (project / name).write_text(f"{name}\n")
    os.link(project / "linked", project / "other")
    view = CoreDriver(os.fsencode(project))
    view.overwrite(b"edited", b"view\n")
    view.unlink(b"removed")
    view.unlink(b"other")
    view.close()
    for _ in range(2):
        on_bindfs("commit", "--yes")
        undone = on_bindfs("undo", "--yes")
        assert "comes back as a file of its own" not in undone.err
        assert (project / "edited").read_text() == "edited\n"
        assert (project / "removed").read_text() == "removed\n"
        assert (project / "other").stat().st_ino == (project / "linked").stat().st_ino


@pytest.fixture
def beside_its_session(on_bindfs: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Another project on that disk, whose session lies there, too."""
    (tmp_path / "shown/state").mkdir(mode=0o700)
    monkeypatch.setenv("YOLOFS_STATE", str(tmp_path / "shown/state"))
    project = tmp_path / "shown/other"
    project.mkdir()
    program = Program(project)
    program.start_session()
    return program


def test_a_session_on_the_same_disk_may_keep_what_has_no_other_name_any_more(
    beside_its_session: Program, tmp_path: Path
) -> None:
    project = beside_its_session.project
    (project / "linked").write_text("linked\n")
    os.link(project / "linked", project / "other")
    (project / "edited").write_text("edited\n")
    view = CoreDriver(os.fsencode(project))
    view.overwrite(b"linked", b"view\n")
    view.create(b"new", b"new\n", 0o644)
    view.link(b"new", b"link")
    view.overwrite(b"edited", b"view\n")
    view.unlink(b"other")
    view.close()
    for _ in range(2):
        beside_its_session("commit", "--yes")
        beside_its_session("undo", "--yes")
        assert (tmp_path / "disk/other/linked").read_text() == (tmp_path / "disk/other/other").read_text() == "linked\n"
        assert (tmp_path / "disk/other/edited").read_text() == "edited\n"


def test_what_lost_a_link_by_an_undo_is_not_taken_for_the_hosts(beside_its_session: Program) -> None:
    """The kernel remembers the ctime that the file had before the link went."""
    project = beside_its_session.project
    (project / "one").write_text("one\n")
    os.link(project / "one", project / "two")
    view = CoreDriver(os.fsencode(project))
    view.chmod(b"one", 0o600)
    view.link(b"one", b"three")
    view.unlink(b"two")
    view.close()
    for _ in range(2):
        beside_its_session("commit", "--yes")
        assert sorted(name for name in os.listdir(project) if name[0] != ".") == ["one", "three"]
        beside_its_session("undo", "--yes")
        assert sorted(name for name in os.listdir(project) if name[0] != ".") == ["one", "two"]
