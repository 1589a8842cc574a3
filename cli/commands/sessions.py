"""``yolofs sessions``."""

from __future__ import annotations

import os

import click

from yolofs.cli.completion.completing import session_ids
from yolofs.cli.options import start_directory
from yolofs.cli.output import emit_json_list
from yolofs.cli.path_types import PATH
from yolofs.cli.project.which_project import session_entry, unregistered
from yolofs.cli.sessions.forget_session import forget
from yolofs.cli.sessions.rebasing import rebase
from yolofs.cli.sessions.session_condition import Condition, condition_of
from yolofs.cli.sessions.session_lines import emit_sessions, session_fields
from yolofs.errors import UsageError
from yolofs.registry.registry import Registry, SessionEntry


@click.command()
@click.argument("session", metavar="[ID]", required=False, shell_complete=session_ids)
@click.option("--forget", "is_forgotten", is_flag=True, help="Remove session ID with all that is staged in it.")
@click.option(
    "--rebase",
    "target",
    metavar="PATH",
    type=PATH,
    help="Let session ID, whose project is gone, go on with the directory PATH.",
)
@click.option("-y", "--yes", is_flag=True, help="With --forget: do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(session: str | None, is_forgotten: bool, target: bytes | None, yes: bool, as_json: bool) -> None:
    """List your sessions on this machine, wherever their projects are.

    For each it prints an id; whether it is mounted, ready, or its project is gone; whether anything
    is staged; where the project is; and whether a commit was interrupted or the journal is damaged.
    If a project was moved, yolofs finds it by itself. A project that was restored from a copy is
    another directory: --rebase says that it takes the place of the first one. You may leave out ID
    if only one session's project is gone.
    """
    if is_forgotten and target is not None:
        raise UsageError("--forget and --rebase cannot go together", hint="yolofs sessions --help")
    entries = sorted((*_registered(), *unregistered()), key=lambda entry: entry.project_path)
    if is_forgotten:
        forget(_chosen(entries, session), yes=yes)
    elif target is not None:
        rebase(_chosen(entries, session), os.path.join(start_directory(), target))
    else:
        shown = [session_entry(session)] if session is not None else entries
        if as_json:
            emit_json_list("sessions", map(session_fields, shown))
        else:
            emit_sessions(shown)


def _registered() -> list[SessionEntry]:
    with Registry.open() as registry:
        return list(registry)


def _chosen(entries: list[SessionEntry], session: str | None) -> SessionEntry:
    """Return the session that an id names, or the only one whose project is gone."""
    if session is not None:
        return session_entry(session)
    gone = [
        entry for entry in entries if condition_of(entry) in (Condition.GONE, Condition.REPLACED, Condition.UNLISTED)
    ]
    if len(gone) != 1:
        what = f"the projects of {len(gone)} sessions are" if gone else "no session's project is"
        raise UsageError(f"{what} gone, so which one is meant?", hint="name its id: yolofs sessions lists them")
    return gone[0]
