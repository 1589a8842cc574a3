"""A store inode that is missing: somebody has deleted it, or the disk has lost it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.program import Program, wait_until

pytestmark = pytest.mark.mount

LOST = ("is missing",)


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    project = tmp_path / "project"
    (project / "dir/sub").mkdir(parents=True)
    (project / "dir/base").write_text("base\n")
    program = Program(project)
    program.start_session()
    return program


def lose(yolofs: Program, content: str) -> None:
    """Remove the store inode that has this content."""
    (found,) = [
        path for path in (yolofs.session / "files").glob("*/*") if path.is_file() and path.read_text() == content
    ]
    found.unlink()


def errno_of(call: Callable[[], object]) -> int:
    with pytest.raises(OSError, match=r".") as raised:
        call()
    assert raised.value.errno is not None
    return raised.value.errno


@pytest.mark.parametrize("is_remounted", [False, True])
def test_a_missing_store_inode_is_an_error_at_its_path_and_all_else_goes_on(
    yolofs: Program, is_remounted: bool
) -> None:
    with yolofs.mounted() as view:
        (view / "dir/lost").write_text("lost\n")
        (view / "dir/kept").write_text("kept\n")
        if not is_remounted:
            lose(yolofs, "lost\n")
            look(view)
    if is_remounted:
        lose(yolofs, "lost\n")
        with yolofs.mounted(expected_in_log=LOST) as view:
            for call in (Path.read_bytes, Path.stat, Path.unlink, lambda path: os.truncate(path, 1)):
                assert errno_of(partial(call, view / "dir/lost")) == errno.EIO
            assert errno_of(lambda: (view / "dir/kept").rename(view / "dir/lost")) == errno.EIO
            look(view)


def look(view: Path) -> None:
    """See that all but one file are as they were."""
    assert sorted(os.listdir(view / "dir")) == ["base", "kept", "lost", "sub"]
    assert (view / "dir").stat().st_nlink == 3
    assert (view / "dir/kept").read_text() == "kept\n"
    assert (view / "dir/base").read_text() == "base\n"
    (view / "dir/new").write_text("new\n")
    (view / "dir/made").mkdir()
    assert (view / "dir").stat().st_nlink == 4
    (view / "dir/made").rmdir()
    (view / "dir/new").unlink()


def test_a_change_by_the_host_beside_a_lost_directory_shows(yolofs: Program) -> None:
    (yolofs.project / ".yolofs.toml").write_text("[mount]\nbase_timeout = 1.0\nwatched_timeout = 3600.0\n")
    with yolofs.mounted(expected_in_log=LOST) as view:
        (view / "dir/sub").chmod(0o700)
        assert not (view / "dir/later").exists()
        wait_until(lambda: "the project is watched" in yolofs.log, "the watch")
        assert not (view / "dir/later").exists()
        (lost,) = (path for path in (yolofs.session / "files").glob("*/*") if path.is_dir())
        lost.rmdir()
        (yolofs.project / "dir/sub/file").write_text("of the host\n")  # told together with the next one
        (yolofs.project / "dir/later").write_text("later\n")
        wait_until((view / "dir/later").exists, "the host's file")
        assert errno_of((view / "dir/sub").stat) == errno.EIO
