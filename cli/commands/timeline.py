"""``yolofs timeline``."""

from __future__ import annotations

import click

from yolofs.cli.history.earlier_history import chapters_told
from yolofs.cli.history.timeline_lines import emit_timeline, timeline_document
from yolofs.cli.output import emit_json
from yolofs.cli.project.project import find_project, reading


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(as_json: bool) -> None:
    """Show all generations and what each was built on.

    Time runs down. The left column is the branch that the present is built on. Branches that a
    travel has left are marked as dead; you can still travel to them.

    First come the generations from before each commit that is kept (see the setting keep_commits),
    dimmed, with the numbers that they had. You cannot travel to these, but `yolofs log` and `yolofs
    diff --run N` show them.

    "All written anew" marks where a drop or a merge wrote the whole state down again. It is no
    travel, and the generation after it has the result. Its own number means the generation before
    it.

    The signs are ● for a snapshot (or base), ◆ for a travel, ◉ for the present, and ○ for a
    snapshot that is dead; without Unicode they are * > @ o.
    """
    with reading(find_project()) as session, chapters_told(session) as found:
        earlier = found[:-1]
        if as_json:
            emit_json(timeline_document(session, earlier))
        else:
            emit_timeline(session, earlier)
