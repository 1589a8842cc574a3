"""From the dicts that tomllib returns to :class:`yolofs.config.settings.Settings`, or to one good
message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar, get_type_hints

import msgspec

from yolofs.config.lines import KeyPath, key_lines
from yolofs.config.settings import RuleLine, Settings, StateWord, UserSettings
from yolofs.errors import ConfigError
from yolofs.text.characters import toml_string

Table = TypeVar("Table", bound=msgspec.Struct)

SHOWN_LENGTH = 60
"""How much of a wrong value is shown, in characters."""

_TAKEN_OUT: Final[Mapping[KeyPath, str]] = {
    ("mount", "keep_awake"): "there is no such setting any more: idle CPUs are left alone; remove this line",
}
"""What is said of a setting that there was once, in place of a guess."""
_FILES: Final[Mapping[type[msgspec.Struct], str]] = {
    Settings: "a project's .yolofs.toml",
    UserSettings: "your own config.toml",
}


class CheckedFile:
    """The file that is being checked."""

    __slots__ = ("_lines", "_text", "known", "name")

    def __init__(self, name: str, text: str, known: type[msgspec.Struct] = Settings) -> None:
        self.name = name
        self.known = known
        """All that such a file may hold."""
        self._text = text
        self._lines: Mapping[KeyPath, int] | None = None

    def line(self, path: KeyPath) -> int | None:
        """Return the line of a key, None if it cannot be told."""
        if self._lines is None:  # finding them takes longer than all the rest, and only rules and mistakes have them
            try:
                self._lines = key_lines(self._text)
            except RecursionError:  # a key with thousands of dots
                self._lines = {}
        return self._lines.get(path)

    def error(self, path: KeyPath, message: str) -> ConfigError:
        """Return the error for a key, with its line if that is known."""
        line = self.line(path)
        where = self.name if line is None else f"{self.name}:{line}"
        return ConfigError(f"{where}: {dotted(path)}: {message}")


def read_settings(source: CheckedFile, data: dict[str, Any], known: type[Table]) -> Table:
    """Return the settings that ``data`` holds, defaults filled in; ``known`` is that of the source.

    Raises:
        ConfigError: for the first key that is unknown or whose value does not fit.
    """
    return _read_table(source, (), data, known)


def key_paths(table: type[msgspec.Struct] = Settings, above: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield every key that a file may hold, with the tables around it."""
    for key, type_ in get_type_hints(table, include_extras=True).items():
        yield (*above, key)
        if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
            yield from key_paths(type_, (*above, key))


def dotted(path: KeyPath) -> str:
    """Return a key as one would write it in TOML, on one line."""
    return ".".join(key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_string(key) for key in path)


def _read_table(source: CheckedFile, path: KeyPath, data: Any, table: type[Table]) -> Table:
    types = get_type_hints(table, include_extras=True)
    values: dict[str, Any] = {}
    for key, value in _items(source, path, data):
        here = (*path, key)
        if key not in types:
            raise source.error(here, _TAKEN_OUT.get(here) or f"unknown key; {_known_instead(source, here, types)}")
        type_ = types[key]
        if type_ == tuple[RuleLine, ...]:
            values[key] = _read_rules(source, here, value)
        elif isinstance(type_, type) and issubclass(type_, msgspec.Struct):
            values[key] = _read_table(source, here, value, type_)
        else:
            values[key] = _read_value(source, here, value, type_)
    return table(**values)


def _read_rules(source: CheckedFile, path: KeyPath, data: Any) -> tuple[RuleLine, ...]:
    return tuple(
        RuleLine(key, _read_value(source, (*path, key), value, StateWord), source.line((*path, key)))
        for key, value in _items(source, path, data)
    )


def _items(source: CheckedFile, path: KeyPath, data: Any) -> Iterable[tuple[str, Any]]:
    if not isinstance(data, dict):
        raise source.error(path, f"expected a table, got {_shown(data)}")
    return data.items()


def _read_value(source: CheckedFile, path: KeyPath, value: Any, type_: Any) -> Any:
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        from yolofs.config.expected import expected, words  # takes long, and is for mistakes alone

        message = f"expected {expected(type_)}, got {_shown(value)}"
        nearest = _nearest(value, words(type_)) if isinstance(value, str) else ""
        meant = nearest or (_setting_meant(source, path[-1]) if type_ is StateWord else "")
        message += f"; {meant}" if meant else ""
        raise source.error(path, message) from error


def _known_instead(source: CheckedFile, path: KeyPath, here: Iterable[str]) -> str:
    """Return the second half of the message about an unknown key."""
    key = path[-1]
    return _setting_meant(source, key) or _nearest(key, here) or f"known here: {', '.join(here)}"


def _setting_meant(source: CheckedFile, key: str) -> str:
    """Return where the setting of a key belongs that is below the wrong [table], or in the wrong
    file; empty if there is none.
    """
    if place := _place(source.known, key):
        return f"did you mean {key} {place}?"
    places = ((name, _place(table, key)) for table, name in _FILES.items())
    return next((f"{name} has it {place}" for name, place in places if place), "")


def _place(table: type[msgspec.Struct], key: str) -> str:
    """Return where a file has a key, empty if it has none."""
    known = next((known for known in key_paths(table) if known[-1] == key), None)
    if known is None:
        return ""
    tables = known[:-1]
    return f"in [{dotted(tables)}]" if tables else "above the first [table]"


def _nearest(word: str, known: Iterable[str]) -> str:
    import difflib  # takes long, and only a mistake needs it

    found = difflib.get_close_matches(word.lower(), list(known), n=1)
    return f'did you mean "{found[0]}"?' if found else ""


def _shown(value: Any) -> str:
    """Return a wrong value for a message: on one line and not longer than that."""
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            return "a table"
        case list():
            return "an array"
        case str():
            return toml_string(value if len(value) <= SHOWN_LENGTH else value[:SHOWN_LENGTH] + "…")
        case int() if value.bit_length() > 64:
            return f"a number of {value.bit_length()} bits"
        case _:
            return str(value)
