"""The journal file: creating, appending, segments, a reader beside a writer."""

from __future__ import annotations

import errno
import io
import os

import pytest

from tests.support.file_limits import file_size_limit
from tests.unit.journal.journal_files import (
    KEY,
    P1,
    START,
    T2,
    A,
    B,
    C,
    append_raw,
    contents,
    create,
    first_line,
    raw,
    read_all,
    write,
)
from yolofs.errors import JournalError
from yolofs.journal import journal_file
from yolofs.journal.checksums import with_checksum
from yolofs.journal.codec import encode
from yolofs.journal.header import JournalForm, header
from yolofs.journal.journal import Journal, MarkerAt
from yolofs.journal.records import Record, Snapshot, Stage
from yolofs.paths import RelPath, StoreIno

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


def test_appended_records_are_read_back(path: bytes, form: JournalForm) -> None:
    with create(path, form) as journal:
        journal.append(A)
        journal.append(B, P1, C)
        journal.append()
        journal.sync()
        assert list(journal.read()) == [A, B, P1, C]
        assert journal.size == os.path.getsize(path)
    assert contents(path) == first_line(form) + raw(A, B, P1, C, form=form)
    assert read_all(path) == [A, B, P1, C]


def test_appending_after_reopening_continues(path: bytes, form: JournalForm) -> None:
    write(path, A, form=form)
    with Journal.open(path) as journal:
        journal.append(B)
    assert read_all(path) == [A, B]


def test_several_records_are_one_write(path: bytes, form: JournalForm, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []

    def write(_: int, data: bytes) -> int:
        written.append(data)
        return len(data)

    with create(path, form) as journal:
        monkeypatch.setattr(os, "write", write)
        journal.append(A, B, C)
    assert written == [raw(A, B, C, form=form)]


def test_a_short_write_is_undone_and_reported(path: bytes, form: JournalForm) -> None:
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
    path: bytes, form: JournalForm, monkeypatch: pytest.MonkeyPatch
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
def test_markers_segments_and_counts_agree_whether_appended_or_scanned(
    path: bytes, form: JournalForm, reopened: bool
) -> None:
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


def test_reading_starts_and_ends_at_given_offsets(path: bytes, form: JournalForm) -> None:
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


def test_disk_space_reserved_for_more_records_is_given_back(path: bytes) -> None:
    with Journal.create(path) as journal:
        journal.append(A)
        journal.give_back()
        assert os.stat(path).st_blocks * 512 <= 16384
        journal.append(B)
        journal.give_back()
    with Journal.open(path) as journal:
        assert list(journal.read()) == [A, B]


# --- what is durable ---


def test_a_sync_waits_for_the_disk_where_something_is_new(path: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path, A)
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", lambda fd: synced.append(os.fstat(fd).st_size))
    with Journal.open(path) as journal, Journal.open(path, read_only=True) as reader:
        journal.sync()  # whoever wrote it before may not have waited
        journal.sync()
        assert synced == [journal.size]
        journal.append(B)
        journal.append(C)
        journal.sync()
        journal.sync()
        assert synced[1:] == [journal.size]
        reader.sync()
        journal.append(A)
        reader.refresh()
        reader.refresh()
        reader.sync()
        reader.sync()
        assert synced[2:] == [reader.size - len(encode(A, journal.form.key)), reader.size]


def test_records_appended_during_a_sync_are_synced_by_the_next(path: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []

    def append_meanwhile(fd: int) -> None:
        synced.append(os.fstat(fd).st_size)
        if len(synced) == 1:
            journal.append(B)

    monkeypatch.setattr(os, "fdatasync", append_meanwhile)
    with create(path) as journal:
        journal.append(A)
        for _ in range(3):
            journal.sync()
        assert len(synced) == 2
        assert synced[1] == journal.size


def test_a_sync_that_failed_is_done_again(path: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with create(path) as journal:
        journal.append(A)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", lambda _: os.stat("/not-there"))
            for _ in range(2):
                with pytest.raises(FileNotFoundError):
                    journal.sync()
