"""The mount table, and who is in a mount."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from yolofs.errors import MountError
from yolofs.system import mounts
from yolofs.system.mount_users import FileUse, UseKind, find_users
from yolofs.system.mounts import MountEntry, detach_stale, is_ours, read_mounts

LINE = rb"36 35 98:0 /mnt1 /a\040b\011c\134d rw,noatime master:1 - fuse.yolofs yolofs rw,errors=continue" + b"\n"


def test_a_line_with_escapes_and_optional_fields_is_read() -> None:
    entry = mounts._parse(LINE)
    assert entry is not None
    assert entry == MountEntry(36, b"98:0", b"/a b\tc\\d", b"fuse.yolofs")
    assert is_ours(entry)


def test_lines_that_make_no_sense_are_passed_over() -> None:
    assert mounts._parse(b"") is None
    assert mounts._parse(b"1 2 3\n") is None


def test_the_mounts_of_this_process_are_read() -> None:
    (root,) = [entry for entry in read_mounts() if entry.mountpoint == b"/"][-1:]
    st = os.stat("/")
    assert root.device == b"%d:%d" % (os.major(st.st_dev), os.minor(st.st_dev))


def test_detaching_leaves_other_filesystems_alone() -> None:
    with pytest.raises(MountError, match="already has a mount of type proc"):
        detach_stale(b"/proc")
    assert os.path.exists("/proc/self")


def test_nothing_is_detached_where_nothing_is_mounted(tmp_path: Path) -> None:
    assert detach_stale(os.fsencode(tmp_path)) == 0


@pytest.mark.parametrize(
    ("mode", "use"), [("r", UseKind.READING), ("w", UseKind.WRITING), ("a", UseKind.WRITING), ("r+", UseKind.WRITING)]
)
def test_open_files_are_found_with_how_they_are_open(tmp_path: Path, mode: str, use: UseKind) -> None:
    """Works for any mount: here for the one that the temporary directory is on."""
    path = tmp_path / "file"
    path.touch()
    with path.open(mode) as file, subprocess.Popen(["sleep", "60"], pass_fds=[file.fileno()], cwd="/proc") as child:
        found = [user for user in find_users(_mount_of(tmp_path)) if user.pid == child.pid]
        child.kill()
    assert FileUse(child.pid, "sleep", use, os.fsencode(path)) in found


def test_a_working_directory_is_found(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"], cwd=tmp_path) as child:
        found = [user for user in find_users(_mount_of(tmp_path)) if user.pid == child.pid]
        child.kill()
    assert FileUse(child.pid, "sleep", UseKind.INSIDE, os.fsencode(tmp_path)) in found
    assert str(found[0]).startswith(f"{child.pid} sleep /")


def _mount_of(path: Path) -> MountEntry:
    st = path.stat()
    device = b"%d:%d" % (os.major(st.st_dev), os.minor(st.st_dev))
    entry = [entry for entry in read_mounts() if entry.device == device][-1]
    return msgspec.structs.replace(entry, mountpoint=b"/nowhere")  # so that paths stay whole
