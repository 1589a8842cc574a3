"""The shown owners of store inodes that could not be given to their user or group."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from tests.support.user_identity import NOBODY, acting_as
from tests.unit.store.store_files import add_file
from yolofs.store.collecting import remove_unreferenced
from yolofs.store.owners import NAME, GivableOwners, Owners, gives_group, shown
from yolofs.store.store import Store

FOREIGN = 5000


@pytest.fixture
def directory(tmp_path: Path) -> bytes:
    (tmp_path / "files").mkdir()
    return bytes(tmp_path / "files")


def note_file(directory: bytes) -> Path:
    return Path(os.fsdecode(os.path.join(directory, NAME)))


def test_the_owner_noted_last_counts_for_the_next_reader(directory: bytes) -> None:
    owners = Owners(directory)
    assert owners.of == {}
    assert not note_file(directory).exists()
    owners.note(1, 1000, 33)
    owners.note(2, 0, 0)
    owners.note(1, 1000, 34)
    owners.forget(2)
    owners.forget(3)
    assert owners.of == Owners(directory).of == {1: (1000, 34)}
    assert note_file(directory).stat().st_mode & 0o777 == 0o600


def test_noting_an_owner_during_a_sync_does_not_wait_and_is_synced_by_the_next(
    directory: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners = Owners(directory)
    owners.note(1, 1000, 33)
    synced: list[int] = []

    def note_meanwhile(fd: int) -> None:
        synced.append(os.fstat(fd).st_size)
        if len(synced) == 1:
            noting = Thread(target=owners.note, args=(2, 1000, 33), daemon=True)
            noting.start()
            noting.join(timeout=30)
            assert not noting.is_alive()

    monkeypatch.setattr(os, "fsync", note_meanwhile)
    for _ in range(3):
        owners.sync()
    assert len(synced) == 2
    assert synced[1] == note_file(directory).stat().st_size > synced[0]


def test_the_same_owner_again_is_not_written(directory: bytes) -> None:
    owners = Owners(directory)
    owners.note(1, 1000, 33)
    size = note_file(directory).stat().st_size
    owners.note(1, 1000, 33)
    assert note_file(directory).stat().st_size == size


@pytest.mark.parametrize("cut", range(1, 20))
def test_half_a_line_says_nothing_and_spoils_no_other(directory: bytes, cut: int) -> None:
    Owners(directory).note(1, 1000, 33)
    whole = note_file(directory).read_bytes()
    Owners(directory).note(2, 1000, 333)
    text = note_file(directory).read_bytes()
    note_file(directory).write_bytes(text[: len(whole) + cut])
    owners = Owners(directory)
    assert owners.of == {1: (1000, 33)} | ({2: (1000, 333)} if cut == len(text) - len(whole) - 1 else {})
    owners.note(3, 1000, 34)
    owners.forget(1)
    assert {ino: owner for ino, owner in Owners(directory).of.items() if ino != 2} == {3: (1000, 34)}


@pytest.mark.parametrize("line", [b"1 0 0", b"1 0 0 #00000000", b"x", b"\xff" * 40, b""])
def test_lines_that_name_no_owner_are_passed_over(directory: bytes, line: bytes) -> None:
    Owners(directory).note(2, 1000, 33)
    with note_file(directory).open("ab") as file:
        file.write(line + b"\n")
    assert Owners(directory).of == {2: (1000, 33)}


def test_owners_that_another_process_noted_are_read_when_asked_for(directory: bytes) -> None:
    owners, other = Owners(directory), Owners(directory)
    of = owners.of
    other.note(1, 1000, 33)
    assert of == {}
    owners.refresh()
    assert of is owners.of
    assert of == {1: (1000, 33)}


def test_the_owner_of_a_store_inode_that_is_gone_is_forgotten(directory: bytes) -> None:
    owners = Owners(directory)
    for ino in (1, 2, 3):
        owners.note(ino, 1000, 33)
    owners.forget_others({2})
    assert owners.of == Owners(directory).of == {2: (1000, 33)}
    assert note_file(directory).read_bytes().count(b"\n") == 1
    owners.note(4, 1000, 33)
    assert Owners(directory).of == {2: (1000, 33), 4: (1000, 33)}


def test_only_what_was_noted_is_waited_for(directory: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    owners = Owners(directory)
    owners.sync()
    assert synced == []
    owners.note(1, 1000, 33)
    owners.sync()
    owners.sync()
    assert len(synced) == 1
    again = Owners(directory)  # whoever wrote it may have been killed before it was durable
    again.sync()
    again.sync()
    assert len(synced) == 2


def test_attributes_with_another_owner_are_the_same_otherwise(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 5000)
    st = (tmp_path / "file").stat()
    other = shown(st, (7, 8))
    assert (other.st_uid, other.st_gid) == (7, 8)
    for name in dir(st):
        if name.startswith("st_") and name not in ("st_uid", "st_gid"):
            assert getattr(other, name) == getattr(st, name), name


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store of an ordinary user's."""
    tmp_path.chmod(0o755)
    for above in tmp_path.parents[:3]:
        above.chmod(above.stat().st_mode | 0o011)
    (tmp_path / "own").mkdir()
    os.chown(tmp_path / "own", NOBODY, NOBODY)
    with acting_as(NOBODY, NOBODY):
        yield Store(bytes(tmp_path / "own/files"))


@pytest.mark.root_only
def test_a_copy_shows_the_owner_that_it_could_not_be_given(tmp_path: Path, store: Store) -> None:
    source = tmp_path / "source"
    os.seteuid(0)
    source.write_bytes(b"data")
    os.chown(source, NOBODY, FOREIGN)
    source.chmod(0o664)
    os.seteuid(NOBODY)
    ino = store.copy_up(bytes(source))
    assert os.lstat(store.path(ino)).st_gid == NOBODY
    assert store.lstat(ino).st_gid == store.metadata(ino).st.st_gid == FOREIGN
    again = store.copy_up(store.path(ino))  # as after a marker
    assert store.lstat(again).st_gid == FOREIGN
    assert store.shown_owner(again) == (NOBODY, FOREIGN)
    with store.looking_once():
        assert store.lstat(ino).st_gid == FOREIGN
    store.rename(again, new := store.reserve())
    assert store.shown_owner(new) == (NOBODY, FOREIGN)
    own = add_file(store)
    store.give(own, store.metadata(ino))
    assert store.lstat(own).st_gid == FOREIGN
    store.give(own, store.metadata(add_file(store)))
    assert store.shown_owner(own) is None


@pytest.mark.root_only
def test_an_owner_that_a_store_inode_could_be_given_is_not_noted(tmp_path: Path, store: Store) -> None:
    (tmp_path / "own/file").write_bytes(b"data")
    assert store.shown_owner(store.copy_up(bytes(tmp_path / "own/file"))) is None
    os.seteuid(0)
    source = tmp_path / "source"
    source.write_bytes(b"data")
    os.chown(source, 1, FOREIGN)
    ino = store.copy_up(bytes(source))  # as root
    assert (os.lstat(store.path(ino)).st_uid, store.shown_owner(ino)) == (1, None)
    assert not note_file(store.directory).exists()
    os.seteuid(NOBODY)


def test_a_number_that_something_was_noted_of_is_not_given_again(tmp_path: Path) -> None:
    store = Store(bytes(tmp_path))
    ino = add_file(store)
    store.owners.note(ino, 1000, 33)
    store.remove(ino)
    assert add_file(Store(bytes(tmp_path))) > ino
    again = Store(bytes(tmp_path))
    remove_unreferenced(again, ())
    assert again.owners.of == Store(bytes(tmp_path)).owners.of == {}


@pytest.mark.root_only
def test_a_user_may_give_files_to_own_groups_alone_and_root_to_all() -> None:
    assert GivableOwners().may_give(1, 2)
    with acting_as(NOBODY, NOBODY):
        giving = GivableOwners()
    assert giving.may_give(NOBODY, NOBODY)
    assert not giving.may_give(NOBODY, FOREIGN)
    assert not giving.may_give(0, NOBODY)
    with acting_as(NOBODY, NOBODY):
        os.seteuid(0)
        os.setgroups([FOREIGN])
        os.seteuid(NOBODY)
        assert GivableOwners().may_give(NOBODY, FOREIGN)


@pytest.mark.root_only
def test_a_setgid_directory_gives_its_group(tmp_path: Path) -> None:
    os.chown(tmp_path, NOBODY, FOREIGN)
    tmp_path.chmod(0o2770)
    assert gives_group(os.stat(tmp_path), FOREIGN)
    assert not gives_group(os.stat(tmp_path), FOREIGN + 1)
    tmp_path.chmod(0o770)
    assert not gives_group(os.stat(tmp_path), FOREIGN)
