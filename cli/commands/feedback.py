"""``yolofs feedback``."""

from __future__ import annotations

import click

from yolofs.cli.options import options
from yolofs.cli.output import emit, emit_json, say
from yolofs.cli.project.project import find_project, looking
from yolofs.cli.show.feedback_lines import item_fields, lines_of
from yolofs.cli.show.listing import PathDisplay
from yolofs.session import feedback


@click.command()
@click.option(
    "--new", "only_new", is_flag=True, help="Print only what the agent was not told yet, and count it as told."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(only_new: bool, as_json: bool) -> None:
    """Print what the user has dropped of an agent's work, and why.

    It prints what the user dropped in `yolofs review`, with the note that the user typed. An
    agent's next command (by `yolofs run` or a hook) prints what is new, once, by itself, unless
    the agent has printed it. A drop that was taken back in the review is not printed.
    """
    guard = options().guard
    with looking(find_project()) as session:
        new = feedback.take_new(session.directory) if only_new or guard is not None else ()  # so an agent reads it once
        found = new if only_new else feedback.read(session.directory).items
        if as_json:
            emit_json({"feedback": item_fields(found, session.base.root, guard)})
            return
        path_display = PathDisplay(session.base.root, session.base.relative(session.project))
        lines = list(lines_of(found, path_display, guard))
    for line in lines:
        emit(line)
    if not lines:
        say("nothing new" if only_new else "the user has dropped nothing")
