"""``yolofs snapshot``."""

from __future__ import annotations

import os

import click

from yolofs.cli.output import emit_json, emit_number, say
from yolofs.cli.project import connected, find_project, writing
from yolofs.paths import Generation, display


@click.command()
@click.argument("name", default="")
@click.option("--if-changed", is_flag=True, help="Do nothing if nothing has changed since the last generation.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(name: str, if_changed: bool, as_json: bool) -> None:
    """Keep the present state as a generation.

    It prints the generation's number. It takes no time, and works while files are open. If NAME was
    used before, it names the newest one from now on.
    """
    generation = _snapshot(find_project(), os.fsencode(name), if_changed=if_changed)
    if as_json:
        emit_json({"generation": generation})
    elif generation is None:
        say("nothing has changed since the last generation")
    else:
        emit_number(generation, f"snapshot {generation}" + (f" {display(os.fsencode(name))}" if name else ""))


def _snapshot(project: bytes, name: bytes, *, if_changed: bool) -> Generation | None:
    with connected(project) as client:
        if client is not None:
            return client.snapshot(name, if_changed=if_changed)
    with writing(project) as session:
        return session.snapshot(name, if_changed=if_changed)
