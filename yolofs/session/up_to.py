"""Committing what the view showed at an earlier generation: what was changed after it stays
staged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import msgspec

from yolofs.changes.changes import Change
from yolofs.commit import plan_commit
from yolofs.commit.plan.last_check import check_rest
from yolofs.commit.plan.plan import Plan
from yolofs.commit.select.compose import compose, foretell
from yolofs.commit.select.split import Split
from yolofs.commit.select.staged_anew import ComposedRest
from yolofs.errors import ConflictError, NotPreparedError, RolledBackError
from yolofs.os_errors import base_errors_said
from yolofs.paths import StoreIno
from yolofs.progress import Progress
from yolofs.session.authors import authors_of
from yolofs.session.commit import BaseLook, CommitResult, commit
from yolofs.session.session import Session
from yolofs.state.tree import Tree


def commit_up_to(
    session: Session,
    *,
    split: Split,
    looked: BaseLook | None = None,
    changes: Sequence[Change] | None = None,
    force: bool = False,
    progress: Progress | None = None,
    going_back: Callable[[], Progress | None] = lambda: None,
) -> CommitResult:
    """Commit ``split``, a split of an earlier state, as :func:`yolofs.session.commit.commit` does;
    the view stays.

    Raises:
        YolofsError: as that; or both the earlier and the present state change names of one file
            with hard links.
    """
    session.check_no_interrupted_commit()
    with base_errors_said(session.base.root, without=session.directory, again="yolofs commit"):
        split, composed = _with_later(session, split)
    try:
        result = commit(
            session,
            split=split,
            looked=looked,
            changes=changes,
            force=force,
            progress=progress,
            going_back=going_back,
        )
    except (ConflictError, NotPreparedError, RolledBackError):
        _remove(session, composed.numbers)
        raise
    if result.number is None:
        _remove(session, composed.numbers)
        return result
    return msgspec.structs.replace(result, left_out=composed.left_out | result.left_out)


def check_up_to(session: Session, split: Split, plan: Plan | None = None) -> None:
    """Check that :func:`commit_up_to` would not refuse ``split``.  Changes nothing.

    ``plan`` is that of the split, if the caller has it already.

    Raises:
        YolofsError: both the earlier and the present state change names of one file with hard
            links.
        OSError: base cannot be read.
    """
    commits = os.path.dirname(session.commit_directory(1))
    view = session.state()
    composed = foretell(split.taken, view, session.base, session.store, commits)
    if composed.records:
        plan = plan if plan is not None else plan_commit(split.taken, session.base, session.store)
        check_rest(plan, view, session.base, Tree(composed.records), composed.stands_for)


def _with_later(session: Session, split: Split) -> tuple[Split, ComposedRest]:
    """Return a split of an earlier state with what makes the present view of it as its rest.

    Also that rest itself: the store inodes that are made for it are to be removed if there is no
    commit.

    Raises:
        YolofsError: both change names of one file with hard links.
        OSError: base cannot be read, or a store inode not be made.
    """
    session.skip_named_numbers()
    authors = authors_of(session.live_changes)
    commits = os.path.dirname(session.commit_directory(1))
    composed = compose(split.taken, session.state(), session.base, session.store, commits, sign=authors.sign)
    if composed.numbers:  # copies of what base is about to lose
        session.store.sync()
    split = msgspec.structs.replace(split, rest=tuple(composed.records), stands_for=composed.stands_for)
    return split, composed


def _remove(session: Session, numbers: list[StoreIno]) -> None:
    for ino in numbers:
        session.store.remove(ino)
