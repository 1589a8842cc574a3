"""``yolofs abort``."""

from __future__ import annotations

import click

from yolofs.cli.commit.aborting import drop_staged
from yolofs.cli.project.project import find_project


@click.command()
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--unfold", "unfolds", is_flag=True, help="List each change on a line of its own.")
def command(yes: bool, unfolds: bool) -> None:
    """Drop everything that is staged, snapshots too.

    The view is base again, and the private /tmp and /var/tmp of runs are empty. This cannot be
    undone. Files that programs have open keep their content until they are closed.
    """
    drop_staged(find_project(), yes=yes, unfolds=unfolds)
