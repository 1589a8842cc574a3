"""Dropping all that is staged: it is shown and asked about, then done and told."""

from __future__ import annotations

import os

import click

from yolofs.cli.guard import hidden_by
from yolofs.cli.output import ask, check_can_ask, progress, say, warn
from yolofs.cli.project.project import changing, reading, session_directory
from yolofs.cli.rules.hidden_changes import hiding_of
from yolofs.cli.show.listing import PathDisplay, emit_changes, summary, without_scratch
from yolofs.cli.show.marking import marks_of
from yolofs.cli.show.shortening import Shortener
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.journal.timeline import BASE
from yolofs.paths import display
from yolofs.session import run_tmp
from yolofs.session.commit import abort
from yolofs.session.session import Session
from yolofs.system.disk_usage import size_at_least_text


def drop_staged(project: bytes, *, yes: bool, unfolds: bool) -> None:
    """Drop everything that is staged, and empty what runs have as ``/tmp``; without ``yes`` ask
    first, if there is anything.

    Raises:
        UsageError: there is nobody to ask.
        click.exceptions.Exit: the answer is no.
    """
    if not yes and not _show_and_ask(project, unfolds=unfolds):
        raise click.exceptions.Exit(1)
    with changing(project, LoanKind.ABORT, needs_settings=False) as (session, is_mounted):
        was_nothing = _is_nothing(session)
        abort(session)
        if not is_mounted:
            session.collect()
    _empty_tmp(session_directory(project))
    say("nothing was staged" if was_nothing else "all that was staged is dropped")


def _is_nothing(session: Session) -> bool:
    """Tell whether nothing is there to drop: no record, and nothing in what runs have as /tmp."""
    if session.journal.segment_counts() != [0]:
        return False
    try:
        tmp = run_tmp.size(session.directory)
    except OSError:  # what cannot be looked at is emptied, or told, afterwards
        return False
    return not (tmp.size_bytes or tmp.is_more)


def _empty_tmp(directory: bytes) -> None:
    """Empty what runs have as /tmp."""
    try:
        run_tmp.clear(directory)
    except OSError as error:
        name = os.fsencode(error.filename) if error.filename else b""
        where = os.path.join(run_tmp.top_of(directory), name)
        warn(f"the private /tmp of runs is not all empty: {display(where)}: {error.strerror}; try again: yolofs abort")


def _show_and_ask(project: bytes, *, unfolds: bool) -> bool:
    """Show what is staged and ask whether to drop it; nothing needs no answer.

    Raises:
        UsageError: there is nobody to ask.
    """
    with reading(project) as session:
        if _is_nothing(session):
            return True
        with progress("comparing") as update:
            changes = session.compare(BASE, progress=update)
        shown = without_scratch(changes, session.regions)
        root = session.base.root
        hidden = hidden_by(hiding_of(project, shown, root), shown, root)
        path_display = PathDisplay(root, session.base.relative(session.project))
        short = None if unfolds else Shortener(session, path_display, "--unfold")
        emit_changes(shown, path_display, session.regions, marks_of(session, shown), hidden, shortener=short)
        if len(shown) < len(changes):
            say(f"and {len(changes) - len(shown)} in scratch directories: yolofs status --scratch")
        tmp = run_tmp.size(session.directory)
        if tmp.size_bytes or tmp.is_more:
            say(f"and {size_at_least_text(tmp)} in the private /tmp of runs")
        generations = session.timeline.present
    count = f" and {generations} generation{'s' if generations > 1 else ''}" if generations else ""
    check_can_ask(instead="yolofs abort --yes")
    if ask(f"drop {summary(changes)}{count}, for good?"):
        return True
    say("nothing dropped")
    return False
