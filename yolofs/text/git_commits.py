"""What git keeps of commits and refs in plain files: parents of commits, names and values of
refs.
"""

from __future__ import annotations

import re
import zlib
from typing import Final

MOST_OBJECT_BYTES: Final = 1 << 20
"""A loose object that takes more is taken for no commit."""
_MOST_TEXT_BYTES = 1 << 20
_NAME = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_PARENT = b"parent "
_SYMBOLIC = b"ref: "
_HEADS = b"refs/heads/"
_SHA1_NAME = 40
"""The length of such a name in hex; all others are of SHA-256."""


def is_name(text: bytes) -> bool:
    """Tell whether something is the name of an object, in hex."""
    return _NAME.fullmatch(text) is not None


def is_called(whole: bytes, name: bytes) -> bool:
    """Tell whether an object, as :func:`unpacked` returns it, has a name."""
    import hashlib  # takes long, and few changes are in a .git

    kind = hashlib.sha1 if len(name) == _SHA1_NAME else hashlib.sha256
    return kind(whole, usedforsecurity=False).hexdigest().encode() == name


def unpacked(compressed: bytes) -> bytes:
    """Return what a loose object holds: its type and size, a zero byte, its content; of what is
    none, nothing.
    """
    try:
        return zlib.decompressobj().decompress(compressed, _MOST_TEXT_BYTES)
    except zlib.error:
        return b""


def parents_of(whole: bytes, name: bytes) -> list[bytes] | None:
    """Return the names of a commit's parents, given what :func:`unpacked` returns of it; None if it
    is no commit, or has another ``name`` than it goes by.
    """
    head, _, body = whole.partition(b"\0")
    if not head.startswith(b"commit ") or not is_called(whole, name):
        return None
    lines = body.partition(b"\n\n")[0].split(b"\n")
    names = [line[len(_PARENT) :] for line in lines if line.startswith(_PARENT)]
    return names if all(map(_NAME.fullmatch, names)) else None


def parse_ref(content: bytes) -> bytes | None:
    """Return what a ref's own file says: an object's name, or ``ref: `` and another ref; None if it
    says neither.
    """
    line = content.strip()
    return line if _NAME.fullmatch(line) or line.startswith(_SYMBOLIC) else None


def parse_packed(content: bytes) -> dict[bytes, bytes]:
    """Return the refs of a file ``packed-refs``, with the names of their objects; odd lines are
    passed over.
    """
    refs = {}
    for line in content.split(b"\n"):
        name, _, ref = line.partition(b" ")
        if ref and _NAME.fullmatch(name):
            refs[ref] = name
    return refs


def branch_of(value: bytes) -> bytes | None:
    """Return the branch that HEAD names; None if it names an object, or something else than a
    branch.
    """
    ref = value.removeprefix(_SYMBOLIC)
    return ref.removeprefix(_HEADS) if ref is not value and ref.startswith(_HEADS) else None
