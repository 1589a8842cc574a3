"""Dropping, committing and editing hunks."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from yolofs.changes.changes import Change, compare
from yolofs.changes.hunks import FileHunks
from yolofs.changes.picks import Picks
from yolofs.errors import UsageError
from yolofs.overlay import Overlay
from yolofs.paths import Generation, RelPath, absolute, display
from yolofs.progress import Check, go_on, told_as_progress
from yolofs.session.history.chapters import BEFORE_SELECTED, SELECTED
from yolofs.session.journal_copy import JournalCopy, journal_copy, trying_journal_copy
from yolofs.session.selecting.dependencies import Dependencies, HeldHunk
from yolofs.session.selecting.dropping import take_hunks_back
from yolofs.session.selecting.finding_hunks import Hunks
from yolofs.session.selecting.placing import ChangesByPlace
from yolofs.session.selecting.wanted_hunks import WantedHunks
from yolofs.session.session import Session
from yolofs.session.state_files import StateFiles
from yolofs.session.view_writer import MetadataWriter, ViewWriter
from yolofs.state.tree import Tree

_FEW = 100
"""So many changes are taken out one by one, if they stand apart; to take out more the state is
written anew.
"""


class DropResult(msgspec.Struct, frozen=True):
    """What dropping hunks has done."""

    changes: tuple[Change, ...]
    """What that has changed in the view, before it and after."""
    before: Generation
    """What the view showed before."""
    held_hunks: tuple[HeldHunk, ...] = ()
    """What was picked and stays as it is."""
    left_out: dict[RelPath, tuple[str, ...]] = {}
    """What of a path could not be brought back, as
    :attr:`yolofs.session.restore.Restored.left_out`.
    """


def drop_hunks(
    session: Session,
    old: Tree,
    picks: Picks,
    name: bytes,
    *,
    paths: Sequence[RelPath] = (),
    known: Iterable[FileHunks] = (),
    check: Check = go_on,
) -> DropResult:
    """Stage of the picked hunks what the old state has; all others stay as they are.

    What was there before is a generation, ``name`` is that of the new one.  ``known`` is for
    :class:`Hunks`.  Durable when it returns; a crash leaves either all of it or nothing.  Blocks.
    ``check`` is called again and again; if it raises, nothing is done.

    Raises:
        StaleHunkError: a hunk that was picked does not exist (any more); nothing is done.
        HardLinksError: it would part the names (hard links) of one file; nothing is done.
        CommitError: a commit was interrupted.
        OSError: something cannot be read; nothing is done.
        YolofsError: something cannot be written; the sentence tells whether anything is done.
    """
    session.check_no_interrupted_commit()
    progress = told_as_progress(check)
    hunks = Hunks(session, old, paths=paths, progress=progress, known=known, only_apart=len(paths) <= _FEW, check=check)
    found = hunks.find(picks)
    if len(found) <= _FEW:
        hunks = hunks.apart(found.values())
        found = hunks.find(picks)
    kept = WantedHunks(hunks.changes, hunks.read, found, picks, are_dropped=True)
    places = ChangesByPlace(hunks.changes)
    together = Dependencies(kept, places)
    together.settle_drop()
    if all(map(kept.is_whole, range(len(hunks.changes)))):
        return DropResult((), session.timeline.present, together.held_hunks)
    with trying_journal_copy(session) as trying:
        before = trying.snapshot(if_changed=True)
        left_out = take_hunks_back(trying, old, kept, places, is_apart=hunks.is_apart, check=check)
        trying.snapshot(name)
        check()
        trying.keep()
    changes = compare(*session.states(before, None), session.base, session.store)
    return DropResult(tuple(changes), before, together.held_hunks, left_out)


class SelectedState(msgspec.Struct, frozen=True):
    """A state in which base has the picked hunks, and no others."""

    tree: Tree
    held_hunks: tuple[HeldHunk, ...]
    """What was picked and stays staged."""
    paths: tuple[RelPath, ...]
    """The paths of what is to be committed, in either state."""
    keep: Callable[[], object]
    """Has the session know that state as a generation, durably; the view stays what it is.

    Only what then commits it needs that: else nothing of it is left behind.
    """


@contextlib.contextmanager
def select_hunks(
    session: Session,
    picks: Picks,
    *,
    paths: Sequence[RelPath] = (),
    up_to: Generation | None = None,
    known: Iterable[FileHunks] = (),
) -> Iterator[SelectedState]:
    """Make the state to commit, for the time of the block; unless it is kept, nothing of it stays.

    The hunks are those of the view, or of what it showed at the generation ``up_to``; ``known`` is
    for :class:`Hunks`.

    It is committed by :func:`yolofs.session.up_to.commit_up_to`.

    Raises:
        StaleHunkError, HardLinksError, CommitError, OSError: as :func:`drop_hunks`.
    """
    session.check_no_interrupted_commit()
    base = Tree()
    hunks = Hunks(session, base, new=session.state(up_to), paths=paths, known=known)
    kept = WantedHunks(hunks.changes, hunks.read, hunks.find(picks), picks, are_dropped=False)
    places = ChangesByPlace(hunks.changes)
    together = Dependencies(kept, places)
    together.settle_commit()
    chosen = [change for index, change in enumerate(hunks.changes) if not kept.is_none(index)]
    touched = tuple(dict.fromkeys(path for change in chosen for path in change.paths))
    with journal_copy(session) as trying:
        before = trying.snapshot(BEFORE_SELECTED, if_changed=True)
        if up_to is not None:
            trying.travel(up_to)
        take_hunks_back(trying, base, kept, places)
        selected = trying.snapshot(SELECTED)
        tree = trying.state(selected)
        trying.travel(before)
        yield SelectedState(tree, together.held_hunks, touched, trying.keep)


def stage_text(session: Session, path: RelPath, text: bytes, name: bytes) -> Generation:
    """Have a regular file of the view hold a text from now on; return the generation of what it was
    before.

    Mode, owner and attributes stay, and so do its other names.  ``name`` is that of the new
    generation.

    Raises:
        UsageError: there is no regular file.
        CommitError: a commit was interrupted.
        YolofsError: it cannot be written; the sentence tells whether anything is done.
    """
    session.check_no_interrupted_commit()
    with trying_journal_copy(session) as trying:
        before = trying.snapshot(if_changed=True)
        _write(trying, path, text)
        trying.snapshot(name)
        trying.keep()
    return before


def _write(trying: JournalCopy, path: RelPath, text: bytes) -> None:
    state = trying.present()
    overlay = Overlay(trying.base, trying.store, trying.journal, state.tree, fresh_from=state.fresh_from)
    try:
        writer = ViewWriter(overlay, StateFiles(trying, state.tree))
        here = writer.look(path)
        if here is None or not stat.S_ISREG(here.mode):
            raise UsageError(f"{display(absolute(trying.base.root, path))} is no longer a regular file")
        with writer.looked_up(path) as (inode, here):
            overlay.open(inode, os.O_WRONLY | os.O_TRUNC)
            try:
                at = 0
                while at < len(text):
                    at += overlay.write(inode, at, text[at : at + (1 << 20)])
            finally:
                overlay.release(inode, writer=True)
            if stat.S_IMODE(overlay.getattr(inode).mode) != stat.S_IMODE(here.mode):
                MetadataWriter(overlay, inode, here).set_mode(stat.S_IMODE(here.mode))
    finally:
        overlay.close()
