"""The store: numbers, shards, exact modes, and collecting."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - an ordinary user may not read where root has Python
import errno
import fcntl
import os
import stat
import struct
import subprocess
import sys

import pytest

from tests.support.user_identity import ORDINARY, ROOT, make, room_of
from tests.unit.file_looks import mode_of
from tests.unit.store.store_files import add_file, set_xattr
from yolofs.store.collecting import remove_unreferenced
from yolofs.store.store import Store

pytestmark = pytest.mark.usefixtures("plain_umask")

IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root may")


# --- numbers and paths ---


@pytest.mark.parametrize(
    ("ino", "path"),
    [
        (1, b"F/00/1"),
        (255, b"F/00/255"),
        (256, b"F/01/256"),
        (65535, b"F/ff/65535"),
        (65536, b"F/100/65536"),
        (1 << 40, b"F/100000000/1099511627776"),
    ],
)
def test_a_path_is_the_shard_in_hex_and_the_number_in_decimal(store: Store, ino: int, path: bytes) -> None:
    expected = path.replace(b"F", store.directory)
    assert store.path(ino) == expected
    assert store.path(ino) == expected  # from the cache
    assert list(store) == []


def test_numbers_count_up_from_one_and_shards_appear_when_needed(room: bytes) -> None:
    store = Store(room + b"/files", next_ino=254)
    assert [store.reserve() for _ in range(4)] == [254, 255, 256, 257]
    assert store.next_ino == 258
    assert sorted(os.listdir(room + b"/files")) == [b"00", b"01"]
    assert list(store) == []


def test_the_directories_are_private_and_pass_nothing_on(room: bytes) -> None:
    os.chmod(room, 0o2777)
    acl = struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", tag, 7, ident)
        for tag, ident in ((1, 0xFFFFFFFF), (2, 4242), (4, 0xFFFFFFFF), (16, 0xFFFFFFFF), (32, 0xFFFFFFFF))
    )
    set_xattr(room, "system.posix_acl_default", acl)
    for directory in (b"/new", b"/existing"):
        if directory == b"/existing":
            os.mkdir(room + directory)
        store = Store(room + directory)
        path = store.path(add_file(store, mode=0o640))
        assert mode_of(store.directory) == mode_of(os.path.dirname(path)) == 0o700
        assert os.listxattr(path) == []
        assert mode_of(path) == 0o640


def test_a_store_whose_directory_cannot_be_made_is_an_error(room: bytes) -> None:
    with pytest.raises(FileNotFoundError):
        Store(room + b"/missing/files")


@pytest.mark.parametrize(("given", "expected"), [(1, 301), (301, 301), (302, 302), (1000, 1000)])
def test_after_opening_numbers_go_on_above_all_that_are_present_or_named(
    room: bytes, given: int, expected: int
) -> None:
    before = Store(room + b"/files", next_ino=300)
    add_file(before)
    before.remove(add_file(Store(room + b"/files", next_ino=5000)))  # leaves an empty shard
    assert Store(room + b"/files", next_ino=given).next_ino == expected


def test_numbers_that_a_journal_names_are_skipped(store: Store) -> None:
    store.skip_past(41)
    assert store.reserve() == 42
    store.skip_past(7)
    assert store.reserve() == 43


def test_files_that_are_not_ours_are_neither_counted_nor_collected(room: bytes) -> None:
    store = Store(room + b"/files")
    ino = add_file(store)
    shard = room + b"/files/00/"
    for name in (b"007", b"999", b"0", b"-1", b"x", b"1\n", b"\xd9\xa1", b"9" * 30):
        make(shard + name)
    for name in (b"0", b"-1", b"0x1", b"000", b"zz", b"FF", b"100000000000000000000"):
        os.mkdir(room + b"/files/" + name)
    make(room + b"/files/ff")
    reopened = Store(room + b"/files")
    assert list(reopened) == [ino]
    assert reopened.next_ino == 2
    assert remove_unreferenced(reopened, set()) == 1
    assert len(os.listdir(shard)) == 8
    assert len(os.listdir(room + b"/files")) == 9


# --- making ---


@pytest.mark.parametrize("umask", [0, 0o022, 0o077, 0o177])
@pytest.mark.parametrize("mode", [0, 0o200, 0o644, 0o666, 0o777, 0o4755, 0o2755, 0o1777, 0o7777])
def test_modes_are_exact_whatever_the_umask(store: Store, umask: int, mode: int) -> None:
    os.umask(umask)
    ino, fd, _ = store.create_file(mode)
    os.close(fd)
    assert mode_of(store.path(ino)) == mode
    assert mode_of(store.path(store.create_dir(mode)[0])) == mode
    assert mode_of(store.path(store.create_special(stat.S_IFIFO | mode))) == mode


def test_a_new_file_is_open_for_reading_and_writing(store: Store) -> None:
    ino, fd, _ = store.create_file(0)
    assert ino == 1
    assert not os.get_inheritable(fd)
    os.write(fd, b"data")
    assert os.pread(fd, 10, 0) == b"data"
    os.close(fd)
    assert os.lstat(store.path(ino)).st_size == 4


def test_every_type_can_be_made_and_removed(store: Store) -> None:
    numbers = [
        add_file(store),
        store.create_dir(0o755)[0],
        store.create_symlink(b"nowhere/\xff"),
        store.create_special(stat.S_IFIFO | 0o600),
        store.create_special(stat.S_IFSOCK | 0o600),
        store.create_dir(0)[0],
    ]
    assert [stat.S_IFMT(os.lstat(store.path(ino)).st_mode) for ino in numbers] == [
        stat.S_IFREG,
        stat.S_IFDIR,
        stat.S_IFLNK,
        stat.S_IFIFO,
        stat.S_IFSOCK,
        stat.S_IFDIR,
    ]
    assert os.readlink(store.path(3)) == b"nowhere/\xff"
    assert list(store) == [1, 2, 3, 4, 5, 6] == numbers
    for ino in numbers:
        store.remove(ino)
    assert list(store) == []


def test_a_store_inode_of_any_type_that_is_held_outlives_its_removal(store: Store) -> None:
    numbers = [
        add_file(store, b"x" * 5000, 0),
        store.create_dir(0)[0],
        store.create_symlink(b"nowhere"),
        store.create_special(stat.S_IFIFO | 0o600),
    ]
    for ino in numbers:
        before = os.lstat(store.path(ino))
        fd = store.hold(ino)
        store.remove(ino)
        assert not os.path.lexists(store.path(ino))
        assert not os.get_inheritable(fd)
        assert os.fstat(fd).st_ino == before.st_ino
        assert os.fstat(fd).st_size == (before.st_size if not stat.S_ISDIR(before.st_mode) else 0)
        os.close(fd)
    assert store.hold(numbers[0]) == -1
    assert store.next_ino == 5


def test_ext4_is_told_to_spread_the_shards_over_the_disk(room: bytes) -> None:
    store = Store(room + b"/files")
    before = flags_of(store.directory)
    store.reserve()
    assert flags_of(store.directory) == before | 0x20000
    assert flags_of(store.directory + b"/00") & 0x20000 == 0


def test_a_shard_that_a_crash_left_without_its_name_is_collected(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object) -> None:
        raise OSError(errno.EIO, "no luck")

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", die)
        with pytest.raises(OSError, match="no luck"):
            store.reserve()
    assert len(os.listdir(store.directory)) == 1
    assert list(Store(store.directory)) == []
    assert add_file(store) == 1
    os.mkdir(store.directory + b"/new-mine")
    assert remove_unreferenced(store, {1}) == 0
    assert sorted(os.listdir(store.directory)) == [b"00", b"new-mine"]


def test_a_filesystem_that_cannot_spread_them_is_good_enough(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOTTY, "no such flag")

    monkeypatch.setattr(fcntl, "ioctl", refuse)
    descriptors = os.listdir("/proc/self/fd")
    assert add_file(store) == 1
    assert os.listdir("/proc/self/fd") == descriptors


def flags_of(directory: bytes) -> int:
    """What lsattr shows; skips where nobody can tell, or the filesystem is not ext4."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", directory], capture_output=True, text=True, check=True).stdout
    if kind.strip() != "ext2/ext3":
        pytest.skip(f"{kind.strip()} has no such flag: only ext4 is to be told")
    fd = os.open(directory, os.O_RDONLY)
    try:
        return int.from_bytes(fcntl.ioctl(fd, 0x80086601, bytes(4)), sys.byteorder)
    finally:
        os.close(fd)


def test_store_inodes_from_a_number_on_are_found_in_all_shards(room: bytes) -> None:
    store = Store(room + b"/files", next_ino=254)
    numbers = [add_file(store) for _ in range(4)]
    assert numbers == [254, 255, 256, 257]
    assert list(store.since(1)) == numbers
    assert list(store.since(255)) == [255, 256, 257]
    assert list(store.since(257)) == [257]
    assert list(store.since(1000)) == []


@needs_root
def test_root_may_make_devices() -> None:
    with room_of(ROOT) as room:
        store = Store(room + b"/files")
        st = os.lstat(store.path(store.create_special(stat.S_IFCHR | 0o660, os.makedev(1, 3))))
    assert (st.st_mode, st.st_rdev) == (stat.S_IFCHR | 0o660, os.makedev(1, 3))


def test_an_ordinary_user_may_not_make_devices() -> None:
    with room_of(ORDINARY) as room:
        store = Store(room + b"/files")
        with pytest.raises(PermissionError):
            store.create_special(stat.S_IFCHR | 0o660, os.makedev(1, 3))
        assert list(store) == []


@pytest.mark.parametrize("create", ["create_file", "create_dir", "create_special"])
def test_a_creation_that_fails_half_way_leaves_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, create: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "no luck")

    descriptors = os.listdir("/proc/self/fd")
    with monkeypatch.context() as patch:
        patch.setattr(os, "chmod", refuse)
        patch.setattr(os, "fchmod", refuse)
        store._shards.add(0)
        os.mkdir(store.directory + b"/00", 0o700)
        with pytest.raises(OSError, match="no luck"):
            getattr(store, create)(stat.S_IFIFO | 0o666 if create == "create_special" else 0o666)
    assert list(store) == []
    assert os.listdir("/proc/self/fd") == descriptors


def test_a_number_that_is_taken_after_all_is_an_error_and_the_file_stays(store: Store) -> None:
    store.reserve()
    make(store.directory + b"/00/2", b"precious")
    with pytest.raises(FileExistsError):
        store.create_file(0o644)
    with open(store.path(2), "rb") as file:
        assert file.read() == b"precious"


def test_removing_what_is_not_there_is_an_error(store: Store) -> None:
    with pytest.raises(FileNotFoundError):
        store.remove(1)


# --- collecting ---


def test_collect_removes_what_is_not_referenced_and_empty_shards(room: bytes) -> None:
    store = Store(room + b"/files", next_ino=250)
    for _ in range(4):
        add_file(store)
    store.create_dir(0)
    store.create_symlink(b"x")
    store.create_special(stat.S_IFIFO)
    last = add_file(store)
    assert last == 257
    assert remove_unreferenced(store, {250, 253, 255, 7}) == 5
    assert list(store) == [250, 253, 255]
    assert os.listdir(store.directory) == [b"00"]
    assert store.next_ino == 258
    assert add_file(store) == 258  # in a shard that is made again
    assert remove_unreferenced(store, set()) == 4
    assert os.listdir(store.directory) == []


def test_collect_removes_many_from_several_shards_at_once(room: bytes) -> None:
    store = Store(room + b"/files", next_ino=200)
    numbers = [add_file(store) for _ in range(1100)]
    store.create_dir(0)
    kept = {numbers[0], numbers[700]}
    assert remove_unreferenced(store, kept) == 1099
    assert set(store) == kept
    assert sorted(os.listdir(store.directory)) == [b"00", b"03"]
    assert store.next_ino == 1301


def test_a_store_inode_that_cannot_be_removed_among_many_is_an_error(
    room: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(room + b"/files")
    numbers = [add_file(store) for _ in range(1100)]
    os.unlink(store.path(numbers[600]))
    os.mkdir(store.path(numbers[600]))
    make(store.path(numbers[600]) + b"/foreign")
    with pytest.raises(OSError, match="Directory not empty"):
        remove_unreferenced(store, set())
    assert numbers[600] in set(store)


def test_collect_keeps_everything_that_is_referenced(store: Store) -> None:
    numbers = [add_file(store) for _ in range(3)]
    assert remove_unreferenced(store, set(numbers)) == 0
    assert list(store) == numbers
