"""What the table of files is made of: lines, and the topics in which they stand."""

from __future__ import annotations

import msgspec

from yolofs.hostcode.mark import Mark


class Row(msgspec.Struct, frozen=True):
    """One line of the table."""

    pattern: str
    """As :mod:`yolofs.text.path_patterns` has it: absolute, below ``~``, or anywhere (``**/``)."""
    mark: Mark
    reason: str = ""

    @property
    def names(self) -> list[bytes]:
        """The names of the pattern, of which the first is ``~``, ``**`` or nothing.

        A pattern of the table is written as short as can be, but for ``**`` at its end.
        """
        return self.pattern.removesuffix("/**").encode().split(b"/")


class Topic(msgspec.Struct, frozen=True):
    """Lines about one thing."""

    title: str
    reason: str
    rows: tuple[Row, ...]


def topic(title: str, reason: str, mark: Mark, *rows: str | tuple[str, str]) -> Topic:
    """Return a topic whose lines share a mark; a line is a pattern, or a pattern and its own
    reason.
    """
    lines = [(row, "") if isinstance(row, str) else row for row in rows]
    return Topic(title, reason, tuple(Row(pattern, mark, why) for pattern, why in lines))
