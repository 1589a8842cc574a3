"""``yolofs runs``."""

from __future__ import annotations

from typing import Any

import click

from yolofs.audit.runs import Run, generation_of, read_runs
from yolofs.cli.output import emit, emit_json_list, local_time, say
from yolofs.cli.project import connected, find_project, session_directory
from yolofs.cli.show.json_forms import text_fields, words_fields
from yolofs.journal.journal import Journal
from yolofs.paths import display
from yolofs.session.session import Access, Session


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(as_json: bool) -> None:
    """List the commands of `yolofs run`, oldest first.

    Each has a number for `yolofs log --run` and `yolofs diff --run`, its start, how long it took, its exit code, the
    generation that it made, and its command line.
    """
    project = find_project()
    with connected(project) as client:
        is_mounted = client is not None
    runs = read_runs(session_directory(project))
    with Session.open(project, Access.READ) as session:
        journal = session.journal
        if as_json:
            emit_json_list("runs", (_fields(run, journal) for run in runs))
            return
        if not runs:
            say("nothing has been run yet")
        for run in runs:
            emit(_line(run, journal, is_mounted=is_mounted))


def _line(run: Run, journal: Journal, *, is_mounted: bool) -> str:
    end = run.end
    if end is None:
        took, code = ("goes on", "") if is_mounted else ("", "killed")  # no run outlives its mount
    else:
        took = f"{(end.time_ns - run.start.time_ns) / 1e9:.1f} s"
        code = f"exit {end.code}" if end.code is not None else "killed"
    after = generation_of(end.after, journal) if end is not None else None
    made = f"generation {after}" if after is not None else ""
    command = " ".join(display(word) for word in run.command)
    return f"{run.number:>4}  {local_time(run.start.time_ns)}  {took:>9}  {code:<8}  {made:<14}  {command}".rstrip()


def _fields(run: Run, journal: Journal) -> dict[str, Any]:
    end = run.end
    return {
        "run": run.number,
        **words_fields("command", run.command),
        **text_fields("directory", run.directory),
        "start_ns": run.start.time_ns,
        "end_ns": end.time_ns if end is not None else None,
        "code": end.code if end is not None else None,
        "before": generation_of(run.start.before, journal),
        "after": generation_of(end.after, journal) if end is not None else None,
    }
