"""Reading settings and rules.  Every mistake is one line: file, line, key, what was expected, the nearest word."""

from __future__ import annotations

import os
import re
import stat
from typing import TypeVar

import msgspec

from yolofs.config.check import Source, read_settings
from yolofs.config.settings import Settings
from yolofs.errors import ConfigError
from yolofs.paths import display

Table = TypeVar("Table", bound=msgspec.Struct)

FILE_NAME = ".yolofs.toml"
_MAX_BYTES = 64 << 20
"""Hundreds of thousands of rules; what is longer has come there by mistake."""


def load(project_dir: str | bytes) -> Settings:
    """Return the settings of the project in ``project_dir``; the defaults if it has no ``.yolofs.toml``.

    Raises:
        ConfigError: the file cannot be read, is not TOML, or holds an unknown key or a wrong value.
    """
    return load_file(os.path.join(os.fsencode(project_dir), os.fsencode(FILE_NAME)), FILE_NAME, Settings)


def user_file(home: bytes) -> bytes:
    """Return the path of the user's own file, whether there is one or not."""
    configured = os.environb.get(b"XDG_CONFIG_HOME", b"")
    directory = configured if os.path.isabs(configured) else os.path.join(home, b".config")
    return os.path.join(directory, b"yolofs", b"config.toml")


def load_file(path: bytes, name: str, table: type[Table]) -> Table:
    """Return the settings of the file at ``path``, which errors call ``name``; the defaults if there is none.

    Raises:
        ConfigError: as for :func:`load`.
    """
    try:
        raw = _read(path)
    except FileNotFoundError:
        link = dangling_link(path)
        if link is None:
            return table()
        raise ConfigError(f"{name}: cannot be read: {display(link)} is a link to what does not exist") from None
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read: {error.strerror}") from error
    return parse_table(raw, name, table)


_NULL = os.makedev(1, 3)
"""The device number of ``/dev/null``, on every Linux (``Documentation/admin-guide/devices.txt``)."""


def dangling_link(path: bytes) -> bytes | None:
    """Return the symbolic link on the way to a path that leads nowhere, None if there is none.

    Whoever keeps his settings elsewhere and links to them has some, even while that place is not there.
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
    """Return the settings that ``raw`` spells, of a file that may hold what ``table`` does.

    Raises:
        ConfigError: as for :func:`load`.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{name}:{line}: not UTF-8: byte 0x{raw[error.start]:02x}") from error
    text = text.replace("\r\n", "\n")
    import tomllib  # takes long, and there may be no file

    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_not_toml(str(error), text, name)) from error
    except ValueError:  # Python's own limit on the digits of an int
        raise ConfigError(f"{name}: not TOML: a number has thousands of digits") from None
    except RecursionError:
        raise ConfigError(f"{name}: not TOML: nested too deeply") from None
    return read_settings(Source(name, text, table), data, table)


def _read(path: bytes) -> bytes:
    """Return the content of a regular file; what is something else must neither block the command nor be endless."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        st = os.fstat(fd)
        if stat.S_ISCHR(st.st_mode) and st.st_rdev == _NULL:  # the usual way to switch settings off
            return b""
        if not stat.S_ISREG(st.st_mode):
            raise OSError(0, "it is a directory" if stat.S_ISDIR(st.st_mode) else "it is no regular file")
        with open(fd, "rb", closefd=False) as file:
            raw = file.read(_MAX_BYTES + 1)
    finally:
        os.close(fd)
    if len(raw) > _MAX_BYTES:
        raise OSError(0, f"it has more than {_MAX_BYTES >> 20} MiB")
    return raw


_POSITION = re.compile(r" \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$")


def _not_toml(message: str, text: str, name: str) -> str:
    """Return tomllib's message with its position in front, as in all the other messages."""
    found = _POSITION.search(message)
    if found is None:
        return f"{name}: not TOML: {message}"
    reason = " ".join(message[: found.start()].split())
    if found["line"] is None:
        return f"{name}:{len(text.splitlines()) or 1}: not TOML: {reason} at the end of the file"
    return f"{name}:{found['line']}: not TOML: {reason} (column {found['column']})"
