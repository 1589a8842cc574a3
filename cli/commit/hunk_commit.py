"""``yolofs commit --hunk`` and ``-p``: hunks are asked about and committed, and what that did is
said.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import click

from yolofs.changes.hunks import FileHunks
from yolofs.changes.picks import Picks, spell_pick
from yolofs.cli.commit.by_hunk import ask_about_hunks
from yolofs.cli.commit.commit_preview import CommitPreview
from yolofs.cli.commit.committing_hunks import Picked, commit_hunks, foretell_hunks
from yolofs.cli.commit.interrupted import finish_what_was_interrupted
from yolofs.cli.commit.open_files import OpenFile, find_open_files, open_files_fields, say_open_files
from yolofs.cli.commit.report import (
    check_named,
    emit_document,
    emit_taken,
    end_without_success_if,
    say_done,
    say_stays,
    timeline_end_text,
    warn_of_unfinished,
)
from yolofs.cli.commit.tidying import remove_tidied, tidy_after_commit
from yolofs.cli.output import ask, check_can_ask, emit, say
from yolofs.cli.project.project import changing, find_project, reading, relative_paths
from yolofs.cli.same_command import same_command_with
from yolofs.cli.show.held_hunks import check_held, held_fields, hunks_of_range
from yolofs.cli.show.hunk_lines import title
from yolofs.cli.show.listing import PathDisplay
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.errors import ConflictError, StaleHunkError, UsageError
from yolofs.paths import RelPath
from yolofs.session.selecting import Hunks
from yolofs.session.session import Session
from yolofs.state.tree import Tree
from yolofs.system.gc_pause import no_garbage_collection


class HunkOptions(NamedTuple):
    """What the options of a commit say about its hunks."""

    paths: Sequence[bytes] = ()
    """Where hunks are looked for, as the user has typed it; everywhere, if there are none."""
    excludes: Sequence[str] = ()
    scratch: bool = False
    up_to: str | None = None
    """The hunks are of what the view showed at that generation; None: of the view."""
    trusted: bool = False
    force: bool = False
    yes: bool = False
    dry_run: bool = False
    as_json: bool = False


def commit_by_hunk(wanted: HunkOptions) -> None:
    """Ask about each hunk, and commit those that are taken.

    Raises:
        Exit: none is.
        StaleHunkError: what was taken has changed meanwhile; nothing is done.
        UsageError: there is nobody to ask, or a path is nowhere.
    """
    check_can_ask(instead="yolofs hunks, then: yolofs commit --yes --hunk ID")
    project = find_project()
    finish_what_was_interrupted(project, may_ask=True)
    chosen = ask_about_hunks(
        project, wanted.paths, excludes=wanted.excludes, scratch=wanted.scratch, up_to=wanted.up_to
    )
    if not chosen.was_asked:
        say("nothing to commit")
        end_without_success_if(bool(wanted.paths))
        return
    if not chosen.picks:
        say("nothing committed")
        raise click.exceptions.Exit(1)
    try:
        commit_picked(project, chosen.picks, wanted._replace(paths=()), shown_paths=chosen.paths)
    except StaleHunkError as error:
        changed = list(dict.fromkeys(chosen.paths_by_id[name] for name in error.ids if name in chosen.paths_by_id))
        if not changed:
            raise
        more = f" and {len(changed) - 1} more have" if len(changed) > 1 else " has"
        raise StaleHunkError(
            f"{changed[0]}{more} changed since you were asked, so nothing is committed",
            ids=error.ids,
            hint="yolofs commit -p asks about what is there now",
        ) from error


def _list(session: Session, picks: Picks, files: Iterable[FileHunks]) -> None:
    """Say what the picked hunks are, a line each."""
    path_display = PathDisplay(session.base.root, session.base.relative(session.project))
    for file in files:
        for hunk in file.hunks:
            if hunk.id in picks:
                lines = spell_pick("", picks[hunk.id]).replace(":", "  lines ")
                emit(f"{title(hunk, path_display)}{lines}")


def commit_picked(project: bytes, picks: Picks, wanted: HunkOptions, *, shown_paths: Sequence[RelPath] = ()) -> None:
    """Commit hunks and say what was done; ask before that, unless ``--yes`` was given.

    Host code goes only from the paths that the user has typed, or that were shown one by one.

    Raises:
        StaleHunkError: a hunk does not exist (any more); nothing is done.
        UnnamedError: a hunk stays, as it goes only together with others, or has to be named.
        UsageError: a question would have to be asked beside JSON, or a path lies outside base.
        GenerationError: there is no generation to commit up to of that name.
        Exit: the answer is no, or nothing is committed.
    """
    if wanted.as_json and not wanted.yes:
        raise UsageError("--json leaves no place for a question", hint=same_command_with("commit", "--yes"))
    finish_what_was_interrupted(project, may_ask=not wanted.yes)
    with reading(project) as session:
        paths = relative_paths(session, wanted.paths)
        up_to = session.timeline.resolve(wanted.up_to) if wanted.up_to is not None else None
        with contextlib.nullcontext() if up_to is None else hunks_of_range(f"..{wanted.up_to}"):
            files = Hunks(session, Tree(), new=session.state(up_to), paths=paths).find(picks)
        if not wanted.yes and not wanted.dry_run and not shown_paths:
            check_can_ask(instead="yolofs commit --yes --hunk ID")
            _list(session, picks, files.values())
    picked = Picked(picks, paths, (*paths, *shown_paths), wanted.trusted, wanted.force, up_to)
    if wanted.dry_run:
        _foretell(project, picked)
        return
    if not wanted.yes:
        _ask(project, picked, files.values())
    _commit(project, picked, as_json=wanted.as_json)


def _ask(project: bytes, picked: Picked, files: Iterable[FileHunks]) -> None:
    """Ask whether to commit hunks, if any can be: a commit of others says why they stay.

    Raises:
        Exit: the answer is no.
        StaleHunkError, ConflictError, YolofsError: the commit would be refused.
    """
    with changing(project, LoanKind.COMMIT) as (session, _), no_garbage_collection():
        with _root_of(session):
            _, shown, held = foretell_hunks(session, picked)
        ends = timeline_end_text(session)
    held_ids = {one.hunk.id for one in held}
    held_paths = {path for one in shown.held_back for path in one.paths}
    hunks = [hunk for file in files if held_paths.isdisjoint(file.change.paths) for hunk in file.hunks]
    going = [hunk for hunk in hunks if hunk.id in picked.picks and hunk.id not in held_ids]
    if not going:
        return
    of_files = _counted(len({hunk.path for hunk in going}), "file")
    left = len(picked.picks) - len(going)
    stays = f" ({left} more stay{'s' if left == 1 else ''} staged)" if left else ""
    if not ask(f"apply {_counted(len(going), 'hunk')} of {of_files}{stays}{ends}?"):
        say("nothing committed")
        raise click.exceptions.Exit(1)


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}{'s' if count != 1 else ''}"


def _foretell(project: bytes, picked: Picked) -> None:
    """Say what a commit of hunks would do, in order, and do nothing."""
    with changing(project, LoanKind.COMMIT) as (session, _), no_garbage_collection():
        with _root_of(session):
            lines, shown, held = foretell_hunks(session, picked)
        for line in lines:
            emit(line)
        if not lines:
            say("nothing to commit")
        say_stays(session, shown)
        root = session.base.root
    check_held(held, root, _command(picked))
    check_named(shown)


def _commit(project: bytes, picked: Picked, *, as_json: bool) -> None:
    written: list[OpenFile] = []
    with changing(project, LoanKind.COMMIT) as (session, _), no_garbage_collection(), session.store.looking_once():

        def tell(shown: CommitPreview, conflicts: Sequence[RelPath]) -> None:
            if not as_json:
                emit_taken(session, shown, conflicts)
            written.extend(find_open_files(session, shown.taken))

        with _root_of(session):
            done = commit_hunks(session, picked, tell=tell)
        directory, root = session.directory, session.base.root
        if done.result.number is not None:
            tidy_after_commit(session)
    if done.result.number is not None:
        remove_tidied(directory)
    if as_json:
        fields = {"held_hunks": held_fields(done.held_hunks, root), "open_files": open_files_fields(written)}
        emit_document(session, done.result, done.shown, done.conflicts, fields)
        warn_of_unfinished(done.result.number, done.result.unfinished)
    else:
        say_done(session, done.result, done.shown, was_told=False)
        say_open_files(written)
    is_ended = picked.up_to is not None and done.result.number is not None
    check_held(done.held_hunks, root, _command(picked) if not is_ended else None)
    check_named(done.shown)
    end_without_success_if(done.result.number is None)


def _command(picked: Picked) -> str:
    """Return the command that commits hunks of the same state in the same way."""
    words = ["yolofs commit"]
    words += [f"--up-to {picked.up_to}"] if picked.up_to is not None else []
    words += ["--trusted"] if picked.trusted else []
    words += ["--ours"] if picked.force else []
    return " ".join(words)


@contextlib.contextmanager
def _root_of(session: Session) -> Iterator[None]:
    """Have a conflict tell its paths as the host names them."""
    try:
        yield
    except ConflictError as error:
        error.root = session.base.root
        raise
