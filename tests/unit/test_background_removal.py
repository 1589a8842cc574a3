from __future__ import annotations

from collections import deque
from pathlib import Path

import pytest

from tests.support import background_removal


def test_all_but_the_newest_directories_are_removed_between_two_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_removal, "_made", deque())
    monkeypatch.setattr(background_removal, "_removing", [])
    made = [tmp_path / str(number) for number in range(background_removal.KEPT + background_removal.AT_ONCE)]
    for directory in made:
        background_removal.go_on()
        directory.mkdir()
        (directory / "file").write_text("x")
        background_removal.of(directory)
    assert all(directory.exists() for directory in made)
    background_removal.go_on()
    background_removal.wait()
    assert [directory for directory in made if directory.exists()] == made[-background_removal.KEPT :]
