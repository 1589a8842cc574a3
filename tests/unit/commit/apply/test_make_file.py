"""Making a file of the store in a folder of the commit: it is what the store has, to the last bit
of its mode.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Iterator

import pytest

from tests.support.user_identity import NOBODY, ORDINARY, ROOT, make, room_of
from tests.unit.file_looks import mode_of
from yolofs.commit.apply.make_file import is_plain, make_file, open_inode
from yolofs.store import file_data
from yolofs.store.store import Store

IS_ROOT = os.geteuid() == 0
TIME = 1_400_000_000_123_456_789


@pytest.fixture(params=[ROOT, ORDINARY] if IS_ROOT else [ORDINARY])
def who(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(who: str) -> Iterator[bytes]:
    with room_of(who) as room:
        os.mkdir(room + b"/new", 0o700)
        yield room


@pytest.fixture
def store(place: bytes) -> Store:
    return Store(place + b"/files")


@pytest.fixture
def folder(place: bytes) -> Iterator[int]:
    fd = os.open(place + b"/new", os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def add(store: Store, data: bytes = b"data", mode: int = 0o644) -> int:
    ino, fd, _ = store.create_file(mode)
    with open(fd, "wb") as file:
        file.write(data)
    os.chmod(store.path(ino), mode)  # writing has cleared setuid
    os.utime(store.path(ino), ns=(TIME, TIME + 1))
    return ino


def made(store: Store, ino: int, folder: int, place: bytes) -> bytes:
    source = open_inode(store, ino)
    try:
        assert make_file(source, folder, b"1").left_out == ()
    finally:
        source.close()
    return place + b"/new/1"


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
@pytest.mark.parametrize("mode", [0o644, 0o600, 0o777, 0o444, 0o200, 0, 0o4755, 0o2711, 0o1666])
def test_modes_are_exact_whatever_the_umask(store: Store, folder: int, place: bytes, umask: int, mode: int) -> None:
    ino = add(store, mode=mode)
    before = os.umask(umask)
    try:
        path = made(store, ino, folder, place)
    finally:
        os.umask(before)
    assert mode_of(path) == mode_of(store.path(ino)) == mode


@pytest.mark.parametrize("size", [0, 1, 1024, 1 << 17, (1 << 17) + 1, 3_000_000])
def test_content_and_times_are_those_of_the_store_inode(store: Store, folder: int, place: bytes, size: int) -> None:
    data = os.urandom(size)
    ino = add(store, data)
    path = made(store, ino, folder, place)
    with open(path, "rb") as file:
        assert file.read() == data
    st = os.lstat(path)
    assert (st.st_mtime_ns, st.st_size, st.st_nlink) == (TIME + 1, size, 1)


def test_the_store_inode_is_not_touched_by_being_read(store: Store, folder: int, place: bytes) -> None:
    ino = add(store)
    before = os.lstat(store.path(ino))
    path = made(store, ino, folder, place)
    after = os.lstat(store.path(ino))
    assert (before.st_atime_ns, before.st_ctime_ns) == (after.st_atime_ns, after.st_ctime_ns)
    assert os.lstat(path).st_atime_ns == TIME


def test_extended_attributes_come_along_with_a_file(store: Store, folder: int, place: bytes) -> None:
    ino = add(store, mode=0o444)
    os.chmod(store.path(ino), 0o644)
    try:
        os.setxattr(store.path(ino), "user.note", b"value")
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            pytest.skip("user.note is not supported here")
        raise
    os.chmod(store.path(ino), 0o444)
    path = made(store, ino, folder, place)
    assert os.getxattr(path, "user.note") == b"value"
    assert mode_of(path) == 0o444


@pytest.mark.parametrize("who", [ROOT], indirect=True)
@pytest.mark.skipif(not IS_ROOT, reason="only root may")
def test_a_made_file_has_the_owner_of_the_store_inode(store: Store, folder: int, place: bytes) -> None:
    ino = add(store, mode=0o640)
    os.chown(store.path(ino), NOBODY, NOBODY)
    os.chmod(store.path(ino), 0o4750)
    st = os.lstat(made(store, ino, folder, place))
    assert (st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)) == (NOBODY, NOBODY, 0o4750)


def test_a_name_that_is_taken_is_left_alone(store: Store, folder: int, place: bytes) -> None:
    make(place + b"/new/1", b"other")
    source = open_inode(store, add(store))
    with pytest.raises(FileExistsError):
        make_file(source, folder, b"1")
    source.close()
    with open(place + b"/new/1", "rb") as file:
        assert file.read() == b"other"


def test_nothing_is_left_of_a_file_that_cannot_be_written(
    store: Store, folder: int, place: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bool:
        raise OSError(errno.ENOSPC, "no space")

    source = open_inode(store, add(store))
    monkeypatch.setattr(file_data, "copy_small", fail)
    with pytest.raises(OSError, match="no space"):
        make_file(source, folder, b"1")
    source.close()
    assert os.listdir(place + b"/new") == []


def test_a_store_inode_that_is_no_regular_file_is_not_opened(store: Store) -> None:
    fifo = open_inode(store, store.create_special(stat.S_IFIFO | 0o640))
    assert (fifo.fd, fifo.metadata.st.st_mode) == (-1, stat.S_IFIFO | 0o640)
    link = open_inode(store, store.create_symlink(b"target"))
    assert (link.fd, link.target) == (-1, b"target")


# --- the folder -----------------------------------------------------------------------------------


def test_a_folder_that_only_its_owner_may_enter_is_plain(folder: int) -> None:
    assert is_plain(folder)


@pytest.mark.parametrize("mode", [0o701, 0o710, 0o777])
def test_a_folder_that_others_may_enter_is_not_plain(folder: int, mode: int) -> None:
    os.fchmod(folder, mode)
    assert not is_plain(folder)


def test_a_folder_that_passes_on_an_acl_is_not_plain(folder: int) -> None:
    entries = (
        (0x01, 7, 0xFFFFFFFF),
        (0x02, 7, 12345),
        (0x04, 5, 0xFFFFFFFF),
        (0x10, 7, 0xFFFFFFFF),
        (0x20, 0, 0xFFFFFFFF),
    )
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(folder, "system.posix_acl_default", acl)
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            pytest.skip("ACLs are not supported here")
        raise
    assert not is_plain(folder)
