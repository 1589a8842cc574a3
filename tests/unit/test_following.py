"""Links on a path that only a state has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.scribe import Scribe
from yolofs.following import follow_links
from yolofs.paths import parse_relpath


@pytest.fixture
def scribe(tmp_path: Path) -> Scribe:
    base = tmp_path / "base"
    (base / "d/sub").mkdir(parents=True)
    (base / "to-d").symlink_to("d")
    return Scribe(bytes(base), bytes(tmp_path / "store"))


def follow(scribe: Scribe, path: str) -> str:
    return os.fsdecode(follow_links(scribe.tree, scribe.base, scribe.store, parse_relpath(path.encode())))


def test_links_that_only_the_view_has_are_followed_but_for_the_last_component(scribe: Scribe, tmp_path: Path) -> None:
    scribe.symlink(b"link", b"d/sub")
    scribe.symlink(b"d/up", b"../link/.")
    scribe.symlink(b"absolute", bytes(tmp_path / "base/d"))
    scribe.symlink(b"by-base", b"to-d/sub")
    for path, led_to in (
        ("link/x", "d/sub/x"),
        ("link", "link"),
        ("d/up", "d/up"),
        ("d/up/x/y", "d/sub/x/y"),
        ("absolute/sub/x", "d/sub/x"),
        ("by-base/x", "d/sub/x"),
        ("nowhere/x", "nowhere/x"),
        ("d/sub/x", "d/sub/x"),
    ):
        assert follow(scribe, path) == led_to


def test_what_base_has_counts_also_where_the_view_has_a_link(scribe: Scribe) -> None:
    """It may be what was deleted there that is asked for."""
    (Path(os.fsdecode(scribe.base.root)) / "d/file").touch()
    scribe.remove(b"d/file")
    scribe.remove(b"d/sub")
    scribe.remove(b"d")
    scribe.symlink(b"d", b"elsewhere")
    assert follow(scribe, "d/file") == "d/file"


def test_a_circle_and_a_way_out_are_errors(scribe: Scribe) -> None:
    scribe.symlink(b"circle", b"circle")
    scribe.symlink(b"out", b"/nowhere/else")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        follow(scribe, "circle/x")
    with pytest.raises(ValueError, match="/nowhere/else"):
        follow(scribe, "out/x")
