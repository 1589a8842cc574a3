"""Reading settings and rules.  Every mistake is one line: file, line, key, what was expected, the
nearest word.
"""

from __future__ import annotations

import functools
import os
import re
import stat
from typing import TypeVar

import msgspec

from yolofs.config.settings import KeepCommits, Settings, UserSettings
from yolofs.errors import ConfigError
from yolofs.paths import display, in_shell

Table = TypeVar("Table", bound=msgspec.Struct)

FILE_NAME = ".yolofs.toml"
_MAX_BYTES = 64 << 20
"""Hundreds of thousands of rules; what is longer has come there by mistake."""


def load(project_dir: str | bytes) -> Settings:
    """Return the settings of the project in ``project_dir`` as they are written; the defaults if it
    has none.

    Not all of them are in force: whatever goes by settings gets them from
    :func:`yolofs.registry.trust.load_in_force`.

    Raises:
        ConfigError: the file cannot be read, is not TOML, or holds an unknown key or a wrong value.
    """
    return load_with_source(project_dir)[0]


def is_default(settings: Settings) -> bool:
    """Tell whether settings are the defaults, except for rules: then there is nothing in them that
    could wait.
    """
    return msgspec.structs.replace(settings, rules=()) == Settings()


def load_with_source(project_dir: str | bytes) -> tuple[Settings, bytes]:
    """Return the settings as :func:`load`, and the text that they were read from.

    Raises:
        ConfigError: as for :func:`load`.
    """
    raw = _load_raw(os.path.join(os.fsencode(project_dir), os.fsencode(FILE_NAME)), FILE_NAME)
    return (Settings(), b"") if raw is None else (parse(raw), raw)


def user_file(home: bytes) -> bytes:
    """Return the path of the user's own file, whether there is one or not."""
    configured = os.environb.get(b"XDG_CONFIG_HOME", b"")
    directory = configured if os.path.isabs(configured) else os.path.join(home, b".config")
    return os.path.join(directory, b"yolofs", b"config.toml")


class SessionPlaces(msgspec.Struct, frozen=True):
    """The settings in the user's own file about the places of sessions."""

    state: str = ""
    safe_directories: tuple[str, ...] = ()


def user_places(home: bytes) -> SessionPlaces:
    """Return the places of sessions set in the user's own file, as far as it can be read, whatever
    else in it is wrong.

    On it depends which session a command is about, and no mistake elsewhere should keep the user
    from that.
    """
    path = user_file(home)
    try:
        settings = load_file(path, "", UserSettings)
        return SessionPlaces(settings.state, settings.safe_directories)
    except ConfigError:
        pass
    import tomllib  # takes long, and there may be no file

    try:
        data = tomllib.loads(_read(path).decode())
    except (OSError, ValueError, RecursionError):
        return SessionPlaces()
    state, safe = data.get("state", ""), data.get("safe_directories", [])
    is_sound = isinstance(safe, list) and all(isinstance(name, str) for name in safe)
    return SessionPlaces(state if isinstance(state, str) else "", tuple(safe) if is_sound else ())


def load_file(path: bytes, name: str, table: type[Table]) -> Table:
    """Return the settings of the file at ``path``, which errors call ``name``; the defaults if
    there is none.

    Raises:
        ConfigError: as for :func:`load`.
    """
    raw = _load_raw(path, name)
    return table() if raw is None else parse_table(raw, name, table)


def user_preset() -> str:
    """Return whether the built-in rules are in force as far as the user's own file says,
    ``$HOME``'s.

    Raises:
        ConfigError: that file is not in order.
    """
    path = user_file(os.path.abspath(os.path.expanduser(b"~")))
    return load_file(path, display(path), UserSettings).preset


def user_host_code(home: bytes) -> tuple[str, ...]:
    """Return what the user's own file says of files that a commit takes only by name.

    Raises:
        ConfigError: that file is not in order.
    """
    path = user_file(home)
    return load_file(path, display(path), UserSettings).host_code


def keep_of(project: KeepCommits, user: KeepCommits) -> KeepCommits:
    """Return how long commits are kept by what is in force of a project's file, and by the user's
    own.

    The user's holds where the project's says nothing else.  A project may say more, or less once
    that was agreed to.
    """
    usual = KeepCommits()

    def merged(key: str) -> float:
        here, own, default = (float(getattr(keep, key)) for keep in (project, user, usual))
        return own if here == default else max(here, own) if here > default else here

    return KeepCommits(int(merged("count")), merged("days"), merged("gib"))


def user_keep_commits() -> KeepCommits:
    """Return how long commits are kept by the user's own file, ``$HOME``'s.

    Raises:
        ConfigError: that file is not in order.
    """
    path = user_file(os.path.abspath(os.path.expanduser(b"~")))
    return load_file(path, display(path), UserSettings).keep_commits


def _load_raw(path: bytes, name: str) -> bytes | None:
    """Return the content of a file of settings, None if there is none."""
    try:
        return _read(path)
    except FileNotFoundError:
        link = dangling_link(path)
        if link is None:
            return None
        raise ConfigError(
            f"{name}: cannot be read: {display(link)} is a link to what does not exist",
            hint=f"remove the link, or make what it leads to: ls -l {in_shell(link)}",
        ) from None
    except OSError as error:
        raise ConfigError(
            f"{name}: cannot be read: {error.strerror}", hint=f"see why: ls -l {in_shell(path)}"
        ) from error


_NULL = os.makedev(1, 3)
"""The device number of ``/dev/null``, on every Linux
(``Documentation/admin-guide/devices.txt``).
"""


def dangling_link(path: bytes) -> bytes | None:
    """Return the symbolic link on the way to a path that leads nowhere, None if there is none.

    A user who links to settings elsewhere has settings, even while that place is not there.
    """
    while path and not os.path.lexists(path):
        path = os.path.dirname(path)
    return path if os.path.islink(path) and not os.path.exists(path) else None


def parse(raw: bytes, name: str = FILE_NAME) -> Settings:
    """Return the settings that ``raw`` spells; ``name`` is what errors call the file.

    Raises:
        ConfigError: as for :func:`load`.
    """
    return parse_table(raw, name, Settings)


def parse_table(raw: bytes, name: str, table: type[Table]) -> Table:
    """Return the settings that ``raw`` spells; ``table`` says which keys the file may have.

    Raises:
        ConfigError: as for :func:`load`.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{name}:{line}: not UTF-8: byte 0x{raw[error.start]:02x}") from error
    text = text.replace("\r\n", "\n")
    return table() if _says_nothing(text, table) else _read_text(text, name, table)


@functools.lru_cache(maxsize=4)  # a command comes to the same file more than once
def _read_text(text: str, name: str, table: type[Table]) -> Table:
    import tomllib  # takes long, and most files of a project say nothing

    from yolofs.config.check import CheckedFile, read_settings

    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_not_toml(str(error), text, name)) from error
    except ValueError:  # Python's own limit on the digits of an int
        raise ConfigError(f"{name}: not TOML: a number has thousands of digits") from None
    except RecursionError:
        raise ConfigError(f"{name}: not TOML: nested too deeply") from None
    found = _ZERO.search(text)
    if found is not None and _has_zero(data):
        line = text.count("\n", 0, found.start()) + 1
        raise ConfigError(f"{name}:{line}: {found[0]} is a zero byte, which no path and no name has")
    return read_settings(CheckedFile(name, text, table), data, table)


_ZERO = re.compile(r"\\(?:u0{4}|U0{8})")


def _has_zero(value: object) -> bool:
    """Tell whether a text of a TOML document has a zero byte, which only an escape can spell."""
    match value:
        case str():
            return "\0" in value
        case dict():
            return any(_has_zero(one) for pair in value.items() for one in pair)
        case list():
            return any(map(_has_zero, value))
        case _:
            return False


_EMPTY_TABLES = frozenset({"[mount]", "[run]", "[diff]", "[keep_commits]", "[rules]"})


def _says_nothing(text: str, table: type[msgspec.Struct]) -> bool:
    """Tell whether there are but comments and empty tables, as in the file that ``yolofs init``
    writes.
    """
    begun: set[str] = set()
    for line in text.split("\n"):
        if not line or (line[0] == "#" and line.isprintable()):
            continue
        if line not in _EMPTY_TABLES or line in begun or table is not Settings:
            return False
        begun.add(line)
    return True


def _read(path: bytes) -> bytes:
    """Return the content of a regular file; what is something else must neither block the command
    nor be endless.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        st = os.fstat(fd)
        if stat.S_ISCHR(st.st_mode) and st.st_rdev == _NULL:  # the usual way to switch settings off
            return b""
        if not stat.S_ISREG(st.st_mode):
            raise OSError(0, "it is a directory" if stat.S_ISDIR(st.st_mode) else "it is not a regular file")
        with open(fd, "rb", closefd=False) as file:
            raw = file.read(_MAX_BYTES + 1)
    finally:
        os.close(fd)
    if len(raw) > _MAX_BYTES:
        raise OSError(0, f"it has more than {_MAX_BYTES >> 20} MiB")
    return raw


_POSITION = r" \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$"


def _not_toml(message: str, text: str, name: str) -> str:
    """Return tomllib's message with its position in front, as in all the other messages."""
    found = re.search(_POSITION, message)
    if found is None:
        return f"{name}: not TOML: {message}"
    reason = " ".join(message[: found.start()].split())
    if found["line"] is None:
        return f"{name}:{len(text.splitlines()) or 1}: not TOML: {reason} at the end of the file"
    return f"{name}:{found['line']}: not TOML: {reason} (column {found['column']})"
