"""``yolofs blame``."""

from __future__ import annotations

import click

from yolofs.audit.runs import find_run, run_of
from yolofs.changes.changes import Change
from yolofs.changes.counting import counts
from yolofs.cli.completion.completing import staged_paths
from yolofs.cli.guard import visible_changes
from yolofs.cli.history.earlier_history import chapters_told
from yolofs.cli.history.missing_paths import nothing_at
from yolofs.cli.options import options
from yolofs.cli.output import emit, emit_json, paint
from yolofs.cli.path_types import PATH
from yolofs.cli.project.project import find_project, reading, relative_paths
from yolofs.cli.show.blame_lines import blame_document, blame_line
from yolofs.journal.timeline import BASE
from yolofs.paths import RelPath
from yolofs.session.history.last_change import (
    LastChange,
    find_change_before_rename,
    find_committed_change,
    find_last_change,
)
from yolofs.session.session import Session


@click.command()
@click.argument("path", type=PATH, shell_complete=staged_paths)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(path: bytes, as_json: bool) -> None:
    """Tell which run and generation made the present content of PATH.

    If several have written to a file, it tells the last; `yolofs log -- PATH` lists them all.
    For a file that was renamed after a commit, a second line tells what wrote it before.
    For a directory it also tells how much has changed below it. For a path that is no longer staged
    it tells which commit applied it, as long as that commit is kept (see the setting keep_commits).
    """
    with reading(find_project()) as session:
        (relative,) = relative_paths(session, [path])
        guard = options().guard
        if guard is not None and not guard.may_see(session.base.path(relative)):
            raise nothing_at(session, relative, path, ", neither in the view nor in base")
        last = find_last_change(session, relative)
        earlier = None
        if last is None or last.record is None or last.what == "renamed":
            with chapters_told(session) as found:
                if last is None or last.record is None:
                    last = find_committed_change(session, relative, found[:-1]) or last
                if last is not None and last.what == "renamed":
                    earlier = find_change_before_rename(session, relative, last, found[:-1])
        if last is None:
            raise nothing_at(session, relative, path, ", neither in the view nor in base")
        if earlier is not None and guard is not None and not guard.may_see(session.base.path(earlier.path)):
            earlier = None
        number, words = _run_of(session, last)
        below = _changes_below(session, relative)
        if as_json:
            before = None
            if earlier is not None:
                before = blame_document(session, earlier.path, earlier.change, *_run_of(session, earlier.change))
            document = blame_document(session, relative, last, number, words)
            emit_json({**document, "below": counts(below), "before_rename": before})
            return
        line = blame_line(session, relative, last, number, words, below, typed=path)
        emit(line if last.commit is None else paint(line, "dim"))
        if earlier is not None:
            emit(paint(blame_line(session, earlier.path, earlier.change, *_run_of(session, earlier.change)), "dim"))


def _run_of(session: Session, last: LastChange) -> tuple[int, tuple[bytes, ...]]:
    """Return the number of the run that made a change, 0 if none did, and what it ran."""
    number = run_of(last.record) if last.record is not None else 0
    run = find_run(session.directory, number) if number else None
    return number, run.command if run is not None and options().guard is None else ()  # else another agent's perhaps


def _changes_below(session: Session, path: RelPath) -> list[Change]:
    """Return what differs from base below a path, and may be shown."""
    changes = session.compare(BASE, paths=[path], expand_renames=True)
    return visible_changes(
        options().guard, [change for change in changes if path not in change.paths], session.base.root
    )
