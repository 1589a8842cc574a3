"""``yolofs status``."""

from __future__ import annotations

from typing import Any

import click

from yolofs.changes import Change
from yolofs.cli.guard import PathGuard, hidden_by, seen
from yolofs.cli.jsonform import change_fields, text_fields
from yolofs.cli.listing import Place, counts, emit_changes, say_hidden, say_left_out, without_scratch
from yolofs.cli.options import options
from yolofs.cli.output import emit, emit_json, progress, warn
from yolofs.cli.project import connected, find_project, looking
from yolofs.cli.records_seen import count_since
from yolofs.daemon.files import read_daemon_file
from yolofs.daemon.protocol import Info, unquote
from yolofs.paths import display
from yolofs.session import Session
from yolofs.timeline import BASE


@click.command()
@click.option("--scratch", is_flag=True, help="Also what changed in scratch directories.")
@click.option("--hidden", "shows_hidden", is_flag=True, help="Also what lies on paths that a rule hides.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(scratch: bool, shows_hidden: bool, as_json: bool) -> None:
    """Show the mount, and what a commit would change.

    One line for each change: A added, M modified, D deleted, R renamed, T of another type, X metadata only. A
    renamed directory is one line, whatever is in it. What lies outside the project stands apart; what changed in
    scratch directories (/tmp and others, see the setting `scratch`) is left out, and so is what lies on paths that a
    rule hides (a commit lists it and takes it all the same).
    """
    project = find_project()
    info = None
    with connected(project) as client:
        if client is not None:
            info = client.info()
            client.flush()
    for warning in info.warnings if info is not None else ():
        warn(warning)
    with looking(project) as session:
        with progress("comparing") as update:
            everything = seen(options().guard, session.compare(BASE, progress=update), session.base.root)
        changes = everything if scratch else without_scratch(everything, session.regions)
        left_out = len(everything) - len(changes)
        guard = _hiding(project) if changes and not shows_hidden else None
        hidden = len(hidden_by(guard, changes, session.base.root))
        changes = seen(guard, changes, session.base.root)
        if as_json:
            document = _document(session, info, changes)
            emit_json(document | {"scratch_left_out": left_out, "hidden_left_out": hidden})
        else:
            _emit(session, info, changes)
            say_left_out(left_out)
            say_hidden(hidden)


def _hiding(project: bytes) -> PathGuard | None:
    from yolofs.cli.rules_in_force import hiding  # rules take long to import, and are for changes alone

    return hiding(project)


def _emit(session: Session, info: Info | None, changes: list[Change]) -> None:
    if info is not None:
        emit(f"mounted at {display(unquote(info.mountpoint))}, process {info.pid}")
    elif read_daemon_file(session.directory) is not None:
        emit("not mounted: the daemon has died; yolofs mount starts another one")
    else:
        emit("not mounted")
    emit(f"base {display(session.base.root)}, {_generation(session)}")
    emit()
    emit_changes(changes, Place(session.base.root, session.base.relative(session.project)), session.regions)


def _generation(session: Session) -> str:
    present = session.timeline.present
    text = f"generation {present}"
    if present:
        name = session.journal.markers[present - 1].marker.name
        text += f" ({display(name)})" if name else ""
    count = count_since(session)
    return text + (f" and {count} record{'s' if count > 1 else ''} since" if count else "")


def _document(session: Session, info: Info | None, changes: list[Change]) -> dict[str, Any]:
    root, regions = session.base.root, session.regions
    return {
        **text_fields("project", session.project),
        **text_fields("root", root),
        "mounted": info is not None,
        **(text_fields("mountpoint", unquote(info.mountpoint)) if info is not None else {"mountpoint": None}),
        "pid": info.pid if info is not None else None,
        "warnings": _warnings(session, info),
        "generation": session.timeline.present,
        "records_since": count_since(session),
        "counts": counts(changes),
        "changes": [change_fields(change, root, regions) for change in changes],
    }


def _warnings(session: Session, info: Info | None) -> list[str]:
    if info is not None:
        return list(info.warnings)
    return [session.settings_problem] if session.settings_problem else []
