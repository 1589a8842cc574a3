"""``yolofs doctor``."""

from __future__ import annotations

import click

from yolofs.cli.doctor import journal_repair
from yolofs.cli.doctor.machine_checks import check_machine
from yolofs.cli.doctor.session_checks import check_session
from yolofs.cli.output import emit_json, say
from yolofs.cli.project.project import find_project
from yolofs.cli.show.finding_lines import emit_findings, findings_document, has_failed
from yolofs.errors import NoSessionError, UsageError


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

    A line that was changed, is missing, is there twice, stands in another's place or contradicts
    those before it is damage, and no other command goes on. --repair cuts the journal before that
    line. With --keep-rest only the changes of bad and missing lines are lost; doctor refuses this
    if what is left contradicts itself, or if a travel in it might now lead elsewhere. In both cases
    doctor first copies everything from there on to journal.torn. --repair --keep-rest writes a
    damaged first line anew, if the other lines tell what it was. If the view does not come from a
    line that contradicts those before it, the view stays, but no travel leads to the generations
    that do; --repair takes out that line and what follows it in its generation.

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
        journal_repair.acknowledge(project)
    if repair and project is not None:
        journal_repair.repair(project, keeps_rest=keeps_rest, yes=yes)
    findings = [*check_machine(), *(check_session(project) if project is not None else ())]
    if as_json:
        emit_json(findings_document(findings))
    else:
        emit_findings(findings, only_problems=repair or acknowledge)
        if project is None:
            say("there is no session here, so only the machine was checked")
    if has_failed(findings):
        raise click.exceptions.Exit(1)
