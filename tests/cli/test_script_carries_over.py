"""What the script of a commit carries over beside names and content, and what it may read."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.killed_command import as_user, run
from tests.support.plain_directory import xattrs_of
from tests.support.second_disk import mounted_disk

ONE, TWO = b"user.one", b"user.two"
ACCESS, DEFAULT = b"system.posix_acl_access", b"system.posix_acl_default"
ACL = bytes.fromhex("0200000001000600ffffffff020006003412000004000400ffffffff10000600ffffffff20000400ffffffff")


def run_script(project: Path) -> None:
    done = run(os.fsencode(project), "commit", "--script", "--trusted")
    assert done.code == 0, done
    said = subprocess.run(["sh"], input=done.out, text=True, capture_output=True, check=False)
    assert said.returncode == 0, said.stderr


def attributes(project: Path) -> dict[str, object]:
    """Return mode and extended attributes of all in a project, ACLs among them."""
    return {
        str(path.relative_to(project)): (stat.S_IMODE(path.lstat().st_mode), xattrs_of(os.fsencode(path)))
        for path in project.rglob("*")
        if not any(part.startswith(".yolofs") for part in path.parts)
    }


def make(place: Path) -> Path:
    project = place / "p"
    for name in ("directory", "open to all"):
        (project / name).mkdir(parents=True)
        os.setxattr(project / name, ONE, b"before")
    for name in ("file", "written", "loses"):
        (project / name).write_text("base\n")
        os.setxattr(project / name, ONE, b"before")
    (project / "its other name").hardlink_to(project / "written")
    os.setxattr(project / "open to all", DEFAULT, ACL)
    return project


def work(project: Path) -> None:
    view = CoreDriver(os.fsencode(project))
    view.setxattr(b"file", ONE, b"after\0")
    view.setxattr(b"file", TWO, b"")
    view.setxattr(b"file", ACCESS, ACL)
    view.overwrite(b"written", b"new\n")
    view.setxattr(b"written", TWO, b"after")
    view.removexattr(b"loses", ONE)
    view.setxattr(b"directory", TWO, b"after")
    view.removexattr(b"directory", ONE)
    view.mkdir(b"new", 0o750)
    view.setxattr(b"new", ONE, b"new")
    view.setxattr(b"new", DEFAULT, ACL)
    view.rename(b"open to all", b"moved")
    view.mkdir(b"moved/new", 0o755)
    view.create(b"moved/new/file", b"new\n", 0o640)
    view.close()


def test_a_script_carries_over_extended_attributes_and_access_control_lists(tmp_path: Path) -> None:
    """As the commit of the same in another project does."""
    by_script, by_commit = make(tmp_path / "script"), make(tmp_path / "commit")
    for project in (by_script, by_commit):
        work(project)
    assert run(os.fsencode(by_commit), "commit", "--yes", "--trusted").code == 0
    run_script(by_script)
    assert attributes(by_script) == attributes(by_commit)


def test_an_ordinary_users_script_carries_over_what_a_mode_forbids_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the session and those that are kept have their modes again, too."""

    def check(place: Path) -> None:
        project = place / "p"
        project.mkdir()
        for name in ("gone", "written"):
            (project / name).write_text("base\n")
            (project / name).chmod(0o200)
            (project / f"{name}, other name").hardlink_to(project / name)
        view = CoreDriver(os.fsencode(project))
        view.create(b"new", b"secret\n", 0o200)
        view.overwrite(b"written", b"new\n")
        view.unlink(b"gone")
        view.close()
        run_script(project)
        names = ("new", "written", "written, other name", "gone, other name")
        assert [stat.S_IMODE((project / name).stat().st_mode) for name in names] == [0o200] * 4
        kept = [*project.glob(".yolofs-script-*/replaced/*"), *(project / ".yolofs/files").glob("0*/*")]
        assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o200}
        assert len(kept) == 4
        for path in (*project.iterdir(), *kept):
            if path.is_file():
                path.chmod(0o600)
        texts = [(project / name).read_text() for name in names]
        assert texts == ["secret\n", "new\n", "new\n", "base\n"]
        assert [path.read_text() for path in kept[:2]] == ["base\n"] * 2

    as_user(check, monkeypatch, is_root=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a second device")
def test_another_name_of_a_file_on_another_disk_is_a_copy_and_a_dry_run_says_so(tmp_path: Path) -> None:
    project = tmp_path / "p"
    far = project / "far"
    far.mkdir(parents=True)
    (project / "old").write_text("old\n")
    with mounted_disk(far):
        view = CoreDriver(os.fsencode(project))
        view.create(b"new", b"new\n", 0o644)
        view.link(b"new", b"far/new")
        view.link(b"old", b"far/old")
        view.close()
        said = run(os.fsencode(project), "commit", "--dry-run").out
        assert f"copy {project}/old to {far}/old\n" in said
        run_script(project)
        assert [(far / name).read_text() for name in ("new", "old")] == ["new\n", "old\n"]
