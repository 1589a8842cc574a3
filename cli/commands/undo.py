"""``yolofs undo``."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

import click

from yolofs.changes.changes import compare
from yolofs.cli.commit.named_paths import check_paths_of_undo
from yolofs.cli.commit.tidying import remove_tidied, tidy
from yolofs.cli.commit.undo_report import check_nothing_stays, document_of, report_undo, show_undo
from yolofs.cli.completing import commits, undone_paths
from yolofs.cli.output import ask, check_can_ask, emit, emit_json, progress, say
from yolofs.cli.path_types import PATH
from yolofs.cli.project import changing, find_project, reading_whole, relative_paths
from yolofs.cli.same_command import same_command_with
from yolofs.cli.show.listing import summary
from yolofs.commit import plan_commit
from yolofs.commit.plan.plan_text import plan_lines
from yolofs.commit.select.selection import Selection
from yolofs.commit.undo.applied import LaterCommit
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.errors import ConflictError, NotPreparedError, UsageError
from yolofs.os_errors import said_as
from yolofs.paths import absolute, display, in_shell
from yolofs.session.ended_commits import EndedCommit
from yolofs.session.session import Session
from yolofs.session.undo import choose_commit, prepare_undo, undo
from yolofs.state.tree import Tree
from yolofs.store.store import Store
from yolofs.system.gc_pause import no_garbage_collection
from yolofs.system.work_directories import work_directory


@click.command()
@click.argument("number", metavar="[N]", required=False, shell_complete=commits)
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=PATH, shell_complete=undone_paths)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Say what would be done to which real file, in order, and do nothing.")
@click.option("--unfold", "unfolds", is_flag=True, help="List each change on a line of its own.")
@click.option(
    "--force", is_flag=True, help="Undo even where base has changed since: replace base's version, and keep it."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document; needs --yes.")
def command(
    number: str | None, paths: tuple[bytes, ...], yes: bool, dry_run: bool, unfolds: bool, force: bool, as_json: bool
) -> None:
    """Put the real files back to what they were before a commit.

    undo asks first. Without N it undoes the last commit that is not undone (`yolofs commits` lists
    them); with PATH, only what that commit changed at or below these paths. What the commit had
    applied is staged again. So the view stays as it is, and the next `yolofs commit` would apply it
    again. `yolofs abort` drops it.

    undo leaves alone what later commits have changed again, and what lies in a directory that
    somebody else has moved. It names these paths, undoes all else, and the exit code is 16. If
    somebody else has changed what the commit left, undo does nothing (exit code 9) without --force.
    An undo is a commit of its own: it has a number, and keeps what it replaces. If it is
    interrupted, `yolofs commit --continue` finishes it, and --roll-back takes it back.
    """
    if as_json and dry_run:
        raise UsageError("--dry-run prints no JSON", hint="leave one of them out")
    if as_json and not yes:
        raise UsageError("--json leaves no place for a question", hint=same_command_with("undo", "--yes"))
    project = find_project()
    which = _number(number)
    if dry_run or not yes:
        looking = _Looking(project, which, paths, is_dry_run=dry_run, unfolds=unfolds, is_forced=force)
        if not _show_and_ask(looking):
            return
    with changing(project, LoanKind.COMMIT) as (session, _), no_garbage_collection():
        session.check_no_interrupted_commit()
        commit = choose_commit(session, which)
        try:
            with progress("undoing") as update:
                selection = _selection(session, commit, paths, says_unchanged=yes)
                result = undo(session, commit, selection=selection, force=force, progress=update)
        except ConflictError as error:
            error.root = session.base.root
            raise
        root, directory = session.base.root, session.directory
        tidy(session)
    remove_tidied(directory)
    if as_json:
        emit_json(document_of(result, root))
    report_undo(result, root, applies_again=commit.takes_back)
    kept = {*result.stays, *(path for held_back in result.held_back for path in held_back.paths)}
    check_nothing_stays(paths, commit.number, len(kept), is_undone=result.number is not None)


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise UsageError(
            f"{in_shell(os.fsencode(text))} is not the number of a commit",
            hint="yolofs commits lists them; yolofs undo N PATH... takes paths",
        )
    return int(text)


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
            store = Store(os.path.join(directory, b"files"))
        yield store


def _said(session: Session, again: str) -> contextlib.AbstractContextManager[None]:
    """Turn an error of the system into one that names its path, and the command to repeat when it
    is repaired.
    """
    sentence = "nothing is undone, as what base would become cannot be worked out"
    return said_as(NotPreparedError, sentence, again=again, place=session.directory)


class _Looking(NamedTuple):
    """What is looked at before anything is undone, and how it is shown."""

    project: bytes
    which: int | None
    paths: tuple[bytes, ...]
    is_dry_run: bool
    unfolds: bool
    is_forced: bool


def _show_and_ask(looking: _Looking) -> bool:
    """Show what would be undone, and ask; return whether it is to be done.

    Raises:
        Exit: the answer is no.
    """
    paths = looking.paths
    with reading_whole(looking.project) as session, _scratch_store(session) as into:
        commit = choose_commit(session, looking.which)
        selection = _selection(session, commit, paths, says_unchanged=True)
        try:
            with _said(session, f"yolofs undo {commit.number}"):
                prepared = prepare_undo(session, commit, selection=selection, force=looking.is_forced, into=into)
        except ConflictError as error:
            error.root = session.base.root
            raise
        changes = compare(Tree(), prepared.tree, session.base, prepared.store)
        show_undo(session, commit, prepared, changes, unfolds=looking.unfolds)
        if looking.is_dry_run:
            plan = plan_commit(prepared.tree, session.base, prepared.store)
            is_kept = None if looking.unfolds else lambda _: False
            for line in plan_lines(plan, session.base, prepared.store, is_kept=is_kept):
                emit(line)
            return False
        if not changes:
            say("nothing to undo")
            kept = {*prepared.stays, *(path for held_back in prepared.held_back for path in held_back.paths)}
            check_nothing_stays(paths, commit.number, len(kept), is_undone=False)
            return False
        check_can_ask(instead=same_command_with("undo", "--yes"))
        if not ask(f"put base back ({summary(changes)})?"):
            say("nothing undone")
            raise click.exceptions.Exit(1)
        return True
