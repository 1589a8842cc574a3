"""What commits put away in ``commits/N``: the journal that ended with the commit, and the one to follow it."""

from __future__ import annotations

import contextlib
import os
import re

from yolofs.journal import Journal
from yolofs.journal_file import sync_directory_of

CARRIED = b"carried"
"""In the directory of a commit: the journal that is to follow it, with what it leaves staged."""
_STAGE_LINE = re.compile(rb"^[SK] \d+ \S+ (\d+)", re.MULTILINE)


def store_numbers(journal: bytes, start: int = 0) -> set[int]:
    """Return the numbers of all store inodes that a journal names from byte ``start`` on, in dead segments too."""
    numbers: set[int] = set()
    rest = b""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), open(journal, "rb") as lines:
        lines.seek(start)
        while chunk := lines.read(1 << 24):
            chunk = rest + chunk
            whole, _, rest = chunk.rpartition(b"\n")
            numbers.update(map(int, _STAGE_LINE.findall(whole)))
    return numbers


def commit_directory(directory: bytes, number: int) -> bytes:
    """Return the directory of commit ``number`` of the session in ``directory``."""
    return os.path.join(directory, b"commits", b"%d" % number)


def commit_numbers(directory: bytes) -> list[int]:
    """Return the numbers of all commits of the session in ``directory``."""
    try:
        names = os.listdir(os.path.join(directory, b"commits"))
    except FileNotFoundError:
        return []
    return [int(name) for name in names if name.isdigit()]


def interrupted_commit(directory: bytes) -> bytes | None:
    """Return the directory of a commit of the session in ``directory`` that stopped half way, None if there is none."""
    commit = commit_directory(directory, max(commit_numbers(directory), default=0))
    has_plan = os.path.exists(os.path.join(commit, b"plan.json"))
    return commit if has_plan and not os.path.exists(os.path.join(commit, b"done")) else None


def finish_put_away(directory: bytes) -> None:
    """Put the journal away for a commit that was done and died just before it could; make a new one if none is left.

    Danger: records written between that death and this call would be put away with the commit, out of the view.
    """
    path = os.path.join(directory, b"journal")
    last = max(commit_numbers(directory), default=0)
    commit = commit_directory(directory, last)
    archive = os.path.join(commit, b"journal")
    if last and os.path.exists(os.path.join(commit, b"done")) and not os.path.lexists(archive):
        os.rename(path, archive)
    if not os.path.lexists(path):
        begin_journal(path, commit if last else None)


def begin_journal(path: bytes, commit: bytes | None) -> None:
    """Begin a journal where there is none: with what the commit in a directory leaves staged, if anything.

    The old journal has to be durably away first: after a power failure the new one might be taken for the old one.
    """
    carried = os.path.join(commit, CARRIED) if commit is not None else b""
    if commit is None or not os.path.exists(os.path.join(commit, b"done")) or not os.path.exists(carried):
        Journal.create(path).close()
        return
    for name in (carried, path):
        sync_directory_of(name)
    os.rename(carried, path)
    sync_directory_of(path)
