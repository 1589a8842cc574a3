"""Which commit a commit undoes: in ``undoes`` of its directory, written before its plan."""

from __future__ import annotations

import os

import msgspec

from yolofs.system.plain_files import read_note

UNDOES = b"undoes"
_MOST_BYTES = 1 << 30


class Undoes(msgspec.Struct, frozen=True):
    """What is noted of an undo."""

    commit: int
    """Which commit it undoes."""
    is_whole: bool
    """Whether nothing of that is left in base, as long as all ``earlier_undos`` are in force."""
    numbers: list[int] = []
    """The store inodes that its plan needs and no journal names."""
    earlier_undos: list[int] = msgspec.field(default_factory=list, name="besides")
    """Other undos of that commit: they had already taken back parts that this one no longer found.
    In the file they are ``besides``.
    """
    applies_again: bool = False
    """Whether that commit had taken another one back itself, so that this applies one again; the
    older one may not be kept any more."""
    anew: dict[int, int] = {}
    """Which of these store inodes became directories anew, and which inode numbers these had."""


def read_undoes(directory: bytes) -> Undoes | None:
    """Return what is noted in a commit's directory, None if it is no undo, or the note is damaged.

    Raises:
        OSError: it cannot be read.
    """
    text = read_note(os.path.join(directory, UNDOES), _MOST_BYTES)
    try:
        return msgspec.json.decode(text, type=Undoes) if text is not None else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
