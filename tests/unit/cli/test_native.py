"""Which directories lie on a disk as a whole, by the mount table."""

from __future__ import annotations

from pathlib import Path

import pytest

from yolofs.cli.native import bindable
from yolofs.daemon.mounts import MountEntry


def table(*lines: tuple[str, str]) -> list[MountEntry]:
    return [MountEntry(number, b"8:1", place.encode(), kind.encode()) for number, (place, kind) in enumerate(lines, 10)]


ROOT = ("/", "ext4")


@pytest.mark.parametrize(
    ("mounts", "bound"),
    [
        ([ROOT], True),
        ([ROOT, ("/usr", "ext4")], True),
        ([ROOT, ("/usr", "squashfs")], True),
        ([ROOT, ("/usrlocal", "tmpfs")], True),
        ([ROOT, ("/usr", "fuse.sshfs")], False),
        ([ROOT, ("/usr", "autofs")], False),
        ([ROOT, ("/usr", "ext4"), ("/usr", "autofs")], False),
        ([ROOT, ("/usr", "autofs"), ("/usr", "nfs")], True),
        ([("/", "fuse.other")], False),
        ([("/", "fuse.other"), ("/", "ext4")], True),
        ([], False),
    ],
)
def test_a_directory_is_bindable_if_it_lies_on_a_disk_as_a_whole(mounts: list[tuple[str, str]], *, bound: bool) -> None:
    assert bindable([b"/usr"], table(*mounts)) == ([b"/usr"] if bound else [])


def test_where_something_is_mounted_below_the_directories_beside_it_are_bindable(tmp_path: Path) -> None:
    for name in ("a", "b/c", "b/d"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "b/file").touch()
    top = str(tmp_path)
    for place, left in (
        (f"{top}/a", ["b"]),
        (f"{top}/b", ["a"]),
        (f"{top}/b/d", ["a", "b/c"]),
        (f"{top}/b/file", ["a", "b/c", "b/d"]),
    ):
        mounts = table(ROOT, (place, "ext4"))
        assert bindable([bytes(tmp_path)], mounts) == [bytes(tmp_path / name) for name in left]
    assert bindable([bytes(tmp_path)], table(("/", "fuse.other"), (f"{top}/a", "ext4"))) == []
