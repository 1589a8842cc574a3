"""``yolofs doctor``."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from yolofs.cli.checks import Finding, Level, check_machine, check_session
from yolofs.cli.output import ask, check_can_ask, emit, emit_json, paint, say
from yolofs.cli.project import connected, find_project, session_directory
from yolofs.errors import NoSessionError, UsageError
from yolofs.journal import Journal
from yolofs.session import locked

_COLOURS = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}


@click.command()
@click.option("--repair", is_flag=True, help="Cut the journal before its first bad line, after asking.")
@click.option("--yes", is_flag=True, help="With --repair: do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(repair: bool, yes: bool, as_json: bool) -> None:
    """Check this machine and the session, and say what to do.

    The exit code is 1 if anything fails.
    """
    try:
        project = find_project()
    except NoSessionError:
        if repair:
            raise
        project = None
    if repair and project is not None:
        _repair(project, yes=yes)
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


def _repair(project: bytes, *, yes: bool) -> None:
    """Cut the journal if it is damaged and the user says so.

    Raises:
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
        if not yes:
            check_can_ask(instead="yolofs doctor --repair --yes")
            if not ask(f"cut {damage.cut_bytes} bytes there, and keep them as journal.torn?"):
                say("nothing repaired")
                return
        Journal.repair(path)
        say(f"cut; {damage.cut_bytes} bytes are in journal.torn now")
