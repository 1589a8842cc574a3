"""``yolofs doctor``."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from yolofs.cli.connection import connected
from yolofs.cli.doctor_checks import Finding, Health, check_machine, check_session
from yolofs.cli.output import ask, check_can_ask, emit, emit_json, paint, say
from yolofs.cli.project import find_project, session_directory
from yolofs.errors import JournalError, NoSessionError, UsageError
from yolofs.journal import cuts
from yolofs.journal.journal import Journal
from yolofs.paths import display
from yolofs.session.archive import journal_loss
from yolofs.session.lock import locked
from yolofs.session.salvage import (
    KeptLines,
    begin_anew,
    find_first_line,
    find_rest,
    go_on_without,
    keep_rest,
    restore_first_line,
)

_COLOURS = {Health.OK: "green", Health.WARN: "yellow", Health.FAIL: "red"}


@click.command()
@click.option("--repair", is_flag=True, help="Cut the journal before its first bad line, after asking.")
@click.option(
    "--keep-rest", "keeps_rest", is_flag=True, help="With --repair: take out only the bad lines, and keep the rest."
)
@click.option("-y", "--yes", is_flag=True, help="With --repair: do not ask.")
@click.option("--acknowledge", is_flag=True, help="Stop reporting what the journal has lost at its end.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(repair: bool, keeps_rest: bool, yes: bool, acknowledge: bool, as_json: bool) -> None:
    """Check this machine and the session, and say what to do.

    The exit code is 1 if anything fails. After --repair and --acknowledge, doctor lists only what
    is not in order.

    A crash may leave a torn line at the end of the journal. The next command that opens the journal
    for writing moves it to .yolofs/journal.torn and says so. status and doctor repeat that until
    --acknowledge, or until a commit or abort ends the journal. They report whole lines that are
    missing at the end in the same way; .yolofs/lost keeps the staged files that only these lines
    named.

    A line that was changed, is missing, is there twice or stands in another's place is damage, and
    no other command goes on. --repair cuts the journal before that line. With --keep-rest only the
    changes of bad and missing lines are lost; doctor refuses this if what is left contradicts
    itself, or if a travel in it might now lead elsewhere. In both cases doctor first copies
    everything from there on to journal.torn. --repair --keep-rest writes a damaged first line anew,
    if the other lines tell what it was.

    If the journal is missing, the names of what is staged are lost. --repair begins an empty
    journal, and keeps the staged files in .yolofs/lost, under numbers.
    """
    if keeps_rest and not repair:
        raise UsageError("--keep-rest goes only with --repair", hint="yolofs doctor --repair --keep-rest")
    try:
        project = find_project()
    except NoSessionError:
        if repair or acknowledge:
            raise
        project = None
    if acknowledge and project is not None:
        _acknowledge(project)
    if repair and project is not None:
        _repair(project, keeps_rest=keeps_rest, yes=yes)
    findings = [*check_machine(), *(check_session(project) if project is not None else ())]
    if as_json:
        emit_json({"findings": [_fields(finding) for finding in findings], "ok": not _has_failed(findings)})
    else:
        for finding in findings:
            if finding.level is not Health.OK or not (repair or acknowledge):
                _emit(finding)
        if project is None:
            say("there is no session here, so only the machine was checked")
    if _has_failed(findings):
        raise click.exceptions.Exit(1)


def _has_failed(findings: Sequence[Finding]) -> bool:
    return any(finding.level is Health.FAIL for finding in findings)


def _emit(finding: Finding) -> None:
    emit(f"{paint(f'{finding.level.value:<4}', _COLOURS[finding.level])}  {finding.check}: {finding.message}")
    if finding.advice:
        emit(f"      {finding.advice}")


def _fields(finding: Finding) -> dict[str, str]:
    return {
        "check": finding.check,
        "level": finding.level.value,
        "message": finding.message,
        "advice": finding.advice,
    }


def _acknowledge(project: bytes) -> None:
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


def _repair(project: bytes, *, keeps_rest: bool, yes: bool) -> None:
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
    with locked(directory):
        lost = journal_loss(directory)
        if lost is not None:
            say(lost.message)
            if yes or _agrees("begin an empty journal, and move what is staged to lost/?", instead):
                _begin_anew(directory)
            return
        if keeps_rest and os.path.lexists(path) and not _mend_first_line(directory, yes=yes, instead=instead):
            return
        damage = Journal.find_damage(path)
        if damage is None:
            _go_on_without(directory, yes=yes, instead=instead)
            return
        say(f"line {damage.line_number} of the journal (byte {damage.offset_bytes}) is bad: {damage.reason}")
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
        Journal.repair(path)
        say(f"cut; {cuts.record_text(damage.cut_lines)} from there on can be found in journal.torn now")


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
    place = begin_anew(directory)
    kept = f"; what was staged is in {display(place)}, without names" if place is not None else ""
    say(f"an empty journal is begun, nothing is staged{kept}")


def _lines(count: int) -> str:
    return f"{count} line{'s' if count != 1 else ''}"


def _missing(rest: KeptLines) -> str:
    if not rest.missing:
        return ""
    return f", and {_lines(rest.missing)} {'are' if rest.missing > 1 else 'is'} not there any more"
