"""Finding the names of hard links where others mount and unmount meanwhile."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.second_disk import mounted_disk
from yolofs.paths import RelPath
from yolofs.state import link_names
from yolofs.state.link_names import find_names_at
from yolofs.store.base import Base
from yolofs.store.base_opening import open_noatime

pytestmark = [pytest.mark.mount, pytest.mark.root_only]


def test_a_mount_that_has_come_since_and_whose_server_is_gone_holds_no_names(tmp_path: Path) -> None:
    top = tmp_path / "base"
    (top / "other/mounted").mkdir(parents=True)
    (top / "one").write_bytes(b"")
    for name in (top / "other/two", tmp_path / "that is not found, so all is searched"):
        name.hardlink_to(top / "one")
    base = Base(os.fsencode(top))
    server = os.open("/dev/fuse", os.O_RDWR)
    try:
        options = f"fd={server},rootmode=40000,user_id=0,group_id=0"
        mount = ["mount", "-i", "-t", "fuse", "-o", options, "gone", str(top / "other/mounted")]
        subprocess.run(mount, check=True, pass_fds=[server])
    finally:
        os.close(server)
    try:
        with pytest.raises(OSError, match="not connected") as failure:
            os.listdir(top / "other/mounted")
        assert failure.value.errno == errno.ENOTCONN
        assert sorted(find_names_at(base, RelPath(b"one"))[0]) == [b"one", b"other/two"]
    finally:
        subprocess.run(["umount", top / "other/mounted"], check=True)


@pytest.mark.parametrize("error", [errno.ENOTCONN, errno.ECONNABORTED])
def test_a_mount_whose_server_ends_between_open_and_listing_holds_no_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    top = tmp_path / "base"
    (top / "other").mkdir(parents=True)
    (top / "one").write_bytes(b"")
    (top / "other/two").hardlink_to(top / "one")
    really = os.scandir

    def scandir(directory: int) -> Iterator[os.DirEntry[str]]:
        if os.readlink(f"/proc/self/fd/{directory}") == str(top / "other"):
            raise OSError(error, os.strerror(error))
        return really(directory)

    monkeypatch.setattr(os, "scandir", scandir)
    assert find_names_at(Base(os.fsencode(top)), RelPath(b"one"))[0] == [b"one"]


def test_the_search_for_link_names_lists_nothing_on_another_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No name can be there, and others count who lists what they have mounted."""
    top = tmp_path / "base"
    top.mkdir()
    (top / "one").write_bytes(b"")
    (tmp_path / "that is not found, so all is searched").hardlink_to(top / "one")
    base = Base(os.fsencode(top))
    (top / "disk").mkdir()
    opened: list[bytes] = []

    def noted(path: bytes, flags: int) -> int:
        opened.append(path)
        return open_noatime(path, flags)

    monkeypatch.setattr(link_names, "open_noatime", noted)
    with mounted_disk(top / "disk", mib=8):
        (top / "disk/directory").mkdir()
        find_names_at(base, RelPath(b"one"))
    assert opened == [os.fsencode(top)]
