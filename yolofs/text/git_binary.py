"""Binary content as ``git apply`` reads it: the literal form of git's ``GIT binary patch``.

The format is that of ``diff.c`` (``emit_binary_diff_body``) and ``base85.c`` in git's source:
``literal SIZE``, then the deflated bytes, 52 to a line, in base85 behind a letter that tells how
many they are (A-Z for 1 to 26, a-z for 27 to 52), then an empty line.  The alphabet is that of RFC
1924, which is Python's.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import hashlib

_LINE_BYTES = 52  # 13 groups of 4, so that only the last line of all needs padding
_LINE_CHARS = _LINE_BYTES // 4 * 5
_FULL_LINE = b"z"
_CHUNK_BYTES = 1 << 20
_SNIFFED_BYTES = 8000

MAX_TEXT_BYTES = 16 << 20
"""Above this size a file counts as binary, and is never held in memory as a whole."""
NO_BLOB = b"0" * 40
"""Stands in index lines for a file that is not there."""


def is_binary(head: bytes) -> bool:
    """Tell from the first bytes of a file whether git treats it as binary: by a NUL in the first
    8,000.
    """
    return b"\0" in head[:_SNIFFED_BYTES]


def hash_blob(data: bytes) -> bytes:
    """Return the name that git gives to this content, as 40 hex digits."""
    return _hash_chunks(len(data), iter((data,)))


def hash_blob_of(fd: int, size: int) -> bytes:
    """Return the name that git gives to the first ``size`` bytes of an open file.

    Raises:
        OSError: it cannot be read, or is shorter.
    """
    return _hash_chunks(size, read_chunks(fd, size))


def _hash_chunks(size: int, chunks: Iterator[bytes]) -> bytes:
    digest = _new_digest(size)
    digest.update(b"blob %d\0" % size)
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest().encode()


def _new_digest(size: int) -> hashlib._Hash:
    """Return a new SHA-1 for about ``size`` bytes.

    OpenSSL's is many times as fast, and takes 3 ms to load: as Python's own takes for 150 KiB.
    """
    if size <= _left_without_openssl[0]:
        with contextlib.suppress(ImportError):  # not every Python has it
            import _sha1  # type: ignore[import-not-found]  # typeshed does not have it

            _left_without_openssl[0] -= size
            new: hashlib._Hash = _sha1.sha1(usedforsecurity=False)
            return new
    import hashlib

    return hashlib.sha1(usedforsecurity=False)


_left_without_openssl = [1 << 15]
"""How many bytes this process may still hash without it."""


def read_chunks(fd: int, size: int) -> Iterator[bytes]:
    """Yield the first ``size`` bytes of an open file.

    Raises:
        OSError: it cannot be read, or is shorter.
    """
    offset = 0
    while offset < size:
        chunk = os.pread(fd, min(_CHUNK_BYTES, size - offset), offset)
        if not chunk:
            raise OSError(f"the file ended after {offset} of {size} bytes")
        offset += len(chunk)
        yield chunk


def literal(size: int, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the ``literal`` hunk of ``size`` bytes that come in ``chunks``, the empty line at its
    end included.
    """
    yield b"literal %d\n" % size
    pending = b""
    for part in _deflate(chunks):
        pending += part
        whole = len(pending) // _LINE_BYTES * _LINE_BYTES
        yield _lines(pending[:whole])
        pending = pending[whole:]
    yield _lines(pending)
    yield b"\n"


def _deflate(chunks: Iterator[bytes]) -> Iterator[bytes]:
    deflator = zlib.compressobj()
    for chunk in chunks:
        yield deflator.compress(chunk)
    yield deflator.flush()


def _lines(data: bytes) -> bytes:
    """Return the lines of some deflated bytes; a last one that is not full is padded as git
    does.
    """
    import base64  # few patches are of binary files

    text = base64.b85encode(data, pad=True)
    whole = len(data) // _LINE_BYTES
    lines = [_FULL_LINE + text[start : start + _LINE_CHARS] for start in range(0, whole * _LINE_CHARS, _LINE_CHARS)]
    rest = len(data) % _LINE_BYTES
    if rest:
        lines.append(_length_letter(rest) + text[whole * _LINE_CHARS :])
    return b"".join(line + b"\n" for line in lines)


def _length_letter(count: int) -> bytes:
    return bytes([ord("A") + count - 1 if count <= 26 else ord("a") + count - 27])
