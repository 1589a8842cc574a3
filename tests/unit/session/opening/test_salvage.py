"""What is kept of a damaged journal if the user wants the rest: every whole line, in its order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yolofs.errors import JournalError
from yolofs.journal.codec import encode
from yolofs.journal.header import HEADER_1, header
from yolofs.journal.journal import Journal
from yolofs.journal.journal_damage import Damage
from yolofs.journal.records import Delete, Record, Rename, Snapshot, Stage, Travel
from yolofs.paths import Generation, RelPath, StoreIno
from yolofs.session.opening.salvage import find_rest, keep_rest

KEY = 0x1234ABCD
RECORDS: list[Record] = [Stage(n, RelPath(b"f%d" % n), StoreIno(n)) for n in range(1, 8)]
START = header(KEY)
LINES = [encode(record, KEY + number) for number, record in enumerate(RECORDS, 1)]


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path / "journal")


def harmed(path: bytes, *lines: bytes, first: bytes = START) -> Damage:
    with open(path, "wb") as file:
        file.write(first + b"".join(lines))
    damage = Journal.find_damage(path)
    assert damage is not None
    return damage


def records_of(path: bytes) -> list[Record]:
    with Journal.open(path, read_only=True) as journal:
        return list(journal.read())


def contents(path: bytes) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def test_after_a_missing_line_all_others_are_kept_and_numbered_anew(path: bytes) -> None:
    damage = harmed(path, *LINES[:2], *LINES[3:])
    before = contents(path)
    rest = find_rest(path, damage)
    assert (len(rest.bodies), rest.left_out, rest.missing) == (4, 0, 1)
    assert contents(path) == before
    assert keep_rest(path, damage) == rest
    assert records_of(path) == RECORDS[:2] + RECORDS[3:]
    assert contents(path + b".torn") == (
        b"# %d bytes cut from offset %d\n%b\n" % (damage.cut_bytes, damage.offset_bytes, b"".join(LINES[3:]))
    )
    with Journal.open(path) as journal:
        journal.append(RECORDS[2])
    assert records_of(path) == RECORDS[:2] + RECORDS[3:] + [RECORDS[2]]
    assert not os.path.exists(path + b".new")


def test_lines_that_have_changed_places_or_are_there_twice_come_back_in_order(path: bytes) -> None:
    damage = harmed(path, LINES[0], LINES[5], LINES[2], LINES[3], LINES[3], LINES[0], LINES[4], LINES[1], LINES[6])
    rest = keep_rest(path, damage)
    assert (rest.left_out, rest.missing) == (2, 0)
    assert records_of(path) == RECORDS


def test_a_changed_a_foreign_and_a_cut_line_are_left_out(path: bytes) -> None:
    changed = LINES[1].replace(b"f2", b"g2")
    foreign = encode(RECORDS[3], 0x7654ABCD)
    damage = harmed(path, LINES[0], changed, LINES[2], foreign, LINES[4], LINES[5], LINES[6][:-3])
    rest = keep_rest(path, damage)
    assert (rest.left_out, rest.missing) == (3, 0)
    assert records_of(path) == [RECORDS[0], RECORDS[2], RECORDS[4], RECORDS[5]]


def test_a_line_that_was_changed_is_not_told_as_missing_too(path: bytes) -> None:
    changed = LINES[1].replace(b"f2", b"g2")
    rest = find_rest(path, harmed(path, LINES[0], changed, LINES[0], LINES[3], LINES[5], LINES[5], LINES[6]))
    assert (len(rest.bodies), rest.left_out) == (3, 3)  # left out: the changed one, and two that are there twice
    assert rest.missing == 2


def test_a_hole_of_zero_bytes_takes_the_lines_in_it_only(path: bytes) -> None:
    whole = b"".join(LINES)
    start = len(LINES[0]) + 5
    damage = harmed(path, whole[:start] + b"\0" * 60 + whole[start + 60 :])
    assert damage.reason == "the checksum does not match: it holds 60 zero bytes, as a power failure leaves them"
    keep_rest(path, damage)
    assert records_of(path) == [RECORDS[0], *RECORDS[5:]]


def test_of_version_1_what_has_the_right_checksum_is_kept_as_it_stands(path: bytes) -> None:
    lines = [encode(record) for record in RECORDS]
    damage = harmed(path, lines[0], b"nonsense\n", *lines[2:], first=HEADER_1)
    rest = keep_rest(path, damage)
    assert (rest.left_out, rest.missing) == (1, 0)
    assert contents(path) == HEADER_1 + lines[0] + b"".join(lines[2:])


@pytest.mark.parametrize("version", [1, 2])
def test_a_travel_after_what_is_missing_is_refused_as_its_number_may_mean_another_generation(
    path: bytes, version: int
) -> None:
    records = [RECORDS[0], Snapshot(8), Snapshot(9), RECORDS[1], Snapshot(10), Travel(11, Generation(1))]
    key = KEY if version == 2 else 0
    lines = [encode(record, key + number if key else 0) for number, record in enumerate(records, 1)]
    lines[1:2] = [] if version == 2 else [b"nonsense\n"]
    damage = harmed(path, *lines, first=START if version == 2 else HEADER_1)
    before = contents(path)
    with pytest.raises(JournalError, match="a travel comes after the missing lines") as caught:
        keep_rest(path, damage)
    assert "yolofs doctor --repair" in (caught.value.hint or "")
    assert contents(path) == before
    assert sorted(os.listdir(os.path.dirname(path))) == [b"journal"]


def test_a_travel_after_lines_that_only_changed_places_is_kept(path: bytes) -> None:
    records = [RECORDS[0], Snapshot(8), RECORDS[1], Snapshot(9), Travel(10, Generation(1))]
    lines = [encode(record, KEY + number) for number, record in enumerate(records, 1)]
    keep_rest(path, harmed(path, lines[0], lines[2], lines[1], *lines[3:]))
    assert records_of(path) == records


def test_a_rest_that_contradicts_itself_is_refused(path: bytes) -> None:
    """A new name in a directory that is gone: what put another in its place is missing."""
    moved = Rename(9, RelPath(b"e"), RelPath(b"d"))
    records = [RECORDS[0], Delete(8, RelPath(b"d")), moved, Stage(10, RelPath(b"d/x"), StoreIno(2))]
    lines = [encode(record, KEY + number) for number, record in enumerate(records, 1)]
    damage = harmed(path, *lines[:2], lines[3])
    before = contents(path)
    with pytest.raises(JournalError, match="contradicts itself"):
        keep_rest(path, damage)
    assert contents(path) == before
    assert sorted(os.listdir(os.path.dirname(path))) == [b"journal"]


def test_no_record_can_be_kept_of_a_torn_tail(path: bytes) -> None:
    damage = harmed(path, *LINES, b"S 1")
    assert damage.is_torn
    assert keep_rest(path, damage).bodies == []
    assert records_of(path) == RECORDS
