"""Hunks that were picked and stay as they are."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from yolofs.cli.show.first_lines import MOST_LINES
from yolofs.cli.show.hunk_lines import hunk_fields
from yolofs.errors import StaleHunkError, UnnamedError
from yolofs.paths import RelPath, absolute, display, in_shell
from yolofs.session.selecting import HeldHunk


def check_held(held: Sequence[HeldHunk], root: bytes, command: str | None) -> None:
    """Check that no picked hunk was held back; ``command`` is what takes hunks by these ids, None
    if they are of a state that has no name any more.

    Raises:
        UnnamedError: something does; the hint is the command that takes it with what it needs.
    """
    if not held:
        return
    what = "1 hunk stays as it is, as it goes" if len(held) == 1 else f"{len(held)} hunks stay as they are, as they go"
    needs = dict.fromkeys(name for one in held for name in (one.hunk.id, *one.needs))
    hint = "yolofs hunks" if command is not None else "as it is now: yolofs hunks"
    if command is not None and len(needs) <= MOST_LINES:
        hint = f"{command} {' '.join(f'--hunk {name}' for name in needs)}"
    show = _shower(root)
    first = f"{held[0].hunk.kind.value} {show(held[0].hunk.path)}: {held[0].reason(show)}"
    raise UnnamedError(f"{what} only together with others ({first})", hint=hint)


@contextlib.contextmanager
def hunks_of_range(text: str) -> Iterator[None]:
    """Have the hint for a hunk that does not exist list the hunks of this range."""
    try:
        yield
    except StaleHunkError as error:
        hint = f"yolofs hunks {in_shell(os.fsencode(text))}"
        raise StaleHunkError(error.message, ids=error.ids, hint=hint) from error


def held_fields(held: Sequence[HeldHunk], root: bytes) -> list[dict[str, Any]]:
    """Return what was picked and stays as it is, for a JSON document."""
    show = _shower(root)
    return [{**hunk_fields(one.hunk, root), "reason": one.reason(show), "needs": list(one.needs)} for one in held]


def _shower(root: bytes) -> Callable[[RelPath], str]:
    return lambda path: display(absolute(root, path))
