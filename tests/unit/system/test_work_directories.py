"""Directories of one command: they go with it, and what a killed one leaves is found."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from yolofs.system.work_directories import left_behind, remove_left_behind, work_directory


def killed_in_one(place: Path) -> None:
    """Make a directory in a child that is killed in it."""
    child = os.fork()
    if not child:
        try:
            with work_directory(bytes(place), "edit") as path:
                Path(os.fsdecode(path), "hunk.diff").write_text("x")
                os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_a_work_directory_lasts_for_the_block_and_is_this_users_alone(tmp_path: Path) -> None:
    with work_directory(bytes(tmp_path), "review") as path:
        directory = Path(os.fsdecode(path))
        assert directory.parent == tmp_path
        assert directory.stat().st_mode & 0o777 == 0o700
        (directory / "left/deep").mkdir(parents=True)
        (directory / "left/deep").chmod(0)
        assert left_behind(bytes(tmp_path)) == []
        remove_left_behind(bytes(tmp_path))
        assert (directory / "left").is_dir()
    assert list(tmp_path.iterdir()) == []


def test_a_work_directory_goes_with_an_error_and_may_be_gone_already(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="in it"), work_directory(bytes(tmp_path), "merge"):
        raise ValueError("in it")
    with work_directory(bytes(tmp_path), "undo") as path:
        os.unlink(path + b"/.lock")
        os.rmdir(path)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_command_has_left_is_found_and_removed(tmp_path: Path) -> None:
    killed_in_one(tmp_path)
    (left,) = tmp_path.iterdir()
    assert left_behind(bytes(tmp_path)) == [bytes(left)]
    assert (left / "hunk.diff").read_text() == "x"
    with work_directory(bytes(tmp_path), "edit") as path:
        remove_left_behind(bytes(tmp_path))
        assert [bytes(one) for one in tmp_path.iterdir()] == [path]


def test_a_work_directory_whose_command_was_killed_before_it_was_locked_is_found(tmp_path: Path) -> None:
    (tmp_path / "diff-0_abcdef").mkdir()  # as an earlier version called them, too
    assert left_behind(bytes(tmp_path)) == [bytes(tmp_path / "diff-0_abcdef")]
    remove_left_behind(bytes(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_nothing_else_is_taken_for_a_work_directory(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").touch()
    place = tmp_path / "place"
    place.mkdir()
    (place / "review-01234567").symlink_to(elsewhere)
    (place / "undo-01234567").touch()
    (place / "other-01234567").mkdir()
    (place / "review-01234567x").mkdir()
    (place / "edit-01234567").mkdir()
    (place / "edit-01234567/.lock").symlink_to(elsewhere / "mine")
    before = sorted(place.iterdir())
    remove_left_behind(bytes(place))
    assert sorted(place.iterdir()) == before
    assert [path.name for path in elsewhere.iterdir()] == ["mine"]


def test_a_work_directory_that_is_removed_while_it_is_made_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, made = os.mkdir, []

    def mkdir(path: bytes, mode: int) -> None:
        really(path, mode)
        made.append(path)
        if len(made) == 1:
            remove_left_behind(bytes(tmp_path))

    monkeypatch.setattr(os, "mkdir", mkdir)
    with work_directory(bytes(tmp_path), "diff") as path:
        assert path == made[1]
        assert os.path.isdir(path)
