"""Copying the metadata of one file: all of it, and what is not permitted."""

from __future__ import annotations

import errno
import os
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.required import do_without
from tests.support.user_identity import NOBODY, acting_as, make
from tests.unit.file_looks import mode_of, read, refusing
from tests.unit.store.store_files import set_xattr
from yolofs.store.copying import at, copy_metadata, copy_node

pytestmark = pytest.mark.usefixtures("plain_umask")
IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root may")


def acl(*entries: tuple[int, int, int]) -> bytes:
    """Return an ACL as the kernel spells it: version 2, then (tag, permissions, id) each."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


NO_ID = 0xFFFFFFFF
ACL = acl((1, 6, NO_ID), (2, 4, 12345), (4, 4, NO_ID), (16, 4, NO_ID), (32, 0, NO_ID))  # u::rw u:12345:r g::r m::r o::-


def test_xattrs_are_copied_and_surplus_ones_go(room: bytes) -> None:
    src, dst = make(room + b"/src"), make(room + b"/dst")
    set_xattr(src, "user.new", b"\0value\xff")
    set_xattr(src, "user.same", b"same")
    set_xattr(src, "user.empty", b"")
    set_xattr(dst, "user.same", b"same")
    set_xattr(dst, "user.old", b"old")
    assert copy_metadata(src, dst) == ()
    assert {name: os.getxattr(dst, name) for name in os.listxattr(dst)} == {
        "user.new": b"\0value\xff",
        "user.same": b"same",
        "user.empty": b"",
    }


def test_xattrs_reach_a_file_whose_mode_forbids_writing(room: bytes) -> None:
    src, dst = make(room + b"/src"), make(room + b"/dst")
    set_xattr(src, "user.new", b"1")
    set_xattr(dst, "user.old", b"1")
    os.chmod(src, 0o400)
    os.chmod(dst, 0)
    assert copy_metadata(src, dst) == ()
    assert mode_of(dst) == 0o400
    assert os.listxattr(dst) == ["user.new"]


def test_a_whole_copy_of_a_read_only_file_has_its_xattrs(room: bytes) -> None:
    src = make(room + b"/src")
    set_xattr(src, "user.note", b"1")
    os.chmod(src, 0o444)
    assert copy_node(src, room + b"/dst") == ()
    assert os.getxattr(room + b"/dst", "user.note") == b"1"
    assert mode_of(room + b"/dst") == 0o444


def test_an_acl_is_copied_with_the_mode_that_it_makes(room: bytes) -> None:
    src, dst = make(room + b"/src", mode=0o640), make(room + b"/dst", mode=0o600)
    set_xattr(src, "system.posix_acl_access", ACL)
    assert copy_metadata(src, dst) == ()
    assert os.getxattr(dst, "system.posix_acl_access") == ACL
    assert mode_of(dst) == mode_of(src) == 0o640


def test_an_acl_that_the_directory_gave_to_the_copy_goes(room: bytes) -> None:
    src = make(room + b"/src", mode=0o640)
    os.mkdir(room + b"/sub")
    set_xattr(room + b"/sub", "system.posix_acl_default", ACL)
    assert copy_node(src, room + b"/sub/dst") == ()
    assert os.listxattr(room + b"/sub/dst") == []
    assert mode_of(room + b"/sub/dst") == 0o640


def test_xattrs_that_could_not_be_read_are_named_and_not_removed(ordinary_room: bytes) -> None:
    src, dst = make(ordinary_room + b"/src"), make(ordinary_room + b"/dst")
    set_xattr(src, "user.secret", b"1")
    set_xattr(dst, "user.secret", b"old")
    os.chmod(src, 0o200)
    assert copy_metadata(src, dst) == ("xattr user.secret",)
    assert mode_of(dst) == 0o200
    os.chmod(dst, 0o600)
    assert os.getxattr(dst, "user.secret") == b"old"


@needs_root
def test_a_capability_for_a_user_that_is_not_in_this_namespace_is_named(tmp_path: Path) -> None:
    src, dst = make(bytes(tmp_path / "src")), bytes(tmp_path / "dst")
    capability = struct.pack("<IIIIII", 0x03000001, 1 << 10, 0, 0, 0, 4711)  # with the user who is root there
    os.setxattr(src, "security.capability", capability)
    code = f"from yolofs.store.copying import copy_node; print(copy_node({src!r}, {dst!r}))"
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", sys.executable, "-P", "-c", code],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr:
        do_without("there are no user namespaces")
    assert (done.stdout, done.stderr) == ("('xattr security.capability',)\n", "")


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.E2BIG])
def test_xattrs_that_may_not_be_written_are_named(room: bytes, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    src, dst = make(room + b"/src"), make(room + b"/dst")
    set_xattr(src, "user.new", b"1")
    set_xattr(dst, "user.old", b"1")
    with monkeypatch.context() as patch:
        patch.setattr(os, "setxattr", refusing(number))
        patch.setattr(os, "removexattr", refusing(number))
        assert copy_metadata(src, dst) == ("xattr user.new", "xattr user.old")


@pytest.mark.parametrize("function", ["setxattr", "getxattr", "removexattr", "listxattr"])
def test_any_other_xattr_error_is_raised(room: bytes, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    src, dst = make(room + b"/src"), make(room + b"/dst")
    set_xattr(src, "user.new", b"1")
    set_xattr(dst, "user.old", b"1")
    with monkeypatch.context() as patch:
        patch.setattr(os, function, refusing(errno.EIO))
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            copy_metadata(src, dst)


def test_an_xattr_removed_while_it_is_read_is_passed_over(room: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    src, dst = make(room + b"/src"), make(room + b"/dst")
    with monkeypatch.context() as patch:
        patch.setattr(os, "listxattr", lambda path, follow_symlinks: ["user.gone"] if path == src else [])
        assert copy_metadata(src, dst) == ()
    assert os.listxattr(dst) == []


def test_the_second_names_that_xfs_gives_to_acls_are_no_xattrs(room: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    src, dst = make(room + b"/src"), make(room + b"/dst")
    touched: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(os, "listxattr", lambda path, follow_symlinks: ["trusted.SGI_ACL_FILE"])
        patch.setattr(os, "getxattr", lambda path, name, follow_symlinks: touched.append(name))
        patch.setattr(os, "removexattr", lambda path, name, follow_symlinks: touched.append(name))
        assert copy_metadata(src, dst) == ()
    assert touched == []


def test_a_surplus_xattr_that_is_gone_already_is_no_error(room: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    src, dst = make(room + b"/src"), make(room + b"/dst")
    set_xattr(dst, "user.old", b"1")
    with monkeypatch.context() as patch:
        patch.setattr(os, "removexattr", refusing(errno.ENODATA))
        assert copy_metadata(src, dst) == ()


def test_another_users_file_is_read_without_leaving_its_access_time_alone(ordinary_room: bytes) -> None:
    theirs = b"/etc/passwd"  # readable for all, and root's
    assert copy_node(theirs, ordinary_room + b"/dst") == ("group", "owner")
    assert read(ordinary_room + b"/dst") == read(theirs)


def test_a_source_that_may_not_be_read_is_an_error(ordinary_room: bytes) -> None:
    make(ordinary_room + b"/src", mode=0o200)
    with pytest.raises(PermissionError):
        copy_node(ordinary_room + b"/src", ordinary_room + b"/dst")
    assert os.listdir(ordinary_room) == [b"src"]


def test_a_filesystem_without_xattrs_has_none(room: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    src, dst = make(room + b"/src", mode=0o600), make(room + b"/dst")
    with monkeypatch.context() as patch:
        patch.setattr(os, "listxattr", refusing(errno.EOPNOTSUPP))
        assert copy_metadata(src, dst) == ()
    assert mode_of(dst) == 0o600


def test_times_that_may_not_be_set_and_are_right_are_not_missing(room: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of what is immutable, or another user's."""
    src, dst = make(room + b"/src"), make(room + b"/dst")
    for path in (src, dst):
        os.utime(path, ns=(5, 7))
    with monkeypatch.context() as patch:
        patch.setattr(os, "utime", refusing(errno.EPERM))
        assert copy_metadata(src, dst) == ()
    os.utime(dst, ns=(5, 8))
    with monkeypatch.context() as patch:
        patch.setattr(os, "utime", refusing(errno.EPERM))
        assert copy_metadata(src, dst) == ("times",)


def test_labels_that_the_system_gives_are_not_surplus(room: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    src, dst = make(room + b"/src"), make(room + b"/dst")
    removed: list[str] = []
    present = ["security.selinux", "security.capability", "user.x"]
    with monkeypatch.context() as patch:
        # what is read is asked for by its path, what is written by a descriptor
        patch.setattr(os, "listxattr", lambda path, follow_symlinks: present if path != src else [])
        patch.setattr(os, "removexattr", lambda path, name: removed.append(name))
        assert copy_metadata(src, dst) == ()
    assert removed == ["security.capability", "user.x"]


@needs_root
def test_root_keeps_owner_setuid_and_capabilities(root_room: bytes) -> None:
    src = make(root_room + b"/src", b"x")
    os.chown(src, 12345, 54321)
    os.chmod(src, 0o6755)
    capability = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)  # cap_net_bind_service=ep
    set_xattr(src, "security.capability", capability)
    set_xattr(src, "trusted.note", b"t")
    assert copy_node(src, root_room + b"/dst") == ()
    st = os.lstat(root_room + b"/dst")
    assert (st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)) == (12345, 54321, 0o6755)
    assert os.getxattr(root_room + b"/dst", "security.capability") == capability
    assert os.getxattr(root_room + b"/dst", "trusted.note") == b"t"


@needs_root
def test_root_keeps_the_owner_of_a_symlink(root_room: bytes) -> None:
    make(root_room + b"/src")
    os.symlink(b"src", root_room + b"/link")
    os.chown(root_room + b"/link", 12345, 54321, follow_symlinks=False)
    assert copy_node(root_room + b"/link", root_room + b"/dst") == ()
    assert os.lstat(root_room + b"/dst").st_uid == 12345
    assert os.lstat(root_room + b"/src").st_uid == 0


@needs_root
def test_another_users_file_becomes_ones_own_without_their_rights(root_room: bytes) -> None:
    os.chmod(root_room, 0o777)
    src = make(root_room + b"/src", b"theirs")
    os.utime(src, ns=(1, 2))
    os.chmod(src, 0o6755)
    with acting_as(NOBODY, NOBODY):
        assert copy_node(src, root_room + b"/dst") == ("group", "owner")
        st = os.lstat(root_room + b"/dst")
    assert read(root_room + b"/dst") == b"theirs"
    assert (st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode), st.st_mtime_ns) == (NOBODY, NOBODY, 0o755, 2)


@needs_root
def test_a_setgid_directory_of_others_stays_setgid(root_room: bytes) -> None:
    os.chmod(root_room, 0o777)
    os.mkdir(root_room + b"/src")
    os.chmod(root_room + b"/src", 0o2755)
    with acting_as(NOBODY, NOBODY):
        assert copy_node(root_room + b"/src", root_room + b"/dst") == ("group", "owner")
    assert mode_of(root_room + b"/dst") == 0o2755


def test_an_id_that_this_namespace_lacks_is_skipped_and_any_other_error_raised(
    room: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    src, dst = make(room + b"/src"), make(room + b"/dst")
    fields = list(os.lstat(src))
    fields[stat.ST_UID] = 4242
    theirs = os.stat_result(fields)
    with monkeypatch.context() as patch:
        patch.setattr(os, "chown", refusing(errno.EINVAL))
        assert copy_metadata(src, dst, st=theirs, times=False) == ("owner",)
        patch.setattr(os, "chown", refusing(errno.EIO))
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            copy_metadata(src, dst, st=theirs, times=False)


def test_a_given_stat_counts_instead_of_the_sources(room: bytes) -> None:
    src, dst = make(room + b"/src", mode=0o600), make(room + b"/dst")
    os.utime(src, ns=(1, 2))
    st = os.lstat(src)
    os.chmod(src, 0o777)
    os.utime(src, ns=(3, 4))
    copy_metadata(src, dst, st=st)
    assert (mode_of(dst), os.lstat(dst).st_mtime_ns) == (0o600, 2)


def test_copying_metadata_can_leave_out_the_times(room: bytes) -> None:
    src, dst = make(room + b"/src", mode=0o600), make(room + b"/dst")
    os.utime(dst, ns=(3, 4))
    copy_metadata(src, dst, times=False)
    assert (mode_of(dst), os.lstat(dst).st_mtime_ns) == (0o600, 4)


def test_names_relative_to_an_open_directory_work_everywhere(room: bytes) -> None:
    os.mkdir(room + b"/sub")
    make(room + b"/sub/src", b"data", 0o640)
    set_xattr(room + b"/sub/src", "user.note", b"1")
    fd = os.open(room + b"/sub", os.O_PATH | os.O_DIRECTORY)
    try:
        os.rename(room + b"/sub", room + b"/moved")
        assert copy_node(at(fd, b"src"), at(fd, b"dst")) == ()
        make(room + b"/moved/other")
        assert copy_metadata(at(fd, b"src"), at(fd, b"other")) == ()
    finally:
        os.close(fd)
    assert read(room + b"/moved/dst") == b"data"
    assert os.getxattr(room + b"/moved/other", "user.note") == b"1"
