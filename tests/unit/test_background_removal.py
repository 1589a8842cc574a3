from __future__ import annotations

from collections import deque
from pathlib import Path

import pytest

from tests.support import removal


def test_all_but_the_newest_directories_are_removed_between_two_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "_made", deque())
    monkeypatch.setattr(removal, "_removing", [])
    made = [tmp_path / str(number) for number in range(removal.KEPT + removal.AT_ONCE)]
    for directory in made:
        removal.go_on()
        directory.mkdir()
        (directory / "file").write_text("x")
        removal.of(directory)
    assert all(directory.exists() for directory in made)
    removal.go_on()
    removal.wait()
    assert [directory for directory in made if directory.exists()] == made[-removal.KEPT :]
