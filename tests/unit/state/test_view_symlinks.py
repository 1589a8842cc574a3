"""Links on a path that only a state has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.scribe import Scribe
from yolofs.state.view_symlinks import StateLinks
from yolofs.system.symlinks import follow_parent


@pytest.fixture
def scribe(tmp_path: Path) -> Scribe:
    base = tmp_path / "base"
    (base / "d/sub").mkdir(parents=True)
    (base / "to-d").symlink_to("d")
    return Scribe(bytes(base), bytes(tmp_path / "store"))


def follow(scribe: Scribe, path: str) -> str:
    """Return where a path relative to base leads, relative to base if it is in there."""
    links = StateLinks(scribe.tree, scribe.base, scribe.store)
    place = follow_parent(scribe.base.path(path.encode()), links.target_if_base_has_none).place
    return os.fsdecode(place.removeprefix(scribe.base.root + b"/"))


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


def test_a_circle_is_not_followed_and_a_link_out_of_base_is(scribe: Scribe) -> None:
    scribe.symlink(b"circle", b"circle")
    scribe.symlink(b"out", b"/nowhere/else")
    assert follow(scribe, "circle/x") == "circle/x"
    assert follow(scribe, "out/x") == "/nowhere/else/x"


def test_the_view_has_the_last_word_where_it_is_asked(scribe: Scribe) -> None:
    scribe.remove(b"to-d")
    scribe.symlink(b"to-d", b"elsewhere")
    scribe.remove(b"d/sub")
    target_of = StateLinks(scribe.tree, scribe.base, scribe.store).target
    assert target_of(scribe.base.path(b"to-d")) == b"elsewhere"
    assert target_of(scribe.base.path(b"d/sub")) is None
    assert target_of(b"/proc/self/root") == b"/"
