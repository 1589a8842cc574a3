"""``yolofs sessions``."""

from __future__ import annotations

import os
from typing import Any

import click

from yolofs.cli.completing import session_ids
from yolofs.cli.options import start_directory
from yolofs.cli.output import ask, check_can_ask, emit, emit_json_list, say
from yolofs.cli.path_types import PATH
from yolofs.cli.sessions.session_condition import (
    Condition,
    condition_of,
    damage_of,
    has_staged,
    interrupted_number,
    is_mounted,
)
from yolofs.cli.show.json_forms import text_fields
from yolofs.cli.which_project import session_entry, unregistered
from yolofs.errors import SessionBusyError, UsageError
from yolofs.paths import display, in_shell
from yolofs.registry.registry import Registry, SessionEntry
from yolofs.registry.search import FoundProject, session_of
from yolofs.registry.start import check_owner
from yolofs.session.forget import forget_session
from yolofs.session.moved_project import move_session

_ADVICE = {
    Condition.GONE: "if it was moved, run any command in its new place; for a copy: yolofs sessions --rebase PATH {id}",
    Condition.REPLACED: "to go on with what is there now: yolofs sessions --rebase {path} {id}",
    Condition.UNLISTED: "the registry does not know it: yolofs sessions --rebase {path} {id}",
    Condition.UNREACHABLE: "mount the disk that {session} is on",
}


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
        _forget(_chosen(entries, session), yes=yes)
    elif target is not None:
        _rebase(_chosen(entries, session), os.path.join(start_directory(), target))
    elif session is not None:
        _list([session_entry(session)], as_json=as_json)
    else:
        _list(entries, as_json=as_json)


def _registered() -> list[SessionEntry]:
    with Registry.open() as registry:
        return list(registry)


def _list(entries: list[SessionEntry], *, as_json: bool) -> None:
    if as_json:
        emit_json_list("sessions", map(_fields, entries))
        return
    if not entries:
        say("there is no session yet; yolofs init starts one")
    for entry in entries:
        condition = condition_of(entry)
        staged = "staged" if has_staged(entry) else ""
        is_still_mounted = condition in _ADVICE and is_mounted(entry)
        emit(f"{entry.id}  {condition.value:<11}  {staged:<6}  {_place(entry)}")
        if is_still_mounted:
            emit(f"  still mounted: yolofs unmount {entry.id}")
        if condition in _ADVICE:
            place = in_shell(entry.project_path) if entry.project else "PATH"
            emit(f"  {_ADVICE[condition].format(id=entry.id, path=place, session=display(entry.session_path))}")
        _emit_troubles(entry, condition)


def _place(entry: SessionEntry) -> str:
    """Return where the project of a session is, or was."""
    return display(entry.project_path) if entry.project else "(not known)"


def _emit_troubles(entry: SessionEntry, condition: Condition) -> None:
    """Write why a session cannot be used now.  If its project exists, also write the command that
    tells more.
    """
    is_there = condition in (Condition.MOUNTED, Condition.READY)
    command = f": yolofs -C {in_shell(entry.project_path)}"
    number = interrupted_number(entry)
    if number is not None:
        emit(f"  commit {number} was interrupted" + (f"{command} status" if is_there else ""))
    damage = damage_of(entry)
    if damage is not None:
        emit(f"  {damage}" + (f"{command} doctor" if is_there else ""))


def _fields(entry: SessionEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        **text_fields("project", entry.project_path),
        **text_fields("session", entry.session_path),
        "condition": condition_of(entry).value,
        "staged": has_staged(entry),
        "interrupted": interrupted_number(entry),
        "damage": damage_of(entry),
    }


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


def _forget(entry: SessionEntry, *, yes: bool) -> None:
    place = _place(entry)
    if condition_of(entry) is Condition.UNREACHABLE:
        _take_off_the_list(entry, yes=yes)
        return
    _check_unmounted(entry)
    if not yes and has_staged(entry):
        check_can_ask(instead=f"yolofs sessions --forget --yes {entry.id}")
        if not ask(f"remove session {entry.id} of {place} with all that is staged in it, for good?"):
            say("nothing removed")
            raise click.exceptions.Exit(1)
    forget_session(entry)
    say(f"session {entry.id} of {place} is removed")


def _take_off_the_list(entry: SessionEntry, *, yes: bool) -> None:
    """Forget a session whose directory is not there, and so cannot be removed."""
    where = display(entry.session_path)
    if not yes:
        check_can_ask(instead=f"yolofs sessions --forget --yes {entry.id}")
        if not ask(f"{where} is missing, perhaps because its disk is not mounted; stop listing session {entry.id}?"):
            say("nothing forgotten")
            raise click.exceptions.Exit(1)
    forget_session(entry)
    say(f"session {entry.id} is no longer listed; what is staged in it, if it is still there, stays in {where}")


def _check_unmounted(entry: SessionEntry) -> None:
    """Raise SessionBusyError if a session is mounted."""
    if is_mounted(entry):
        raise SessionBusyError(f"session {entry.id} of {_place(entry)} is mounted", hint=f"yolofs unmount {entry.id}")


def _rebase(entry: SessionEntry, target: bytes) -> None:
    target = os.path.realpath(target)
    if not os.path.isdir(target):
        raise UsageError(f"{display(target)} is not a directory", hint="name the one that the project is now")
    check_owner(target)
    other = session_of(target)
    if other is not None and other.entry.id != entry.id:
        raise UsageError(
            f"{display(target)} has a session of its own", hint=f"yolofs sessions --forget {other.entry.id} removes it"
        )
    if condition_of(entry) in (Condition.READY, Condition.MOUNTED) and entry.project_path != target:
        raise UsageError(
            f"{display(entry.project_path)} is still there, and its session stays with it",
            hint=f"yolofs init {in_shell(target)} starts one of its own",
        )
    _check_unmounted(entry)
    before = _place(entry)
    move_session(FoundProject(target, entry))
    say(f"session {entry.id} goes on in {display(target)} (before: {before}), with all that is staged")
