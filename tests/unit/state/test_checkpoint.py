"""When a checkpoint counts, and when the journal is replayed as if there were none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from yolofs.journal.header import header
from yolofs.journal.journal import Journal
from yolofs.journal.timeline import BASE
from yolofs.paths import RelPath
from yolofs.session.session import Session, SessionAccess
from yolofs.state import checkpoint
from yolofs.state.tree import Shown


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[CoreDriver]:
    """A session with two generations, work after them, and a checkpoint of all of it."""
    driver = CoreDriver(os.fsencode(tmp_path))
    driver.create(b"a", b"1", 0o644)
    driver.snapshot()
    driver.append(b"a", b"2")
    driver.snapshot()
    driver.create(b"b", b"3", 0o644)
    assert driver.session.write_checkpoint(least_records=0)
    yield driver
    driver.close()


def path_of(driver: CoreDriver) -> Path:
    return Path(os.fsdecode(driver.session.directory)) / "checkpoint"


def is_used(driver: CoreDriver) -> bool:
    driver.remount()
    assert driver.read(b"a") == b"12"
    assert driver.read(b"b") == b"3"
    assert driver.session.timeline.present == 2
    return bool(driver.session.journal.known_bytes)


def test_a_checkpoint_is_used_and_only_its_owner_may_read_it(driver: CoreDriver) -> None:
    assert is_used(driver)
    assert path_of(driver).stat().st_mode & 0o777 == 0o600


def test_work_after_a_checkpoint_is_not_lost(driver: CoreDriver) -> None:
    driver.create(b"c", b"4", 0o644)
    driver.append(b"a", b"!")
    driver.remount()
    assert driver.session.journal.known_bytes
    assert driver.read(b"c") == b"4"
    assert driver.read(b"a") == b"12!"
    driver.travel(1)
    assert driver.read(b"a") == b"1"


def test_what_was_fresh_is_written_in_place_and_what_was_not_is_not(driver: CoreDriver) -> None:
    assert is_used(driver)
    before = driver.session.store.next_ino
    driver.append(b"b", b"+")
    assert driver.session.store.next_ino == before
    driver.append(b"a", b"+")
    assert driver.session.store.next_ino == before + 1
    driver.travel(2)
    assert driver.read(b"a") == b"12"


@pytest.mark.parametrize("damage", [b"", b"garbage", b"\x00" * 100])
def test_a_checkpoint_that_cannot_be_read_is_not_used(driver: CoreDriver, damage: bytes) -> None:
    path_of(driver).write_bytes(damage)
    assert not is_used(driver)


def test_a_checkpoint_that_is_cut_anywhere_or_has_a_wrong_byte_is_not_used(driver: CoreDriver) -> None:
    data = path_of(driver).read_bytes()
    for at in range(0, len(data), 7):
        path_of(driver).write_bytes(data[:at])
        assert checkpoint.read(driver.session.directory) is None
        path_of(driver).write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert checkpoint.read(driver.session.directory) is None


def test_a_checkpoint_of_another_journal_is_not_used(driver: CoreDriver) -> None:
    data = path_of(driver).read_bytes()
    driver.abort()
    assert not path_of(driver).exists()
    path_of(driver).write_bytes(data)
    driver.remount()
    assert not driver.session.journal.known_bytes
    assert driver.session.timeline.present == 0
    for _ in range(20):
        driver.create(b"x", b"1", 0o644)
        driver.unlink(b"x")
    driver.remount()
    assert not driver.session.journal.known_bytes


def test_a_checkpoint_of_a_journal_that_was_cut_is_not_used(driver: CoreDriver) -> None:
    journal = Path(os.fsdecode(driver.session.journal.path))
    driver.session.close()
    lines = journal.read_bytes().rstrip(b"\0").splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]))
    driver.remount()
    assert not driver.session.journal.known_bytes
    assert driver.read(b"a") == b"12"
    with pytest.raises(FileNotFoundError):
        driver.read(b"b")


def test_a_torn_tail_after_a_checkpoint_is_found(driver: CoreDriver) -> None:
    path = driver.session.journal.path
    driver.session.close()
    size = Path(os.fsdecode(path)).stat().st_size
    with open(path, "ab") as file:
        file.write(b"S 17 torn")
    with Journal.open(path, read_only=True) as journal:
        whole = journal.size
    assert is_used(driver)
    assert driver.session.journal.size == whole <= size
    assert Path(os.fsdecode(path + b".torn")).read_bytes().endswith(b"S 17 torn\n")


def test_the_store_keeps_what_only_the_known_beginning_names(driver: CoreDriver) -> None:
    assert is_used(driver)
    names = sorted(driver.session.store)
    assert len(names) == 3  # two versions of a, one of b
    assert driver.session.collect() == 0
    assert sorted(driver.session.store) == names


def test_few_records_are_not_worth_a_checkpoint(tmp_path: Path) -> None:
    driver = CoreDriver(os.fsencode(tmp_path))
    driver.create(b"a", b"1", 0o644)
    assert not driver.session.write_checkpoint()
    assert not path_of(driver).exists()
    driver.close()


def test_readers_use_a_checkpoint_and_a_commit_ends_it(driver: CoreDriver) -> None:
    with Session.open(driver.root, SessionAccess.READ, root=driver.root) as session:
        assert session.journal.known_bytes
    driver.commit()
    assert not path_of(driver).exists()
    assert driver.read(b"a") == b"12"


def test_a_reader_writes_a_checkpoint_while_the_session_goes_on(driver: CoreDriver) -> None:
    with Session.open(driver.root, SessionAccess.READ, root=driver.root) as reader:
        driver.create(b"c", b"4", 0o644)
        driver.snapshot()
        driver.append(b"c", b"5")
        assert reader.write_checkpoint(least_records=0)
    driver.append(b"a", b"!")
    driver.remount()
    assert driver.session.journal.known_bytes
    assert (driver.read(b"a"), driver.read(b"b"), driver.read(b"c")) == (b"12!", b"3", b"45")
    assert driver.session.collect() == 0


def test_what_another_process_has_written_need_not_be_written_again(driver: CoreDriver) -> None:
    driver.create(b"c", b"4", 0o644)
    driver.create(b"d", b"5", 0o644)
    with Session.open(driver.root, SessionAccess.READ, root=driver.root) as reader:
        assert reader.write_checkpoint(least_records=1)
    written = path_of(driver).read_bytes()
    assert not driver.session.write_checkpoint(least_records=1)
    assert path_of(driver).read_bytes() == written
    driver.create(b"e", b"6", 0o644)
    assert driver.session.write_checkpoint(least_records=1)
    assert is_used(driver)
    assert [driver.read(name) for name in (b"c", b"d", b"e")] == [b"4", b"5", b"6"]


def test_a_checkpoint_of_another_journal_does_not_count_as_written(driver: CoreDriver) -> None:
    written = path_of(driver).read_bytes()
    driver.commit()
    path_of(driver).write_bytes(written)
    for name in (b"c", b"d", b"e", b"f", b"g"):
        driver.create(name, name * 500, 0o644)
    assert driver.session.write_checkpoint(least_records=1)
    driver.remount()
    assert driver.session.journal.known_bytes
    assert [driver.read(name) for name in (b"a", b"g")] == [b"12", b"g" * 500]


def test_a_reader_whose_journal_has_ended_writes_none(driver: CoreDriver) -> None:
    with Session.open(driver.root, SessionAccess.READ, root=driver.root) as reader:
        driver.session.put_away(None)
        assert not path_of(driver).exists()
        assert not reader.write_checkpoint(least_records=0)
        assert not path_of(driver).exists()


def test_what_a_killed_writer_has_left_of_a_checkpoint_goes_with_the_journal(driver: CoreDriver) -> None:
    left = path_of(driver).with_name("checkpoint.new")
    left.write_bytes(b"half")
    driver.session.put_away(None)
    assert not left.exists()


def test_two_states_are_compared_without_reading_what_it_holds(driver: CoreDriver) -> None:
    driver.create(b"c", b"4", 0o644)
    with Session.open(driver.root, SessionAccess.READ, root=driver.root) as reader:
        with open(reader.journal.path, "r+b") as file:
            file.seek(len(header(0)) + 5)
            file.write(b"damage, which who reads it would find")
        before, after = reader.states(BASE, None)
        assert before.resolve(b"a") == Shown(None, None, RelPath(b"a"))
        assert all(after.find(path) is not None for path in (b"a", b"b", b"c"))
