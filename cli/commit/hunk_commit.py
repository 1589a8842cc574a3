"""``yolofs commit --hunk`` and ``-p``: hunks are asked about and committed, and what that did is
said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from yolofs.changes.hunks import FileHunks
from yolofs.changes.picks import Picks, spell
from yolofs.cli.commit.by_hunk import ask_about_hunks
from yolofs.cli.commit.interrupted import finish_what_was_interrupted
from yolofs.cli.commit.picked import commit_hunks
from yolofs.cli.commit.report import (
    check_named,
    emit_document,
    emit_taken,
    end_without_success_if,
    say_done,
    warn_of_unfinished,
)
from yolofs.cli.commit.tidying import remove_tidied, tidy
from yolofs.cli.output import ask, check_can_ask, emit, say
from yolofs.cli.project import changing, find_project, reading, relative_paths
from yolofs.cli.rules.in_force import hiding
from yolofs.cli.show.held_hunks import check_held, held_fields
from yolofs.cli.show.hunk_lines import title
from yolofs.cli.show.listing import Place
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.errors import ConflictError, StaleHunkError, UsageError
from yolofs.paths import RelPath
from yolofs.session.selecting import Hunks
from yolofs.session.session import Session
from yolofs.state.tree import Tree
from yolofs.system.gc_pause import no_garbage_collection


def commit_by_hunk(paths: Sequence[bytes], *, scratch: bool, trusted: bool, force: bool, yes: bool) -> None:
    """Ask about each hunk, and commit those that are taken.

    Raises:
        Exit: none is.
        StaleHunkError: what was taken has changed meanwhile; nothing is done.
        UsageError: there is nobody to ask.
    """
    check_can_ask(instead="yolofs hunks, then: yolofs commit --yes --hunk ID")
    project = find_project()
    finish_what_was_interrupted(project, may_ask=True)
    chosen = ask_about_hunks(project, paths, scratch=scratch)
    if not chosen.was_asked:
        say("nothing to commit")
        return
    if not chosen.picks:
        say("nothing committed")
        raise click.exceptions.Exit(1)
    try:
        commit_picked(project, chosen.picks, (), trusted=trusted, force=force, yes=yes, shown_paths=chosen.paths)
    except StaleHunkError as error:
        error.hint = "yolofs commit -p asks about what is there now"
        raise


def _list(session: Session, picks: Picks, files: Iterable[FileHunks]) -> None:
    """Say what the picked hunks are, a line each."""
    place = Place(session.base.root, session.base.relative(session.project))
    for file in files:
        for hunk in file.hunks:
            if hunk.id in picks:
                lines = spell("", picks[hunk.id]).replace(":", "  lines ")
                emit(f"{title(hunk, place)}{lines}")


def commit_picked(
    project: bytes,
    picks: Picks,
    typed: Sequence[bytes],
    *,
    trusted: bool = False,
    force: bool = False,
    yes: bool = False,
    as_json: bool = False,
    shown_paths: Sequence[RelPath] = (),
) -> None:
    """Commit hunks, after asking unless ``yes``, and say what that did.

    They are looked for at the paths that the user ``typed``, if there are any.  Host code goes only
    from these, or from paths that were shown one by one.

    Raises:
        StaleHunkError: a hunk does not exist (any more); nothing is done.
        UnnamedError: a hunk stays, as it goes only together with others, or has to be named.
        Exit: the answer is no, or nothing is committed.
    """
    if as_json and not yes:
        raise UsageError("--json leaves no place for a question", hint="yolofs commit --yes --json --hunk ID")
    finish_what_was_interrupted(project, may_ask=not yes)
    guard = hiding(project)
    with reading(project) as session:
        paths = relative_paths(session, typed)
        files = Hunks(session, Tree(), paths=paths).find(picks)
        if not yes:
            check_can_ask(instead="yolofs commit --yes --hunk ID")
            if not shown_paths:
                _list(session, picks, files.values())
            hunks = f"{len(picks)} hunk{'s' if len(picks) > 1 else ''}"
            if not ask(f"apply {hunks} of {len(files)} file{'s' if len(files) > 1 else ''}?"):
                say("nothing committed")
                raise click.exceptions.Exit(1)
    with changing(project, LoanKind.COMMIT) as (session, _), no_garbage_collection(), session.store.looking_once():
        try:
            done = commit_hunks(
                session,
                picks,
                paths=paths,
                named=(*paths, *shown_paths),
                trusted=trusted,
                force=force,
                tell=None if as_json else lambda shown, conflicts: emit_taken(session, shown, guard, conflicts),
            )
        except ConflictError as error:
            error.root = session.base.root
            raise
        directory, root = session.directory, session.base.root
        if done.result.number is not None:
            tidy(session)
    if done.result.number is not None:
        remove_tidied(directory)
    if as_json:
        fields = {"held_hunks": held_fields(done.held, root)}
        emit_document(session, done.result, done.shown, done.conflicts, fields)
        warn_of_unfinished(done.result.number, done.result.unfinished)
    else:
        say_done(session, done.result, done.shown, was_told=False)
    check_held(done.held, root, "yolofs commit")
    check_named(done.shown)
    end_without_success_if(done.result.number is None)
