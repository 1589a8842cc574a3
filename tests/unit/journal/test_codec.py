"""The spelling of records, byte for byte: what docs/reference/format.md promises to other
programs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from yolofs.errors import JournalError
from yolofs.journal import codec
from yolofs.journal.checksums import has_right_checksum, stamp_of, with_checksum
from yolofs.journal.codec import decode, encode
from yolofs.journal.header import HEADER_1, header, read_header
from yolofs.journal.line_fields import quote_field, unquote_field
from yolofs.journal.records import NOTHING, Delete, Fingerprint, Keep, Record, Rename, Snapshot, Stage, Travel
from yolofs.paths import ROOT, Generation, RelPath, StoreIno

TIME = 1767225600123456789
BASE = Fingerprint(mtime_ns=1767225599000000001, size=4096, ino=131)

OWNED_BASE = Fingerprint(mtime_ns=1767225599000000001, size=4096, ino=131, owner=(0o100644, 1000, 100))
WHOLE_BASE = Fingerprint(1767225599000000001, 4096, 131, (0o100644, 1000, 100), ctime_ns=-7, nlink=2)
OLD_BASE = Fingerprint(-5, 4096, 131, (0o100644, 1000, 100), ctime_ns=-4, nlink=0)
"""Changed before 1970, on a filesystem that counts no names."""


def rel(path: bytes) -> RelPath:
    return RelPath(path)


ONE = StoreIno(1)

SPELLINGS: list[tuple[Record, bytes]] = [
    (
        Stage(TIME, rel(b"home/u/p/a.c"), StoreIno(17)),
        b"S 1767225600123456789 home/u/p/a.c 17 #21bae66a\n",
    ),
    (
        Stage(TIME, rel(b"home/u/p/b.c"), StoreIno(18), base=BASE),
        b"S 1767225600123456789 home/u/p/b.c 18 base=1767225599000000001:4096:131 #5674a194\n",
    ),
    (
        Stage(TIME, rel(b"home/u/p/b.c"), StoreIno(18), base=OWNED_BASE),
        b"S 1767225600123456789 home/u/p/b.c 18 base=1767225599000000001:4096:131:100644:1000:100 #9e339e09\n",
    ),
    (
        Stage(TIME, rel(b"b.c"), StoreIno(18), base=WHOLE_BASE),
        b"S 1767225600123456789 b.c 18 base=1767225599000000001:4096:131:100644:1000:100:-7:2 #680422ec\n",
    ),
    (
        Stage(TIME, rel(b"b.c"), StoreIno(18), base=OLD_BASE),
        b"S 1767225600123456789 b.c 18 base=-5:4096:131:100644:1000:100:-4:0 #875165b5\n",
    ),
    (
        Stage(TIME, rel(b"home/u/p/big"), StoreIno(19), base=BASE, origin=rel(b"home/u/p/big")),
        b"S 1767225600123456789 home/u/p/big 19 base=1767225599000000001:4096:131 from=home/u/p/big #f3b3322f\n",
    ),
    (
        Stage(TIME, rel(b""), StoreIno(20), origin=rel(b"")),
        b"S 1767225600123456789 % 20 from=% #ab44d6cf\n",
    ),
    (
        Stage(TIME, rel(b"a b/%#\x01\x7f/\xff\xc3\xa4/k=v"), ONE),
        b"S 1767225600123456789 a%20b/%25%23%01%7F/%FF\xc3\xa4/k=v 1 #4b2a7896\n",
    ),
    (
        Stage(TIME, rel(b"home/u/p/b.c"), StoreIno(18), base=BASE, links=2),
        b"S 1767225600123456789 home/u/p/b.c 18 base=1767225599000000001:4096:131 links=2 #ce8551b8\n",
    ),
    (
        Stage(TIME, rel(b"b.c"), StoreIno(19), base=BASE, origin=rel(b"b.c"), links=3, is_nameless=True),
        b"S 1767225600123456789 b.c 19 base=1767225599000000001:4096:131 from=b.c links=3 name=none #dccd9e91\n",
    ),
    (
        Delete(TIME, rel(b"old"), absent=True, unlinks=131),
        b"D 1767225600123456789 old base=none unlinks=131 #a0896cc8\n",
    ),
    (
        Rename(TIME, rel(b"a"), rel(b"b"), absent=True, unlinks=131),
        b"R 1767225600123456789 a b base=none unlinks=131 #f68027aa\n",
    ),
    (Delete(TIME, rel(b"home/u/p/old")), b"D 1767225600123456789 home/u/p/old #97e4f196\n"),
    (Delete(TIME, rel(b"new"), absent=True), b"D 1767225600123456789 new base=none #3f6f51b0\n"),
    (
        Delete(TIME, rel(b"old"), base=BASE),
        b"D 1767225600123456789 old base=1767225599000000001:4096:131 #33f957ce\n",
    ),
    (Rename(TIME, rel(b"src"), rel(b"dst")), b"R 1767225600123456789 src dst #d87d3342\n"),
    (Rename(TIME, rel(b"a"), rel(b"b"), exchange=True), b"R 1767225600123456789 a b exchange #cc6689bb\n"),
    (
        Rename(TIME, rel(b"a"), rel(b"b"), exchange=True, absent=True),
        b"R 1767225600123456789 a b exchange base=none #bb0625fe\n",
    ),
    (
        Rename(TIME, rel(b"a"), rel(b"b"), absent=True, extra=(("why", b"x y"),)),
        b"R 1767225600123456789 a b base=none why=x%20y #56ad2197\n",
    ),
    (
        Delete(TIME, rel(b"old"), base=OWNED_BASE),
        b"D 1767225600123456789 old base=1767225599000000001:4096:131:100644:1000:100 #efade450\n",
    ),
    (
        Delete(TIME, rel(b"old"), base=WHOLE_BASE),
        b"D 1767225600123456789 old base=1767225599000000001:4096:131:100644:1000:100:-7:2 #a668d106\n",
    ),
    (
        Rename(TIME, rel(b"a"), rel(b"b"), dst_was=WHOLE_BASE),
        b"R 1767225600123456789 a b dst-was=1767225599000000001:4096:131:100644:1000:100:-7:2 #9e3adf51\n",
    ),
    (
        Rename(TIME, rel(b"a"), rel(b"b"), src_was=OWNED_BASE, dst_was=NOTHING),
        b"R 1767225600123456789 a b src-was=1767225599000000001:4096:131:100644:1000:100 dst-was=none #a8d0354e\n",
    ),
    (
        Rename(TIME, rel(b"a"), rel(b"b"), absent=True, replaces=True, dst_was=BASE),
        b"R 1767225600123456789 a b base=none over=base dst-was=1767225599000000001:4096:131 #8f6f527c\n",
    ),
    (
        Keep(TIME, ROOT, source=ROOT, had=rel(b"d/old"), was=OWNED_BASE),
        b"K 1767225600123456789 % 0 at=% had=d/old was=1767225599000000001:4096:131:100644:1000:100 #42461660\n",
    ),
    (
        Keep(TIME, ROOT, source=ROOT, had=rel(b"new"), was=NOTHING),
        b"K 1767225600123456789 % 0 at=% had=new was=none #61782096\n",
    ),
    (
        Keep(TIME, ROOT, source=ROOT, had=rel(b"not known")),
        b"K 1767225600123456789 % 0 at=% had=not%20known #876ca8c5\n",
    ),
    (Snapshot(TIME, b"before the agent"), b"P 1767225600123456789 before%20the%20agent #d8db139b\n"),
    (Snapshot(TIME), b"P 1767225600123456789 % #cf653682\n"),
    (Snapshot(-1, b"x", extra=(("by", b""), ("by", b"a=b"))), b"P -1 x by=% by=a=b #1fc6bb96\n"),
    (Travel(TIME, Generation(3), b"before"), b"T 1767225600123456789 3 before #8ec9fb4e\n"),
    (Travel(TIME, Generation(0)), b"T 1767225600123456789 0 % #19187396\n"),
]


@pytest.mark.parametrize(("record", "line"), SPELLINGS)
def test_each_record_has_the_documented_spelling(record: Record, line: bytes) -> None:
    assert encode(record) == line
    assert decode(line) == record
    assert decode(line.rstrip(b"\n")) == record


def test_the_journal_in_the_documentation_is_a_real_one() -> None:
    text = (Path(__file__).parents[3] / "docs/reference/format.md").read_bytes()
    first, *lines = text.partition(b"```journal\n")[2].partition(b"```")[0].splitlines(keepends=True)
    form = read_header(first.rstrip(b"\n"))
    assert first == header(form.key)
    stamps = [form.stamp(number) for number in range(1, len(lines) + 1)]
    assert [encode(decode(line, stamp), stamp) for line, stamp in zip(lines, stamps, strict=True)] == lines
    assert {line[:1] for line in lines} == {b"S", b"D", b"R", b"P", b"T"}


def test_a_stamp_is_the_key_plus_the_number_and_xors_the_checksum() -> None:
    form = read_header(b"yolofs-journal 2 0000000a #3fece366")
    assert (form.version, form.key, form.header_bytes, form.stamp(1), form.stamp(2)) == (2, 10, 36, 11, 12)
    assert encode(Snapshot(1, b"x")) == b"P 1 x #d0df8c42\n"
    assert encode(Snapshot(1, b"x"), 11) == b"P 1 x #%08x\n" % (0xD0DF8C42 ^ 11)
    assert encode(Snapshot(1, b"x"), 0xFFFFFFFF) == b"P 1 x #%08x\n" % (0xD0DF8C42 ^ 0xFFFFFFFF)


def test_version_1_has_no_stamps() -> None:
    form = read_header(HEADER_1.rstrip(b"\n"))
    assert (form.version, form.key, form.header_bytes, form.stamp(1), form.stamp(7)) == (1, 0, 17, 0, 0)


def test_a_line_is_good_with_its_own_stamp_alone_and_tells_it() -> None:
    line = encode(Snapshot(1, b"x"), 1000).rstrip(b"\n")
    assert has_right_checksum(line, 1000)
    assert not has_right_checksum(line, 1001)
    assert not has_right_checksum(line)
    assert stamp_of(line) == 1000
    assert decode(line, 1000) == Snapshot(1, b"x")
    with pytest.raises(JournalError, match="the checksum does not match"):
        decode(line, 999)


@pytest.mark.parametrize("line", [b"", b"x", b"#12345678", b"P 1 x #1234567", b"P 1 x #1234567G", b"P 1 x 12345678"])
def test_a_line_without_a_checksum_has_no_stamp(line: bytes) -> None:
    assert stamp_of(line) is None


def test_options_are_read_in_any_order_and_written_in_the_documented_one() -> None:
    line = with_checksum(b"S 5 f 1 from=g new=x base=1:2:3")
    assert encode(decode(line)) == with_checksum(b"S 5 f 1 base=1:2:3 from=g new=x")


def test_the_word_exchange_and_an_equals_sign_are_ordinary_names_in_positional_fields() -> None:
    assert decode(with_checksum(b"R 1 exchange base=none exchange")) == Rename(
        1, rel(b"exchange"), rel(b"base=none"), exchange=True
    )
    assert decode(with_checksum(b"P 1 base=none")) == Snapshot(1, b"base=none")


def test_keys_that_another_kind_of_record_knows_are_kept_as_unknown() -> None:
    record = decode(with_checksum(b"D 1 f from=x"))
    assert record == Delete(1, rel(b"f"), extra=(("from", b"x"),))
    assert encode(record) == with_checksum(b"D 1 f from=x")


def test_names_at_the_limit_of_255_bytes_are_good() -> None:
    record = Stage(1, rel(b"d/" + b"n" * 255), ONE)
    assert decode(encode(record)) == record


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"S 1 a", "bad S record: it needs time, path and store inode"),
        (b"S", "bad S record: it needs time, path and store inode"),
        (b"D 1", "bad D record: it needs time and path"),
        (b"R 1 a", "bad R record: it needs time and two paths"),
        (b"P 1", "bad P record: it needs time and name"),
        (b"T 1 2", "bad T record: it needs time, generation and name"),
        (b"X 1 a", "unknown kind of record: X"),
        (b"s 1 a 1", "unknown kind of record: s"),
        (b"", "unknown kind of record: none"),
        (b" S 1 a 1", "unknown kind of record: none"),
        (b"\xff 1 a", 'unknown kind of record: "\\377"'),
        (b"S x a 1", "bad S record: not a number: x"),
        (b"S 01 a 1", "bad S record: not a number: 01"),
        (b"S +1 a 1", "bad S record: not a number: +1"),
        (b"S -0 a 1", "bad S record: not a number: -0"),
        (b"S 1_0 a 1", "bad S record: not a number: 1_0"),
        (b"S " + b"9" * 31 + b" a 1", "bad S record: not a number: " + "9" * 31),
        (b"S \xd9\xa1 a 1", "bad S record: not a number: \u0661"),
        (b"S 1 a 0", "bad S record: 0 is below 1"),
        (b"S 1 a -1", "bad S record: -1 is below 1"),
        (b"S 1 a 1.5", "bad S record: not a number: 1.5"),
        (b"T 1 -1 x", "bad T record: -1 is below 0"),
        (b"R 1 a b src-was=1:2", "bad R record: not mtime:size:ino[:mode:uid:gid[:ctime:links]]: src-was=1:2"),
        (b"R 1 a b dst-was=0:0:0", "bad R record: no file is so: 0:0:0"),
        (b"K 1 % 0 was=1:2:3", "bad K record: was= tells what base had at the path in had="),
        (b"S 1  1", "bad S record: a field is empty"),
        (b"P 1 ", "bad P record: a field is empty"),
        (b"S 1 a 1 ", "bad S record: not key=value: "),
        (b"S 1 a%2 1", "bad S record: badly percent-encoded: a%2"),
        (b"S 1 a%zz 1", "bad S record: badly percent-encoded: a%zz"),
        (b"S 1 a%2f 1", "bad S record: badly percent-encoded: a%2f"),
        (b"S 1 a%41 1", "bad S record: badly percent-encoded: a%41"),
        (b"S 1 %% 1", "bad S record: badly percent-encoded: %%"),
        (b"S 1 a% 1", "bad S record: badly percent-encoded: a%"),
        (b"S 1 a#b 1", "bad S record: badly percent-encoded: a#b"),
        (b"S 1 a\tb 1", 'bad S record: badly percent-encoded: "a\\tb"'),
        (b"S 1 a\nb 1", 'bad S record: badly percent-encoded: "a\\nb"'),
        (b"S 1 \xff 1", 'bad S record: badly percent-encoded: "\\377"'),
        (b"S 1 %C3%A4 1", "bad S record: badly percent-encoded: %C3%A4"),
        (b"S 1 /a 1", "bad S record: not a path relative to base: /a"),
        (b"S 1 a/ 1", "bad S record: not a path relative to base: a/"),
        (b"S 1 a//b 1", "bad S record: not a path relative to base: a//b"),
        (b"S 1 a/../b 1", "bad S record: not a path relative to base: a/../b"),
        (b"S 1 . 1", "bad S record: not a path relative to base: ."),
        (b"S 1 .. 1", "bad S record: not a path relative to base: .."),
        (b"S 1 a/. 1", "bad S record: not a path relative to base: a/."),
        (b"S 1 a%00 1", "bad S record: a path cannot hold a NUL byte"),
        (b"S 1 " + b"n" * 256 + b" 1", "bad S record: a name of 256 bytes is longer than 255"),
        (b"R 1 a ..", "bad R record: not a path relative to base: .."),
        (b"S 1 a 1 from=../b", "bad S record: not a path relative to base: ../b"),
        (b"S 1 a 1 from=", "bad S record: a field is empty"),
        (b"S 1 a 1 base=none", "bad S record: not mtime:size:ino[:mode:uid:gid[:ctime:links]]: base=none"),
        (b"S 1 a 1 base=1:2", "bad S record: not mtime:size:ino[:mode:uid:gid[:ctime:links]]: base=1:2"),
        (b"S 1 a 1 base=1:2:3:4", "bad S record: not mtime:size:ino[:mode:uid:gid[:ctime:links]]: base=1:2:3:4"),
        (b"S 1 a 1 base=1:2:3:0:0:0", "bad S record: not an octal number: 0"),
        (b"S 1 a 1 base=1:2:3:0644:0:0", "bad S record: not an octal number: 0644"),
        (b"S 1 a 1 base=1:2:3:648:0:0", "bad S record: not an octal number: 648"),
        (b"S 1 a 1 base=1:2:3:644:-1:0", "bad S record: -1 is below 0"),
        (b"S 1 a 1 base=1:2:3:644:0:", "bad S record: not a number: "),
        (
            b"S 1 a 1 base=1:2:3:644:0:0:1",
            "bad S record: not mtime:size:ino[:mode:uid:gid[:ctime:links]]: base=1:2:3:644:0:0:1",
        ),
        (b"S 1 a 1 base=1:2:3:644:0:0:0:1", "bad S record: no ctime: base=1:2:3:644:0:0:0:1"),
        (b"S 1 a 1 base=1:2:3:644:0:0:1:-1", "bad S record: -1 is below 0"),
        (b"S 1 a 1 base=1:-2:3", "bad S record: -2 is below 0"),
        (b"S 1 a 1 base=1:2:x", "bad S record: not a number: x"),
        (b"S 1 a 1 base=1:2:3 base=1:2:3", "bad S record: base= is given twice"),
        (b"S 1 a 1 exchange", "bad S record: not key=value: exchange"),
        (b"S 1 a 1 =x", "bad S record: not key=value: =x"),
        (b"S 1 a 1 Key=x", "bad S record: not key=value: Key=x"),
        (b"S 1 a 1 k\xc3\xa4=x", "bad S record: not key=value: k\u00e4=x"),
        (b"S 1 a 1 key=%zz", "bad S record: badly percent-encoded: %zz"),
        (b"S 1 a 1 key=", "bad S record: a field is empty"),
        (b"D 1 a base=maybe", "bad D record: not mtime:size:ino[:mode:uid:gid[:ctime:links]]: base=maybe"),
        (b"R 1 a b base=1:2:3", "bad R record: not none: base=1:2:3"),
        (b"R 1 a b exchanged", "bad R record: not key=value: exchanged"),
        (b"R 1 a b base=none exchange", "bad R record: not key=value: exchange"),
    ],
)
def test_a_malformed_record_is_refused_and_the_message_says_why(body: bytes, message: str) -> None:
    with pytest.raises(JournalError) as caught:
        decode(with_checksum(body))
    assert caught.value.message == message


def test_an_unknown_kind_of_record_hints_at_a_newer_version() -> None:
    with pytest.raises(JournalError) as caught:
        decode(with_checksum(b"Q 1 x"))
    assert caught.value.hint == "a newer yolofs may have written it"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"#00000000",
        b"P 1 x",
        b"P 1 x #cf65368",
        b"P 1767225600123456789 % #cf653683",
        b"P 1767225600123456789 % #CF653682",
        b"P 1767225600123456789 %  #cf653682",
        b"P 1767225600123456789 % cf653682",
        b"P 1767225600123456789 % #cf653682 ",
        b"P 1767225600123456789 % #cf653682\n\n",
        b"P 1767225600123456789 % #cf653682\r\n",
    ],
)
def test_a_checksum_that_is_missing_or_wrong_is_refused(line: bytes) -> None:
    with pytest.raises(JournalError, match="the checksum does not match"):
        decode(line)


@pytest.mark.parametrize(
    "record",
    [
        Stage(1, rel(b"../x"), ONE),
        Stage(1, rel(b"/x"), ONE),
        Stage(1, rel(b"x/"), ONE),
        Stage(1, rel(b"x//y"), ONE),
        Stage(1, rel(b"x\0"), ONE),
        Stage(1, rel(b"n" * 256), ONE),
        Stage(1, rel(b"x"), StoreIno(0)),
        Stage(1, rel(b"x"), ONE, origin=rel(b"./x")),
        Stage(1, rel(b"x"), ONE, base=Fingerprint(1, -1, 1)),
        Stage(1, rel(b"x"), ONE, base=Fingerprint(1, 1, -1)),
        Stage(1, rel(b"x"), ONE, links=2),
        Stage(1, rel(b"x"), ONE, base=BASE, links=1),
        Stage(1, rel(b"x"), ONE, base=BASE, is_nameless=True),
        Delete(1, rel(b"x"), unlinks=-1),
        Delete(1, rel(b".")),
        Delete(1, rel(b"x"), absent=True, base=BASE),
        Rename(1, rel(b"a"), rel(b"b/..")),
        Travel(1, Generation(-1)),
        Snapshot(1, b"x", extra=(("", b"x"),)),
        Snapshot(1, b"x", extra=(("a b", b"x"),)),
        Snapshot(1, b"x", extra=(("a=b", b"x"),)),
        Snapshot(1, b"x", extra=(("\u00e4", b"x"),)),
        Stage(1, rel(b"x"), ONE, extra=(("base", b"x"),)),
        Stage(1, rel(b"x"), ONE, extra=(("from", b"x"),)),
        Rename(1, rel(b"a"), rel(b"b"), extra=(("base", b"x"),)),
    ],
)
def test_a_record_that_could_not_be_read_back_is_not_written(record: Record) -> None:
    with pytest.raises(ValueError, match=r"."):
        encode(record)


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (b"", b"%"),
        (b"%", b"%25"),
        (b"plain-Name_1.txt~!\"$&'()*+,:;<=>?@[\\]^`{|}", b"plain-Name_1.txt~!\"$&'()*+,:;<=>?@[\\]^`{|}"),
        (b" ", b"%20"),
        (b"\x00\x1f\x7f", b"%00%1F%7F"),
        ("grüße/日本".encode(), "grüße/日本".encode()),
        (b"\xe9", b"%E9"),
        (b"\xc3\xa4\xc3", b"\xc3\xa4%C3"),
        (b"\xed\xa0\x80", b"%ED%A0%80"),  # a surrogate, which UTF-8 may not hold
        (b"\xc0\xaf", b"%C0%AF"),  # an overlong slash
    ],
)
def test_a_string_has_one_spelling(raw: bytes, field: bytes) -> None:
    assert quote_field(raw) == field
    assert unquote_field(field) == raw


def test_a_line_is_read_the_same_by_its_fields_and_by_the_pattern_that_many_lines_are_worth() -> None:
    codec._matches.clear()
    codec._read_before.clear()
    by_fields = [decode(line) for _, line in SPELLINGS]
    assert not codec._matches
    codec._read_before.update(dict.fromkeys((b"S", b"D", b"R"), codec._WORTH_MAKING))
    assert [decode(line) for _, line in SPELLINGS] == by_fields
    assert codec._matches.keys() == {b"S", b"D", b"R"}


@pytest.mark.parametrize("digits", [b"%4", b"%zz", b"%+1", b"% 1", b"%_1", b"%1_", b"%-1", b"%%20", b"%2f", b"a%"])
def test_an_escape_that_is_not_two_capital_digits_is_refused(digits: bytes) -> None:
    with pytest.raises(ValueError, match="badly percent-encoded"):
        unquote_field(digits)
