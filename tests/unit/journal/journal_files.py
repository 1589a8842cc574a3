"""Journals as files: records to write, and what is in a file byte by byte."""

from __future__ import annotations

from yolofs.journal.codec import encode
from yolofs.journal.header import HEADER_1, JournalForm, header, read_header
from yolofs.journal.journal import Journal
from yolofs.journal.records import Record, Snapshot, Stage, Travel
from yolofs.paths import Generation, RelPath, StoreIno

A = Stage(1, RelPath(b"a"), StoreIno(1))
B = Stage(2, RelPath(b"b c"), StoreIno(2))
C = Stage(3, RelPath(b"c"), StoreIno(3))
P1 = Snapshot(4, b"first")
T2 = Travel(5, Generation(0), b"base")


KEY = 0x1234ABCD
START = len(header(KEY))


def form_of(line: bytes) -> JournalForm:
    return read_header(line.rstrip(b"\n"))


def first_line(form: JournalForm) -> bytes:
    return HEADER_1 if form.version == 1 else header(form.key)


def create(path: bytes, form: JournalForm | None = None) -> Journal:
    """Make a journal with the key of these tests, or of a given form."""
    if form is None or form.version == 2:
        return Journal.create(path, key=KEY)
    append_raw(path, HEADER_1)
    return Journal.open(path)


def write(path: bytes, *records: Record, form: JournalForm | None = None) -> None:
    with create(path, form) as journal:
        journal.append(*records)


def raw(*records: Record, first: int = 1, form: JournalForm | None = None) -> bytes:
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
