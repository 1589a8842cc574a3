"""The report on a damaged journal: the line, and its fate, as far as that can be told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yolofs.errors import JournalError
from yolofs.journal.codec import encode
from yolofs.journal.header import HEADER_1, header
from yolofs.journal.journal import Journal
from yolofs.journal.journal_damage import Damage
from yolofs.journal.records import Record, Stage
from yolofs.paths import RelPath, StoreIno

KEY = 0x1234ABCD
RECORDS: list[Record] = [Stage(n, RelPath(b"f%d" % n), StoreIno(n)) for n in range(1, 10)]
LINES = [encode(record, KEY + number) for number, record in enumerate(RECORDS, 1)]


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path / "journal")


def write(path: bytes, lines: list[bytes], first: bytes = header(KEY)) -> None:
    with open(path, "wb") as file:
        file.write(first + b"".join(lines))


@pytest.mark.parametrize(
    ("lines", "number", "reason"),
    [
        ([*LINES[:3], *LINES[4:]], 5, "it should be line 6: a line before it is missing"),
        (LINES[1:], 2, "it should be line 3: a line before it is missing"),
        ([LINES[0], LINES[8]], 3, "it should be line 10: 7 lines before it are missing"),
        ([LINES[1], LINES[0], *LINES[2:]], 2, "it should be line 3: lines have changed places"),
        ([*LINES[:7], LINES[8], LINES[7]], 9, "it should be line 10: lines have changed places"),
        ([LINES[8], *LINES[1:8], LINES[0]], 2, "it should be line 10: lines have changed places"),
        ([LINES[0], LINES[0], *LINES[1:]], 3, "it is there twice, and is line 2"),
        ([*LINES, LINES[3]], 11, "it is there twice, and is line 5"),
        ([LINES[0], b"nonsense\n", *LINES[2:]], 3, "the checksum does not match"),
        ([LINES[0], encode(RECORDS[1]), *LINES[2:]], 3, "the checksum does not match"),
        ([LINES[0], encode(RECORDS[1], 0x7654ABCD + 2), *LINES[2:]], 3, "the checksum does not match"),
        ([LINES[0], b"\n", *LINES[1:]], 3, "the checksum does not match"),
        (
            [LINES[0], b"\0" * 7 + LINES[1], *LINES[2:]],
            3,
            "the checksum does not match: it holds 7 zero bytes, as a power failure leaves them",
        ),
    ],
)
def test_every_reader_tells_the_damaged_line_and_what_became_of_it(
    path: bytes, lines: list[bytes], number: int, reason: str
) -> None:
    write(path, lines)
    damage = Journal.find_damage(path)
    assert damage is not None
    good = len(header(KEY)) + sum(map(len, lines[: number - 2]))
    size = os.path.getsize(path)
    assert damage == Damage(good, number, size - good, reason, len(lines) - number + 2, False)
    for read_only in (True, False):
        with pytest.raises(JournalError) as caught:
            Journal.open(path, read_only=read_only)
        assert caught.value.message == f"{path.decode()}, line {number} (byte {good}): {reason}"
        assert caught.value.hint.startswith("yolofs doctor --repair --keep-rest loses the bad lines alone; ")
    assert os.path.getsize(path) == size
    assert Journal.repair(path) == damage
    with Journal.open(path) as journal:
        assert list(journal.read()) == RECORDS[: number - 2]


def test_a_reader_that_goes_on_notices_a_missing_line(path: bytes) -> None:
    write(path, LINES[:3])
    with Journal.open(path, read_only=True) as reader:
        write(path, [*LINES[:3], *LINES[4:]])
        with pytest.raises(JournalError, match=r"line 5 .*a line before it is missing"):
            reader.refresh()


def test_a_reader_starts_anew_where_the_writer_has_cut_and_written_as_much_again(path: bytes) -> None:
    write(path, LINES[:5])
    with Journal.open(path, read_only=True) as reader:
        others = [Stage(n, RelPath(b"other-%d" % n), StoreIno(n)) for n in range(3, 9)]
        write(path, [*LINES[:2], *(encode(record, KEY + number) for number, record in enumerate(others, 3))])
        assert reader.refresh() is True
        assert list(reader.read()) == [*RECORDS[:2], *others]
        assert reader.record_count == 8


def test_in_version_1_a_missing_line_does_not_show(path: bytes) -> None:
    lines = [encode(record) for record in RECORDS]
    write(path, [*lines[:3], *lines[4:]], HEADER_1)
    assert Journal.find_damage(path) is None
    with Journal.open(path) as journal:
        assert list(journal.read()) == RECORDS[:3] + RECORDS[4:]


def test_a_checkpoint_knows_how_many_records_it_stands_for(path: bytes) -> None:
    write(path, LINES[:4])
    with Journal.open(path) as journal:
        known = journal.known()
    write(path, LINES)
    with Journal.open(path, known=known) as journal:
        assert journal.known_bytes == known.size
        assert list(journal.read(known.size)) == RECORDS[4:]
    write(path, [*LINES[:4], *LINES[5:]])
    with pytest.raises(JournalError, match=r"line 6 .*a line before it is missing"):
        Journal.open(path, known=known)


def test_a_cut_is_noted_before_it_is_made(path: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path, [*LINES, b"S 1"])
    before = os.path.getsize(path)

    def refuse(*_: object) -> None:
        raise OSError("no luck")

    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", refuse)
        with pytest.raises(OSError, match="no luck"):
            Journal.open(path)
    assert os.path.getsize(path) == before
    with Journal.open(path) as journal:
        assert len(journal.cuts) == 1
        found = journal.cuts[0]
    assert (found.key, found.line_number, found.size_bytes, found.record_count) == (KEY, 11, 3, 1)
    with open(path + b".cuts", "rb") as file:
        assert file.read().splitlines()[1] == found.encode().rstrip(b"\n")
    assert os.stat(path + b".cuts").st_mode & 0o7777 == 0o600
