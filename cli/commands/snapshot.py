"""``yolofs snapshot``."""

from __future__ import annotations

import os

import click

from yolofs.cli.without_click.snapshot import snapshot


@click.command()
@click.argument("name", default="")
@click.option("--if-changed", is_flag=True, help="Do nothing if nothing has changed since the last generation.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(name: str, if_changed: bool, as_json: bool) -> None:
    """Keep the present state as a generation.

    It prints the generation's number. It takes no time, and works while files are open. If NAME was
    used before, it names the newest one from now on.
    """
    snapshot(os.fsencode(name), if_changed=if_changed, as_json=as_json)
