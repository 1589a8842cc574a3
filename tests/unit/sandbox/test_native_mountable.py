"""Which directories lie on a disk as a whole, by the mount table."""

from __future__ import annotations

from pathlib import Path

import pytest

from yolofs.sandbox.native_mountable import bindable, by_directory
from yolofs.system.mounts import MountEntry


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


def test_parts_are_told_by_the_highest_directory_in_which_nothing_is_mounted(tmp_path: Path) -> None:
    mounts = table(ROOT, ("/proc", "proc"), ("/run/x/mnt", "fuse.yolofs"), ("/home/data", "ext4"), ("/srv", "xfs"))
    assert by_directory(
        [b"/usr/lib/a", b"/usr/lib/b", b"/etc/ld.so.cache", b"/home/user/.local/bin", b"/home/user/.x", b"/srv/y/z"],
        mounts,
    ) == {
        b"/usr": [b"/usr/lib/a", b"/usr/lib/b"],
        b"/etc": [b"/etc/ld.so.cache"],
        b"/home/user": [b"/home/user/.local/bin", b"/home/user/.x"],
        b"/srv": [b"/srv/y/z"],
    }
    assert by_directory(
        [bytes(tmp_path)], table(ROOT, ("/proc", "proc"), (str(tmp_path.parent / "other"), "ext4"))
    ) == {bytes(tmp_path): [bytes(tmp_path)]}


def test_what_lies_beside_mounts_is_told_as_lying_in_the_root(tmp_path: Path) -> None:
    """As in a container, where /etc/hosts is mounted: of that no overlay can be made."""
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    mounts = table(ROOT, (str(tmp_path / "hosts"), "ext4"))
    for name in ("file", "link"):
        path = bytes(tmp_path / name)
        assert by_directory([path], mounts) == {b"/": [path]}
        hidden = [*mounts, *table((str(tmp_path), "ext4"))]
        assert by_directory([path], hidden) == ({b"/": [path]} if name == "link" else {})
