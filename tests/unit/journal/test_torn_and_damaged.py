"""A journal whose end was cut off, or in which a line is damaged."""

from __future__ import annotations

import os

import pytest

from tests.support.file_limits import file_size_limit
from tests.unit.journal.journal_files import (
    KEY,
    P1,
    A,
    B,
    C,
    append_raw,
    contents,
    raw,
    read_all,
    write,
)
from yolofs.errors import JournalError
from yolofs.journal.checksums import with_checksum
from yolofs.journal.codec import encode
from yolofs.journal.journal import Damage, Journal

# --- torn tails ---


@pytest.mark.parametrize(
    "tail",
    [
        raw(C, first=3)[:-1],  # all but the newline
        raw(C)[:1],
        raw(C, first=3)[:-2] + b"\n",
        raw(C, first=3).replace(b"c", b"d", 1),
        encode(C),  # of a journal of version 1
        encode(C, 0x7654ABCD + 3),  # of another journal
        b"\0" * 5000,
        b"\n",
    ],
)
def test_a_torn_tail_is_moved_aside_and_the_rest_is_kept(path: bytes, tail: bytes) -> None:
    write(path, A, P1)
    good = contents(path)
    append_raw(path, tail)
    with Journal.open(path) as journal:
        assert journal.torn_bytes == len(tail)
        assert journal.size == len(good)
        assert contents(path) == good
        journal.append(B)
        assert list(journal.read()) == [A, P1, B]
    assert contents(path + b".torn") == b"# %d bytes cut from offset %d\n%b\n" % (len(tail), len(good), tail)
    assert os.stat(path + b".torn").st_mode & 0o7777 == 0o600
    with Journal.open(path) as journal:
        assert journal.torn_bytes == 0


def test_a_torn_tail_is_put_behind_those_that_were_cut_before(path: bytes) -> None:
    write(path)
    for tail in (b"one", b"two"):
        append_raw(path, tail)
        Journal.open(path).close()
    assert contents(path + b".torn") == (b"# 3 bytes cut from offset 36\none\n# 3 bytes cut from offset 36\ntwo\n")


def test_a_reader_ignores_a_torn_tail_and_leaves_it(path: bytes) -> None:
    write(path, A)
    append_raw(path, raw(B, first=2)[:7])
    before = contents(path)
    with Journal.open(path, read_only=True) as journal:
        assert journal.torn_bytes == 7
        assert list(journal.read()) == [A]
    assert contents(path) == before
    assert not os.path.exists(path + b".torn")


def test_the_tail_is_not_cut_before_it_is_safe_elsewhere(path: bytes) -> None:
    write(path, A)
    append_raw(path, b"x" * 100)
    before = contents(path)
    with file_size_limit(50), pytest.raises(OSError, match="cut short"):
        Journal.open(path)
    assert contents(path) == before


# --- damage ---


def damage_b(path: bytes) -> int:
    """Write A, a B with one bit flipped, and C; return the offset of B."""
    bad = bytearray(raw(B, first=2))
    bad[3] ^= 1
    write(path, A)
    offset = os.path.getsize(path)
    append_raw(path, bytes(bad) + raw(C, first=3))
    return offset


@pytest.mark.parametrize("read_only", [False, True])
def test_a_bad_line_in_the_middle_is_an_error_that_tells_where(path: bytes, read_only: bool) -> None:
    offset = damage_b(path)
    before = contents(path)
    with pytest.raises(JournalError) as caught:
        Journal.open(path, read_only=read_only)
    assert caught.value.message == f"{path.decode()}, line 3 (byte {offset}): the checksum does not match"
    assert caught.value.hint.startswith("yolofs doctor --repair --keep-rest loses the bad lines alone; ")
    assert contents(path) == before


def test_a_bad_line_before_a_cut_one_is_not_taken_for_a_torn_tail(path: bytes) -> None:
    write(path)
    append_raw(path, b"bad\nS 1")
    with pytest.raises(JournalError, match=r"line 2 \(byte 36\)"):
        Journal.open(path)


def test_an_unknown_kind_of_record_is_an_error_even_as_the_last_line(path: bytes) -> None:
    write(path, A)
    append_raw(path, with_checksum(b"Q 1 x", KEY + 2))
    before = contents(path)
    with pytest.raises(JournalError, match=r"line 3 .*unknown kind of record: Q") as caught:
        Journal.open(path)
    assert caught.value.hint == "a newer yolofs may have written it"
    assert contents(path) == before


def test_a_bad_field_under_a_good_checksum_is_found_when_it_is_read(path: bytes) -> None:
    write(path, A)
    append_raw(path, with_checksum(b"S 1 ../x 1", KEY + 2) + raw(C, first=3))
    with Journal.open(path) as journal:
        records = journal.read()
        assert next(records) == A
        with pytest.raises(JournalError, match=r"line 3 \(byte .*not a path relative to base: \.\./x"):
            next(records)


def test_find_damage_tells_where_and_changes_nothing(path: bytes) -> None:
    offset = damage_b(path)
    before = contents(path)
    assert Journal.find_damage(path) == Damage(offset, 3, len(before) - offset, "the checksum does not match", 2)
    assert contents(path) == before


def test_find_damage_reports_a_torn_tail_and_nothing_in_a_sound_journal(path: bytes) -> None:
    write(path, A)
    assert Journal.find_damage(path) is None
    size = os.path.getsize(path)
    append_raw(path, b"S 1")
    assert Journal.find_damage(path) == Damage(size, 3, 3, "the line is cut", 1, is_torn=True)


def test_repair_cuts_at_the_bad_line_and_keeps_what_it_cuts(path: bytes) -> None:
    offset = damage_b(path)
    before = contents(path)
    damage = Journal.repair(path)
    assert damage == Damage(offset, 3, len(before) - offset, "the checksum does not match", 2)
    assert contents(path) == before[:offset]
    assert contents(path + b".torn") == (
        b"# %d bytes cut from offset %d\n%b\n" % (len(before) - offset, offset, before[offset:])
    )
    assert read_all(path) == [A]


def test_repair_also_cuts_at_a_bad_field_under_a_good_checksum(path: bytes) -> None:
    write(path, A)
    append_raw(path, with_checksum(b"S 1 ../x 1", KEY + 2) + raw(C, first=3))
    damage = Journal.repair(path)
    assert damage is not None
    assert damage.reason == "bad S record: not a path relative to base: ../x"
    assert read_all(path) == [A]


def test_repair_leaves_a_sound_journal_alone(path: bytes) -> None:
    write(path, A, P1)
    before = contents(path)
    assert Journal.repair(path) is None
    assert contents(path) == before
    assert not os.path.exists(path + b".torn")
