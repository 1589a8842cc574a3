"""The text form of a record: one line, fields separated by one space, closed by a checksum.

::

    <tag> <time_ns> <field>... #<crc32 of all before the #, xor the line's stamp, 8 hex digits>

    S time path ino [base=mtime:size:ino[:mode:uid:gid[:ctime:names]]] [from=path] [links=count]
        [name=none] [key=value...]
    D time path [base=none | base=fingerprint] [unlinks=ino] [key=value...]
    R time src dst [exchange] [base=none] [unlinks=ino] [over=base] [src-was=fingerprint]
        [dst-was=none | dst-was=fingerprint] [key=value...]
    K time path ino [at=path] [from=path] [home=path] [base=fingerprint] [key=number]
        [links=count] [unlinked=ino:count] [touched=time] [since=time] [name=none] [over=base]
        [had=path] [was=none | was=fingerprint] [key=value...]
    P time name [key=value...]
    T time generation name [key=value...]

A fingerprint is what ``base=`` has in S.

The *stamp* ties a line to its place: it is the journal's key plus the number of the record, from 1
(:class:`~yolofs.journal.header.JournalForm`).  So a line is good in one place of one journal alone,
and tells that place wherever it turns up.  Version 1 had no stamps (they are 0): there a line is
good anywhere.

``docs/reference/format.md`` is the specification.  Each path and name has exactly one spelling:
space, ``%``, ``#``, control bytes and bytes that are not UTF-8 become ``%XX`` (upper case), nothing
else does, and an empty string is a lone ``%``.  :func:`decode` refuses every other spelling, so
``encode(decode(line)) == line`` for a line whose options stand in the order above.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias, assert_never

from yolofs.errors import JournalError
from yolofs.journal.checksums import has_right_checksum, with_checksum
from yolofs.journal.line_fields import (
    MODE,
    checked,
    has_simple_names,
    quote_field,
    read_fingerprint,
    read_number,
    read_path,
    unquote_field,
    write_fingerprint,
    write_path,
)
from yolofs.journal.records import NOTHING, Delete, Fingerprint, Keep, Record, Rename, Snapshot, Stage, Travel
from yolofs.paths import Generation, RelPath, StoreIno, display, parse_relpath

Extra: TypeAlias = tuple[tuple[str, bytes], ...]

_PATH = rb"([!-\"$-~\x80-\xff]+)"
_NUMBER = rb"(?:0|[1-9][0-9]{0,29})"
_START = rb"([1-9][0-9]{0,29}) " + _PATH
_FINGERPRINT = rb"(%b|-[1-9][0-9]{0,29}):(%b):(%b)(?::(%b):(%b):(%b)(?::([1-9][0-9]{0,29}):(%b))?)?"
_BASE_FIELD = rb"base=" + _FINGERPRINT % (_NUMBER, _NUMBER, _NUMBER, MODE, _NUMBER, _NUMBER, _NUMBER)
_END = rb"(?: run=(%b))? #[0-9a-f]{8}" % _NUMBER
_USUAL: Final = {
    b"S": rb"S %b ([1-9][0-9]{0,29})(?: %b)?(?: from=%b)?%b" % (_START, _BASE_FIELD, _PATH, _END),
    b"D": rb"D %b(?: (?:(base=none)|%b))?%b" % (_START, _BASE_FIELD, _END),
    b"R": rb"R %b %b(?: (exchange))?(?: (base=none))?(?: (over=base))?(?: src-was=([0-9:-]+))?"
    rb"(?: dst-was=(none|[0-9:-]+))?%b" % (_START, _PATH, _END),
}
"""What nearly every line of nearly every journal is like, by its tag; reading it at once takes a
third of the time.
"""
_matches: Final[dict[bytes, Callable[[bytes], re.Match[bytes] | None]]] = {}
"""Made when so many lines of a kind were read that it was worth it: a short command reads a few."""
_read_before: Final[dict[bytes, int]] = {}
"""How many lines of a kind were read before that."""
_WORTH_MAKING: Final = 64
"""To make one takes as long as it saves with so many lines."""
_is_key = re.compile(r"[a-z][a-z0-9_-]*").fullmatch

_AT = b"at"
_BASE = b"base"
_DST_WAS = b"dst-was"
_FROM = b"from"
_HAD = b"had"
_HOME = b"home"
_KEY = b"key"
_LINKS = b"links"
_NAME = b"name"
_OVER = b"over"
_SINCE = b"since"
_SRC_WAS = b"src-was"
_TOUCHED = b"touched"
_UNLINKED = b"unlinked"
_UNLINKS = b"unlinks"
_WAS = b"was"
_EXCHANGE = b"exchange"
_NONE = b"none"
_STAGED_ONLY = frozenset((_FROM, _HOME, _BASE, _KEY, _LINKS, _NAME))
_MISFIT = "an entry is staged or shows a base path, and only what is staged was copied up"
_WAS_WHERE = "was= tells what base had at the path in had="
_LEAST_LINKS = 2
"""Fewer names than this are not worth a word."""


# --- encoding -------------------------------------------------------------------------------------


def encode(record: Record, stamp: int = 0) -> bytes:
    """Return ``record`` as one line, newline included.

    Raises:
        ValueError: it holds what :func:`decode` would refuse (a path that is not relative to base,
            store inode 0, a bad key).  Better no record than a journal that cannot be read.
    """
    match record:
        case Stage():
            body = _encode_stage(record)
        case Delete():
            options = _encode_absence(record) + _encode_unlinks(record)
            body = b"D %d %b%b" % (record.time_ns, write_path(record.path), options)
        case Rename():
            body = _encode_rename(record)
        case Keep():
            body = _encode_keep(record)
        case Snapshot():
            body = b"P %d %b" % (record.time_ns, quote_field(record.name))
        case Travel():
            body = b"T %d %d %b" % (record.time_ns, checked(record.generation, 0), quote_field(record.name))
        case _:
            assert_never(record)
    return with_checksum(body + _encode_extra(record) if record.extra else body, stamp)


def _encode_stage(record: Stage) -> bytes:
    body = b"S %d %b %d" % (record.time_ns, write_path(record.path), checked(record.ino, 1))
    if record.base is not None:
        body += write_fingerprint(record.base)
    if record.origin is not None:
        body += b" from=" + write_path(record.origin)
    if record.links or record.is_nameless:
        if record.base is None:
            raise ValueError("only a file that was copied up from base had links there")
        body += b" links=%d" % checked(record.links, _LEAST_LINKS)
    return body + b" name=none" if record.is_nameless else body


def _encode_rename(record: Rename) -> bytes:
    body = b"R %d %b %b" % (record.time_ns, write_path(record.src), write_path(record.dst))
    if record.exchange:
        body += b" exchange"
    if record.absent:
        body += b" base=none"
    if record.unlinks is not None:
        body += _encode_unlinks(record)
    if record.replaces:
        body += b" over=base"
    if record.src_was is not None:
        body += _encode_was(_SRC_WAS, record.src_was)
    return body if record.dst_was is None else body + _encode_was(_DST_WAS, record.dst_was)


def _encode_keep(record: Keep) -> bytes:
    staged_only = record.origin, record.home, record.base, record.key or None, record.links or None
    if record.ino is not None:
        is_misfit = record.source is not None or (record.base is not None and record.home is None)
    else:
        is_misfit = record.is_nameless or any(field is not None for field in staged_only)
    if is_misfit:
        raise ValueError(_MISFIT)
    if record.had is None and record.was is not None:
        raise ValueError(_WAS_WHERE)
    body = b"K %d %b %d" % (record.time_ns, write_path(record.path), record.ino or 0)
    for key, path in ((_AT, record.source), (_FROM, record.origin), (_HOME, record.home)):
        if path is not None:
            body += b" %b=%b" % (key, write_path(path))
    body += write_fingerprint(record.base) if record.base is not None else b""
    body += b" key=%d" % record.key if record.key else b""
    body += b" links=%d" % checked(record.links, _LEAST_LINKS) if record.links else b""
    if record.unlinked is not None:
        body += b" unlinked=%d:%d" % (checked(record.unlinked[0], 0), checked(record.unlinked[1], 1))
    body += b" touched=%d" % record.touched_ns if record.touched_ns else b""
    body += b" since=%d" % record.since_ns if record.since_ns else b""
    body += b" name=none" if record.is_nameless else b""
    body += b" over=base" if record.replaces else b""
    if record.had is None:
        return body
    return body + b" had=" + write_path(record.had) + (_encode_was(_WAS, record.was) if record.was is not None else b"")


def _encode_absence(record: Delete) -> bytes:
    if record.absent and record.base is not None:
        raise ValueError("a name that base lacks has no fingerprint")
    return b" base=none" if record.absent else write_fingerprint(record.base) if record.base is not None else b""


def _encode_was(key: bytes, was: Fingerprint) -> bytes:
    return b" %b=none" % key if was == NOTHING else write_fingerprint(was, key)


def _encode_unlinks(record: Delete | Rename) -> bytes:
    return b"" if record.unlinks is None else b" unlinks=%d" % checked(record.unlinks, 0)


def _encode_extra(record: Record) -> bytes:
    known = _KNOWN[type(record)]
    fields = []
    for key, value in record.extra:
        if not _is_key(key) or key.encode() in known:
            raise ValueError(f"not a key for an extra field here: {key!r}")
        fields.append(b" %b=%b" % (key.encode(), quote_field(value)))
    return b"".join(fields)


# --- decoding -------------------------------------------------------------------------------------


def decode(line: bytes, stamp: int = 0) -> Record:
    """Return the record in ``line``; a newline at its end is optional.

    Raises:
        JournalError: the checksum is wrong, the tag is unknown, or a field is missing, superfluous
            or not well formed.  The message is one clause without a line number.
    """
    if line.endswith(b"\n"):
        line = line[:-1]
    if not has_right_checksum(line, stamp):
        raise JournalError("the checksum does not match")
    try:
        usual = _read_usual(line)
    except ValueError:
        usual = None  # what is wrong is told below
    return usual if usual is not None else _read_fields(line.split(b" ")[:-1])


def _read_usual(line: bytes) -> Record | None:
    """Return the record in a line of the usual kinds, as :func:`_read_fields` would; None if it is
    of another kind.

    Raises:
        ValueError: a path is not well formed.
    """
    kind = line[:1]
    matches = _matches.get(kind)
    if matches is None:
        count = _read_before.get(kind, 0)
        if kind not in _USUAL or count < _WORTH_MAKING:
            _read_before[kind] = count + 1
            return None
        matches = _matches[kind] = re.compile(_USUAL[kind]).fullmatch
    found = matches(line)
    if found is None:
        return None
    if kind == b"S":
        time, path, ino, *base, origin, run = found.groups()
        return Stage(
            int(time),
            _read_usual_path(path),
            StoreIno(int(ino)),
            _fingerprint(*base),
            None if origin is None else _read_usual_path(origin),
            extra=_read_run(run),
        )
    if kind == b"D":
        time, path, none, *base, run = found.groups()
        return Delete(int(time), _read_usual_path(path), none is not None, _fingerprint(*base), extra=_read_run(run))
    time, src, dst, exchange, none, over, src_was, dst_was, run = found.groups()
    paths = _read_usual_path(src), _read_usual_path(dst)
    flags = exchange is not None, none is not None
    return Rename(
        int(time),
        *paths,
        *flags,
        replaces=over is not None,
        src_was=_read_was(src_was, _SRC_WAS),
        dst_was=_read_was(dst_was, _DST_WAS),
        extra=_read_run(run),
    )


def _read_usual_path(field: bytes) -> RelPath:
    """Read a path that has no space, ``#`` or control character in it."""
    path = field if field.find(b"%") < 0 and field.isascii() else unquote_field(field)
    return RelPath(path) if has_simple_names(path) else parse_relpath(path)


def _fingerprint(
    mtime: bytes | None,
    size: bytes | None,
    ino: bytes | None,
    mode: bytes | None,
    uid: bytes | None,
    gid: bytes | None,
    ctime: bytes | None,
    nlink: bytes | None,
) -> Fingerprint | None:
    """Return what the groups of :data:`_FINGERPRINT` have found, None if nothing."""
    if mtime is None or size is None or ino is None:
        return None
    if mode is None or uid is None or gid is None:
        return Fingerprint(int(mtime), int(size), int(ino))
    owner = int(mode, 8), int(uid), int(gid)
    if ctime is None or nlink is None:
        return Fingerprint(int(mtime), int(size), int(ino), owner)
    return Fingerprint(int(mtime), int(size), int(ino), owner, int(ctime), int(nlink))


def _read_run(run: bytes | None) -> Extra:
    return () if run is None else (("run", run),)


def _read_fields(fields: list[bytes]) -> Record:
    reader = _READERS.get(fields[0])
    if reader is None:
        hint = "a newer yolofs may have written it"
        raise JournalError(f"unknown kind of record: {display(fields[0]) or 'none'}", hint=hint)
    try:
        return reader(fields)
    except ValueError as error:
        raise JournalError(f"bad {fields[0].decode()} record: {error}") from error


def _read_stage(fields: list[bytes]) -> Stage:
    _require(fields, "time, path and store inode", 4)
    known, extra = _split_options(fields[4:], _KNOWN[Stage])
    if known.get(_NAME, _NONE) != _NONE:
        raise ValueError(f"not none: name={display(known[_NAME])}")
    if (_LINKS in known and _BASE not in known) or (_NAME in known and _LINKS not in known):
        raise ValueError("links= needs base=, and name= needs links=")
    return Stage(
        read_number(fields[1]),
        read_path(fields[2]),
        StoreIno(read_number(fields[3], 1)),
        base=read_fingerprint(known[_BASE]) if _BASE in known else None,
        origin=read_path(known[_FROM]) if _FROM in known else None,
        links=read_number(known[_LINKS], _LEAST_LINKS) if _LINKS in known else 0,
        is_nameless=_NAME in known,
        extra=extra,
    )


def _read_keep(fields: list[bytes]) -> Keep:
    _require(fields, "time, path and store inode", 4)
    known, extra = _split_options(fields[4:], _KNOWN[Keep])
    if known.get(_NAME, _NONE) != _NONE:
        raise ValueError(f"not none: name={display(known[_NAME])}")
    ino = read_number(fields[3], 0)
    if (_AT in known or (_BASE in known and _HOME not in known)) if ino else known.keys() & _STAGED_ONLY:
        raise ValueError(_MISFIT)
    number, colon, count = known.get(_UNLINKED, b"0:1").partition(b":")
    if not colon:
        raise ValueError(f"not ino:count: unlinked={display(known[_UNLINKED])}")
    if _WAS in known and _HAD not in known:
        raise ValueError(_WAS_WHERE)
    return Keep(
        read_number(fields[1]),
        read_path(fields[2]),
        StoreIno(ino) if ino else None,
        source=read_path(known[_AT]) if _AT in known else None,
        origin=read_path(known[_FROM]) if _FROM in known else None,
        home=read_path(known[_HOME]) if _HOME in known else None,
        base=read_fingerprint(known[_BASE]) if _BASE in known else None,
        key=read_number(known.get(_KEY, b"0")),
        links=read_number(known[_LINKS], _LEAST_LINKS) if _LINKS in known else 0,
        unlinked=(read_number(number, 0), read_number(count, 1)) if _UNLINKED in known else None,
        touched_ns=read_number(known.get(_TOUCHED, b"0")),
        since_ns=read_number(known.get(_SINCE, b"0")),
        is_nameless=_NAME in known,
        replaces=_read_over(known),
        had=read_path(known[_HAD]) if _HAD in known else None,
        was=_read_was(known.get(_WAS), _WAS),
        extra=extra,
    )


def _read_delete(fields: list[bytes]) -> Delete:
    _require(fields, "time and path", 3)
    known, extra = _split_options(fields[3:], _KNOWN[Delete])
    base = known.get(_BASE)
    absent = base == _NONE
    fingerprint = None if base is None or absent else read_fingerprint(base)
    return Delete(
        read_number(fields[1]),
        read_path(fields[2]),
        absent=absent,
        base=fingerprint,
        unlinks=_read_unlinks(known),
        extra=extra,
    )


def _read_rename(fields: list[bytes]) -> Rename:
    _require(fields, "time and two paths", 4)
    exchange = fields[4:5] == [_EXCHANGE]
    known, extra = _split_options(fields[5 if exchange else 4 :], _KNOWN[Rename])
    if known.get(_BASE, _NONE) != _NONE:
        raise ValueError(f"not none: base={display(known[_BASE])}")
    paths = read_path(fields[2]), read_path(fields[3])
    return Rename(
        read_number(fields[1]),
        *paths,
        exchange=exchange,
        absent=_BASE in known,
        unlinks=_read_unlinks(known),
        replaces=_read_over(known),
        src_was=_read_was(known.get(_SRC_WAS), _SRC_WAS),
        dst_was=_read_was(known.get(_DST_WAS), _DST_WAS),
        extra=extra,
    )


def _read_was(value: bytes | None, key: bytes) -> Fingerprint | None:
    if value is None or value == _NONE:
        return None if value is None else NOTHING
    was = read_fingerprint(value, key)
    if was == NOTHING:
        raise ValueError(f"no file is so: {display(value)}")
    return was


def _read_over(known: dict[bytes, bytes]) -> bool:
    if known.get(_OVER, _BASE) != _BASE:
        raise ValueError(f"not base: over={display(known[_OVER])}")
    return _OVER in known


def _read_unlinks(known: dict[bytes, bytes]) -> int | None:
    return read_number(known[_UNLINKS], 0) if _UNLINKS in known else None


def _read_snapshot(fields: list[bytes]) -> Snapshot:
    _require(fields, "time and name", 3)
    _, extra = _split_options(fields[3:], _KNOWN[Snapshot])
    return Snapshot(read_number(fields[1]), unquote_field(fields[2]), extra=extra)


def _read_travel(fields: list[bytes]) -> Travel:
    _require(fields, "time, generation and name", 4)
    _, extra = _split_options(fields[4:], _KNOWN[Travel])
    return Travel(read_number(fields[1]), Generation(read_number(fields[2], 0)), unquote_field(fields[3]), extra=extra)


def _require(fields: list[bytes], what: str, least: int) -> None:
    if len(fields) < least:
        raise ValueError(f"it needs {what}")


def _split_options(fields: Iterable[bytes], names: frozenset[bytes]) -> tuple[dict[bytes, bytes], Extra]:
    """Return the values of the known keys as they are written, and the unknown ones decoded."""
    known: dict[bytes, bytes] = {}
    extra: list[tuple[str, bytes]] = []
    for field in fields:
        key, equals, value = field.partition(b"=")
        text = key.decode("latin-1")
        if not equals or not _is_key(text):
            raise ValueError(f"not key=value: {display(field)}")
        if key not in names:
            extra.append((text, unquote_field(value)))
        elif key in known:
            raise ValueError(f"{text}= is given twice")
        else:
            known[key] = value
    return known, tuple(extra)


_KNOWN: dict[type[Record], frozenset[bytes]] = {
    Stage: frozenset((_BASE, _FROM, _LINKS, _NAME)),
    Delete: frozenset((_BASE, _UNLINKS)),
    Rename: frozenset((_BASE, _OVER, _UNLINKS, _SRC_WAS, _DST_WAS)),
    Keep: frozenset((_AT, _FROM, _HOME, _BASE, _KEY, _LINKS, _UNLINKED, _TOUCHED, _SINCE, _NAME, _OVER, _HAD, _WAS)),
    Snapshot: frozenset(),
    Travel: frozenset(),
}
_READERS: dict[bytes, Callable[[list[bytes]], Record]] = {
    b"S": _read_stage,
    b"D": _read_delete,
    b"R": _read_rename,
    b"K": _read_keep,
    b"P": _read_snapshot,
    b"T": _read_travel,
}
