"""Finding the names of hard links in base: near ones first, all of them if there is time, none that
is not shown.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.too_deep import steps_down
from yolofs.paths import RelPath, StoreIno
from yolofs.state.link_names import find_name_near, find_names
from yolofs.state.tree import Staged
from yolofs.store.base import Base

NAMES = ("p/q/one", "p/q/below/two", "p/three", "x/y/z/four")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "base"
    for name in NAMES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / NAMES[0]).write_bytes(b"")
    for name in NAMES[1:]:
        (root / name).hardlink_to(root / NAMES[0])
    return root


def staged(base: Base, home: bytes) -> Staged:
    fingerprint = base.fingerprint(base.lstat(home))
    return Staged(StoreIno(1), None, -fingerprint.ino, fingerprint, home=RelPath(home), links=4)


@pytest.mark.parametrize("home", NAMES)
def test_all_names_of_a_file_are_found_from_any_of_them(root: Path, home: str) -> None:
    base = Base(os.fsencode(root))
    found = find_names(base, [staged(base, home.encode())])
    assert sorted(found) == sorted(name.encode() for name in NAMES)


def test_names_near_the_known_one_are_found_before_the_limit(root: Path) -> None:
    for number in range(100):
        (root / "x" / str(number)).write_bytes(b"")
    base = Base(os.fsencode(root))
    assert set(find_names(base, [staged(base, b"p/q/one")], limit=12)) == {b"p/q/one", b"p/q/below/two", b"p/three"}


def test_several_files_are_found_in_one_search(root: Path) -> None:
    (root / "other").write_bytes(b"")
    (root / "p/other").hardlink_to(root / "other")
    base = Base(os.fsencode(root))
    found = find_names(base, [staged(base, b"p/q/one"), staged(base, b"other")])
    assert set(found) == {*(name.encode() for name in NAMES), b"other", b"p/other"}


def test_hidden_names_are_passed_over(root: Path) -> None:
    (root / "x/y").rename(root / ".yolofs")
    base = Base(os.fsencode(root), hidden=[os.fsencode(root / ".yolofs")])
    assert set(find_names(base, [staged(base, b"p/q/one")])) == {name.encode() for name in NAMES[:3]}


def test_a_file_that_the_host_has_replaced_is_not_looked_for(root: Path) -> None:
    base = Base(os.fsencode(root))
    file = staged(base, b"p/q/one")
    (root / "p/q/one").unlink()
    assert find_names(base, [file]) == []


def test_names_too_deep_for_a_path_are_passed_over(root: Path) -> None:
    """Any user may make such a directory: no reason for a commit to fail."""
    with steps_down(root) as steps:
        for _ in steps:
            os.link(root / NAMES[0], "linked")
    base = Base(os.fsencode(root))
    found = find_names(base, [staged(base, b"p/q/one")])
    assert {name.encode() for name in NAMES} < set(found)
    assert len(found) < 44


def test_a_link_in_the_place_of_a_directory_has_no_names(root: Path) -> None:
    base = Base(os.fsencode(root))
    st = base.lstat(RelPath(b"x/y/z/four"))
    file = base.on_disk(st.st_dev, st.st_ino)
    (root / "p").rename(root / "moved")
    (root / "p").symlink_to("moved")
    assert find_name_near(base, [file], RelPath(b"p/q/one")) in {b"moved/three", b"x/y/z/four"}
