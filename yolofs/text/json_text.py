"""JSON as yolofs prints and keeps it: every document, whoever reads it, can be shown on a terminal.

Names, commands and messages in it are of anybody's choice.  A JSON reader gets them back exactly; a
terminal gets nothing but printable characters (:mod:`yolofs.text.characters`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from yolofs.text.characters import escape_json
from yolofs.text.percent import quote_from_bytes


def encode_json(document: Any, *, indent: int = 0) -> bytes:
    """Return a document as JSON, on one line or indented.

    A ``str`` that stands for bytes which are not UTF-8 has U+FFFD in the place of each of these.
    """
    try:
        data = msgspec.json.encode(document)
    except UnicodeEncodeError:
        data = msgspec.json.encode(_without_surrogates(msgspec.to_builtins(document)))
    if indent:
        data = msgspec.json.format(data, indent=indent)
    if data.isascii() and b"\x7f" not in data:
        return data
    return escape_json(data.decode()).encode()


def _without_surrogates(value: Any) -> Any:
    match value:
        case str():
            return value.encode(errors="surrogateescape").decode(errors="replace")
        case dict():
            return {_without_surrogates(key): _without_surrogates(one) for key, one in value.items()}
        case list() | tuple():
            return [_without_surrogates(one) for one in value]
        case _:
            return value


def text_fields(key: str, raw: bytes) -> dict[str, str]:
    """Return a path or name as ``key``; one that is not UTF-8 has an exact ``key_bytes`` too,
    percent-encoded.
    """
    try:
        return {key: raw.decode()}
    except UnicodeDecodeError:
        return {key: raw.decode(errors="replace"), f"{key}_bytes": quote_from_bytes(raw)}


def command_fields(key: str, words: Iterable[bytes]) -> dict[str, list[str]]:
    """Return a command line as ``key``; if a word is not UTF-8 all of them stand exactly in
    ``key_bytes``, too.
    """
    words = list(words)
    fields = {key: [word.decode(errors="replace") for word in words]}
    try:
        for word in words:
            word.decode()
    except UnicodeDecodeError:
        fields[f"{key}_bytes"] = [quote_from_bytes(word) for word in words]
    return fields
