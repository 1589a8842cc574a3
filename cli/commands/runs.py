"""``yolofs runs``."""

from __future__ import annotations

import click

from yolofs.audit.runs import read_runs
from yolofs.cli.history.earlier_history import chapters_told
from yolofs.cli.output import emit_json_list
from yolofs.cli.project.connection import connected
from yolofs.cli.project.project import find_project, session_directory
from yolofs.cli.show.run_list import emit_runs, run_fields
from yolofs.session.session import Session, SessionAccess


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(as_json: bool) -> None:
    """List the commands of `yolofs run`, oldest first.

    For each it prints a number (for `yolofs log --run` and `yolofs diff --run`), its start, how
    long it took, its exit code, the generation that it made or the commit that came after it, and
    its command line, which is cut on a terminal.
    """
    project = find_project()
    with connected(project) as client:
        is_mounted = client is not None
    runs = read_runs(session_directory(project))
    with Session.open(project, SessionAccess.READ) as session, chapters_told(session) as found:
        if as_json:
            emit_json_list("runs", (run_fields(run, found) for run in runs))
        else:
            emit_runs(runs, found, is_mounted=is_mounted)
