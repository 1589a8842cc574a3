"""Git's settings, read as git reads them.

The text is hostile: git is never asked to read it.  The grammar is that of git-config(1), as its
``config.c`` has it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

MOST_BYTES: Final = 1 << 16
"""What is longer is not looked at, and so is not harmless."""


class ConfigLine(msgspec.Struct, frozen=True):
    """One line of settings."""

    section: str
    """In lower case."""
    subsection: str | None
    key: str
    """In lower case."""
    value: str | None
    """None for a key without ``=``, which stands for true."""

    @property
    def name(self) -> tuple[str, str | None, str]:
        """Which setting it is; of those that are there several times, some hold several values."""
        return self.section, self.subsection, self.key


class _MalformedError(Exception):
    """The text is not one that git would read."""


def parse_config(text: bytes) -> list[ConfigLine] | None:
    """Return the entries of a file of settings in their order, None if git would not read it, or
    not all of it.
    """
    if len(text) > MOST_BYTES or b"\0" in text:
        return None
    decoded = text.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    try:
        return _ConfigReader(decoded).entries()
    except _MalformedError:
        return None


# Patterns are compiled when they are first used, as most commands meet no settings.
_SECTION = r"\[([A-Za-z0-9.-]+)(?:[ \t]+\"((?:[^\"\\\n]|\\[^\n])*)\")?\]"
_KEY = r"([A-Za-z][A-Za-z0-9-]*)[ \t]*"
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", '"': '"', "\\": "\\"}


class _ConfigReader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def entries(self) -> list[ConfigLine]:
        found: list[ConfigLine] = []
        section: tuple[str, str | None] | None = None
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in " \t\n\r":
                self._at += 1
            elif char in "#;":
                self._skip_line()
            elif char == "[":
                section = self._section()
            elif section is None:
                raise _MalformedError
            else:
                key = self._match(_KEY)[1].lower()
                found.append(ConfigLine(*section, key, self._value()))
        return found

    def _match(self, pattern: str) -> re.Match[str]:
        match = re.compile(pattern).match(self._text, self._at)
        if match is None:
            raise _MalformedError
        self._at = match.end()
        return match

    def _section(self) -> tuple[str, str | None]:
        name, quoted = self._match(_SECTION).groups()
        if quoted is not None:
            if "." in name:
                raise _MalformedError
            return name.lower(), re.sub(r"\\(.)", r"\1", quoted)
        head, dot, rest = name.lower().partition(".")
        return head, rest if dot else None

    def _skip_line(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end + 1

    def _value(self) -> str | None:
        rest = self._text[self._at : self._at + 1]
        if rest in ("", "\n"):
            return None
        if rest != "=":
            raise _MalformedError
        self._at += 1
        return self._text_of_value()

    def _text_of_value(self) -> str:
        out: list[str] = []
        kept = 0  # so much of it stays, whatever blanks follow
        is_quoted = False
        while True:
            char = self._text[self._at : self._at + 1]
            if char in ("", "\n"):
                if is_quoted:
                    raise _MalformedError
                return "".join(out[:kept])
            if char in "#;" and not is_quoted:
                self._skip_line()
                return "".join(out[:kept])
            self._at += 1
            if char == '"':
                is_quoted = not is_quoted
                kept = len(out)
                continue
            if char == "\\":
                escaped = self._text[self._at : self._at + 1]
                self._at += 1
                if escaped != "\n":
                    if escaped not in _ESCAPES:
                        raise _MalformedError
                    out.append(_ESCAPES[escaped])
                kept = len(out)
                continue
            if char in " \t\r" and not is_quoted:
                if out:
                    out.append(char)
                continue
            out.append(char)
            kept = len(out)


# ---- what is harmless


_HASH: Final = ("extensions", None, "objectformat")


def hash_bytes_of(entries: Sequence[ConfigLine]) -> int:
    """Return how long the hashes are of a repository with these settings."""
    formats = [entry.value for entry in entries if entry.name == _HASH]
    return 32 if formats[-1:] == ["sha256"] else 20
