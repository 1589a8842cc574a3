"""``yolofs review``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from yolofs.cli.history.ranges import ALL, PathsCommand, paths_given, range_and_paths, ranges_and_paths
from yolofs.cli.options import options
from yolofs.cli.output import check_can_ask, say
from yolofs.cli.project.project import find_project
from yolofs.errors import UsageError

if TYPE_CHECKING:  # takes long
    from yolofs.cli.review.reader import Reader


@click.command(cls=PathsCommand)
@click.argument("words", metavar="[RANGE]", nargs=-1, shell_complete=ranges_and_paths)
@click.option("--scratch", is_flag=True, help="Include changes in scratch directories.")
@click.option("--hidden", "shows_hidden", is_flag=True, help="Include paths that a rule hides.")
@click.option("--tool", metavar="CMD", help="Give two directories to a diff tool instead, and take the second one.")
def command(words: tuple[str, ...], scratch: bool, shows_hidden: bool, tool: str | None) -> None:
    """Accept, drop, edit and commit what is staged, on a full screen.

    The left side lists the changes: first what was deleted, what lies outside the project and what
    the host would run. The right side shows the lines of one change. Space accepts a line, a hunk,
    a file or a directory; d drops it; enter commits what is accepted, after a page that says what
    will happen; u takes the last action back; ? shows all keys. Leaving (q) changes nothing.

    RANGE is as for `yolofs diff`. You can commit only what differs from base, and drop or edit only
    what the view shows now. While the agent goes on, what changes after you accepted it is marked
    with ! and is no longer accepted.

    yolofs keeps what you drop for the agent, with a note if you type one: `yolofs feedback` prints
    it.

    --tool gives a command two directories, with what was there before and with what is staged.
    After asking, it stages what the command leaves in the second one.
    """
    if options().guard is not None:
        raise UsageError("changes are reviewed by the user, outside of the sandbox", hint="yolofs diff")
    from yolofs.cli.review.comparison import ReviewSubject
    from yolofs.cli.review.reader import Reader

    project, range_text, typed = find_project(), ALL, tuple(paths_given())
    if words:
        from yolofs.journal.timeline import BASE
        from yolofs.session.session import Session, SessionAccess  # most reviews are of everything, and start faster so

        with Session.open(project, SessionAccess.READ) as session:
            range_text, typed = range_and_paths(session, words, typed)
            old, new = session.timeline.parse_range(range_text)
        # As numbers: "-" and a name mean another generation after a travel or a snapshot.
        if (old, new) != (BASE, None):
            range_text = f"{old}..{'' if new is None else new}"
    reader = Reader(project, ReviewSubject(range_text, typed, scratch, shows_hidden))
    try:
        if tool is not None:
            from yolofs.cli.review.diff_tool import review_with

            review_with(reader, tool)
            return
        check_can_ask(instead="yolofs diff; yolofs hunks --json; yolofs commit --hunk ID")
        if os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
            raise UsageError("this terminal cannot show a full screen", hint="yolofs commit -p")
        _show(reader)
    finally:
        reader.close()


def _show(reader: Reader) -> None:
    from yolofs.cli.review.first_screen import FirstScreen, begun
    from yolofs.cli.review.worker import Worker
    from yolofs.system.gc_pause import no_garbage_collection

    worker = Worker(reader)
    with no_garbage_collection():  # not even once what was read is there: the first screen would wait for that
        model = begun(worker)
        with FirstScreen(model) as first:
            from yolofs.cli.review.screen import review

            said = review(worker, model, first.hand_over)
    if said:
        say(said)
