"""Sessions as lines for people, and as JSON for programs."""

from __future__ import annotations

from typing import Any

from yolofs.cli.output import emit, say
from yolofs.cli.sessions.session_condition import (
    Condition,
    condition_of,
    damage_of,
    has_staged,
    interrupted_number,
    is_mounted,
    place_of,
)
from yolofs.cli.show.json_forms import text_fields
from yolofs.paths import display, in_shell
from yolofs.registry.registry import SessionEntry

_ADVICE = {
    Condition.GONE: "if it was moved, run any command in its new place; for a copy: yolofs sessions --rebase PATH {id}",
    Condition.REPLACED: "to go on with what is there now: yolofs sessions --rebase {path} {id}",
    Condition.UNLISTED: "the registry does not know it: yolofs sessions --rebase {path} {id}",
    Condition.UNREACHABLE: "mount the disk that {session} is on",
}


def emit_sessions(entries: list[SessionEntry]) -> None:
    """Write a line for each session, and below it what hinders its use and what helps."""
    if not entries:
        say("there is no session yet; yolofs init starts one")
    for entry in entries:
        condition = condition_of(entry)
        staged = "staged" if has_staged(entry) else ""
        is_still_mounted = condition in _ADVICE and is_mounted(entry)
        emit(f"{entry.id}  {condition.value:<11}  {staged:<6}  {place_of(entry)}")
        if is_still_mounted:
            emit(f"  still mounted: yolofs unmount {entry.id}")
        if condition in _ADVICE:
            place = in_shell(entry.project_path) if entry.project else "PATH"
            emit(f"  {_ADVICE[condition].format(id=entry.id, path=place, session=display(entry.session_path))}")
        _emit_troubles(entry, condition)


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


def session_fields(entry: SessionEntry) -> dict[str, Any]:
    """Return a session for ``--json``."""
    return {
        "id": entry.id,
        **text_fields("project", entry.project_path),
        **text_fields("session", entry.session_path),
        "condition": condition_of(entry).value,
        "staged": has_staged(entry),
        "interrupted": interrupted_number(entry),
        "damage": damage_of(entry),
    }
