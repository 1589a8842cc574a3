"""The beginning of what the view shows at a path, as lines that do a terminal no harm."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from yolofs.cli.output import local_time
from yolofs.paths import display
from yolofs.session.session import Session, SessionAccess
from yolofs.state.tree import Shown
from yolofs.store.base_opening import open_noatime, read_link
from yolofs.system.disk_usage import size_text
from yolofs.text import characters

_MAX_BYTES = 16 << 10
_MAX_LINES = 200
_MAX_CHARS = 1000
"""How much of one line is shown."""
_HEX_BYTES = 256


def preview(project: bytes, path: bytes) -> list[str]:
    """Return what the view of ``project`` shows at an absolute path, read from the store or base,
    not the mount.

    Raises:
        YolofsError: the session cannot be read.
    """
    with Session.open(project, SessionAccess.READ) as session:
        rel = session.base.relative(path)
        shown = session.state().resolve(rel) if rel is not None else None
        if shown is None or rel is None:
            return ["there is nothing at this path"]
        try:
            if shown.staged is not None:
                st = os.lstat(session.store.path(shown.staged.ino))
            else:
                st = session.base.lstat(shown.base or rel)
            if stat.S_ISDIR(st.st_mode):
                return _describe_directory(_names(session, shown), st)
            has_data = shown.staged is not None and shown.staged.origin is None
            place = session.store.path(shown.staged.ino) if shown.staged and has_data else None
            return _describe(place or session.base.path(shown.base or rel), st)
        except FileNotFoundError:
            return ["there is nothing at this path"]
        except OSError as error:
            return [f"cannot be read: {error.strerror}"]


def _describe(place: bytes, st: os.stat_result) -> list[str]:
    mtime = _mtime_text(st)
    match stat.S_IFMT(st.st_mode):
        case stat.S_IFREG:
            with open(open_noatime(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
                data = file.read(_MAX_BYTES)
            return [f"{size_text(st.st_size)}, {mtime}", "", *_content(data)]
        case stat.S_IFLNK:
            return [f"a symlink to {display(read_link(place))}, {mtime}"]
        case _:
            return ["neither file, directory nor symlink"]


def _names(session: Session, shown: Shown) -> list[bytes]:
    """Return the names in a directory of the view, sorted.

    Raises:
        OSError: as opendir(3).
    """
    names = set(session.base.names(shown.base)) if shown.base is not None else set()
    children = shown.entry.children if shown.entry is not None else None
    for name, entry in (children or {}).items():
        (names.discard if entry.is_tombstone else names.add)(name)
    return sorted(names)


def _describe_directory(names: Sequence[bytes], st: os.stat_result) -> list[str]:
    shown = [display(name) for name in names[:_MAX_LINES]]
    shown += [f"and {len(names) - _MAX_LINES} more"] if len(names) > _MAX_LINES else []
    count = f"{len(names)} name{'s' if len(names) != 1 else ''}"
    return [f"a directory with {count}, {_mtime_text(st)}", "", *shown]


def _mtime_text(st: os.stat_result) -> str:
    return f"changed {local_time(st.st_mtime_ns)}"


def _content(data: bytes) -> list[str]:
    """Return content as text if it is that, else in hexadecimal."""
    if b"\0" in data:
        rows = (data[at : at + 16] for at in range(0, min(len(data), _HEX_BYTES), 16))
        return [f"{at * 16:04x}  {row.hex(' '):<47}  {_ascii(row)}" for at, row in enumerate(rows)]
    return [printable_line(line) for line in data.splitlines()[:_MAX_LINES]]


def _ascii(row: bytes) -> str:
    """Return bytes as one character each: itself if it is printable ASCII, else a dot."""
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)


def printable_line(line: bytes) -> str:
    """Return a line of any bytes as text that is printable: ``^[`` for an escape, ``<9b>`` for what
    is no character.
    """
    text = line[:_MAX_CHARS].decode(errors="surrogateescape").expandtabs(4)
    return characters.harmless(text)
