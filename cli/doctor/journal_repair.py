"""What ``yolofs doctor --repair`` and ``--acknowledge`` do about a journal that is damaged, or has
lost something at its end: each step is said, and asked about.
"""

from __future__ import annotations

import os

from yolofs.cli.output import ask, check_can_ask, say
from yolofs.cli.project.connection import connected
from yolofs.cli.project.project import session_directory
from yolofs.errors import JournalError, UsageError
from yolofs.journal import cuts
from yolofs.journal.journal import Journal
from yolofs.journal.journal_damage import Damage
from yolofs.paths import display
from yolofs.session.archive import journal_loss
from yolofs.session.opening.lock import session_locked
from yolofs.session.opening.misfits import find_bad_line
from yolofs.session.opening.salvage import (
    KeptLines,
    begin_empty_journal,
    find_first_line,
    find_rest,
    go_on_without,
    keep_rest,
    restore_first_line,
    take_out,
)


def acknowledge(project: bytes) -> None:
    """Print what the journal has lost at its end, and stop reporting it.

    Raises:
        JournalError: the journal is missing, or damaged in its first line.
    """
    directory = session_directory(project)
    path = os.path.join(directory, b"journal")
    lost = journal_loss(directory)
    if lost is not None:
        raise lost
    found = cuts.read(path, Journal.form_of(path).key) if os.path.lexists(path) else []
    for cut in found:
        say(f"acknowledged: {cuts.message(cut, path)}")
    cuts.forget(path)
    if not found:
        say("there is nothing to acknowledge")


def repair(project: bytes, *, keeps_rest: bool, yes: bool) -> None:
    """Cut the journal if it is damaged and the user says so; with ``keeps_rest`` take out the bad
    lines alone.

    If it is missing, an empty one takes its place.

    Raises:
        JournalError: the rest of it cannot be kept, or its first line is damaged and ``keeps_rest``
            not given.
        UsageError: the session is mounted, or there is nobody to ask.
        SessionBusyError: another process is at work on the session.
    """
    directory = session_directory(project)
    path = os.path.join(directory, b"journal")
    with connected(project) as client:
        if client is not None:
            raise UsageError("the journal is in use by a mount", hint="yolofs unmount")
    instead = f"yolofs doctor --repair{' --keep-rest' if keeps_rest else ''} --yes"
    with session_locked(directory):
        lost = journal_loss(directory)
        if lost is not None:
            say(lost.message)
            if yes or _agrees("begin an empty journal, and move what is staged to lost/?", instead):
                _begin_anew(directory)
            return
        if keeps_rest and os.path.lexists(path) and not _mend_first_line(directory, yes=yes, instead=instead):
            return
        damage = find_bad_line(path)
        if damage is None:
            _go_on_without(directory, yes=yes, instead=instead)
            return
        say(
            f"line {damage.line_number} of the journal (byte {damage.offset_bytes}) is bad: {damage.reason}"
            f"{cuts.unshown_clause(damage.generations)}"
        )
        if damage.generations:
            _take_out(path, damage, yes=yes, instead=instead)
            return
        question = f"cut {cuts.record_text(damage.cut_lines)} off, from there on, and keep them as journal.torn?"
        if keeps_rest:
            rest = find_rest(path, damage)
            say(f"{_lines(len(rest.bodies))} from there on can be kept; {_lines(rest.left_out)} cannot{_missing(rest)}")
            question = "keep those and leave out the others? Everything from there on is kept as journal.torn as well"
        if not yes and not _agrees(question, instead):
            return
        if keeps_rest:
            keep_rest(path, damage)
            say(
                f"repaired; {cuts.record_text(damage.cut_lines)} from there on, with what was left out, "
                "can be found in journal.torn now"
            )
            return
        Journal.repair(path, damage)
        say(f"cut; {cuts.record_text(damage.cut_lines)} from there on can be found in journal.torn now")


def _take_out(path: bytes, damage: Damage, *, yes: bool, instead: str) -> None:
    records = cuts.record_text(damage.cut_lines)
    question = f"take {records} out, to the end of generation {damage.generations[0]}, and keep them as journal.torn?"
    if yes or _agrees(question, instead):
        take_out(path, damage)
        say(f"taken out; {records} can be found in journal.torn now")


def _go_on_without(directory: bytes, *, yes: bool, instead: str) -> None:
    """If lines are missing at the end of the journal, keep the staged files that only these lines
    named.
    """
    with Journal.open(os.path.join(directory, b"journal")) as journal:
        if not journal.missing_records:
            say("the journal is sound; nothing to repair")
            return
        say(cuts.missing_clause(journal.missing_records, journal.record_count + 2))
        if yes or _agrees("go on without them, and keep in lost/ the staged files that only they named?", instead):
            say(cuts.sentence(go_on_without(directory, journal), journal.path))


def _agrees(question: str, instead: str) -> bool:
    check_can_ask(instead=instead)
    if ask(question):
        return True
    say("nothing repaired")
    return False


def _mend_first_line(directory: bytes, *, yes: bool, instead: str) -> bool:
    """Write the first line of the journal anew if it is damaged; return whether to go on with the
    other lines.
    """
    path = os.path.join(directory, b"journal")
    try:
        Journal.form_of(path)
    except JournalError as error:
        found = find_first_line(path)
        say(error.message)
        if found is None:
            say("no line after it tells what it was, so nothing can be kept in the view")
            question = (
                "keep the journal as journal.torn, move the staged files that it does not name to lost/, begin anew?"
            )
            if yes or _agrees(question, instead):
                _begin_anew(directory)
            return False
        say(f"{found.sound} of the {_lines(found.others)} after it tell what it was")
        if not yes and not _agrees("write it anew? The journal as it is now is kept as journal.torn as well", instead):
            return False
        restore_first_line(path, found)
        say("the first line is written anew")
    return True


def _begin_anew(directory: bytes) -> None:
    place = begin_empty_journal(directory)
    kept = f"; what was staged is in {display(place)}, without names" if place is not None else ""
    say(f"an empty journal is begun, nothing is staged{kept}")


def _lines(count: int) -> str:
    return f"{count} line{'s' if count != 1 else ''}"


def _missing(rest: KeptLines) -> str:
    if not rest.missing:
        return ""
    return f", and {_lines(rest.missing)} {'are' if rest.missing > 1 else 'is'} not there any more"
