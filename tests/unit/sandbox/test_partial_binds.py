"""The parts of a directory that can be bound where something in it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from yolofs.sandbox import partial_binds as parts_module
from yolofs.sandbox.partial_binds import apart, directories_beside


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Return a directory with directories in it, and a link."""
    for name in ("a/one", "a/two", "b", "c/deep/deeper"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("b")
    return tmp_path


@pytest.mark.parametrize(
    ("obstacles", "left"),
    [
        ([], ["."]),
        (["/elsewhere", "{top}2/x"], ["."]),
        (["{top}"], []),
        (["{top}/."], ["a", "b", "c"]),
        (["{top}/file"], ["a", "b", "c"]),
        (["{top}/link"], ["a", "b", "c"]),
        (["{top}/a/socket"], ["b", "c", "a/one", "a/two"]),
        (["{top}/a/one"], ["b", "c", "a/two"]),
        (["{top}/a/one", "{top}/a/two/x"], ["b", "c"]),
        (["{top}/a/one", "{top}/c/deep/deeper/x"], ["b", "a/two"]),
        (["{top}/not/there"], ["a", "b", "c"]),
    ],
)
def test_partial_binds_are_the_highest_directories_without_an_obstacle(
    top: Path, obstacles: list[str], left: list[str]
) -> None:
    given = [path.format(top=top).encode() for path in obstacles]
    assert directories_beside(bytes(top), given) == [bytes(top / name) for name in left]


def test_where_there_would_be_too_many_those_far_down_are_left_out(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_module, "MOST_PARTS", 4)
    for number in range(5):
        (top / f"a/{number}").mkdir()
    assert directories_beside(bytes(top), [bytes(top / "a/socket")]) == [bytes(top / "b"), bytes(top / "c")]


def test_of_paths_below_each_other_the_highest_are_left() -> None:
    assert apart([b"/b/file", b"/a", b"/a/b", b"/b/c", b"/a-b", b"/b/c"]) == [b"/a", b"/a-b", b"/b/c", b"/b/file"]
