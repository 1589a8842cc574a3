"""Moving a directory name by name, with somebody else's directory in the way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yolofs.commit.apply import by_names

SOMEBODY = 12345


def moved(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
    try:
        by_names.move((fd, b"old"), (fd, b"new"), by_names.listing_of((fd, b"old")))
    finally:
        os.close(fd)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "old/inner").mkdir(parents=True)
    (tmp_path / "old/inner/file").write_text("x")
    return tmp_path


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory for somebody else")
@pytest.mark.parametrize("place", ["new", "new/inner"])
def test_nothing_is_moved_into_a_directory_that_somebody_else_has_made_there(tree: Path, place: str) -> None:
    (tree / place).mkdir(parents=True)
    (tree / place / ".envrc").write_text("planted")
    os.chown(tree / place, SOMEBODY, SOMEBODY)
    with pytest.raises(FileExistsError):
        moved(tree)
    assert (tree / "old/inner/file").read_text() == "x"


def test_a_move_that_was_interrupted_goes_on_in_what_it_has_made(tree: Path) -> None:
    (tree / "new/inner").mkdir(parents=True)
    moved(tree)
    assert (tree / "new/inner/file").read_text() == "x"
    assert not (tree / "old").exists()
