"""Store inodes that are copied up, and those whose mode closes them to us."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - an ordinary user may not read where root has Python
import errno
import os
import resource
import stat

import pytest

from tests.support.user_identity import NOBODY, ORDINARY, ROOT, acting_as, make, room_of
from tests.unit.file_looks import mode_of
from tests.unit.store.store_files import add_file, read_fd, set_xattr
from yolofs.store.store import Store

pytestmark = pytest.mark.usefixtures("plain_umask")

IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root may")


# --- copying up ---


def test_copy_up_takes_any_type(store: Store, room: bytes) -> None:
    make(room + b"/file", b"data", 0o751)
    os.mkdir(room + b"/dir", 0o750)
    make(room + b"/dir/child")
    os.symlink(b"file", room + b"/link")
    os.mkfifo(room + b"/fifo", 0o600)
    for number, name in enumerate((b"/file", b"/dir", b"/link", b"/fifo"), 1):
        before = os.lstat(room + name)
        assert store.copy_up(room + name) == number
        after = os.lstat(store.path(number))
        assert after.st_mode == before.st_mode
        assert after.st_mtime_ns == before.st_mtime_ns
    assert read_fd(store.open(1, os.O_RDONLY)) == b"data"
    assert os.listdir(store.path(2)) == []
    assert os.readlink(store.path(3)) == b"file"


def test_copy_up_without_data_shows_the_size(store: Store, room: bytes) -> None:
    make(room + b"/file", b"x" * 100_000)
    st = os.lstat(store.path(store.copy_up(room + b"/file", data=False)))
    assert (st.st_size, st.st_blocks) == (100_000, 0)


def test_a_copy_up_that_fails_leaves_nothing(store: Store, room: bytes) -> None:
    make(room + b"/file", b"x" * 9000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
    try:
        for data in (True, False):
            with pytest.raises(OSError, match=r".") as caught:
                store.copy_up(room + b"/file", data=data)
            assert caught.value.errno == errno.EFBIG
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with pytest.raises(FileNotFoundError):
        store.copy_up(room + b"/missing")
    assert list(store) == []


@needs_root
def test_an_owner_that_a_copy_cannot_be_given_is_shown_and_not_told_as_left_out() -> None:
    with room_of(ROOT) as room:
        os.chmod(room, 0o777)
        make(room + b"/theirs", b"x")
        with acting_as(NOBODY, NOBODY):
            store = Store(room + b"/files")
            ino = store.reserve()
            assert store.copy_into(ino, room + b"/theirs") == ()
            assert (os.lstat(store.path(ino)).st_uid, store.lstat(ino).st_uid) == (NOBODY, 0)  # the view shows it
            assert list(store) == [1]


# --- files that are closed to us ---


@pytest.mark.parametrize("mode", [0, 0o200, 0o400, 0o444, 0o077])
@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY, os.O_RDWR])
def test_a_store_inode_opens_whatever_its_mode_and_keeps_it(store: Store, mode: int, flags: int) -> None:
    ino = add_file(store, b"data", mode)
    fd = store.open(ino, flags)
    assert mode_of(store.path(ino)) == mode
    assert not os.get_inheritable(fd)
    if flags != os.O_RDONLY:
        os.pwrite(fd, b"D", 0)
    if flags != os.O_WRONLY:
        assert os.pread(fd, 9, 0) == (b"Data" if flags == os.O_RDWR else b"data")
    os.close(fd)


def test_opening_what_cannot_be_opened_is_an_error(store: Store) -> None:
    link = store.create_symlink(b"nowhere")
    directory = store.create_dir(0o755)[0]
    with pytest.raises(OSError, match=r".") as caught:
        store.open(link, os.O_RDONLY)
    assert caught.value.errno == errno.ELOOP
    with pytest.raises(IsADirectoryError):
        store.open(directory, os.O_WRONLY)
    with pytest.raises(FileNotFoundError):
        store.open(99, os.O_RDONLY)


def test_the_mode_comes_back_even_if_the_widened_open_fails(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ino = add_file(store, b"data", 0)
    modes = []

    def refuse(path: bytes, flags: int) -> int:
        modes.append(mode_of(path))
        raise PermissionError(errno.EACCES, "no luck")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(PermissionError, match="no luck"):
            store.open(ino, os.O_RDONLY)
    assert modes == [0, 0o600]
    assert mode_of(store.path(ino)) == 0


@pytest.mark.parametrize("mode", [0, 0o200, 0o4211])
def test_copying_up_a_closed_store_inode_keeps_data_mode_and_xattrs(store: Store, mode: int) -> None:
    first = add_file(store, b"data", 0o600)
    set_xattr(store.path(first), "user.note", b"1")
    os.utime(store.path(first), ns=(1, 2))
    os.chmod(store.path(first), mode)
    second = store.copy_up(store.path(first))
    st = os.lstat(store.path(second))
    assert (stat.S_IMODE(st.st_mode), st.st_mtime_ns) == (mode, 2)
    assert mode_of(store.path(first)) == mode
    os.chmod(store.path(second), 0o600)
    assert os.getxattr(store.path(second), "user.note") == b"1"
    assert read_fd(store.open(second, os.O_RDONLY)) == b"data"


@pytest.mark.parametrize("data", [True, False])
def test_copying_up_a_store_inode_leaves_the_first_as_it_was(store: Store, data: bool) -> None:
    first = add_file(store, b"data", 0o640)
    second = store.copy_up(store.path(first), data=data)
    assert read_fd(store.open(second, os.O_RDONLY)) == (b"data" if data else bytes(4))
    assert read_fd(store.open(first, os.O_RDONLY)) == b"data"
    assert mode_of(store.path(first)) == mode_of(store.path(second)) == 0o640


def test_copying_up_a_closed_directory_keeps_its_mode(store: Store) -> None:
    first = store.create_dir(0)[0]
    second = store.copy_up(store.path(first))
    assert mode_of(store.path(second)) == mode_of(store.path(first)) == 0


def test_the_modes_of_base_are_never_touched() -> None:
    with room_of(ORDINARY) as room:
        closed = make(room + b"/closed", b"x", 0o200)
        before = os.lstat(closed)
        store = Store(room + b"/files")
        with pytest.raises(PermissionError):
            store.copy_up(closed)
        assert os.lstat(closed) == before
        assert list(store) == []


@needs_root
def test_another_users_closed_store_inode_stays_closed() -> None:
    with room_of(ROOT) as room:
        store = Store(room + b"/files")
        ino = add_file(store, b"x", 0o600)
        for directory in (room, store.directory, os.path.dirname(store.path(ino))):
            os.chmod(directory, 0o755)
        with acting_as(NOBODY, NOBODY), pytest.raises(PermissionError) as caught:
            store.open(ino, os.O_RDONLY)
        assert caught.value.errno == errno.EACCES
