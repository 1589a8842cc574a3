"""``yolofs commits``."""

from __future__ import annotations

import click

from yolofs.cli.output import emit, emit_json_list, say
from yolofs.cli.project.project import find_project, reading
from yolofs.cli.show.commit_lines import commit_fields, commit_line
from yolofs.session.history.ended_commits import count_ended, ended_commits
from yolofs.session.history.kept_size import NO_SIZE, sizes_of_commits

_LISTED = 20


@click.command()
@click.option("--all", "shows_all", is_flag=True, help=f"List all commits, not only the last {_LISTED}.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(shows_all: bool, as_json: bool) -> None:
    """List the commits of the project, oldest first.

    For each it prints a number (for `yolofs undo`), when it was made, what it changed, how much
    space the kept old versions take, which runs had changed the files, and whether it is undone, or
    undoes another. At a terminal that has no room for all of a line, it has the changes by their
    letters (as in `yolofs status`), and is cut; --json has all.
    """
    with reading(find_project()) as session:
        shown = ended_commits(session, last=None if shows_all or as_json else _LISTED)
        sizes = sizes_of_commits(session.directory)
        if as_json:
            emit_json_list(
                "commits", (commit_fields(commit, sizes.get(commit.number, NO_SIZE).kept) for commit in shown)
            )
            return
        if not shown:
            say("nothing has been committed yet, or nothing of it is kept any more")
        if older := 0 if shows_all else count_ended(session.directory, sorted(sizes)[:-_LISTED]):
            say(f"{older} older ones are not shown; --all shows them")
        for commit in shown:
            emit(commit_line(commit, sizes.get(commit.number, NO_SIZE).kept))
