"""``yolofs commits``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import click

from yolofs.cli.output import emit, emit_json_list, local_time, say
from yolofs.cli.project import find_project, reading
from yolofs.cli.show.listing import counts_text
from yolofs.session.archive import End, commit_directory
from yolofs.session.commit_counts import read_counts, read_runs_of_commit
from yolofs.session.ended_commits import EndedCommit, ended_commits, named
from yolofs.session.kept_size import NOTHING, sizes_of_commits
from yolofs.system.disk_usage import size_text
from yolofs.system.plain_files import is_there

_LISTED = 20


@click.command()
@click.option("--all", "shows_all", is_flag=True, help=f"List all commits, not only the last {_LISTED}.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(shows_all: bool, as_json: bool) -> None:
    """List the commits of the project, oldest first.

    For each it prints a number (for `yolofs undo`), when it was made, what it changed, how much
    space the kept old versions take, which runs had changed the files, and whether it is undone, or
    undoes another.
    """
    with reading(find_project()) as session:
        shown = ended_commits(session, last=None if shows_all or as_json else _LISTED)
        sizes = sizes_of_commits(session.directory)
        if as_json:
            emit_json_list("commits", (_fields(commit, sizes.get(commit.number, NOTHING).kept) for commit in shown))
            return
        if not shown:
            say("nothing has been committed yet, or nothing of it is kept any more")
        if older := 0 if shows_all else _older(session.directory, sizes):
            say(f"{older} older ones are not shown; --all shows them")
        for commit in shown:
            emit(_line(commit, sizes.get(commit.number, NOTHING).kept))


def _older(session: bytes, numbers: Iterable[int]) -> int:
    """Return how many ended commits are older than those that are shown.

    The remains of a commit that was taken back do not count.
    """
    directories = [commit_directory(session, number) for number in sorted(numbers)[:-_LISTED]]
    ends = (b"journal", *(end.value for end in End))
    return sum(any(is_there(os.path.join(one, end)) for end in ends) for one in directories)


def _line(commit: EndedCommit, kept_bytes: int) -> str:
    counts = read_counts(commit.directory)
    did = "no counts kept" if counts is None else counts_text(counts) or "hard links alone"
    runs = read_runs_of_commit(commit.directory)
    words = [f"{commit.number:>4}  {local_time(commit.began_ns)}  {size_text(kept_bytes):>9}  {did}"]
    if runs:
        words.append(f"run{'s' if runs[1:] else ''} {', '.join(map(str, runs))}")
    if state := _state(commit):
        words.append(state)
    return "  ".join(words)


def _state(commit: EndedCommit) -> str:
    part = "" if commit.is_undone else "in part "
    words = []
    if commit.is_given_up:
        words.append("given up half way")
    if commit.is_damaged:
        words.append("cannot be undone: its seal, or what says that it was done, is damaged or gone")
    if commit.undoes is not None:
        words.append(f"undoes {'' if commit.undoes.is_whole else 'part of '}commit {commit.undoes.commit}")
    if commit.undone_by:
        words.append(f"undone {part}by {named(commit.undone_by)}")
    return f"[{'; '.join(words)}]" if words else ""


def _fields(commit: EndedCommit, kept_bytes: int) -> dict[str, Any]:
    return {
        "commit": commit.number,
        "time_ns": commit.began_ns,
        "runs": read_runs_of_commit(commit.directory),
        "counts": read_counts(commit.directory),
        "kept_bytes": kept_bytes,
        "given_up": commit.is_given_up,
        "damaged": commit.is_damaged,
        "undoes": commit.undoes.commit if commit.undoes is not None else None,
        "undone_by": list(commit.undone_by),
        "undone": commit.is_undone,
    }
