"""A commit of hunks: what it comes to, with all the checks of any other commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from yolofs.changes.picks import Picks
from yolofs.cli.commit.report import Shown, look
from yolofs.cli.output import phases
from yolofs.commit.select.selection import Selection
from yolofs.errors import NotPreparedError
from yolofs.os_errors import said_as
from yolofs.paths import ROOT, RelPath
from yolofs.session.commit import CommitResult, conflict_error, look_at_base, marks_error
from yolofs.session.selecting import HeldHunk, select_hunks
from yolofs.session.session import Session
from yolofs.session.up_to import check_up_to, commit_up_to
from yolofs.state.regions import Region


class CommittedHunks(NamedTuple):
    """What a commit of hunks did."""

    result: CommitResult
    shown: Shown
    conflicts: Sequence[RelPath]
    """The paths at which base had changed, too."""
    held: tuple[HeldHunk, ...]
    """What was picked and stays staged."""


def commit_hunks(
    session: Session,
    picks: Picks,
    *,
    paths: Sequence[RelPath] = (),
    named: Sequence[RelPath] = (),
    trusted: bool = False,
    force: bool = False,
    tell: Callable[[Shown, Sequence[RelPath]], object] | None = None,
) -> CommittedHunks:
    """Commit the picked hunks; the rest stays staged, and the view is the same before and after.

    ``paths`` is where they are looked for (everywhere, if there are none), ``named`` are the paths
    that somebody has named, so that host code may go.  ``force``: what is staged replaces what
    changed in base.  ``tell`` is given what is about to be committed, and the conflicts; what it
    raises ends this, and nothing is done.  The session is open for writing, and a mount of it
    paused.  Blocks.

    Raises:
        StaleHunkError: a hunk does not exist (any more); nothing is done.
        ConflictError: base has changed; nothing is done.
        NotPreparedError: it cannot be written down; base is as it was, and all stays staged.
        YolofsError: as :func:`yolofs.session.commit.commit`.
    """
    with select_hunks(session, picks, paths=paths) as selected:
        selection = Selection(session.regions, frozenset(Region), (ROOT, *named), takes_marked=trusted)
        shown, parts = look(session, selection, tree=selected.tree, is_again=True)
        looked = look_at_base(session, parts)
        if looked.conflicts and not force:
            raise conflict_error(looked)
        if looked.marked:
            raise marks_error(looked.marked)
        if not shown.taken:
            return CommittedHunks(CommitResult(None, 0, {}, parts.held_back), shown, looked.conflicts, selected.held)
        check_up_to(session, parts)
        if tell is not None:
            tell(shown, looked.conflicts)
        sentence = "the commit was not begun, base is as it was, and all stays staged"
        with said_as(NotPreparedError, sentence, again="the same command", place=session.directory):
            selected.keep()
        with phases() as begin:
            result = commit_up_to(
                session,
                parts=parts,
                looked=looked,
                changes=shown.taken,
                force=force,
                progress=begin("committing"),
                going_back=lambda: begin("taking the commit back"),
            )
    return CommittedHunks(result, shown, looked.conflicts, selected.held)
