"""A commit of hunks: what it comes to, with all the checks of any other commit."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from yolofs.changes.picks import Picks
from yolofs.cli.commit.commit_preview import CommitPreview, preview_commit
from yolofs.cli.output import phases
from yolofs.commit import plan_commit
from yolofs.commit.plan.plan_text import plan_lines
from yolofs.commit.select.selection import Selection
from yolofs.commit.select.split import Split
from yolofs.errors import NotPreparedError
from yolofs.os_errors import base_errors_said, said_as
from yolofs.paths import ROOT, Generation, RelPath
from yolofs.session.commit import BaseLook, CommitResult, conflict_error, look_at_base, marks_error
from yolofs.session.selecting import HeldHunk, SelectedState, select_hunks
from yolofs.session.session import Session
from yolofs.session.up_to import check_up_to, commit_up_to
from yolofs.state.regions import Region


class Picked(NamedTuple):
    """The hunks that somebody wants to commit."""

    picks: Picks
    paths: Sequence[RelPath] = ()
    """Where they are looked for; everywhere, if there are none."""
    named: Sequence[RelPath] = ()
    """The paths that somebody has named, so that host code may go."""
    trusted: bool = False
    force: bool = False
    """What is staged replaces what changed in base."""
    up_to: Generation | None = None
    """They are of what the view showed then; None: of the view."""


class CommittedHunks(NamedTuple):
    """What a commit of hunks did."""

    result: CommitResult
    shown: CommitPreview
    conflicts: Sequence[RelPath]
    """The paths at which base had changed, too."""
    held_hunks: tuple[HeldHunk, ...]
    """What was picked and stays staged."""


class _Checked(NamedTuple):
    """A state that may be committed."""

    selected: SelectedState
    shown: CommitPreview
    split: Split
    looked: BaseLook
    force: bool


def commit_hunks(
    session: Session, picked: Picked, *, tell: Callable[[CommitPreview, Sequence[RelPath]], object] | None = None
) -> CommittedHunks:
    """Commit the picked hunks; the rest stays staged, and the view is the same before and after.

    ``tell`` is called with what is about to be committed, and the conflicts.  If it raises, nothing
    is done.  The session is open for writing, and a mount of it paused.  Blocks.

    Raises:
        StaleHunkError: a hunk does not exist (any more); nothing is done.
        ConflictError: base has changed; nothing is done.
        NotPreparedError: it cannot be written down; base is as it was, and all stays staged.
        YolofsError: as :func:`yolofs.session.commit.commit`.
    """
    with _checked(session, picked) as (selected, shown, split, looked, force):
        if not shown.taken:
            return CommittedHunks(
                CommitResult(None, 0, {}, split.held_back), shown, looked.conflicts, selected.held_hunks
            )
        if tell is not None:
            tell(shown, looked.conflicts)
        sentence = "the commit was not begun, base is as it was, and all stays staged"
        with said_as(NotPreparedError, sentence, again="the same command", place=session.directory):
            selected.keep()
        with phases() as begin:
            result = commit_up_to(
                session,
                split=split,
                looked=looked,
                changes=shown.taken,
                force=force,
                progress=begin("committing"),
                going_back=lambda: begin("taking the commit back"),
            )
    return CommittedHunks(result, shown, looked.conflicts, selected.held_hunks)


def foretell_hunks(session: Session, picked: Picked) -> tuple[list[str], CommitPreview, tuple[HeldHunk, ...]]:
    """Return a line for each step of such a commit, what it would take, and the picked hunks left
    staged.  Nothing is done.

    Raises:
        YolofsError: it would be refused.
    """
    with _checked(session, picked) as (selected, shown, split, looked, _):
        plan = plan_commit(split.taken, session.base, session.store, names=looked.names)
        lines = list(plan_lines(plan, session.base, session.store)) if shown.taken else []
    return lines, shown, selected.held_hunks


@contextlib.contextmanager
def _checked(session: Session, picked: Picked) -> Iterator[_Checked]:
    with contextlib.ExitStack() as stack:
        with base_errors_said(session.base.root, without=session.directory, again="the same command"):
            selected = stack.enter_context(select_hunks(session, picked.picks, paths=picked.paths, up_to=picked.up_to))
            selection = Selection(
                session.regions, frozenset(Region), (ROOT, *picked.named), takes_marked=picked.trusted
            )
            shown, split = preview_commit(session, selection, tree=selected.tree, is_again=True)
            looked = look_at_base(session, split)
            force = picked.force or looked.unchanged.issuperset(looked.conflicts)  # these differ in nothing that counts
            if looked.conflicts and not force:
                raise conflict_error(looked)
            if looked.marked:
                raise marks_error(looked.marked)
            if shown.taken:
                check_up_to(session, split)
        yield _Checked(selected, shown, split, looked, force)
