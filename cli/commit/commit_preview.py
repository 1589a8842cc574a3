"""What a commit of a selection would take, and what would stay staged; it writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from yolofs.changes.changes import Change, ChangeKind, compare
from yolofs.cli.commit.exclude import Excluded
from yolofs.cli.commit.named_paths import check_paths
from yolofs.cli.output import progress
from yolofs.cli.show.folding import is_time_alone
from yolofs.cli.show.marking import mark_finder
from yolofs.commit.select.choice import HeldBack
from yolofs.commit.select.selection import Selection
from yolofs.commit.select.split import Split
from yolofs.hostcode.mark import Mark, Marks
from yolofs.journal.journal_file import may_have_marks
from yolofs.journal.timeline import BASE
from yolofs.paths import Generation, RelPath
from yolofs.session.commit import split_staged
from yolofs.session.session import Session
from yolofs.state.regions import Region
from yolofs.state.tree import Tree


class CommitPreview(msgspec.Struct, frozen=True):
    """What a commit of a selection comes to."""

    taken: list[Change]
    """What the commit takes."""
    stays: list[Change]
    held_back: tuple[HeldBack, ...]
    """What stays though it was selected, or a part of it."""
    unchanged: tuple[RelPath, ...] = ()
    """The paths that were asked for and at which nothing is staged."""
    named: tuple[RelPath, ...] = ()
    """The paths that were asked for."""
    excluded: Excluded = Excluded()
    """What was to be left out."""
    marks: Mapping[RelPath, tuple[Mark, ...]] = {}
    """The marks of each path that a commit takes only by name or with ``--trusted``."""
    waiting: frozenset[RelPath] = frozenset()
    """The paths at which the marks of a merge wait for the user's hand."""
    root: bytes = b"/"
    """Of base."""

    untold: frozenset[RelPath] = frozenset()
    """Paths at which a change of time alone stays staged: outside the project, or selected ones
    that :func:`split_staged` leaves.
    """

    @property
    def stays_told(self) -> list[Change]:
        """What stays and people are told of: no such time, unless it is held back."""
        held_back = {path for one in self.held_back for path in one.paths}
        return [one for one in self.stays if one.path not in self.untold or one.path in held_back]


def preview_commit(
    session: Session,
    selection: Selection,
    up_to: Generation | None = None,
    *,
    tree: Tree | None = None,
    is_again: bool = False,
) -> tuple[CommitPreview, Split]:
    """Return what a commit of a selection would take, and what not, for people and as the commit
    wants it.

    What is marked it takes only if the selection names the very path.  ``up_to``: of what the view
    showed then; ``tree``: of this state.  ``is_again``: the paths have been looked for, before what
    is staged there was settled with base.

    Raises:
        UsageError: a path that was asked for is nowhere.
    """
    with progress("comparing") as update:
        before, present = session.state(BASE), tree if tree is not None else session.state(up_to)
        is_present = up_to is None and tree is None
        everything = compare(before, present, session.base, session.store, progress=update)
        unchanged = () if is_again else tuple(check_paths(session, selection.paths, everything))
        asked = frozenset(selection.paths)
        selection = selection.with_other_names(everything)
        excluded = Excluded.of(selection, everything)
        marking = mark_finder(session, is_to_commit=True)
        marks = marking.marks(everything)
        while True:
            chosen = without_marked(selection, marks, asked)
            split = split_staged(session, chosen, tree=present, may_leave_times=is_present)
            if not split.rest:
                taken = everything
                break
            taken = compare(before, split.taken, session.base, session.store, progress=update)
            # what lies in a directory whose rename stays lands elsewhere than the view has it
            more = {path: found for path, found in marking.marks(taken).items() if path not in marks}
            marks = {**marks, **more}
            if selection.takes_marked or more.keys() <= asked:
                break
    stays, unlisted = _stays(session, everything, taken, split, is_present=is_present)
    marks = {**marking.marks(unlisted), **marks}
    root = session.base.root
    waiting = _waiting(session) if stays else frozenset[RelPath]()
    regions = session.regions
    untold = frozenset(
        change.path
        for change in stays
        if is_time_alone(change)
        and (regions.of(change.path) is Region.OUTSIDE or (is_present and selection.has(change.path)))
    )
    return CommitPreview(
        taken, stays, split.held_back, unchanged, selection.paths, excluded, marks, waiting, root, untold
    ), split


def _stays(
    session: Session, everything: list[Change], taken: list[Change], split: Split, *, is_present: bool
) -> tuple[list[Change], list[Change]]:
    """Return what stays staged, and those of it that are not among ``everything``."""
    if taken is everything and is_present:
        return [], []
    if is_present:
        all_known, taken_known = {_known_by(change) for change in everything}, {_known_by(change) for change in taken}
        if taken_known <= all_known:
            return [change for change in everything if _known_by(change) not in taken_known], []
    # of an earlier state, or in a directory whose rename stays: there changes have other paths
    stays = compare(split.taken, session.state(), session.base, session.store)
    return stays, stays


def _known_by(change: Change) -> tuple[ChangeKind, RelPath, RelPath | None]:
    return change.kind, change.path, change.old_path


def without_marked(selection: Selection, marks: Marks, asked: Collection[RelPath] | None = None) -> Selection:
    """Return a selection without what is marked and not among the very paths that were ``asked``
    for.
    """
    if selection.takes_marked:
        return selection
    named = set(selection.paths if asked is None else asked)
    reasons = {path: _reason(found) for path, found in marks.items() if path not in named}
    return msgspec.structs.replace(selection, unnamed=reasons) if reasons else selection


def _reason(marks: Iterable[Mark]) -> str:
    return f"it has to be named ({', '.join(mark.text for mark in marks)})"


def _waiting(session: Session) -> frozenset[RelPath]:
    """Return the paths at which the marks of a merge wait for the user."""
    if not may_have_marks(session.journal.path):
        return frozenset()
    from yolofs.session.merge import marked_paths  # takes long, and there seldom are any

    return frozenset(marked_paths(session, session.state()))
