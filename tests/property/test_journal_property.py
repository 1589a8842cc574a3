"""Any record survives the journal; no damage to the file goes unnoticed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from yolofs.errors import JournalError
from yolofs.journal.checksums import with_checksum
from yolofs.journal.codec import _read_fields, decode, encode
from yolofs.journal.header import HEADER_1, JournalForm, header, read_header
from yolofs.journal.journal import Journal
from yolofs.journal.line_fields import quote_field, unquote_field
from yolofs.journal.records import NOTHING, Delete, Fingerprint, Keep, Record, Rename, Snapshot, Stage, Travel
from yolofs.paths import ROOT, Generation, RelPath, StoreIno

names = st.binary(min_size=1, max_size=255).filter(lambda n: n not in (b".", b"..") and not set(n) & {0, 0x2F})
awkward = st.sampled_from(
    [b" ", b"%", b"#", b"%20", b"base=none", b"exchange", b"\n", b"\xff", "ä日".encode(), b".git"]
)
paths = st.lists(names | awkward, max_size=4).map(lambda parts: RelPath(b"/".join(parts)))
times = st.integers(-(2**63), 2**64)
counts = st.integers(0, 2**64)
inos = st.integers(1, 2**63).map(StoreIno)
known_keys = (
    "at", "base", "dst-was", "from", "had", "home", "key", "links", "name", "over", "since", "src-was", "touched",
    "unlinked", "unlinks", "was",
)  # fmt: skip
keys = st.from_regex(r"[a-z][a-z0-9_-]{0,9}", fullmatch=True).filter(lambda key: key not in known_keys)
extras = st.lists(st.tuples(keys, st.binary(max_size=20)), max_size=3).map(tuple)
owners = st.tuples(st.integers(1, 0o7777777777), counts, counts)
fingerprints = st.builds(Fingerprint, times, counts, counts, st.none() | owners) | st.builds(
    Fingerprint, times, counts, counts, owners, times.filter(bool), counts
)
no_fingerprint = st.none()
was = st.none() | fingerprints | st.just(NOTHING)

no_links = st.just(0)
some_links = st.integers(2, 2**32)
unlinks = st.none() | counts
yes, no = st.just(value=True), st.just(value=False)

stages = st.builds(
    Stage, times, paths, inos, no_fingerprint | fingerprints, st.none() | paths, no_links, no, extras
) | st.builds(Stage, times, paths, inos, fingerprints, st.none() | paths, some_links, st.booleans(), extras)
deletes = st.builds(Delete, times, paths, no, no_fingerprint | fingerprints, unlinks, extras) | st.builds(
    Delete, times, paths, yes, no_fingerprint, unlinks, extras
)
renames = st.builds(Rename, times, paths, paths, st.booleans(), st.booleans(), unlinks, st.booleans(), was, was, extras)
touched = st.integers(0, 2**63)
unlinked = st.none() | st.tuples(inos, inos)
keeps = (
    st.builds(
        Keep,
        times,
        paths,
        st.none(),
        st.none() | paths,
        unlinked=unlinked,
        touched_ns=touched,
        since_ns=touched,
        replaces=st.booleans(),
        extra=extras,
    )
    | st.builds(
        Keep,
        times,
        paths,
        inos,
        origin=st.none() | paths,
        home=paths,
        base=st.none() | fingerprints,
        key=st.integers(-(2**63), 2**63),
        links=st.just(0) | st.integers(2, 1000),
        unlinked=unlinked,
        touched_ns=touched,
        since_ns=touched,
        is_nameless=st.booleans(),
        replaces=st.booleans(),
        extra=extras,
    )
    | st.builds(Keep, times, st.just(ROOT), source=st.just(ROOT), had=paths, was=was, extra=extras)
)
snapshots = st.builds(Snapshot, times, st.binary(max_size=40), extras)
travels = st.builds(Travel, times, counts.map(Generation), st.binary(max_size=40), extras)
records: st.SearchStrategy[Record] = stages | deletes | renames | keeps | snapshots | travels

KEY = 0x1234ABCD
forms = st.sampled_from([HEADER_1, header(KEY), header(0), header(2**31 - 1)])
"""First lines of journals of each version, and of all kinds of keys."""


def form_of(first: bytes) -> JournalForm:
    return read_header(first.rstrip(b"\n"))


def lines_of(first: bytes, written: list[Record]) -> list[bytes]:
    """Return the lines of a journal that begins with ``first``, without that."""
    form = form_of(first)
    return [encode(record, form.stamp(number)) for number, record in enumerate(written, 1)]


Flips: TypeAlias = list[tuple[float, int]]
"""Where, as a fraction of the file, and which bits."""


@contextmanager
def journal_file(content: bytes) -> Iterator[bytes]:
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(os.fsencode(directory), b"journal")
        with open(path, "wb") as file:
            file.write(content)
        yield path


@given(records)
def test_every_record_is_one_line_that_reads_back_the_same(record: Record) -> None:
    line = encode(record)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    line.decode()  # text
    assert decode(line) == record


@given(st.binary(max_size=60))
def test_a_string_has_exactly_one_spelling(raw: bytes) -> None:
    field = quote_field(raw)
    assert unquote_field(field) == raw
    try:
        spelled = unquote_field(raw)
    except ValueError:
        return
    assert quote_field(spelled) == raw


@given(st.binary(max_size=80))
@example(b"S 1 % 1")
@example(b"R 1 a b exchange base=none")
def test_any_line_under_a_good_checksum_is_a_record_or_a_journal_error(body: bytes) -> None:
    try:
        record = decode(with_checksum(body))
    except JournalError:
        return
    assert decode(encode(record)) == record


@given(st.lists(records, max_size=8), st.integers(0, 8), forms)
def test_a_journal_gives_back_what_was_appended(written: list[Record], at_once: int, first: bytes) -> None:
    with journal_file(first) as path:
        with Journal.open(path) as journal:
            journal.append(*written[:at_once])
            for record in written[at_once:]:
                journal.append(record)
            markers = journal.markers
        with Journal.open(path) as journal:
            assert list(journal.read()) == written
            assert journal.markers == markers
            offset = len(first)
            for number, line in enumerate(lines_of(first, written)):
                assert list(journal.read(offset)) == written[number:]
                offset += len(line)
            for segment in range(1, len(markers) + 2):
                assert len(list(journal.read_segment(segment))) == journal.segment_counts()[segment - 1]


@given(
    st.lists(records, min_size=1, max_size=6),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=6),
    forms,
)
def test_flipped_bytes_are_an_error_or_a_torn_last_line(written: list[Record], flips: Flips, first: bytes) -> None:
    sound = first + b"".join(lines_of(first, written))
    damaged = bytearray(sound)
    for where, bits in flips:
        damaged[int(where * len(sound))] ^= bits
    with journal_file(bytes(damaged)) as path:
        try:
            with Journal.open(path) as journal:
                found, torn = list(journal.read()), journal.torn_bytes
        except JournalError:
            return
    if bytes(damaged) == sound:  # flips that undid each other
        assert (found, torn) == (written, 0)
    else:  # usually one line; two if it was the newline between them
        assert found == written[: len(found)]
        assert torn == sum(len(encode(record)) for record in written[len(found) :]) > 0


@given(st.lists(records, min_size=1, max_size=6), st.floats(0, 1, exclude_max=True), forms, st.integers(0, 5000))
def test_a_cut_file_holds_the_records_before_the_cut(
    written: list[Record], where: float, first: bytes, zeros: int
) -> None:
    """Wherever it is cut, and also if the file has grown beyond that without anything being written
    there.
    """
    content = first + b"".join(lines_of(first, written))
    cut = content[: len(first) + int(where * (len(content) - len(first)))] + b"\0" * zeros
    with journal_file(cut) as path:
        with Journal.open(path) as journal:
            found = list(journal.read())
            assert journal.size + journal.torn_bytes == len(cut)
        assert found == written[: len(found)]
        with open(path, "rb") as file:
            assert file.read() == first + b"".join(lines_of(first, found))
        assert len(found) == cut.count(b"\n") - 1


def harms(lines: list[bytes], others: list[bytes]) -> st.SearchStrategy[tuple[list[bytes], int]]:
    """Draw one harm to a journal's lines, but for the first line; and the index of the first that
    is then not right.
    """
    spots = st.integers(0, len(lines) - 1)

    def remove(at: int, count: int) -> tuple[list[bytes], int]:
        at, count = min(at, len(lines) - 2), min(count, len(lines) - 1 - at)
        return [*lines[:at], *lines[at + max(count, 1) :]], at

    def duplicate(at: int, to: int) -> tuple[list[bytes], int]:
        at, to = sorted((at, to))
        return [*lines[: to + 1], lines[at], *lines[to + 1 :]], to + 1

    def swap(at: int, to: int) -> tuple[list[bytes], int]:
        at, to = sorted((at, to)) if at != to else (0, len(lines) - 1)
        changed = list(lines)
        changed[at], changed[to] = lines[to], lines[at]
        return changed, at

    def replace(at: int, other: int) -> tuple[list[bytes], int]:
        other %= len(others)
        return [*lines[:at], others[other], *lines[at + 1 :]], at

    return st.one_of(
        st.builds(remove, spots, spots),
        st.builds(duplicate, spots, spots),
        st.builds(swap, spots, spots),
        st.builds(replace, spots, st.integers(0, 5)),
    )


@given(
    st.lists(records, min_size=2, max_size=6),
    st.lists(records, min_size=1, max_size=6),
    st.sampled_from([HEADER_1, header(KEY - 99), header(KEY + 99), header(5)]),
    st.data(),
)
def test_a_line_removed_duplicated_swapped_or_of_another_journal_is_noticed_where_it_is(
    written: list[Record], foreign: list[Record], other: bytes, data: st.DataObject
) -> None:
    first = header(KEY)
    changed, at = data.draw(harms(lines_of(first, written), lines_of(other, foreign)))
    good = first + b"".join(changed[:at])
    with journal_file(first + b"".join(changed)) as path:
        damage = Journal.find_damage(path)
        assert damage is not None
        assert (damage.line_number, damage.offset_bytes) == (at + 2, len(good))
        if damage.is_torn:  # a last line that is none of this journal, as a crash leaves one
            assert changed[at] not in lines_of(first, written)
            assert at == len(changed) - 1
            with Journal.open(path) as journal:
                assert list(journal.read()) == written[:at]
        else:
            for read_only in (True, False):
                with pytest.raises(JournalError, match=rf"journal, line {at + 2} \(byte {len(good)}\)"):
                    Journal.open(path, read_only=read_only)
            Journal.repair(path)
        with open(path, "rb") as file:
            assert file.read() == good


@given(st.lists(records, min_size=2, max_size=6), st.data())
def test_repair_keeps_all_before_the_first_bad_line_and_moves_the_rest(
    written: list[Record], data: st.DataObject
) -> None:
    lines = lines_of(header(KEY), written)
    bad = data.draw(st.integers(0, len(lines) - 1))
    position = data.draw(st.integers(0, len(lines[bad]) - 2))
    before = header(KEY) + b"".join(lines[:bad])
    cut = bytearray(b"".join(lines[bad:]))
    cut[position] ^= 1
    with journal_file(before + cut) as path:
        damage = Journal.repair(path)
        assert damage is not None
        assert damage.offset_bytes == len(before)
        assert damage.line_number == bad + 2
        with open(path, "rb") as file:
            assert file.read() == before
        with open(path + b".torn", "rb") as file:
            assert file.read() == b"# %d bytes cut from offset %d\n%b\n" % (len(cut), len(before), bytes(cut))


usual_fields = st.from_regex(
    rb"[SDR] -?[0-9]{1,3} (a|a/b|/a|a//b|a/|\.\.|a/\.b|a/\.\./b|%20|a%|a=b|\xc3\xa4|\xff|a\x01)( -?[0-9]{1,2}| b/c)?"
    rb"( exchange)?( base=(none|-?[0-9]{1,2}:-?[0-9]{1,2}:-?[0-9]{1,2}))?( from=(a|\.\.|%2F))?"
    rb"( links=2)?( run=[0-9a%]{0,2})?( x=1)?",
    fullmatch=True,
)


@given(usual_fields)
@example(b"S 1 a 1 base=-0:1:1")
@example(b"S 1 a 1 run=01")
@example(b"D 1 a base=none run=0")
@example(b"S 1 %b 1" % (b"a" * 256))
def test_lines_of_the_usual_kind_are_read_as_all_others(body: bytes) -> None:
    def told(read: Callable[[], Record]) -> Record | str:
        try:
            return read()
        except JournalError as error:
            return error.message

    assert told(lambda: decode(with_checksum(body))) == told(lambda: _read_fields(body.split(b" ")))
