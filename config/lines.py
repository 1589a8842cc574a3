"""Which line of a TOML file a key stands on, which :mod:`tomllib` does not tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

KeyPath: TypeAlias = tuple[str, ...]
"""A key with the tables around it: ``("mount", "spin_us")``."""
Meaning: TypeAlias = tuple[str, ...]
"""What a line comes to, however it is spelled: what is remembered of an agreement.  The first word
is the key.
"""


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the first line, from 1, of every key and table in ``text``, which has to be valid
    TOML.

    Statements are found by growing a piece of the file line by line until tomllib takes it, so that
    whatever it understands (quoted and dotted keys, inline tables, values over many lines) is
    understood here too.  Keys in arrays of tables are not told apart from the array.
    """
    import tomllib  # takes long, and only rules and mistakes need lines

    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    pending = ""
    start = 1
    for number, line in enumerate(text.split("\n"), 1):
        pending += line + "\n"
        try:
            statement = tomllib.loads(pending)
        except tomllib.TOMLDecodeError:
            continue  # a value that goes on in the next line
        paths = list(_paths(statement))
        if pending.lstrip().startswith("["):
            table = paths[-1]
        else:
            paths = [table + path for path in paths]
        for path in paths:
            lines.setdefault(path, start)
        pending = ""
        start = number + 1
    return lines


def _paths(table: dict[str, Any]) -> Iterator[KeyPath]:
    for key, value in table.items():
        yield (key,)
        if isinstance(value, dict):
            yield from ((key, *path) for path in _paths(value))
