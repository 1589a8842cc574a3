"""An ordinary user's directories, opened up for a commit's work, are closed whatever fails."""

from __future__ import annotations

import errno
import os
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.killed_command import as_user, run
from yolofs.commit.apply.steps import Steps
from yolofs.commit.plan.plan import Step

pytestmark = pytest.mark.timeout(120)


def looks(project: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and content of all in a project."""
    return {
        str(path.relative_to(project)): (
            stat.S_IMODE(path.lstat().st_mode),
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(project.rglob("*"))
        if path.name != ".yolofs"
    }


def closed_directory(place: Path) -> Path:
    """Make a project with a directory that forbids writing."""
    project = place / "p"
    project.mkdir()
    (project / "a").write_text("base")
    (project / "d").mkdir()
    (project / "d/f").write_text("base")
    (project / "d").chmod(0o500)
    return project


@pytest.mark.parametrize("lasts", [False, True], ids=["for a moment", "for good"])
def test_a_mode_that_cannot_be_given_back_does_not_hide_that_a_step_failed(
    monkeypatch: pytest.MonkeyPatch, lasts: bool
) -> None:
    def check(place: Path) -> None:
        project = closed_directory(place)
        view = CoreDriver(os.fsencode(project))
        view.chmod(b"d", 0o700)
        view.create(b"d/n1", b"1", 0o644)
        view.create(b"d/n2", b"2", 0o644)
        view.chmod(b"d", 0o500)
        view.overwrite(b"a", b"new")
        view.close()
        before = looks(project)
        really_do, really_chmod, refuses = Steps.do, os.chmod, False

        def do(self: Steps, step: Step) -> None:
            nonlocal refuses
            if refuses:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            really_do(self, step)
            refuses = step.path.startswith(b"d/n")

        def chmod(path: bytes, mode: int, **options: Any) -> None:
            nonlocal refuses
            if refuses and path.startswith(b"/proc/self/fd/"):
                refuses = lasts
                raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), path)
            really_chmod(path, mode, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Steps, "do", do)
            patch.setattr(os, "chmod", chmod)
            ran = run(os.fsencode(project), "commit", "--yes")
        assert "the commit stopped at step" in ran.err, ran
        if lasts:
            assert ran.code == 12
            assert "it could not be taken back either" in ran.err
            assert "yolofs commit --continue, or yolofs commit --roll-back" in ran.err
            assert run(os.fsencode(project), "commit", "--roll-back").code == 0
        else:
            assert ran.code == 18, ran
            assert "base is as it was, and all stays staged" in ran.err
        assert looks(project) == before
        assert run(os.fsencode(project), "commit", "--yes").code == 0
        assert (project / "d/n2").read_text() == "2"
        assert stat.S_IMODE((project / "d").stat().st_mode) == 0o500

    as_user(check, monkeypatch, is_root=False)


@pytest.mark.parametrize("end", ["--roll-back", "--continue"])
@pytest.mark.parametrize("how", ["removed", "moved"])
@pytest.mark.some(2)
def test_a_directory_that_a_kill_left_opened_up_to_be_moved_is_closed_again(
    monkeypatch: pytest.MonkeyPatch, how: str, end: str
) -> None:
    def check(place: Path) -> None:
        project = closed_directory(place)
        (project / "e").mkdir()
        view = CoreDriver(os.fsencode(project))
        if how == "removed":
            view.chmod(b"d", 0o700)
            view.unlink(b"d/f")
            view.rmdir(b"d")
        else:
            view.rename(b"d", b"e/d")
        view.close()
        before, really_chmod = looks(project), os.chmod

        def chmod(path: bytes, mode: int, **options: Any) -> None:
            really_chmod(path, mode, **options)
            if mode == 0o700:
                os.kill(os.getpid(), signal.SIGKILL)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "chmod", chmod)
            assert run(os.fsencode(project), "commit", "--yes").is_killed
        assert stat.S_IMODE((project / "d").stat().st_mode) == 0o700
        assert run(os.fsencode(project), "commit", end).code == 0
        if end == "--continue":
            undone = run(os.fsencode(project), "undo", "--yes")
            assert undone.code == 0, undone
        assert looks(project) == before

    as_user(check, monkeypatch, is_root=False)


@pytest.mark.parametrize("change", ["content", "mode"])
def test_what_lies_in_a_directory_that_cannot_be_listed_is_changed_under_a_name_that_nobody_has_looked_at(
    monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """That is made durable at once, before anything moves."""

    def check(place: Path) -> None:
        project = closed_directory(place)
        (project / "d").chmod(0o700)
        os.link(project / "d/f", project / "d/other name")
        (project / "d").chmod(0o300)
        view = CoreDriver(os.fsencode(project))
        if change == "content":
            view.overwrite(b"d/f", b"new")
        else:
            view.chmod(b"d/f", 0o600)
        view.unlink(b"d/f")
        view.close()
        ran = run(os.fsencode(project), "commit", "--yes")
        assert ran.code == 0, ran
        assert stat.S_IMODE((project / "d").stat().st_mode) == 0o300
        (project / "d").chmod(0o700)
        assert [path.name for path in (project / "d").iterdir()] == ["other name"]
        assert (project / "d/other name").read_text() == ("new" if change == "content" else "base")
        assert change == "content" or stat.S_IMODE((project / "d/other name").stat().st_mode) == 0o600

    as_user(check, monkeypatch, is_root=False)
