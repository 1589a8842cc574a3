"""How the fields of a journal's line are spelled: strings, paths, numbers, fingerprints."""

from __future__ import annotations

import re

from yolofs.journal.records import Fingerprint
from yolofs.paths import NAME_MAX, RelPath, display, parse_relpath

MODE = rb"[1-7][0-7]{0,9}"
"""Matches what a file's type and permission bits look like, in octal digits."""
_is_plain = re.compile(rb"[!-\"$&-~]+").fullmatch
"""Matches what needs no escape at all: printable ASCII without space, ``#`` and ``%``."""
_ESCAPED = {
    0xDC00 + byte if byte > 0x7F else byte: f"%{byte:02X}" for byte in (*range(0x21), *b"#%", *range(0x7F, 0x100))
}
"""What is escaped in a text decoded with surrogateescape, and how; the surrogates stand for bytes
that are not UTF-8.  No regular expression: one with so large an alphabet takes long to compile.
"""
_is_number = re.compile(rb"0|-?[1-9][0-9]{0,29}").fullmatch
"""30 digits: above any 64-bit second in nanoseconds, and far below what makes int() slow."""
_is_mode = re.compile(MODE).fullmatch


# --- strings --------------------------------------------------------------------------------------


def quote_field(raw: bytes) -> bytes:
    """Return the one spelling of ``raw`` as a field; never empty, never with a space or a newline
    in it.
    """
    if _is_plain(raw):
        return raw
    if not raw:
        return b"%"
    text = raw.decode("utf-8", "surrogateescape")
    return text.translate(_ESCAPED).encode()


def unquote_field(field: bytes) -> bytes:
    """Return the bytes that ``field`` spells.

    Raises:
        ValueError: it is not what :func:`quote_field` would write.
    """
    if _is_plain(field):
        return field
    if field == b"%":
        return b""
    first, *others = field.split(b"%")
    try:
        raw = first + b"".join([bytes((int(other[:2], 16),)) + other[2:] for other in others])
    except ValueError:
        raw = b""
    if not field or quote_field(raw) != field:  # this finds what was not written as two digits, too
        raise ValueError(f"badly percent-encoded: {display(field)}" if field else "a field is empty")
    return raw


def has_simple_names(path: bytes) -> bool:
    """Tell cheaply that ``path`` surely is a good relative path below base; most are.

    ``in`` would take four times as long as ``find``: Python tries bytes for a number first, and
    writes the text of an error.
    """
    return (
        0 < len(path) <= NAME_MAX
        and path[0] != 0x2F  # a slash
        and path[-1] != 0x2F
        and path.find(b"//") < 0
        and path.find(b"\0") < 0
        and ((path[0] != 0x2E and path.find(b"/.") < 0) or not _has_dots(path))
    )


def _has_dots(path: bytes) -> bool:
    names = path.split(b"/")
    return b"." in names or b".." in names


def write_path(path: bytes) -> bytes:
    """Return a path below base as a field; ValueError if it is none."""
    return path if _is_plain(path) and has_simple_names(path) else quote_field(parse_relpath(path))


def read_path(field: bytes) -> RelPath:
    """Return the path below base that a field spells; ValueError if it spells none."""
    path = unquote_field(field)
    return RelPath(path) if has_simple_names(path) else parse_relpath(path)


# --- numbers --------------------------------------------------------------------------------------


def read_number(field: bytes, least: int | None = None) -> int:
    """Return the number that a field spells; ValueError if it is none, or below ``least``."""
    if not _is_number(field):
        raise ValueError(f"not a number: {display(field)}")
    number = int(field)
    if least is not None and number < least:
        raise ValueError(f"{number} is below {least}")
    return number


def checked(number: int, least: int) -> int:
    """Return a number; ValueError if it is below ``least`` and so could not be read back."""
    if number < least:
        raise ValueError(f"{number} is below {least}")
    return number


def write_fingerprint(base: Fingerprint, key: bytes = b"base") -> bytes:
    """Return the field for a fingerprint, with the space before it.

    Raises:
        ValueError: a number in it is negative, or its mode 0: no file is so.
    """
    size, ino, owner = base.size, base.ino, base.owner
    if size < 0 or ino < 0:
        raise ValueError(f"no file is so: {base}")
    if owner is None:
        return b" %b=%d:%d:%d" % (key, base.mtime_ns, size, ino)
    mode, uid, gid = owner
    if mode < 1 or uid < 0 or gid < 0:
        raise ValueError(f"no file is so: {base}")
    text = b" %b=%d:%d:%d:%o:%d:%d" % (key, base.mtime_ns, size, ino, mode, uid, gid)
    return text + b":%d:%d" % (base.ctime_ns, checked(base.nlink, 0)) if base.ctime_ns else text


def read_fingerprint(value: bytes, key: bytes = b"base") -> Fingerprint:
    """Return the fingerprint that such a field's value spells; ValueError if it is none."""
    fields = value.split(b":")
    if len(fields) not in (3, 6, 8):
        raise ValueError(f"not mtime:size:ino[:mode:uid:gid[:ctime:links]]: {key.decode()}={display(value)}")
    mtime, size, ino = read_number(fields[0]), read_number(fields[1], 0), read_number(fields[2], 0)
    if len(fields) == 3:
        return Fingerprint(mtime, size, ino)
    if not _is_mode(fields[3]):
        raise ValueError(f"not an octal number: {display(fields[3])}")
    owner = int(fields[3], 8), read_number(fields[4], 0), read_number(fields[5], 0)
    if len(fields) == 6:
        return Fingerprint(mtime, size, ino, owner)
    ctime = read_number(fields[6])
    if not ctime:
        raise ValueError(f"no ctime: {key.decode()}={display(value)}")
    return Fingerprint(mtime, size, ino, owner, ctime, read_number(fields[7], 0))
