"""``yolofs undo``."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import click

from yolofs.changes.changes import Change, compare
from yolofs.cli.commands.commits import age_and_runs
from yolofs.cli.commit.named_paths import check_paths_of_undo
from yolofs.cli.commit.report import warn_of_left_out, warn_of_unfinished
from yolofs.cli.commit.tidying import remove_tidied, tidy
from yolofs.cli.completing import commits, undone_paths
from yolofs.cli.output import ask, check_can_ask, emit, emit_json, progress, say
from yolofs.cli.path_types import PATH
from yolofs.cli.project import changing, find_project, reading_whole, relative_paths
from yolofs.cli.show.json_forms import text_fields
from yolofs.cli.show.listing import Place, emit_changes, summary
from yolofs.cli.show.marking import marks_of
from yolofs.cli.show.shortening import Shortener
from yolofs.commit import plan_commit
from yolofs.commit.plan.plan_text import plan_lines
from yolofs.commit.select.choice import HeldBack
from yolofs.commit.select.selection import Selection
from yolofs.commit.undo.applied import Later
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.errors import ConflictError, NotPreparedError, UnnamedError, UsageError
from yolofs.os_errors import said_as
from yolofs.paths import RelPath, absolute, display, in_shell
from yolofs.session.ended_commits import Ended
from yolofs.session.session import Session
from yolofs.session.undo import Prepared, UndoResult, choose, prepare, undo
from yolofs.state.tree import Tree
from yolofs.store.store import Store
from yolofs.system.gc_pause import no_garbage_collection
from yolofs.system.work_directories import work_directory

_LISTED = 20


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
    if as_json and not yes:
        raise UsageError("--json leaves no place for a question", hint="yolofs undo --yes --json")
    if as_json and dry_run:
        raise UsageError("--dry-run prints no JSON", hint="leave one of them out")
    project = find_project()
    which = _number(number)
    if dry_run or not yes:
        looking = _Looking(project, which, paths, is_dry_run=dry_run, unfolds=unfolds, is_forced=force)
        if not _show_and_ask(looking):
            return
    with changing(project, LoanKind.COMMIT) as (session, _), no_garbage_collection():
        session.check_no_interrupted_commit()
        commit = choose(session, which)
        try:
            with progress("undoing") as update:
                selection = _selection(session, commit, paths)
                result = undo(session, commit, selection=selection, force=force, progress=update)
        except ConflictError as error:
            error.root = session.base.root
            raise
        root, directory = session.base.root, session.directory
        tidy(session)
    remove_tidied(directory)
    if as_json:
        emit_json(_document(result, root))
    _report(result, root, applies_again=commit.takes_back)
    kept = {*result.stays, *(path for held_back in result.held_back for path in held_back.paths)}
    _check_nothing_stays(paths, commit.number, len(kept), is_undone=result.number is not None)


def _check_nothing_stays(paths: tuple[bytes, ...], number: int, kept: int, *, is_undone: bool) -> None:
    """Check that all that was asked for is undone; ``kept`` paths stay.

    Raises:
        UnnamedError: they do.
    """
    if not kept:
        return
    if paths and not is_undone:
        raise UnnamedError(
            f"nothing of commit {number} is undone at the named paths", hint=f"yolofs undo {number} --dry-run"
        )
    stay = "1 path stays" if kept == 1 else f"{kept} paths stay"
    text = f"nothing of commit {number} is undone, as {stay}"
    if is_undone:
        rest = f"all else that you named of commit {number}" if paths else f"all else of commit {number}"
        text = f"{stay} as {'it is' if kept == 1 else 'they are'}; {rest} is undone"
    raise UnnamedError(text, hint=f"what each needs is told above; then: yolofs undo {number}")


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise UsageError(
            f"{in_shell(os.fsencode(text))} is not the number of a commit",
            hint="yolofs commits lists them; yolofs undo N PATH... takes paths",
        )
    return int(text)


def _selection(session: Session, commit: Ended, paths: tuple[bytes, ...]) -> Selection | None:
    if not paths:
        return None
    chosen = tuple(relative_paths(session, paths))
    check_paths_of_undo(session, chosen, commit.number, Later.read(commit.number, commit.directory).paths)
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
        commit = choose(session, looking.which)
        selection = _selection(session, commit, paths)
        try:
            with _said(session, f"yolofs undo {commit.number}"):
                prepared = prepare(session, commit, selection=selection, force=looking.is_forced, into=into)
        except ConflictError as error:
            error.root = session.base.root
            raise
        changes = compare(Tree(), prepared.tree, session.base, prepared.store)
        _show(session, commit, prepared, changes, unfolds=looking.unfolds)
        if looking.is_dry_run:
            plan = plan_commit(prepared.tree, session.base, prepared.store)
            for line in plan_lines(plan, session.base, prepared.store):
                emit(line)
            return False
        if not changes:
            say("nothing to undo")
            kept = {*prepared.stays, *(path for held_back in prepared.held_back for path in held_back.paths)}
            _check_nothing_stays(paths, commit.number, len(kept), is_undone=False)
            return False
        check_can_ask(instead="yolofs undo --yes")
        if not ask(f"put base back ({summary(changes)})?"):
            say("nothing undone")
            raise click.exceptions.Exit(1)
        return True


def _show(session: Session, commit: Ended, prepared: Prepared, changes: list[Change], *, unfolds: bool) -> None:
    root = session.base.root
    say(f"to undo commit {commit.number} ({age_and_runs(commit)}) would do this to the real files:")
    place = Place(root, session.base.relative(session.project))
    short = None if unfolds else Shortener(session, place, "--unfold", prepared.tree, prepared.store)
    emit_changes(changes, place, session.regions, marks_of(session, changes, prepared.store), shortener=short)
    _say_stays(prepared.stays, prepared.inverse.copies, root)
    _say_as_now(prepared.as_now, commit.number, root)
    _say_held_back(commit.number, prepared.held_back, root)


def _say_stays(stays: Mapping[RelPath, str], copies: Sequence[RelPath], root: bytes) -> None:
    for path, why in sorted(stays.items())[:_LISTED]:
        say(f"stays: {display(absolute(root, path))}: {why}")
    if len(stays) > _LISTED:
        say(f"and {len(stays) - _LISTED} more that stay")
    for path in copies[:_LISTED]:
        say(f"note: {display(absolute(root, path))} comes back as a file of its own: no other name of it was found")


def _say_as_now(paths: Sequence[RelPath], number: int, root: bytes) -> None:
    for path in paths[:_LISTED]:
        say(
            f"note: {display(absolute(root, path))} comes back as it is now, and not as it was before commit {number}:"
            " somebody has written to it since"
        )
    if len(paths) > _LISTED:
        say(f"and {len(paths) - _LISTED} more that come back as they are now")


def _say_held_back(number: int, held_back: Sequence[HeldBack], root: bytes) -> None:
    """Print what stays because it can only be undone together with others, and the command that
    undoes all of it.
    """
    for one in held_back[:_LISTED]:
        shown = ", ".join(display(absolute(root, path)) for path in one.paths[:_LISTED])
        together = " ".join(in_shell(absolute(root, path)) for path in sorted({*one.paths, *one.needs})[:_LISTED])
        say(f"stays: {shown}: {one.reason}; yolofs undo {number} {together}")
    if len(held_back) > _LISTED:
        say(f"and {len(held_back) - _LISTED} more that go only together with others")


def _report(result: UndoResult, root: bytes, *, applies_again: bool) -> None:
    warn_of_left_out(result.left_out, root)
    _say_stays(result.stays, result.copies, root)
    _say_as_now(result.as_now, result.undone, root)
    _say_held_back(result.undone, result.held_back, root)
    if result.number is None:
        say(f"nothing of commit {result.undone} is to be undone")
        return
    warn_of_unfinished(result.number, result.unfinished)
    part = "" if result.is_whole else "in part "
    then = (
        f"what it had taken back is applied again; to undo that: yolofs undo {result.number}"
        if applies_again
        else "what it had applied is staged again: yolofs status"
    )
    say(f"commit {result.undone} is undone {part}by commit {result.number}; {then}")


def _document(result: UndoResult, root: bytes) -> dict[str, Any]:
    return {
        "commit": result.number,
        "undone": result.undone,
        "steps": result.steps,
        "stays": [
            {**text_fields("path", absolute(root, path)), "reason": why} for path, why in sorted(result.stays.items())
        ],
        "held": [
            {
                "paths": [text_fields("path", absolute(root, path)) for path in held_back.paths],
                "reason": held_back.reason,
            }
            for held_back in result.held_back
        ],
        "copies": [text_fields("path", absolute(root, path)) for path in result.copies],
        "as_now": [text_fields("path", absolute(root, path)) for path in result.as_now],
    }
