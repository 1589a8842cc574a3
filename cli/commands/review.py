"""``yolofs review``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from yolofs.cli.completing import generations
from yolofs.cli.options import options
from yolofs.cli.output import check_can_ask, say
from yolofs.cli.project import find_project
from yolofs.cli.ranges import PathsCommand, paths_given
from yolofs.errors import UsageError

if TYPE_CHECKING:  # takes long
    from yolofs.cli.review.reader import Reader


@click.command(cls=PathsCommand)
@click.argument("range_text", metavar="[RANGE]", required=False, default="all", shell_complete=generations)
@click.option("--scratch", is_flag=True, help="Also what changed in scratch directories.")
@click.option("--hidden", "shows_hidden", is_flag=True, help="Also what lies on paths that a rule hides.")
@click.option("--tool", metavar="CMD", help="Give two directories to a diff tool instead; its right one is taken.")
def command(range_text: str, scratch: bool, shows_hidden: bool, tool: str | None) -> None:
    """Accept, drop, edit and commit what is staged, on a full screen.

    On the left are the changes: what was deleted, what lies outside the project and what the host
    would run first; on the right the lines of one. Space accepts a line, a hunk, a file or a
    directory; d drops it; enter commits what is accepted, after a page that says what will happen;
    u takes the last thing back; ? shows all keys. Leaving (q) does nothing.

    RANGE is as for `yolofs diff`; only what differs from base can be committed, and only the
    present be changed. While the agent goes on, what has changed since you accepted it is marked
    with ! and not accepted any more.

    What is dropped is kept for the agent, with a note if you type one: `yolofs feedback` prints it.

    --tool gives a command two directories, what was there before and what is staged, and stages
    what it leaves in the right one, after asking.
    """
    if options().guard is not None:
        raise UsageError("changes are reviewed by the user, outside of the sandbox", hint="yolofs diff")
    from yolofs.cli.review.comparison import Subject
    from yolofs.cli.review.reader import Reader

    reader = Reader(find_project(), Subject(range_text, tuple(paths_given()), scratch, shows_hidden))
    try:
        if tool is not None:
            from yolofs.cli.review.tool import review_with

            review_with(reader, tool)
            return
        check_can_ask(instead="yolofs diff; yolofs hunks --json; yolofs commit --hunk ID")
        if os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
            raise UsageError("this terminal has no screen that could be written to", hint="yolofs commit -p")
        _show(reader)
    finally:
        reader.close()


def _show(reader: Reader) -> None:
    from yolofs.cli.review.first_screen import FirstScreen, begun
    from yolofs.cli.review.worker import Worker

    worker = Worker(reader)
    model = begun(worker)
    with FirstScreen(model) as first:
        from yolofs.cli.review.screen import review

        said = review(worker, model, first.hand_over)
    if said:
        say(said)
