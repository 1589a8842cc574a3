"""``--hunk ID``, as commit and restore take it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import click

from yolofs.changes.picks import Lines, parse_picks
from yolofs.cli.completing import hunks
from yolofs.errors import UsageError

_FROM_STDIN = "-"
_MOST_BYTES = 64 << 20
F = TypeVar("F", bound=Callable[..., object])


def hunk_option(sentence: str) -> Callable[[F], F]:
    """Return the option, with a sentence that says what it does."""
    return click.option(
        "--hunk",
        "words",
        metavar="ID[:LINES]",
        multiple=True,
        shell_complete=hunks,
        help=f"{sentence} Repeatable; - reads ids from stdin; ID:1-3,5 takes some of its changed lines.",
    )


def picks_of(words: Iterable[str]) -> dict[str, Lines | None]:
    """Return what the words of the option pick.

    Raises:
        UsageError: one is no id, or there is none.
    """
    picks = parse_picks(_all(words))
    if not picks:
        raise UsageError("there is no hunk on stdin", hint="yolofs hunks")
    return picks


def _all(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        if word != _FROM_STDIN:
            yield word
        elif sys.stdin is not None:
            yield from sys.stdin.buffer.read(_MOST_BYTES).decode(errors="surrogateescape").split()
