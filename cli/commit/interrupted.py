"""An interrupted commit: `yolofs commit` says what it is and asks, then finishes it, takes it back
or gives it up.
"""

from __future__ import annotations

import os

import click

from yolofs.cli.commit.report import warn_of_left_out, warn_of_unfinished
from yolofs.cli.output import ask, can_ask, check_can_ask, progress, say
from yolofs.cli.project.project import changing, session_directory, was_interrupted
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.paths import display
from yolofs.session.archive import CommitEnd, commit_not_begun, commit_numbers, end_of
from yolofs.session.ending_interrupted import discard_interrupted, finish_interrupted, roll_back_interrupted
from yolofs.session.interrupted import CONTENTS, Interrupted
from yolofs.session.session import Session, SessionAccess


def finish_what_was_interrupted(project: bytes, *, may_ask: bool) -> None:
    """Make sure that no interrupted commit is in the way of another one: say what it is, and finish
    it if the user agrees.

    Raises:
        Exit: the answer is no.
        CommitError: there is nobody to ask; or a step fails (again).
        TrustError: it may not be finished here.
    """
    found = _look(project)
    if found is None:
        return
    if (found.plan is None and found.way_back is None) or not (may_ask and can_ask()):
        raise found.error
    if found.is_better_taken_back:
        say(found.text)
        _ask_or_leave("take it back? Base is what it was then, and all stays staged")
        _roll_back(project)
        return
    _describe(found)
    _ask_or_leave("finish it?")
    _finish(project)


def _ask_or_leave(question: str) -> None:
    if not ask(question):
        say("nothing is done; before anything else: yolofs commit --continue, or yolofs commit --roll-back")
        raise click.exceptions.Exit(1)


def continue_commit(project: bytes) -> None:
    """Finish the interrupted commit, as ``--continue`` says, without asking; if there is none, say
    so.
    """
    found = _look(project)
    if found is None:
        _end_what_had_not_begun(project)
        return
    if found.plan is None:
        raise found.error
    _describe(found)
    _finish(project)


def roll_commit_back(project: bytes) -> None:
    """Take the interrupted commit back, as ``--roll-back`` says, without asking; if there is none,
    say so.
    """
    found = _look(project)
    if found is None:
        _end_what_had_not_begun(project)
        return
    if found.way_back is None:
        raise found.error_of_way_back
    say(found.text)
    _roll_back(project)


def _end_what_had_not_begun(project: bytes) -> None:
    """Remove what a commit has left that was stopped before it began, hidden folders in base too;
    if there is none, say so.
    """
    number = commit_not_begun(session_directory(project))
    if number is None:
        directory = session_directory(project)
        last = max(commit_numbers(directory), default=None)
        is_done = last is not None and end_of(directory, last) is CommitEnd.DONE
        done = f" (commit {last} is done; to take it back: yolofs undo {last})" if is_done else ""
        say(f"no commit was interrupted; nothing to do{done}")
        return
    with changing(project, LoanKind.COMMIT, needs_settings=False):
        pass  # whoever opens a session to write removes that
    say(f"commit {number} was stopped before it had begun; base is as it was, and all stays staged")


def give_commit_up(project: bytes, *, asks: bool) -> None:
    """Give the interrupted commit up, after asking.

    Raises:
        Exit: the answer is no.
        UsageError: there is nobody to ask.
    """
    found = _look(project)
    if found is None:
        say("no commit was interrupted; nothing to do")
        return
    if asks and not _agrees_to_discard(found):
        raise click.exceptions.Exit(1)
    with changing(project, LoanKind.ABORT, needs_settings=False) as (session, _):
        directory = discard_interrupted(session)
    if directory is None:
        say("no commit is interrupted any more; nothing to do")
        return
    number = display(os.path.basename(directory))
    say(f"commit {number} is given up; base stays as it is, and nothing is staged")
    say(f"what base had, what was staged and a list of what was where ({CONTENTS.decode()}): {display(directory)}")


def _agrees_to_discard(found: Interrupted) -> bool:
    check_can_ask(instead="yolofs commit --discard-interrupted --yes")
    say(found.text)
    say("given up, base stays as it is now, partly committed; what is staged leaves the view, and no file is removed")
    if ask("give it up?"):
        return True
    say("nothing is done")
    return False


def _look(project: bytes) -> Interrupted | None:
    if not was_interrupted(project):
        return None
    with Session.open(project, SessionAccess.READ) as session:
        return session.interrupted()


def _describe(found: Interrupted) -> None:
    """Say what was interrupted, and what comes next in it."""
    assert found.plan is not None
    say(found.text)
    left = len(found.plan.steps) - found.done
    if left:
        say(f"next of the {left} steps that are left:" if left > len(found.steps_left) else "what is left:")
    for line in found.steps_left:
        say(f"  {line}")
    say(f"what base had before is kept in {display(found.replaced)}")


def _roll_back(project: bytes) -> None:
    with (
        changing(project, LoanKind.COMMIT, needs_settings=False) as (session, _),
        progress("taking the interrupted commit back") as update,
    ):
        result = roll_back_interrupted(session, progress=update)
    if result is not None:
        say(f"commit {result.number}, which was interrupted, is taken back; {result.text}")


def _finish(project: bytes) -> None:
    with (
        changing(project, LoanKind.COMMIT, needs_settings=False) as (session, _),
        progress("finishing the interrupted commit") as update,
    ):
        result = finish_interrupted(session, progress=update)
    if result is not None:
        warn_of_left_out(result.left_out, session.base.root)
        also = f"; {result.found}" if result.found else ""
        say(f"commit {result.number}, which was interrupted, is finished{also}")
        warn_of_unfinished(result.number, result.unfinished)
