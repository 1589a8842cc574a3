"""Undoing a commit: what that would do is shown and asked about, then it is done and told."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

import click

from yolofs.cli.commit.named_paths import check_paths_of_undo
from yolofs.cli.commit.report import warn_of_links_in
from yolofs.cli.commit.tidying import remove_tidied
from yolofs.cli.commit.undo_report import check_nothing_stays, document_of, report_undo, show_undo
from yolofs.cli.output import ask, check_can_ask, emit, emit_json, progress, say
from yolofs.cli.project.project import changing, reading_whole, relative_paths
from yolofs.cli.same_command import same_command_with
from yolofs.cli.show.listing import summary
from yolofs.commit import plan_commit
from yolofs.commit.plan.plan_text import plan_lines
from yolofs.commit.select.selection import Selection
from yolofs.commit.undo.commits_around import LaterCommit
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.errors import ConflictError, NotPreparedError
from yolofs.os_errors import said_as
from yolofs.paths import absolute, display
from yolofs.session.history.ended_commits import EndedCommit
from yolofs.session.session import Session
from yolofs.session.undo import check_left_staged, choose_commit, prepare_undo, undo
from yolofs.session.undo_changes import changes_of_undo
from yolofs.store.scratch_store import scratch_store
from yolofs.store.store import Store
from yolofs.system.gc_pause import no_garbage_collection
from yolofs.system.work_directories import work_directory


class UndoRequest(NamedTuple):
    """What the user wants undone, and how it is shown."""

    which: int | None
    """The number of the commit; None for the last one that is not undone."""
    paths: tuple[bytes, ...]
    """As they were typed; none for all that the commit changed."""
    is_dry_run: bool
    unfolds: bool
    is_forced: bool


def undo_commit(project: bytes, request: UndoRequest, *, yes: bool, as_json: bool) -> None:
    """Undo a commit, or only show what that would do; asks before, unless ``yes``.

    Raises:
        Exit: the answer is no.
        UsageError: there is nobody to ask, no such commit, or a path is nowhere.
        ConflictError: base has changed since; nothing is done.
        YolofsError: something of the commit stays, or as :func:`yolofs.session.undo.undo`.
    """
    if (request.is_dry_run or not yes) and not _show_and_ask(project, request):
        return
    paths = request.paths
    with changing(project, LoanKind.COMMIT, needs_settings=False) as (session, _), no_garbage_collection():
        session.check_no_interrupted_commit()
        commit = choose_commit(session, request.which)
        try:
            with progress("undoing") as update:
                selection = _selection(session, commit, paths, says_unchanged=yes)
                result = undo(session, commit, selection=selection, force=request.is_forced, progress=update)
        except ConflictError as error:
            error.root = session.base.root
            raise
        root, directory = session.base.root, session.directory
    remove_tidied(directory)
    if as_json:
        emit_json(document_of(result, root))
    report_undo(result, root, applies_again=commit.takes_back)
    kept = {*result.stays, *(path for held_back in result.held_back for path in held_back.paths)}
    check_nothing_stays(paths, commit.number, len(kept), is_undone=result.number is not None)


def _selection(
    session: Session, commit: EndedCommit, paths: tuple[bytes, ...], *, says_unchanged: bool
) -> Selection | None:
    """Return what of a commit is to be undone; ``says_unchanged``: print at which of the paths it
    changed nothing.
    """
    if not paths:
        return None
    chosen = tuple(relative_paths(session, paths))
    changed = LaterCommit.read(commit.number, commit.directory).paths
    for path in check_paths_of_undo(session, chosen, commit.number, changed) if says_unchanged else ():
        say(f"{display(absolute(session.base.root, path))}: commit {commit.number} changed nothing there")
    return Selection(session.regions, paths=chosen)


@contextlib.contextmanager
def _scratch_store(session: Session) -> Iterator[Store]:
    """Give a temporary store, for an undo that is only shown."""
    with contextlib.ExitStack() as stack:
        with _said(session, "yolofs undo"):
            directory = stack.enter_context(work_directory(session.directory, "undo"))
            store = scratch_store(os.path.join(directory, b"files"), session.store)
        yield store


def _said(session: Session, again: str) -> contextlib.AbstractContextManager[None]:
    """Turn an error of the system into one that names its path, and the command to repeat when it
    is repaired.
    """
    sentence = "nothing is undone, as what base would become cannot be worked out"
    return said_as(NotPreparedError, sentence, again=again, place=session.directory)


def _show_and_ask(project: bytes, request: UndoRequest) -> bool:
    """Show what would be undone, and ask; return whether it is to be done.

    Raises:
        Exit: the answer is no.
    """
    paths = request.paths
    with reading_whole(project) as session, _scratch_store(session) as into:
        commit = choose_commit(session, request.which)
        selection = _selection(session, commit, paths, says_unchanged=True)
        try:
            with _said(session, f"yolofs undo {commit.number}"):
                prepared = prepare_undo(session, commit, selection=selection, force=request.is_forced, into=into)
                check_left_staged(session, prepared, into)
        except ConflictError as error:
            error.root = session.base.root
            raise
        changes = changes_of_undo(prepared.tree, session.base, prepared.store)
        show_undo(session, commit, prepared, changes, unfolds=request.unfolds)
        kept = {*prepared.stays, *(path for held_back in prepared.held_back for path in held_back.paths)}
        plan = plan_commit(prepared.tree, session.base, prepared.store)
        with contextlib.suppress(OSError):  # the undo itself says why
            warn_of_links_in(plan, session.base)
        if request.is_dry_run:
            is_kept = None if request.unfolds else lambda _: False
            for line in plan_lines(plan, session.base, prepared.store, is_kept=is_kept):
                emit(line)
            check_nothing_stays(paths, commit.number, len(kept), is_undone=bool(plan.steps), is_dry_run=True)
            return False
        if not changes:
            say("nothing to undo")
            check_nothing_stays(paths, commit.number, len(kept), is_undone=False)
            return False
        check_can_ask(instead=same_command_with("undo", "--yes"))
        if not ask(f"put base back ({summary(changes)})?"):
            say("nothing undone")
            raise click.exceptions.Exit(1)
        return True
