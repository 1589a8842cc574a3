"""Copying one file: holes, short copies, every type, all metadata, and what is not permitted."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import socket
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.identity import NOBODY, ORDINARY, ROOT, acting_as, room_of
from yolofs import copying
from yolofs.copying import CopyMethod, at, copy_data, copy_metadata, copy_node

IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root may")
CopyRange = Callable[[int, int, int, int, int], int]


@pytest.fixture(params=[ROOT, ORDINARY])
def room(request: pytest.FixtureRequest) -> Iterator[bytes]:
    """A directory of the user that the test then runs as."""
    if request.param == ROOT and not IS_ROOT:
        pytest.skip("not root")
    with room_of(request.param) as path:
        yield path


@pytest.fixture
def ordinary_room() -> Iterator[bytes]:
    with room_of(ORDINARY) as path:
        yield path


@pytest.fixture
def root_room() -> Iterator[bytes]:
    with room_of(ROOT) as path:
        yield path


@pytest.fixture(autouse=True)
def plain_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def make(path: bytes, data: bytes = b"", mode: int = 0o644) -> bytes:
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, mode)
    return path


def read(path: bytes) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def mode_of(path: bytes) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def set_xattr(path: bytes, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            pytest.skip(f"{name} is not supported here")
        raise


@contextmanager
def opened(src: bytes, dst: bytes) -> Iterator[tuple[int, int]]:
    fds = os.open(src, os.O_RDONLY), os.open(dst, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield fds
    finally:
        for fd in fds:
            os.close(fd)


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let writes beyond ``size`` bytes fail, as they do where space runs out."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def refusing(number: int) -> Callable[..., int]:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    return refuse


def acl(*entries: tuple[int, int, int]) -> bytes:
    """Return an ACL as the kernel spells it: version 2, then (tag, permissions, id) each."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


NO_ID = 0xFFFFFFFF
ACL = acl((1, 6, NO_ID), (2, 4, 12345), (4, 4, NO_ID), (16, 4, NO_ID), (32, 0, NO_ID))  # u::rw u:12345:r g::r m::r o::-


# --- data ---

RESULTS = [
    (None, CopyMethod.COPY_FILE_RANGE),
    (errno.EXDEV, CopyMethod.READ_WRITE),
    (errno.ENOSYS, CopyMethod.READ_WRITE),
    (errno.EOPNOTSUPP, CopyMethod.READ_WRITE),
    (errno.EINVAL, CopyMethod.READ_WRITE),
    (errno.EPERM, CopyMethod.READ_WRITE),
]


@pytest.fixture
def no_reflink(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "ioctl", refusing(errno.EOPNOTSUPP))


@pytest.mark.parametrize(("refused", "method"), RESULTS)
@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, (1 << 20) + 1])
def test_data_is_copied_whatever_the_system_refuses(
    root_room: bytes,
    no_reflink: None,
    monkeypatch: pytest.MonkeyPatch,
    refused: int | None,
    method: CopyMethod,
    size: int,
) -> None:
    data = os.urandom(size)
    src = make(root_room + b"/src", data)
    if refused is not None:
        monkeypatch.setattr(os, "copy_file_range", refusing(refused))
    with opened(src, root_room + b"/dst") as (src_fd, dst_fd):
        used = copy_data(src_fd, dst_fd, size)
    assert read(root_room + b"/dst") == data
    assert used is (method if size else CopyMethod.COPY_FILE_RANGE)


@pytest.mark.parametrize("refused", [None, errno.EXDEV])
def test_holes_stay_holes(
    root_room: bytes, no_reflink: None, monkeypatch: pytest.MonkeyPatch, refused: int | None
) -> None:
    mib = 1 << 20
    src, dst = make(root_room + b"/src"), root_room + b"/dst"
    with open(src, "r+b") as file:
        file.seek(mib)
        file.write(b"a" * 5000)
        file.seek(3 * mib)
        file.write(b"b" * 70000)
        file.truncate(8 * mib)
    if refused is not None:
        monkeypatch.setattr(os, "copy_file_range", refusing(refused))
    with opened(src, dst) as (src_fd, dst_fd):
        copy_data(src_fd, dst_fd, 8 * mib)
        os.fsync(dst_fd)
    assert read(dst) == read(src)
    assert os.stat(dst).st_blocks * 512 < 200_000


def test_a_file_of_one_hole_is_copied_as_one(root_room: bytes) -> None:
    src, dst = make(root_room + b"/src"), root_room + b"/dst"
    os.truncate(src, 1 << 40)
    with opened(src, dst) as (src_fd, dst_fd):
        copy_data(src_fd, dst_fd, 1 << 40)
    assert (os.stat(dst).st_size, os.stat(dst).st_blocks) == (1 << 40, 0)


def test_without_seek_data_everything_is_copied(
    root_room: bytes, no_reflink: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    src = make(root_room + b"/src", b"data" * 5000)
    monkeypatch.setattr(os, "lseek", refusing(errno.EINVAL))
    with opened(src, root_room + b"/dst") as (src_fd, dst_fd):
        copy_data(src_fd, dst_fd, 20000)
    assert read(root_room + b"/dst") == b"data" * 5000


def test_a_filesystem_that_finds_no_end_of_its_data_is_copied_all_the_same(
    root_room: bytes, no_reflink: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    src = make(root_room + b"/src", b"data" * 5000)
    monkeypatch.setattr(os, "lseek", lambda fd, position, whence: position)
    with opened(src, root_room + b"/dst") as (src_fd, dst_fd):
        copy_data(src_fd, dst_fd, 20000)
    assert read(root_room + b"/dst") == b"data" * 5000


def test_short_copies_are_continued(root_room: bytes, no_reflink: None, monkeypatch: pytest.MonkeyPatch) -> None:
    copy: CopyRange = os.copy_file_range
    monkeypatch.setattr(os, "copy_file_range", lambda s, d, count, so, do: copy(s, d, min(count, 700), so, do))
    data = os.urandom(5000)
    src = make(root_room + b"/src", data)
    with opened(src, root_room + b"/dst") as (src_fd, dst_fd):
        assert copy_data(src_fd, dst_fd, 5000) is CopyMethod.COPY_FILE_RANGE
    assert read(root_room + b"/dst") == data


def test_short_reads_and_writes_are_continued(
    root_room: bytes, no_reflink: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pread, pwrite = os.pread, os.pwrite
    monkeypatch.setattr(os, "copy_file_range", refusing(errno.EXDEV))
    monkeypatch.setattr(os, "pread", lambda fd, count, offset: pread(fd, min(count, 900), offset))
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: pwrite(fd, data[:700], offset))
    data = os.urandom(5000)
    src = make(root_room + b"/src", data)
    with opened(src, root_room + b"/dst") as (src_fd, dst_fd):
        assert copy_data(src_fd, dst_fd, 5000) is CopyMethod.READ_WRITE
    assert read(root_room + b"/dst") == data


def test_a_write_of_nothing_is_an_error_and_no_endless_loop(
    root_room: bytes, no_reflink: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "copy_file_range", refusing(errno.EXDEV))
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)
    src = make(root_room + b"/src", b"data")
    with opened(src, root_room + b"/dst") as (src_fd, dst_fd), pytest.raises(OSError, match="wrote nothing"):
        copy_data(src_fd, dst_fd, 4)


def test_where_the_kernel_stops_early_the_rest_is_read_and_written(
    root_room: bytes, no_reflink: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy: CopyRange = os.copy_file_range
    monkeypatch.setattr(os, "copy_file_range", lambda s, d, count, so, do: 0 if so else copy(s, d, 700, so, do))
    data = os.urandom(5000)
    src = make(root_room + b"/src", data)
    with opened(src, root_room + b"/dst") as (src_fd, dst_fd):
        assert copy_data(src_fd, dst_fd, 5000) is CopyMethod.READ_WRITE
    assert read(root_room + b"/dst") == data


def test_only_the_first_bytes_are_copied_if_that_is_asked_for(root_room: bytes, no_reflink: None) -> None:
    src = make(root_room + b"/src", b"0123456789" * 1000)
    with opened(src, make(root_room + b"/dst", b"x" * 30000)) as (src_fd, dst_fd):
        copy_data(src_fd, dst_fd, 4097)
    assert read(root_room + b"/dst") == (b"0123456789" * 1000)[:4097]


def test_what_the_target_held_shows_nowhere(root_room: bytes, no_reflink: None) -> None:
    src = make(root_room + b"/src")
    os.truncate(src, 100_000)
    with opened(src, make(root_room + b"/dst", b"x" * 200_000)) as (src_fd, dst_fd):
        copy_data(src_fd, dst_fd, 100_000)
    assert read(root_room + b"/dst") == bytes(100_000)


def test_the_copy_is_no_longer_than_the_source(root_room: bytes, no_reflink: None) -> None:
    src = make(root_room + b"/src", b"short")
    with opened(src, root_room + b"/dst") as (src_fd, dst_fd):
        copy_data(src_fd, dst_fd, 5000)
    assert read(root_room + b"/dst") == b"short"


def test_a_source_that_shrinks_meanwhile_ends_the_copy_there(
    root_room: bytes, no_reflink: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    src = make(root_room + b"/src", b"x" * 10_000)

    def shrink(*_: int) -> int:
        os.truncate(src, 100)
        return 0

    monkeypatch.setattr(os, "copy_file_range", shrink)
    with opened(src, root_room + b"/dst") as (src_fd, dst_fd):
        copy_data(src_fd, dst_fd, 10_000)
    assert read(root_room + b"/dst") == b"x" * 100


def test_a_reflink_is_tried_first_and_cut_to_the_size(root_room: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def clone(dst_fd: int, request: int, src_fd: int) -> int:
        asked.append(request)
        os.pwrite(dst_fd, os.pread(src_fd, 1000, 0), 0)
        return 0

    monkeypatch.setattr(fcntl, "ioctl", clone)
    src = make(root_room + b"/src", b"0123456789")
    with opened(src, make(root_room + b"/dst", b"x" * 50)) as (src_fd, dst_fd):
        assert copy_data(src_fd, dst_fd, 4) is CopyMethod.REFLINK
    assert read(root_room + b"/dst") == b"0123"
    assert asked == [0x40049409]


@pytest.mark.parametrize("function", ["copy_file_range", "lseek"])
def test_a_real_error_is_raised_and_leaves_a_hole_of_the_former_size(
    root_room: bytes, no_reflink: None, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    src, dst = make(root_room + b"/src", b"x" * 9000), make(root_room + b"/dst", b"y" * 300)
    with opened(src, dst) as (src_fd, dst_fd):
        monkeypatch.setattr(os, function, refusing(errno.EIO))
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            copy_data(src_fd, dst_fd, 9000)
    assert read(dst) == bytes(300)


def test_a_reflink_that_fails_for_lack_of_space_is_not_tried_otherwise(
    root_room: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "ioctl", refusing(errno.ENOSPC))
    with (
        opened(make(root_room + b"/src", b"x"), root_room + b"/dst") as (src_fd, dst_fd),
        pytest.raises(OSError, match=os.strerror(errno.ENOSPC)),
    ):
        copy_data(src_fd, dst_fd, 1)


def test_a_full_disk_leaves_a_hole_of_the_former_size(root_room: bytes, no_reflink: None) -> None:
    src, dst = make(root_room + b"/src", b"x" * 9000), make(root_room + b"/dst", b"y" * 300)
    with opened(src, dst) as (src_fd, dst_fd), file_size_limit(5000), pytest.raises(OSError, match=r".") as caught:
        copy_data(src_fd, dst_fd, 9000)
    assert caught.value.errno == errno.EFBIG
    assert read(dst) == bytes(300)


# --- whole files ---


def test_a_regular_file_is_copied_with_mode_and_times(room: bytes) -> None:
    src, dst = make(room + b"/a b\xff", b"data", 0o6751), room + b"/dst"
    os.utime(src, ns=(1_000_000_001, 2_000_000_002))
    assert copy_node(src, dst) == ()
    st = os.lstat(dst)
    assert stat.S_IMODE(st.st_mode) == 0o6751
    assert (st.st_atime_ns, st.st_mtime_ns) == (1_000_000_001, 2_000_000_002)
    assert (st.st_uid, st.st_gid) == (os.geteuid(), os.getegid())
    assert read(dst) == b"data"


def test_copying_leaves_the_access_time_of_the_source_alone(room: bytes) -> None:
    src = make(room + b"/src", b"data")
    os.utime(src, ns=(1_000_000_001, 2_000_000_002))  # older than the mtime: a plain read would set it
    copy_node(src, room + b"/dst")
    assert os.stat(src).st_atime_ns == 1_000_000_001
    assert os.stat(room + b"/dst").st_atime_ns == 1_000_000_001


def test_without_data_a_file_becomes_a_hole_of_its_size(room: bytes) -> None:
    src, dst = make(room + b"/src", b"x" * 100_000, 0o640), room + b"/dst"
    os.utime(src, ns=(1, 2))
    assert copy_node(src, dst, data=False) == ()
    st = os.lstat(dst)
    assert (st.st_size, st.st_blocks, st.st_mtime_ns, stat.S_IMODE(st.st_mode)) == (100_000, 0, 2, 0o640)


@pytest.mark.parametrize("mode", [0o000, 0o1777, 0o2755, 0o700])
def test_a_directory_is_copied_without_its_children(room: bytes, mode: int) -> None:
    src, dst = room + b"/src", room + b"/dst"
    os.mkdir(src)
    make(src + b"/child")
    os.utime(src, ns=(1, 2))
    os.chmod(src, mode)
    try:
        assert copy_node(src, dst) == ()
        assert mode_of(dst) == mode
        assert os.lstat(dst).st_mtime_ns == 2
    finally:
        for directory in (src, dst):
            os.chmod(directory, 0o700)
    assert os.listdir(dst) == []


@pytest.mark.parametrize("target", [b"nowhere", b"src", b"../\xff x"])
def test_a_symlink_is_copied_and_not_followed(room: bytes, target: bytes) -> None:
    make(room + b"/src", b"data", 0o600)
    os.symlink(target, room + b"/link")
    os.utime(room + b"/link", ns=(1, 2), follow_symlinks=False)
    assert copy_node(room + b"/link", room + b"/dst") == ()
    assert os.readlink(room + b"/dst") == target
    assert os.lstat(room + b"/dst").st_mtime_ns == 2
    assert mode_of(room + b"/src") == 0o600


def test_fifos_and_sockets_are_made_again(room: bytes) -> None:
    os.mkfifo(room + b"/fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(room + b"/socket")
    for name, kind in ((b"/fifo", stat.S_IFIFO), (b"/socket", stat.S_IFSOCK)):
        os.chmod(room + name, 0o623)
        os.utime(room + name, ns=(1, 2))
        assert copy_node(room + name, room + name + b".copy") == ()
        st = os.lstat(room + name + b".copy")
        assert (stat.S_IFMT(st.st_mode), stat.S_IMODE(st.st_mode), st.st_mtime_ns) == (kind, 0o623, 2)


@needs_root
def test_a_device_is_made_again(root_room: bytes) -> None:
    os.mknod(root_room + b"/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    copy_node(root_room + b"/null", root_room + b"/dst")
    st = os.lstat(root_room + b"/dst")
    assert stat.S_ISCHR(st.st_mode)
    assert st.st_rdev == os.makedev(1, 3)


def test_a_device_that_may_not_be_made_is_an_error(ordinary_room: bytes) -> None:
    with pytest.raises(PermissionError):
        copy_node(b"/dev/null", ordinary_room + b"/dst")
    assert os.listdir(ordinary_room) == []


def test_an_existing_target_is_left_alone(room: bytes) -> None:
    src, dst = make(room + b"/src", b"new"), make(room + b"/dst", b"old")
    os.symlink(b"dst", room + b"/link")
    for existing in (dst, room + b"/link"):
        with pytest.raises(FileExistsError):
            copy_node(src, existing)
    assert read(dst) == b"old"
    assert os.readlink(room + b"/link") == b"dst"


@pytest.mark.parametrize("data", [True, False])
def test_a_copy_that_fails_leaves_nothing(room: bytes, data: bool) -> None:
    src = make(room + b"/src", b"x" * 9000)
    with file_size_limit(5000), pytest.raises(OSError, match=r"."):
        copy_node(src, room + b"/dst", data=data)
    assert os.listdir(room) == [b"src"]


def test_a_directory_whose_metadata_fails_is_removed_again(room: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkdir(room + b"/src")
    with monkeypatch.context() as patch:
        patch.setattr(os, "utime", refusing(errno.EIO))
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            copy_node(room + b"/src", room + b"/dst")
    assert os.listdir(room) == [b"src"]


def test_a_missing_source_is_an_error(room: bytes) -> None:
    with pytest.raises(FileNotFoundError):
        copy_node(room + b"/src", room + b"/dst")
    assert os.listdir(room) == []


def test_a_file_that_turns_into_a_fifo_is_neither_waited_for_nor_copied(
    room: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(room + b"/file")
    os.mkfifo(room + b"/fifo")
    st = os.lstat(room + b"/file")
    with monkeypatch.context() as patch:
        patch.setattr(os, "lstat", lambda path: st)
        with pytest.raises(OSError, match=os.strerror(errno.ESTALE)):
            copying.open_source(room + b"/fifo")


def test_no_descriptor_is_left_open(room: bytes) -> None:
    before = os.listdir("/proc/self/fd")
    src = make(room + b"/src", b"x" * 9000)
    copy_node(src, room + b"/dst")
    with suppress(FileExistsError):
        copy_node(src, room + b"/dst")
    with file_size_limit(5000), suppress(OSError):
        copy_node(src, room + b"/dst2")
    assert os.listdir("/proc/self/fd") == before


# --- metadata ---


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


def test_labels_that_the_system_gives_are_not_surplus(room: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    src, dst = make(room + b"/src"), make(room + b"/dst")
    removed: list[str] = []
    present = ["security.selinux", "security.capability", "user.x"]
    with monkeypatch.context() as patch:
        patch.setattr(os, "listxattr", lambda path, follow_symlinks: present if path == dst else [])
        patch.setattr(os, "removexattr", lambda path, name, follow_symlinks: removed.append(name))
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


def test_times_can_be_left_out(room: bytes) -> None:
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
