"""Symbolic links that are followed without the kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yolofs.system.symlinks import FollowedPath, Follower, HostLinks, follow, follow_parent

LINKS = {
    b"/a": b"b/c",
    b"/b/c/up": b"../d",
    b"/b/back": b"/a/up/",
    b"/round": b"about",
    b"/about": b"./round",
}


@pytest.mark.parametrize(
    ("path", "way"),
    [
        (b"/", FollowedPath(b"/")),
        (b"//x//./y/", FollowedPath(b"/x/y")),
        (b"/a/x", FollowedPath(b"/b/c/x", (b"/a",))),
        (b"/a/up", FollowedPath(b"/b/d", (b"/a", b"/b/c/up"), (b"/b/c",))),
        (b"/b/back/z", FollowedPath(b"/b/d/z", (b"/b/back", b"/a", b"/b/c/up"), (b"/b/c",))),
        (b"/..", FollowedPath(b"/", (), (b"/",))),
        (b"/round/x", FollowedPath(b"/round/x", (b"/round", b"/about"), (), is_circle=True)),
    ],
)
def test_a_path_is_followed_through_its_links(path: bytes, way: FollowedPath) -> None:
    assert follow(path, LINKS.get) == way


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (b"/a", b"/a"),
        (b"/a/up", b"/b/c/up"),
        (b"/a/", b"/b/c"),
        (b"/a/up/.", b"/b/d"),
        (b"/b/back/..", b"/b"),
        (b"/round/x", b"/round/x"),
        (b"/", b"/"),
    ],
)
def test_the_last_component_is_followed_only_if_more_comes_behind_it(path: bytes, place: bytes) -> None:
    assert follow_parent(path, LINKS.get).place == place


@pytest.mark.parametrize(("count", "is_circle"), [(40, False), (41, True)])
def test_as_many_links_are_followed_as_the_kernel_follows(tmp_path: Path, count: int, is_circle: bool) -> None:
    (tmp_path / "0").touch()
    for number in range(1, count + 1):
        (tmp_path / str(number)).symlink_to(str(number - 1))
    path = bytes(tmp_path / str(count))
    links = {bytes(link): os.fsencode(link.readlink()) for link in tmp_path.iterdir() if link.is_symlink()}
    assert follow(path, links.get).is_circle is is_circle
    if is_circle:
        with pytest.raises(OSError, match="Too many levels"):
            os.stat(path)
    else:
        os.stat(path)


def test_of_many_paths_each_is_followed_as_if_it_were_the_only_one() -> None:
    paths = [b"/", b"/b", b"/b/c", b"/b/c/x", b"/b/c/up", b"/b/c/up/y", b"/b/back", b"/a", b"/a/x", b"/round", b"/b/z"]
    for order in (paths, paths[::-1]):
        follower = Follower(LINKS.get)
        assert [follower.follow(path) for path in order] == [follow(path, LINKS.get) for path in order]


def test_a_link_of_the_host_is_looked_at_once_and_nothing_below_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    links, top = HostLinks(), os.fsencode(tmp_path)
    for _ in range(2):
        assert links.target(top + b"/link") == b"target"
        assert links.target(top + b"/gone") is None
        (tmp_path / "link").unlink(missing_ok=True)
    assert links.missing == {top + b"/gone"}
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone/later").symlink_to("target")
    assert links.target(top + b"/gone/later") is None
    assert HostLinks().target(top + b"/gone/later") == b"target"
