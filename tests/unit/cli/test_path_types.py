"""What click is told of paths: nothing is refused that a command could do."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click
import pytest

from tests.support.user_identity import in_child
from yolofs.cli.path_types import PATH, ExistingDirectory


def test_a_path_that_the_user_may_not_read_may_be_named() -> None:
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        closed = Path(place, "closed")
        closed.touch()
        closed.chmod(0)

        def convert() -> None:
            assert not os.access(closed, os.R_OK)
            assert PATH.convert(str(closed), None, None) == os.fsencode(closed)

        assert in_child(convert, is_root=False) == 0


def test_a_directory_has_to_be_there(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    directory = ExistingDirectory()
    assert directory.convert(str(tmp_path), None, None) == os.fsencode(tmp_path)
    for name, said in (("none", "does not exist"), ("file", "is a file"), ("file/x", "does not exist")):
        with pytest.raises(click.BadParameter, match=said):
            directory.convert(str(tmp_path / name), None, None)
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(OSError, match="symbolic link"):
        directory.convert(str(tmp_path / "link"), None, None)
