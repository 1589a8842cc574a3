"""Copying one file: holes, short copies, every type."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.support import unsynced
from tests.support.file_limits import file_size_limit
from tests.support.user_identity import make
from tests.unit.file_looks import mode_of, read, refusing
from yolofs.store import copying
from yolofs.store.copying import copy_node
from yolofs.store.file_data import CopyMethod, copy_data

pytestmark = pytest.mark.usefixtures("plain_umask")
IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root may")
CopyRange = Callable[[int, int, int, int, int], int]


@contextmanager
def opened(src: bytes, dst: bytes) -> Iterator[tuple[int, int]]:
    fds = os.open(src, os.O_RDONLY), os.open(dst, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield fds
    finally:
        for fd in fds:
            os.close(fd)


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
        unsynced.fsync(dst_fd)
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


def test_old_bytes_of_the_target_show_in_no_hole_of_the_copy(root_room: bytes, no_reflink: None) -> None:
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


@pytest.mark.parametrize("put", [os.mkfifo, lambda path: os.symlink(b"secret", path)])
def test_what_takes_the_place_of_a_file_is_neither_waited_for_nor_read(
    room: bytes, monkeypatch: pytest.MonkeyPatch, put: Callable[[bytes], None]
) -> None:
    make(room + b"/file", b"looked at")
    make(room + b"/secret", b"secret")
    open_to_read = copying._open_to_read

    def change_and_open(path: bytes) -> int:
        os.unlink(room + b"/file")
        put(room + b"/file")
        return open_to_read(path)

    with monkeypatch.context() as patch:
        patch.setattr(copying, "_open_to_read", change_and_open)
        source = copying.open_source(room + b"/file")
    assert os.read(source.fd, 100) == b"looked at"
    source.close()


def test_a_link_that_takes_the_place_of_what_gets_metadata_is_not_followed(
    room: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, secret = make(room + b"/file", b"x"), make(room + b"/secret", b"secret")
    os.chmod(secret, 0o600)
    metadata = copying.read_metadata(file)
    write_owner = copying._write_owner

    def change_and_write(dst: int | copying.PathDescriptor, st: os.stat_result) -> tuple[str, ...]:
        os.rename(file, room + b"/aside")
        os.symlink(secret, file)
        return write_owner(dst, st)

    os.chmod(file, 0o755)
    monkeypatch.setattr(copying, "_write_owner", change_and_write)
    assert copying.write_metadata(file, metadata) == ()
    assert stat.S_IMODE(os.stat(secret).st_mode) == 0o600
    assert os.stat(room + b"/aside").st_mode == metadata.st.st_mode


def test_no_descriptor_is_left_open(room: bytes) -> None:
    before = os.listdir("/proc/self/fd")
    src = make(room + b"/src", b"x" * 9000)
    copy_node(src, room + b"/dst")
    with suppress(FileExistsError):
        copy_node(src, room + b"/dst")
    with file_size_limit(5000), suppress(OSError):
        copy_node(src, room + b"/dst2")
    assert os.listdir("/proc/self/fd") == before
