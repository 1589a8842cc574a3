"""``--hunk ID``, as commit and restore take it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import click
from click.shell_completion import CompletionItem

from yolofs.changes.picks import LineNumbers, parse_picks
from yolofs.cli.completion.completing import offered
from yolofs.errors import UsageError

if TYPE_CHECKING:  # only a completion needs it
    from yolofs.session.session import Session

_FROM_STDIN = "-"
_MOST_BYTES = 64 << 20
_SOON_S = 1.0
"""How long a completion looks for hunks, as the user waits."""
F = TypeVar("F", bound=Callable[..., object])


def hunk_option(sentence: str) -> Callable[[F], F]:
    """Return the option, with a sentence that says what it does."""
    return click.option(
        "--hunk",
        "words",
        metavar="ID[:LINES]",
        multiple=True,
        shell_complete=hunk_ids,
        help=f"{sentence} Repeatable; - reads ids from stdin; ID:1-3,5 takes some of its changed lines.",
    )


def picks_of_option(words: Iterable[str]) -> dict[str, LineNumbers | None]:
    """Return what the words of the option pick.

    Raises:
        UsageError: one is no id, or there is none.
    """
    picks = parse_picks(_with_those_of_stdin(words))
    if not picks:
        raise UsageError("stdin names no hunk", hint="yolofs hunks")
    return picks


def _with_those_of_stdin(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        if word != _FROM_STDIN:
            yield word
        elif sys.stdin is not None:
            yield from sys.stdin.buffer.read(_MOST_BYTES).decode(errors="surrogateescape").split()


def hunk_ids(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the ids of hunks, each with what it is, as many as are found soon; those in the project
    first, and none in scratch directories.
    """
    source, up_to = context.params.get("text"), context.params.get("up_to")
    return offered(lambda session, text: _ids(session, text, source, up_to))(context, parameter, incomplete)


def _ids(session: Session, incomplete: str, source: str | None, up_to: str | None) -> Iterator[CompletionItem]:
    from yolofs.cli.show.hunk_lines import title
    from yolofs.cli.show.listing import PathDisplay, without_scratch
    from yolofs.session.history.named_states import tree_of_named_state
    from yolofs.session.selecting import Hunks
    from yolofs.state.tree import Tree

    end_s = time.monotonic() + _SOON_S
    old = tree_of_named_state(session, source)[0] if source else Tree()
    new = session.state(session.timeline.resolve(up_to) if up_to else None)
    path_display = PathDisplay(session.base.root, session.base.relative(session.project))
    hunks = Hunks(session, old, new=new)
    changes = without_scratch([hunks.changes[index] for index in hunks.wanted], session.regions)
    for change in sorted(changes, key=lambda change: not path_display.holds(change)):
        for hunk in hunks.read(change).hunks:
            if hunk.id.startswith(incomplete):
                yield CompletionItem(hunk.id, help=title(hunk, path_display))
        if time.monotonic() > end_s:
            return
