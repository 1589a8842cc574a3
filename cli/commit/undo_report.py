"""What an undo would do, or has done, in words."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from yolofs.changes.changes import Change
from yolofs.cli.commit.report import named_paths, warn_of_left_out, warn_of_unfinished
from yolofs.cli.output import say
from yolofs.cli.show.first_lines import MOST_LINES, first_lines
from yolofs.cli.show.json_forms import text_fields
from yolofs.cli.show.listing import PathDisplay, emit_changes
from yolofs.cli.show.marking import marks_of
from yolofs.cli.show.shortening import Shortener
from yolofs.commit.select.choice import HeldBack
from yolofs.commit.undo.undoable_names import INSIDE_STAYS
from yolofs.errors import UnnamedError
from yolofs.paths import RelPath, absolute, display, in_shell
from yolofs.session.history.commit_counts import read_runs_of_commit
from yolofs.session.history.ended_commits import EndedCommit
from yolofs.session.session import Session
from yolofs.session.undo import PreparedUndo, UndoResult


def show_undo(
    session: Session, commit: EndedCommit, prepared: PreparedUndo, changes: list[Change], *, unfolds: bool
) -> None:
    """List what an undo would change in base, and on stderr what stays, is so already, or is held
    back.
    """
    root = session.base.root
    say(f"to undo commit {commit.number} ({_age_and_runs(commit)}) would do this to the real files:")
    path_display = PathDisplay(root, session.base.relative(session.project))
    short = None if unfolds else Shortener(session, path_display, "--unfold", prepared.tree, prepared.store)
    marks = marks_of(session, changes, prepared.store)
    emit_changes(changes, path_display, session.regions, marks, conflicts=prepared.drifted, shortener=short)
    _say_stays(prepared.stays, prepared.copies, root)
    _say_as_now(prepared.as_now, commit.number, root)
    _say_held_back(commit.number, prepared.held_back, root)


def _say_stays(stays: Mapping[RelPath, str], copies: Sequence[RelPath], root: bytes) -> None:
    causes_first = sorted(stays.items(), key=lambda one: (one[1] == INSIDE_STAYS, one[0]))
    for line in first_lines(
        causes_first, lambda one: f"stays: {display(absolute(root, one[0]))}: {one[1]}", "that stay"
    ):
        say(line)
    alone = "comes back as a file of its own: no other name of it was found"
    for line in first_lines(copies, lambda path: f"note: {display(absolute(root, path))} {alone}", "that do"):
        say(line)


def _say_as_now(paths: Sequence[RelPath], number: int, root: bytes) -> None:
    why = f"comes back as it is now, and not as it was before commit {number}: somebody has written to it since"
    more = "that come back as they are now"
    for line in first_lines(paths, lambda path: f"note: {display(absolute(root, path))} {why}", more):
        say(line)


def _say_held_back(number: int, held_back: Sequence[HeldBack], root: bytes) -> None:
    """Print what stays because it can only be undone together with others, and the command that
    undoes all of it.
    """

    def show(path: RelPath) -> str:
        return display(absolute(root, path))

    def text(one: HeldBack) -> str:
        names = sorted({*one.paths, *one.needs})
        together = [in_shell(absolute(root, path)) for path in names] if len(names) <= MOST_LINES else []
        command = " ".join(("yolofs undo", str(number), *together))
        return f"stays: {named_paths(one.paths, root)}: {one.reason(show)}; {command}"

    for line in first_lines(held_back, text, "that go only together with others"):
        say(line)


def report_undo(result: UndoResult, root: bytes, *, applies_again: bool) -> None:
    """Say what was undone, and what stays."""
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


def document_of(result: UndoResult, root: bytes) -> dict[str, Any]:
    """Return what was undone as JSON has it."""
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
                "reason": held_back.reason(lambda path: display(absolute(root, path))),
            }
            for held_back in result.held_back
        ],
        "copies": [text_fields("path", absolute(root, path)) for path in result.copies],
        "as_now": [text_fields("path", absolute(root, path)) for path in result.as_now],
    }


def check_nothing_stays(
    paths: tuple[bytes, ...], number: int, kept: int, *, is_undone: bool, is_dry_run: bool = False
) -> None:
    """Check that all that was asked for is undone, or would be; ``kept`` paths stay.

    Raises:
        UnnamedError: they do.
    """
    if not kept:
        return
    done = "would be undone" if is_dry_run else "is undone"
    hint = f"do for each what is said above; then: yolofs undo {number}"
    if paths and not is_undone:
        raise UnnamedError(
            f"nothing of commit {number} {done} at the named paths",
            hint=hint if is_dry_run else f"yolofs undo {number} --dry-run",
        )
    stay = "1 path stays" if kept == 1 else f"{kept} paths stay"
    text = f"nothing of commit {number} {done}, as {stay}"
    if is_undone:
        rest = f"all else that you named of commit {number}" if paths else f"all else of commit {number}"
        text = f"{stay} as {'it is' if kept == 1 else 'they are'}; {rest} {done}"
    raise UnnamedError(text, hint=hint)


def _age_and_runs(commit: EndedCommit) -> str:
    """Return when a commit was made and what had changed the files, in words."""
    runs = read_runs_of_commit(commit.directory)
    by = f", of run{'s' if runs[1:] else ''} {', '.join(map(str, runs))}" if runs else ""
    return f"made {_ago(commit.began_ns)}{by}"


def _ago(time_ns: int) -> str:
    seconds = max(0, time.time_ns() - time_ns) // 1_000_000_000
    for length, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= length:
            count = seconds // length
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"
