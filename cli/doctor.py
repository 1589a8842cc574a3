"""``yolofs doctor``."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from yolofs import cuts
from yolofs.cli.checks import Finding, Level, check_machine, check_session
from yolofs.cli.output import ask, check_can_ask, emit, emit_json, paint, say
from yolofs.cli.project import connected, find_project, session_directory
from yolofs.errors import NoSessionError, UsageError
from yolofs.journal import Journal
from yolofs.salvage import Rest, find_rest, keep_rest
from yolofs.session import locked

_COLOURS = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}


@click.command()
@click.option("--repair", is_flag=True, help="Cut the journal before its first bad line, after asking.")
@click.option(
    "--keep-rest", "keeps_rest", is_flag=True, help="With --repair: take out the bad lines alone, and keep the rest."
)
@click.option("--yes", is_flag=True, help="With --repair: do not ask.")
@click.option("--acknowledge", is_flag=True, help="Say no more that a torn tail was cut off the journal.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(repair: bool, keeps_rest: bool, yes: bool, acknowledge: bool, as_json: bool) -> None:
    """Check this machine and the session, and say what to do.

    The exit code is 1 if anything fails.

    A torn tail, which a crash leaves at the end of the journal, is moved to .yolofs/journal.torn by the next command
    that opens it for writing. That says so, and status and doctor go on saying it until --acknowledge, or until a
    commit or abort ends the journal.

    A line of the journal that was changed, is missing, is there twice or stands in another's place is damage, and no
    command goes on. --repair cuts the journal before it; with --keep-rest only the changes of bad and missing lines
    are lost, and what is left is refused if it contradicts itself, or if a travel in it might lead elsewhere now. In
    both cases all from there on is in journal.torn before.
    """
    if keeps_rest and not repair:
        raise UsageError("--keep-rest is a way to repair", hint="yolofs doctor --repair --keep-rest")
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
            _emit(finding)
        if project is None:
            say("there is no session here, so only the machine was checked")
    if _has_failed(findings):
        raise click.exceptions.Exit(1)


def _has_failed(findings: Sequence[Finding]) -> bool:
    return any(finding.level is Level.FAIL for finding in findings)


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
    """Say for the last time what torn tails were cut off the journal."""
    path = os.path.join(session_directory(project), b"journal")
    found = cuts.read(path, Journal.form_of(path).key)
    for cut in found:
        say(f"acknowledged: {cuts.message(cut, path)}")
    cuts.forget(path)
    if not found:
        say("there is nothing to acknowledge")


def _repair(project: bytes, *, keeps_rest: bool, yes: bool) -> None:
    """Cut the journal if it is damaged and the user says so; with ``keeps_rest`` take out the bad lines alone.

    Raises:
        JournalError: the rest of it cannot be kept.
        UsageError: the session is mounted, or there is nobody to ask.
        SessionBusyError: another process is at work on the session.
    """
    directory = session_directory(project)
    path = os.path.join(directory, b"journal")
    with connected(project) as client:
        if client is not None:
            raise UsageError("the journal is in use by a mount", hint="yolofs unmount")
    with locked(directory):
        damage = Journal.find_damage(path)
        if damage is None:
            say("the journal is sound; nothing to repair")
            return
        say(f"line {damage.line_number} of the journal (byte {damage.offset_bytes}) is bad: {damage.reason}")
        question = f"cut {damage.cut_bytes} bytes there, and keep them as journal.torn?"
        if keeps_rest:
            rest = find_rest(path, damage)
            say(f"{_lines(len(rest.bodies))} from there on can be kept; {_lines(rest.left_out)} cannot{_missing(rest)}")
            question = "keep the one and leave out the other? All from there on is kept as journal.torn, too"
        if not yes:
            check_can_ask(instead=f"yolofs doctor --repair{' --keep-rest' if keeps_rest else ''} --yes")
            if not ask(question):
                say("nothing repaired")
                return
        if keeps_rest:
            keep_rest(path, damage)
            say(f"repaired; {damage.cut_bytes} bytes, with what was left out, are in journal.torn now")
            return
        Journal.repair(path)
        say(f"cut; {damage.cut_bytes} bytes are in journal.torn now")


def _lines(count: int) -> str:
    return f"{count} line{'s' if count != 1 else ''}"


def _missing(rest: Rest) -> str:
    if not rest.missing:
        return ""
    return f", and {_lines(rest.missing)} {'are' if rest.missing > 1 else 'is'} not there any more"
