"""A hunk as somebody edits it: a patch with its lines, and what the new text is with the lines as they came back."""

from __future__ import annotations

from yolofs.changes.hunks import Hunk


def to_edit(hunk: Hunk, before: bytes, after: bytes, *, context: int = 3) -> bytes:
    """Return a hunk of a text as a patch to be edited, with lines that say how (they start with ``#``).

    ``before`` and ``after`` are all of the old and of the new text; ``context`` is a number of lines.
    """
    raise NotImplementedError


def edited(hunk: Hunk, before: bytes, after: bytes, patch: bytes, *, context: int = 3) -> bytes | None:
    """Return all of the new text with a hunk as its patch came back; None if nothing but comments is left of it.

    Raises:
        UsageError: it does not fit the old text, so it would not apply: the message says which line, and why.
    """
    raise NotImplementedError
