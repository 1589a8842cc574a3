"""Which characters a terminal must not get as they are, and how they are shown instead.

Those that control it (C0, C1 and DEL), reverse text or break lines, and invisible ones: a name with
them could be taken for another name.  Unicode's categories decide, as Python's
:meth:`str.isprintable` has them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re

_FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\U000e0100-\U000e01ef"
"""What shows nothing though it counts as printable, as ranges for a pattern."""
_SELECTORS = "\ufe00-\ufe0f"
"""What changes the look of a character before it, as of emoji, and shows nothing where there is
none to change.
"""
_UNSEEN = f"[{_FILLERS}]|(?:^|[\x00-\x7f{_SELECTORS}])[{_SELECTORS}]"

_TOML_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_OWN_COLOURS = r"\x1b\[(?:0|(?:1|2|3[1-6])(?:;(?:1|2|3[1-6]))*)m"


def is_harmless(text: str) -> bool:
    """Tell whether all of ``text`` may reach a terminal as it is, on one line."""
    return text.isprintable() and (text.isascii() or _pattern(_UNSEEN).search(text) is None)


def replace_harmful(text: str) -> str:
    """Return text for a terminal, of one or more lines, with what could do it harm spelled out.

    Tabs stay, and so do colours as yolofs itself uses them.
    """
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return _pattern(f"{_OWN_COLOURS}|\x1b|[^\x1b\x20-\x7e\n\t]+").sub(_shown, text)


def harmless(text: str) -> str:
    """Return text for a terminal, on one line, with what could do it harm spelled out.

    That is ``^[`` for an escape, ``<202e>`` for others, ``<9b>`` for a byte that is not UTF-8
    (surrogateescape).
    """
    return _with_unsafe(text, _spelled)


def _with_unsafe(text: str, spell: Callable[[str], str]) -> str:
    """Return text with each character that is not harmless by itself, or not behind the one before,
    in another way.
    """
    if is_harmless(text):
        return text
    pairs = zip(["", *text], text, strict=False)
    return "".join(char if is_harmless(char) or is_harmless(before + char) else spell(char) for before, char in pairs)


def _spelled(char: str) -> str:
    code = ord(char)
    if code < 0x20 or code == 0x7F:
        return f"^{chr(code ^ 0x40)}"
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    return f"<{code:02x}>"


def toml_string(text: str) -> str:
    """Return text as a basic string of TOML, harmless on a terminal.

    A byte that is not UTF-8 (surrogateescape), for which TOML has nothing, stands as ``\\udcXX``.
    """
    return '"' + _with_unsafe(text.replace("\\", "\\\\").replace('"', '\\"'), _toml_escape) + '"'


def _toml_escape(char: str) -> str:
    code = ord(char)
    return _TOML_ESCAPES.get(char) or (f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}")


def escape_json(text: str) -> str:
    """Return a JSON document that says the same, with what must not be shown as it is in ``\\u``
    escapes.

    What is not ASCII stands in strings only, so an escape is right wherever it is.
    """
    return _pattern("[^\x20-\x7e]+").sub(_escaped, text)


@functools.cache
def _pattern(text: str) -> re.Pattern[str]:
    import re  # most commands show plain names alone, and start faster without

    return re.compile(text)


def _shown(found: re.Match[str]) -> str:
    run = found[0]
    return run if len(run) > 1 and run[0] == "\x1b" else harmless(run)


def _escaped(found: re.Match[str]) -> str:
    return _with_unsafe(found[0], _escape)


def _escape(char: str) -> str:
    if char == "\n":  # between the lines of a document: in strings it is escaped already
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
