"""The first line of a journal, and what it says about all others."""

from __future__ import annotations

import re

import msgspec

from yolofs.errors import JournalError
from yolofs.journal.checksums import with_checksum
from yolofs.paths import display

FORMAT = b"yolofs-journal"
"""What the first line of every journal starts with."""
VERSION = 2
"""Of journals that are made now; those of version 1 are read, and written to until they end."""
HEADER_1 = b"%b 1\n" % FORMAT
"""The whole first line of a journal of version 1."""
KEY_LIMIT = 1 << 31
"""Keys are below this, so that no stamp exceeds 32 bits before there are 2**31 records."""

_FIRST_LINE_HINT = "yolofs doctor --repair --keep-rest writes that line anew, by what the other lines tell of it"

_is_key_field = re.compile(rb"[0-7][0-9a-f]{7}").fullmatch


class JournalForm(msgspec.Struct, frozen=True):
    """What the first line of a journal says about all others."""

    version: int
    key: int
    """Drawn when the journal was made; 0 in version 1."""
    header_bytes: int
    """Where the first record stands."""
    step: int
    """By how much the stamp of a record exceeds that of the one before it: 1, in version 1 it
    is 0.
    """

    def stamp(self, number: int) -> int:
        """Return the stamp of the record with this number, from 1."""
        return self.key + self.step * number


def header(key: int) -> bytes:
    """Return the first line of a journal of the present version, newline included."""
    return with_checksum(b"%b %d %08x" % (FORMAT, VERSION, key))


def is_newer(line: bytes) -> bool:
    """Tell whether the first line of a journal says that a newer version has made it."""
    word, _, rest = line.partition(b" ")
    version = rest.partition(b" ")[0]
    return word == FORMAT and version.isdigit() and int(version[:9]) > VERSION


def read_header(line: bytes) -> JournalForm:
    """Return what the first line of a journal, without its newline, says.

    Raises:
        JournalError: it is of no journal, of a version that is not known, or damaged.  The message
            goes after a path.
    """
    if line == HEADER_1[:-1]:
        return JournalForm(1, 0, len(HEADER_1), 0)
    word, _, rest = line.partition(b" ")
    version, _, key = rest.partition(b" ")
    if word != FORMAT or not version.isdigit() or int(version[:9]) < 1:
        message = f"does not begin with {FORMAT.decode()} {VERSION}, so it is damaged in its first line, or no journal"
        raise JournalError(message, hint=_FIRST_LINE_HINT)
    if is_newer(line):
        raise JournalError(
            f"has format version {display(version)}, but this yolofs reads versions 1 to {VERSION}",
            hint="use the yolofs that made it, or a newer one",
        )
    if not _is_key_field(key[:8]) or line + b"\n" != header(int(key[:8], 16)):
        raise JournalError("is damaged in its first line", hint=_FIRST_LINE_HINT)
    return JournalForm(VERSION, int(key[:8], 16), len(line) + 1, 1)
