"""Commit and abort of a session: what ends a journal."""

from __future__ import annotations

import os

import msgspec

from yolofs.archive import CARRIED
from yolofs.clock import coarse_clock_ns
from yolofs.commit import execute, find_conflicts, plan_commit, resume
from yolofs.commit.choice import Held
from yolofs.commit.split import Authors, Split, split_state, takes_all
from yolofs.commit.survey import survey
from yolofs.errors import ConflictError
from yolofs.journal import Journal
from yolofs.paths import RelPath, display
from yolofs.records import Keep, Snapshot
from yolofs.selection import Selection
from yolofs.session import Session
from yolofs.states import Progress
from yolofs.tree import Tree


class CommitResult(msgspec.Struct, frozen=True):
    """What a commit did."""

    number: int | None
    """Of the commit; what base had before lies in ``commits/NUMBER/``.  None if there was nothing to commit."""
    steps: int
    """How many changes it took."""
    left_out: dict[RelPath, tuple[str, ...]]
    """What could not be carried over, as :attr:`yolofs.commit.Outcome.left_out`."""
    held: tuple[Held, ...] = ()
    """What was selected and stays staged all the same."""


def split(session: Session, selection: Selection | None, *, tree: Tree | None = None) -> Split:
    """Return what a commit would take, and what it would leave staged; without ``selection`` it takes everything.

    ``tree`` is the present state, for who has it already: replaying the journal is a tenth of a commit.
    """
    tree = tree if tree is not None else session.state()
    if selection is None or selection.is_everything or takes_all(tree, selection):
        return Split(tree, (), ())
    authors = Authors(session.live_changes(), coarse_clock_ns())
    return split_state(tree, session.base, session.store, selection, authors)


def commit(
    session: Session,
    *,
    selection: Selection | None = None,
    parts: Split | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> CommitResult:
    """Apply what is staged to base, and start another journal; the old one is kept with the commit.

    With a ``selection`` only that part of it: the rest stays staged, as the first records of the new journal and its
    first generation.  The view is the same before and after.  ``parts`` is what :func:`split` made of the selection,
    for who has asked it since this session was opened.

    ``force`` overrides conflicts: what changed in base since it was copied up is replaced.  Blocks.  A mount of the
    session must be paused meanwhile.

    A commit that was interrupted is finished instead.

    Raises:
        ConflictError: paths changed in base; nothing was done.
        CommitError: a step failed half way; nothing is lost, and the next commit goes on there.
    """
    finished = finish_interrupted(session, progress=progress)
    if finished is not None:
        return finished
    parts = parts if parts is not None else split(session, selection)
    names = list(survey(parts.taken, session.base))
    conflicts = find_conflicts(parts.taken, session.base, session.store, names=names)
    if conflicts and not force:
        listed = ", ".join(display(path) for path in conflicts[:3]) + (", …" if len(conflicts) > 3 else "")
        raise ConflictError(
            f"{len(conflicts)} path{'s' if len(conflicts) > 1 else ''} changed in base since copy-up: {listed}",
            paths=conflicts,
            hint="look at them, then: yolofs commit --force to replace them, or yolofs abort",
        )
    plan = plan_commit(parts.taken, session.base, session.store, names=names)
    if not plan.steps:
        return CommitResult(None, 0, {}, parts.held)
    number = session.next_commit()
    directory = session.commit_directory(number)
    if parts.rest:
        _write_rest(directory, number, parts.rest)
    outcome = execute(plan, session.store, parking=directory, progress=progress)
    session.put_away(os.path.join(directory, b"journal"))
    return CommitResult(number, outcome.steps, outcome.left_out, parts.held)


def _write_rest(directory: bytes, number: int, rest: tuple[Keep, ...]) -> None:
    """Write the journal that is to follow this commit, durably, before anything is done to base."""
    os.makedirs(directory, 0o700, exist_ok=True)
    with Journal.create(os.path.join(directory, CARRIED)) as journal:
        journal.append(*rest, Snapshot(coarse_clock_ns(), b"left by commit %d" % number))
        journal.sync()


def finish_interrupted(session: Session, *, progress: Progress | None = None) -> CommitResult | None:
    """Finish the commit that a crash or an error interrupted; None if there was none.  Blocks.

    Until that is done base is neither what it was nor what the view showed, so nothing else can be done first.

    Raises:
        CommitError: a step fails (again).
    """
    directory = session.interrupted_commit()
    if directory is None:
        return None
    outcome = resume(session.store, parking=directory, progress=progress)
    session.put_away(os.path.join(directory, b"journal"))
    return CommitResult(int(os.path.basename(directory)), outcome.steps, outcome.left_out)


def abort(session: Session) -> None:
    """Drop everything that is staged, snapshots too: the view is base again.

    A mount of the session must be paused meanwhile.  Store inodes that its open files still show go with them, or
    when the session is opened next.

    Raises:
        YolofsError: a commit was interrupted.
    """
    session.check_no_interrupted_commit()
    session.put_away(None)
