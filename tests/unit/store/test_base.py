"""Base: its paths, its numbers, and what in it is hidden or pseudo."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from yolofs.paths import RelPath
from yolofs.store.base import PSEUDO_TYPES, Base
from yolofs.system.mount_table import mounted_paths

MOUNTINFO = (
    b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    b"23 22 0:21 / /proc rw,nosuid - proc proc rw\n"
    b"30 22 0:40 / /home rw shared:9 master:2 - autofs systemd-1 rw,fd=1\n"
    b"31 30 0:41 / /home/a\\040b\\011c rw - nfs4 server:/x rw\n"
    b"32 22 0:42 / /mnt/x rw - fuse.yolofs yolofs rw\n"
    b"33 32 8:2 / /mnt/x rw - ext4 /dev/sdb1 rw\n"
)


@pytest.fixture
def base(tmp_path: Path) -> Base:
    (tmp_path / "project/.yolofs").mkdir(parents=True)
    (tmp_path / "project/f").write_bytes(b"x")
    (tmp_path / "run/yolofs/1").mkdir(parents=True)
    root = os.fsencode(tmp_path)
    return Base(root, hidden=[root + b"/project/.yolofs"], runtime=[root + b"/run/yolofs"])


def test_mounts_are_read_with_their_escapes_undone() -> None:
    assert list(mounted_paths(MOUNTINFO.splitlines(keepends=True))) == [
        (b"/", b"ext4"),
        (b"/proc", b"proc"),
        (b"/home", b"autofs"),
        (b"/home/a b\tc", b"nfs4"),
        (b"/mnt/x", b"fuse.yolofs"),
        (b"/mnt/x", b"ext4"),
    ]


def test_automounted_homes_are_no_pseudo_filesystems() -> None:
    assert b"autofs" not in PSEUDO_TYPES
    assert {b"proc", b"sysfs", b"devtmpfs", b"fuse.yolofs"} <= PSEUDO_TYPES


def test_the_whole_machine_has_proc_sys_and_dev_as_pseudo_directories() -> None:
    base = Base(b"/")
    for path in (b"proc", b"sys", b"dev"):
        assert base.is_pseudo(path)
        assert base.names(path) == []
        assert stat.S_ISDIR(base.lstat(path).st_mode)
        assert base.is_pinned(path)
    assert not base.is_pseudo(b"etc")
    assert b"passwd" in base.names(b"etc")
    assert base.path(b"etc") == b"/etc"
    assert base.relative(b"/etc/passwd") == b"etc/passwd"


def test_the_session_directory_is_hidden(base: Base) -> None:
    assert base.names(b"project") == [b"f"]
    assert base.is_hidden_name(b"project", b".yolofs")
    assert not base.is_hidden_name(b"project", b"f")
    with pytest.raises(FileNotFoundError):
        base.lstat(b"project/.yolofs")
    assert base.is_pinned(b"project")
    assert base.hidden_in(b"project") == 1


def test_other_sessions_are_hidden_and_other_directories_of_that_name_are_not(base: Base, tmp_path: Path) -> None:
    (tmp_path / "project/sub/.yolofs").mkdir(parents=True)
    assert base.names(b"project/sub") == [b".yolofs"]
    (tmp_path / "project/sub/.yolofs/journal").write_bytes(b"")
    assert base.names(b"project/sub") == []
    assert base.is_hidden_name(b"project/sub", b".yolofs")


def test_the_runtime_directory_is_empty(base: Base) -> None:
    assert base.names(b"run/yolofs") == []
    assert base.names(b"run") == [b"yolofs"]


def test_a_path_outside_of_base_has_no_path_in_it(base: Base, tmp_path: Path) -> None:
    assert base.relative(os.fsencode(tmp_path)) == b""
    assert base.relative(os.fsencode(tmp_path.parent)) is None
    assert base.relative(os.fsencode(str(tmp_path) + "x/y")) is None


def test_numbers_are_the_disks_own_but_for_the_root_and_other_devices(base: Base, tmp_path: Path) -> None:
    st = os.lstat(tmp_path / "project/f")
    assert base.number(st) == st.st_ino
    assert base.number(os.lstat(tmp_path)) == 1
    elsewhere = os.lstat("/proc/self/status")
    assert base.number(elsewhere) != elsewhere.st_ino
    assert base.number_of_path(b"a") != base.number_of_path(b"b")


def test_no_two_disks_share_their_numbers(base: Base) -> None:
    # Anonymous devices (tmpfs, btrfs, overlayfs): the lower bits of 0:40 and 0:296 are the same
    devices = [os.makedev(0, minor) for minor in range(40, 40 + 256 * 64, 256)]
    sts = [os.stat_result((stat.S_IFREG, ino, device, *[0] * 7)) for device in devices for ino in (2, 3, 1 << 40)]
    numbers = [base.number(st) for st in sts]
    assert len(set(numbers)) == len(sts)
    assert [base.number(st) for st in reversed(sts)] == numbers[::-1]
    assert not {st.st_ino for st in sts} & set(numbers)


def test_reading_leaves_access_times_alone(base: Base, tmp_path: Path) -> None:
    file = tmp_path / "project/f"
    os.utime(file, ns=(1, 2))
    os.utime(file.parent, ns=(1, 2))
    fd = base.open(RelPath(b"project/f"))
    assert os.read(fd, 1) == b"x"
    os.close(fd)
    base.names(b"project")
    assert file.stat().st_atime_ns == 1
    assert file.parent.stat().st_atime_ns == 1
