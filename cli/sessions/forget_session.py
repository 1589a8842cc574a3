"""Forgetting a session, after asking if anything is staged in it."""

from __future__ import annotations

import click

from yolofs.cli.output import ask, check_can_ask, say
from yolofs.cli.sessions.session_condition import Condition, check_unmounted, condition_of, has_staged, place_of
from yolofs.paths import display
from yolofs.registry.registry import SessionEntry
from yolofs.session.forget import forget_session


def forget(entry: SessionEntry, *, yes: bool) -> None:
    """Remove a session with all that is staged in it.

    Raises:
        SessionBusyError: it is mounted.
        UsageError: there is no terminal to ask at, and not ``yes``.
        click.exceptions.Exit: the answer is no.
    """
    place = place_of(entry)
    if condition_of(entry) is Condition.UNREACHABLE:
        _take_off_the_list(entry, yes=yes)
        return
    check_unmounted(entry)
    if not yes and has_staged(entry):
        question = f"remove session {entry.id} of {place} with all that is staged in it, for good?"
        _ask_or_leave(entry, question, on_no="nothing removed")
    forget_session(entry)
    say(f"session {entry.id} of {place} is removed")


def _take_off_the_list(entry: SessionEntry, *, yes: bool) -> None:
    """Forget a session whose directory is not there, and so cannot be removed."""
    where = display(entry.session_path)
    if not yes:
        question = f"{where} is missing, perhaps because its disk is not mounted; stop listing session {entry.id}?"
        _ask_or_leave(entry, question, on_no="nothing forgotten")
    forget_session(entry)
    say(f"session {entry.id} is no longer listed; what is staged in it, if it is still there, stays in {where}")


def _ask_or_leave(entry: SessionEntry, question: str, *, on_no: str) -> None:
    """Ask before a session is forgotten.

    Raises:
        UsageError: there is nobody to ask.
        Exit: the answer is no.
    """
    check_can_ask(instead=f"yolofs sessions --forget --yes {entry.id}")
    if not ask(question):
        say(on_no)
        raise click.exceptions.Exit(1)
