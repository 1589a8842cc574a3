"""Files of a state: in a line each, as ``yolofs ls`` prints them, and their content."""

from __future__ import annotations

import contextlib
import grp
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from yolofs.cli.output import emit_bytes, local_time
from yolofs.cli.show.json_forms import side_fields, text_fields
from yolofs.paths import absolute, display
from yolofs.registry.private import user_name
from yolofs.session.state_files import StateFile


def file_line(name: bytes, file: StateFile, *, is_long: bool) -> str:
    """Return a name, and with ``is_long`` mode, owner, group, size in bytes and time before it, and
    after it where a symlink leads.
    """
    side = file.side
    text = display(name) + ("/" if file.is_directory else "")
    if not is_long:
        return text
    if side.type == stat.S_IFLNK:
        text += f" -> {display(side.target())}"
    mode = stat.filemode(side.type | side.mode)
    return (
        f"{mode} {user_name(side.uid):8} {_group_name(side.gid):8} {side.size:>10} {local_time(file.mtime_ns)} {text}"
    )


def file_fields(version: str, file: StateFile, root: bytes) -> dict[str, Any]:
    """Return a file for ``--json``, with the ``GENERATION:PATH`` that lists it."""
    side = file.side
    target = text_fields("target", side.target()) if side.type == stat.S_IFLNK else {"target": None}
    return {
        **text_fields("version", os.fsencode(version)),
        **text_fields("path", absolute(root, file.path)),
        **side_fields(side),
        "mtime_ns": file.mtime_ns,
        **target,
    }


def _group_name(gid: int) -> str:
    with contextlib.suppress(KeyError):
        return grp.getgrgid(gid).gr_name
    return str(gid)


def emit_content(chunks: Iterable[bytes]) -> None:
    """Write the content of a file: to a pipe as it is, to a terminal so that it can give that no
    commands.
    """
    for chunk in _for_a_terminal(chunks) if sys.stdout.isatty() else chunks:
        emit_bytes(chunk)


def _for_a_terminal(chunks: Iterable[bytes]) -> Iterator[bytes]:
    from yolofs.cli.show.patch_colour import visible

    pending = b""
    for chunk in chunks:
        *lines, pending = (pending + chunk).split(b"\n")
        yield b"".join(visible(line) + b"\n" for line in lines)
    yield visible(pending)
