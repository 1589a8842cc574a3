"""Bytes as percent-encoded text (RFC 3986), with the results of ``urllib.parse``.  To import that
takes as long as everything else that finds a project.
"""

from __future__ import annotations

_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~/"
_WRITTEN = [chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in range(256)]


def quote_from_bytes(raw: bytes) -> str:
    """Return bytes as ASCII: what is neither a letter, a digit nor one of ``_.-~/`` as ``%XX``."""
    if not raw.rstrip(_PLAIN):  # as nearly all paths are
        return raw.decode("ascii")
    return "".join([_WRITTEN[byte] for byte in raw])


def unquote_to_bytes(text: str) -> bytes:
    """Return the bytes that a text stands for; a ``%`` that two hexadecimal digits do not follow
    stands for itself.
    """
    first, *others = text.encode().split(b"%")
    found = [first]
    for other in others:
        digits = other[:2]
        try:
            found += [int(digits, 16).to_bytes() if digits.isalnum() and len(digits) == 2 else b"%" + digits, other[2:]]
        except ValueError:
            found += [b"%", other]
    return b"".join(found)
