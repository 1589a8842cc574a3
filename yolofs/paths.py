"""Paths and numbers that must not be mixed up, and the one door at which each is checked.

A :data:`RelPath` is a path relative to base: raw bytes, no leading or trailing slash, no empty
component, no ``.`` or ``..``; ``b""`` is base itself.  Paths stay bytes from the kernel to the
journal; they become ``str`` only at the terminal and in TOML, by :func:`display` and
:func:`os.fsdecode`.
"""

from __future__ import annotations

import functools
import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NewType

from yolofs.errors import UsageError
from yolofs.text.characters import is_harmless

if TYPE_CHECKING:
    import re

RelPath = NewType("RelPath", bytes)
"""A path relative to base (see the module's docstring)."""

StoreIno = NewType("StoreIno", int)
"""The number of a store inode, from 1."""

Generation = NewType("Generation", int)
"""The number of a generation, from 0, which is base."""

ROOT = RelPath(b"")
_MOST_DIGITS = 20
"""A number with as many is none of a generation, a run or a commit."""
NAME_MAX = 255


def numbered_state(text: str) -> tuple[str, int] | None:
    """Return the word and the number of ``run N`` and ``commit N``, which also stand for states;
    None if a text is neither.
    """
    word, _, number = text.replace(":", " ", 1).partition(" ")
    is_number = number.isascii() and number.isdigit()
    return (word, int(number)) if word in ("run", "commit") and is_number and len(number) < _MOST_DIGITS else None


def is_reserved_name(text: str) -> bool:
    """Tell whether a text means something else than a snapshot where generations are named."""
    is_state = text in ("-", "base", "all") or text.isdigit() or numbered_state(text) is not None
    return is_state or ".." in text or text != text.strip()


def check_snapshot_name(name: bytes) -> None:
    """Check that a snapshot may have a name; b"" is none.

    Raises:
        UsageError: it means something else.
    """
    if is_reserved_name(os.fsdecode(name)):
        raise UsageError(
            f"a snapshot cannot be named {display(name)}: that means something else where generations are named",
            hint="use a name with a letter in it, without '..' and space around it, and not run N or commit N",
        )


def parse_relpath(raw: bytes) -> RelPath:
    """Return ``raw`` as a :data:`RelPath`.

    Raises:
        ValueError: it is absolute, holds NUL, an empty component, ``.`` or ``..``, or a name above
            255 bytes.
    """
    if not raw:
        return ROOT
    if b"\0" in raw:
        raise ValueError("a path cannot hold a NUL byte")
    for name in raw.split(b"/"):
        if name in (b"", b".", b".."):
            raise ValueError(f"not a path relative to base: {display(raw)}")
        if len(name) > NAME_MAX:
            raise ValueError(f"a name of {len(name)} bytes is longer than {NAME_MAX}")
    return RelPath(raw)


def join(parent: bytes, name: bytes) -> RelPath:
    """Return the path of ``name`` in the directory ``parent``, both already checked."""
    return RelPath(parent + b"/" + name if parent else name)


def split(path: bytes) -> tuple[RelPath, bytes]:
    """Return the directory and the last name of a path that is not base itself."""
    parts: tuple[Any, bytes, bytes] = path.rpartition(b"/")  # RelPath() would take as long again, five times a change
    return parts[0], parts[2]


def is_below(path: bytes, directory: bytes) -> bool:
    """Tell whether a path relative to base is ``directory`` or lies below it."""
    return not directory or path == directory or path.startswith(directory + b"/")


def is_in(path: bytes, directory: bytes) -> bool:
    """Tell whether an absolute path is ``directory`` or lies in it; all paths lie in ``/``."""
    return directory in (path, b"/") or path.startswith(directory + b"/")


def is_below_any(path: RelPath, tops: frozenset[RelPath]) -> bool:
    """Tell whether a path is one of some others or lies below one, however many they are."""
    while path not in tops:
        if not path:
            return False
        path = split(path)[0]
    return True


def first_below(paths: Sequence[RelPath], directory: bytes) -> RelPath | None:
    """Return the first of sorted paths that lies in a directory, None if none does, however many
    they are.
    """
    start = directory + b"/" if directory else b"\0"  # no path begins with that, and each is greater but the root
    at = bisect_left(paths, start)
    return paths[at] if at < len(paths) and is_below(paths[at], directory) else None


def with_ancestors(path: bytes) -> Iterator[bytes]:
    """Yield an absolute path, and all directories above it."""
    yield path
    while path != b"/":
        path = path.rpartition(b"/")[0] or b"/"
        yield path


def display(path: bytes) -> str:
    """Return a path for a terminal: printable, on one line, unambiguous.

    Plain names stay as they are.  Others are put into double quotes with C escapes, as git does:
    those with control characters, a quote, a backslash or bytes that are not UTF-8, and those in
    which something could not be seen (spaces where a name starts or ends, characters that show
    nothing).  Names of snapshots are shown by the same rule, so ``cp a /b`` comes in quotes:
    as a path, the space would be the end of a name.
    """
    try:
        text = path.decode()
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and '"' not in text and "\\" not in text and (text or not path):
        if text.isascii() and " " not in text:
            return text
        if not is_harmless(text):
            return '"' + quote_c(path) + '"'
        if not _outer_space().search(text):
            return text
    return '"' + quote_c(path, ascii_only=not text) + '"'


def in_shell(path: bytes) -> str:
    """Return a path as a word of a command line, to be copied: printable, on one line, and the same
    to every shell, or to bash, zsh and ksh alone if it has characters that do not show.
    """
    import shlex  # takes a while, and most commands do without

    shown = display(path)
    if shown.startswith('"'):  # always quoted then: a quote in a name is
        if path.isascii() and (text := path.decode()).isprintable():
            return shlex.quote(text)
        return "$'" + shown[1:-1].replace("'", "\\'") + "'"
    return shlex.quote(shown)


@functools.cache
def _outer_space() -> re.Pattern[str]:
    """Return a pattern of names that start or end with a space."""
    import re  # most commands show plain names alone, and start faster without

    return re.compile("(?:^|/) | (?:/|$)")


_C_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def quote_c(path: bytes, *, ascii_only: bool = True) -> str:
    """Return ``path`` with C escapes as in git's quoted names (no quotes around it).

    With ``ascii_only`` every byte above 126 becomes an octal escape; otherwise ``path`` has to be
    UTF-8, and its printable characters stay.
    """
    if ascii_only:
        return "".join(_C_ESCAPES.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in path)
    return "".join(
        _C_ESCAPES.get(ord(c)) or (c if is_harmless(c) else "".join(f"\\{b:03o}" for b in c.encode()))
        for c in path.decode()
    )


def absolute(root: bytes, path: bytes) -> bytes:
    """Return the absolute path of a path relative to ``root``, an absolute path itself."""
    return (b"" if root == b"/" else root) + b"/" + path if path else root
