"""What a setting may be, as messages about mistakes say it."""

from __future__ import annotations

from typing import Any

from msgspec import inspect


def expected(type_: Any) -> str:
    """Return what a value of the annotated ``type_`` has to be, to follow "expected"."""
    info = inspect.type_info(type_)
    assert isinstance(info, inspect.Metadata), f"{type_} lacks a description"
    assert info.extra_json_schema is not None, f"{type_} lacks a description"
    return str(info.extra_json_schema["description"])


def words(type_: Any) -> list[str]:
    """Return the words that a value of the annotated ``type_`` may be, none if it need be no
    word.
    """
    return _words(inspect.type_info(type_))


def _words(info: inspect.Type) -> list[str]:
    """Return the words that a value may be."""
    match info:
        case inspect.Metadata(type=inner):
            return _words(inner)
        case inspect.UnionType(types=types):
            return [word for inner in types for word in _words(inner)]
        case inspect.LiteralType(values=values):
            return [str(value) for value in values]
        case _:
            return []
