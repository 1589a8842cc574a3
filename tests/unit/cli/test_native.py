"""Which directories lie on a disk as a whole, by the mount table."""

from __future__ import annotations

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
        ([ROOT, ("/usr/local", "ext4")], False),
        ([ROOT, ("/usr/bin/tool", "ext4")], False),
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
