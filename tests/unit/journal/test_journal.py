"""The journal file: appending, torn tails, damage, segments, readers beside a writer."""

from __future__ import annotations

import errno
import io
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from yolofs.errors import JournalError
from yolofs.journal import file as journal_file
from yolofs.journal.checksums import with_checksum
from yolofs.journal.codec import encode
from yolofs.journal.header import HEADER_1, Form, header, read_header
from yolofs.journal.journal import Damage, Journal, MarkerAt
from yolofs.journal.records import Record, Snapshot, Stage, Travel
from yolofs.paths import Generation, RelPath, StoreIno

A = Stage(1, RelPath(b"a"), StoreIno(1))
B = Stage(2, RelPath(b"b c"), StoreIno(2))
C = Stage(3, RelPath(b"c"), StoreIno(3))
P1 = Snapshot(4, b"first")
T2 = Travel(5, Generation(0), b"base")


KEY = 0x1234ABCD
START = len(header(KEY))


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path / "journal")


@pytest.fixture(params=[1, 2])
def form(request: pytest.FixtureRequest) -> Form:
    """Return the form of the journals of each version."""
    return form_of(HEADER_1 if request.param == 1 else header(KEY))


def form_of(line: bytes) -> Form:
    return read_header(line.rstrip(b"\n"))


def first_line(form: Form) -> bytes:
    return HEADER_1 if form.version == 1 else header(form.key)


def create(path: bytes, form: Form | None = None) -> Journal:
    """Make a journal with the key of these tests, or of a given form."""
    if form is None or form.version == 2:
        return Journal.create(path, key=KEY)
    append_raw(path, HEADER_1)
    return Journal.open(path)


def write(path: bytes, *records: Record, form: Form | None = None) -> None:
    with create(path, form) as journal:
        journal.append(*records)


def raw(*records: Record, first: int = 1, form: Form | None = None) -> bytes:
    """Return the lines of ``records``, of which one is the ``first`` record of the journal, the
    next the second.
    """
    stamps = form or form_of(header(KEY))
    return b"".join(encode(record, stamps.stamp(number)) for number, record in enumerate(records, first))


def contents(path: bytes) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def append_raw(path: bytes, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


def read_all(path: bytes) -> list[Record]:
    with Journal.open(path, read_only=True) as journal:
        return list(journal.read())


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let the system cut writes short at ``size`` bytes, as a disk does that runs full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# --- creating and opening ---


def test_a_new_journal_is_a_header_of_mode_0600(path: bytes) -> None:
    with Journal.create(path, key=KEY) as journal:
        assert (journal.size, journal.markers, journal.torn_bytes) == (36, [], 0)
        assert list(journal.read()) == []
    assert contents(path) == b"yolofs-journal 2 1234abcd #b731ed2d\n"
    assert os.stat(path).st_mode & 0o7777 == 0o600
    assert os.listdir(os.path.dirname(path)) == [b"journal"]


def test_create_leaves_an_existing_journal_alone(path: bytes) -> None:
    write(path, A)
    with pytest.raises(FileExistsError):
        Journal.create(path)
    assert read_all(path) == [A]


def test_create_takes_over_what_a_crashed_create_left(path: bytes) -> None:
    append_raw(path + b".new", b"yolo")
    write(path, A)
    assert read_all(path) == [A]
    assert not os.path.exists(path + b".new")


def test_a_create_that_fails_leaves_nothing(path: bytes) -> None:
    with file_size_limit(5), pytest.raises(OSError, match="cut short"):
        Journal.create(path)
    assert os.listdir(os.path.dirname(path)) == []


def test_the_descriptor_is_not_inherited(path: bytes) -> None:
    write(path)
    for read_only in (True, False):
        with Journal.open(path, read_only=read_only) as journal:
            assert not os.get_inheritable(journal._fd)


def test_closing_twice_does_no_harm(path: bytes) -> None:
    journal = create(path)
    journal.close()
    journal.close()


ANEW = "yolofs doctor --repair --keep-rest writes that line anew, by what the other lines tell of it"
NO_JOURNAL = ("does not begin with yolofs-journal 2, so it is damaged in its first line, or no journal", ANEW)
DAMAGED = ("is damaged in its first line", ANEW)


@pytest.mark.parametrize(
    ("start", "told"),
    [
        (b"", NO_JOURNAL),
        (b"yolofs-journal 1", NO_JOURNAL),
        (header(KEY)[:-1], DAMAGED),
        (b"#!/bin/sh\n", NO_JOURNAL),
        (b"yolofs-journal\n", NO_JOURNAL),
        (b"yolofs-journal 0\n", NO_JOURNAL),
        (b"yolofs-journal -1\n", NO_JOURNAL),
        (
            b"yolofs-journal 3 whatever\n",
            (
                "has format version 3, but this yolofs reads versions 1 to 2",
                "use the yolofs that made it, or a newer one",
            ),
        ),
        (b"yolofs-journal 1 \n", DAMAGED),
        (b"yolofs-journal 2\n", DAMAGED),
        (header(KEY).replace(b"1234", b"1235"), DAMAGED),
        (header(KEY).replace(b"abcd", b"ABCD"), DAMAGED),
        (with_checksum(b"yolofs-journal 2 ffffffff"), DAMAGED),
        (with_checksum(b"yolofs-journal 2 1234abcd x"), DAMAGED),
        (with_checksum(b"yolofs-journal 02 1234abcd"), DAMAGED),
    ],
)
def test_a_file_that_is_no_journal_of_a_known_version_is_refused(
    path: bytes, start: bytes, told: tuple[str, str]
) -> None:
    append_raw(path, start + encode(A))
    for refusing in (Journal.open, Journal.find_damage, Journal.repair):
        with pytest.raises(JournalError) as caught:
            refusing(path)
        assert caught.value.message.endswith(told[0])
        assert caught.value.hint == told[1]
    assert contents(path) == start + encode(A)


def test_a_missing_journal_is_an_os_error(path: bytes) -> None:
    with pytest.raises(FileNotFoundError):
        Journal.open(path)


# --- appending ---


def test_what_was_appended_is_read_back(path: bytes, form: Form) -> None:
    with create(path, form) as journal:
        journal.append(A)
        journal.append(B, P1, C)
        journal.append()
        journal.sync()
        assert list(journal.read()) == [A, B, P1, C]
        assert journal.size == os.path.getsize(path)
    assert contents(path) == first_line(form) + raw(A, B, P1, C, form=form)
    assert read_all(path) == [A, B, P1, C]


def test_appending_after_reopening_continues(path: bytes, form: Form) -> None:
    write(path, A, form=form)
    with Journal.open(path) as journal:
        journal.append(B)
    assert read_all(path) == [A, B]


def test_several_records_are_one_write(path: bytes, form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []

    def write(_: int, data: bytes) -> int:
        written.append(data)
        return len(data)

    with create(path, form) as journal:
        monkeypatch.setattr(os, "write", write)
        journal.append(A, B, C)
    assert written == [raw(A, B, C, form=form)]


def test_a_short_write_is_undone_and_reported(path: bytes, form: Form) -> None:
    with create(path, form) as journal:
        journal.append(A, P1)
        good = contents(path)
        with file_size_limit(journal.size + len(encode(B)) + 3), pytest.raises(OSError, match="cut short") as caught:
            journal.append(B, Snapshot(6, b"lost"), C)
        assert caught.value.errno == errno.ENOSPC
        assert contents(path) == good
        assert (journal.size, len(journal.markers)) == (len(good), 1)
        journal.append(C)
    assert read_all(path) == [A, P1, C]


def test_a_write_that_fails_outright_changes_nothing(path: bytes) -> None:
    with create(path) as journal:
        journal.append(A)
        with file_size_limit(journal.size), pytest.raises(OSError, match=r".") as caught:
            journal.append(B)
        assert caught.value.errno == errno.EFBIG
        journal.append(C)
    assert read_all(path) == [A, C]


def test_if_undoing_fails_too_the_next_append_does_it_first(
    path: bytes, form: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "no luck")

    with create(path, form) as journal:
        journal.append(A)
        with monkeypatch.context() as patch, file_size_limit(journal.size + 3):
            patch.setattr(os, "ftruncate", refuse)
            with pytest.raises(OSError, match="cut short"):
                journal.append(B)
            with pytest.raises(OSError, match="no luck"):
                journal.append(B)
        assert os.path.getsize(path) == journal.size + 3
        journal.append(C)
    assert contents(path) == first_line(form) + raw(A, C, form=form)


def test_a_record_that_cannot_be_written_takes_none_of_the_others_with_it(path: bytes) -> None:
    with create(path) as journal:
        with pytest.raises(ValueError, match="not a path relative to base"):
            journal.append(A, Stage(1, RelPath(b"../x"), StoreIno(1)))
        assert contents(path) == header(KEY)


def test_a_reader_cannot_append(path: bytes) -> None:
    write(path, A)
    with Journal.open(path, read_only=True) as journal, pytest.raises(io.UnsupportedOperation):
        journal.append(B)
    assert read_all(path) == [A]


# --- markers and segments ---


@pytest.mark.parametrize("reopened", [False, True])
def test_markers_segments_and_counts_agree_whether_appended_or_scanned(path: bytes, form: Form, reopened: bool) -> None:
    journal = create(path, form)
    journal.append(A, B, P1, T2, C)
    if reopened:
        journal.close()
        journal = Journal.open(path)
    with journal:
        p1 = form.header_bytes + len(encode(A) + encode(B))
        t2 = p1 + len(encode(P1))
        rest = t2 + len(encode(T2))
        assert journal.markers == [MarkerAt(p1, t2, P1), MarkerAt(t2, rest, T2)]
        assert journal.segment_counts() == [2, 0, 1]
        assert [journal.segment_range(i) for i in (1, 2, 3)] == [
            (form.header_bytes, p1),
            (t2, t2),
            (rest, journal.size),
        ]
        assert [list(journal.read_segment(i)) for i in (1, 2, 3)] == [[A, B], [], [C]]


@pytest.mark.parametrize("segment", [-1, 0, 2])
def test_a_segment_that_does_not_exist_is_an_index_error(path: bytes, segment: int) -> None:
    with create(path) as journal, pytest.raises(IndexError):
        journal.segment_range(segment)


def test_reading_starts_and_ends_at_given_offsets(path: bytes, form: Form) -> None:
    with create(path, form) as journal:
        journal.append(A, B, C)
        b, c = form.header_bytes + len(encode(A)), form.header_bytes + len(encode(A)) + len(encode(B))
        assert list(journal.read(b)) == [B, C]
        assert list(journal.read(b, c)) == [B]
        assert list(journal.read(journal.size)) == []
        assert list(journal.read(0, journal.size + 100)) == [A, B, C]


def test_reading_from_the_middle_of_a_line_is_an_error(path: bytes) -> None:
    with create(path) as journal:
        journal.append(A, B)
        with pytest.raises(JournalError, match="the checksum does not match"):
            list(journal.read(START + 1))
        with pytest.raises(JournalError, match="the line is cut"):
            list(journal.read(START, journal.size - 1))


def test_lines_that_lie_across_the_pieces_in_which_a_file_is_read_are_whole(
    path: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    records: list[Record] = [A, B, P1, C, T2]
    write(path, *records)
    for size in range(1, 60):
        monkeypatch.setattr(journal_file, "_CHUNK_BYTES", size)
        with Journal.open(path) as journal:
            assert list(journal.read()) == records
            assert [at.marker for at in journal.markers] == [P1, T2]


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


def test_torn_tails_add_up(path: bytes) -> None:
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


# --- a reader beside a writer ---


def test_refresh_takes_in_what_the_writer_appended(path: bytes) -> None:
    with create(path) as writer, Journal.open(path, read_only=True) as reader:
        assert reader.refresh() is False
        writer.append(A, P1, B)
        assert reader.refresh() is True
        assert list(reader.read()) == [A, P1, B]
        assert reader.markers == writer.markers
        assert reader.segment_counts() == [1, 1]
        writer.append(T2)
        assert reader.refresh() is True
        assert reader.markers == writer.markers
        assert reader.segment_counts() == writer.segment_counts() == [1, 1, 0]


def test_refresh_waits_for_the_rest_of_a_line(path: bytes) -> None:
    write(path, A)
    with Journal.open(path, read_only=True) as reader:
        append_raw(path, raw(P1, first=2)[:9])
        assert reader.refresh() is False
        assert (reader.torn_bytes, reader.markers) == (9, [])
        append_raw(path, raw(P1, first=2)[9:])
        assert reader.refresh() is True
        assert reader.torn_bytes == 0
        assert list(reader.read()) == [A, P1]


def test_refresh_reads_all_again_after_the_writer_cut_the_file(path: bytes) -> None:
    write(path, A, P1, B, T2)
    with Journal.open(path, read_only=True) as reader:
        os.truncate(path, START + len(encode(A)) + len(encode(P1)))
        assert reader.refresh() is True
        assert list(reader.read()) == [A, P1]
        assert [at.marker for at in reader.markers] == [P1]
        assert reader.segment_counts() == [1, 0]


def test_a_refresh_that_fails_can_be_tried_again(path: bytes) -> None:
    write(path, A)
    with Journal.open(path, read_only=True) as reader:
        size = reader.size
        append_raw(path, raw(P1, first=2) + b"bad\n" + raw(T2, first=4))
        for _ in range(2):
            with pytest.raises(JournalError, match="line 4"):
                reader.refresh()
            assert [at.marker for at in reader.markers] == [P1]
        assert reader.size == size + len(encode(P1))
        assert reader.segment_counts() == [1, 0]


def test_what_was_taken_of_the_disk_for_more_is_given_back(path: bytes) -> None:
    with Journal.create(path) as journal:
        journal.append(A)
        journal.give_back()
        assert os.stat(path).st_blocks * 512 <= 16384
        journal.append(B)
        journal.give_back()
    with Journal.open(path) as journal:
        assert list(journal.read()) == [A, B]
