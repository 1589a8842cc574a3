"""What ``yolofs snapshot`` does."""

from __future__ import annotations

from yolofs.cli.output import emit_json, emit_number, say
from yolofs.cli.project.connection import connected
from yolofs.cli.project.which_project import find_project
from yolofs.paths import Generation, display


def snapshot(name: bytes = b"", *, if_changed: bool = False, as_json: bool = False) -> None:
    """Keep the present state as a generation, and print its number."""
    generation = _snapshot(find_project(), name, if_changed=if_changed)
    if as_json:
        emit_json({"generation": generation})
    elif generation is None:
        say("nothing has changed since the last generation")
    else:
        emit_number(generation, f"snapshot {generation}" + (f" {display(name)}" if name else ""))


def _snapshot(project: bytes, name: bytes, *, if_changed: bool) -> Generation | None:
    with connected(project) as client:
        if client is not None:
            return client.snapshot(name, if_changed=if_changed)
    from yolofs.cli.project.project import writing  # takes long

    with writing(project, command="snapshot") as session:
        return session.snapshot(name, if_changed=if_changed)
