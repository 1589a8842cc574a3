"""``yolofs commits``."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from typing import Any

import click

from yolofs.cli.output import emit, emit_json_list, local_time, say
from yolofs.cli.project import find_project, reading
from yolofs.commit.plan.plan import (
    Create,
    Duplicate,
    Fetch,
    FinishDirectory,
    Link,
    MakeDirectory,
    Park,
    Place,
    Plan,
    Remove,
    Rewrite,
    SetMetadata,
)
from yolofs.commit.undo.applied import read_plan
from yolofs.errors import YolofsError
from yolofs.session.kept_size import kept_bytes
from yolofs.session.undo import Ended, ended_commits, named
from yolofs.system.disk_usage import size_text
from yolofs.system.plain_files import open_plain

_LISTED = 20
_WORDS = {"removed": "deleted", "moved": "renamed"}
"""What people read, as elsewhere, for the counts whose names in JSON are others."""
_RUN = re.compile(rb" run=(\d+)")


@click.command()
@click.option("--all", "shows_all", is_flag=True, help=f"Not only the last {_LISTED}.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(shows_all: bool, as_json: bool) -> None:
    """List the commits of the project, oldest first.

    Each has a number for `yolofs undo`. Shown are when it was made, what it changed, how much is
    kept of what base had before, which runs had changed the files, and whether it is undone, or
    undoes another.
    """
    with reading(find_project()) as session:
        commits = ended_commits(session)
        shown = commits if shows_all or as_json else commits[-_LISTED:]
        if as_json:
            emit_json_list("commits", map(_fields, shown))
            return
        if not commits:
            say("nothing has been committed yet, or nothing of it is kept any more")
        if len(shown) < len(commits):
            say(f"{len(commits) - len(shown)} older ones are not shown; --all shows them")
        for commit in shown:
            emit(_line(commit))


def _line(commit: Ended) -> str:
    counts = _counts(commit)
    did = (
        ", ".join(f"{count} {_WORDS.get(what, what)}" for what, count in counts.items() if count)
        if counts is not None
        else "damaged"
    )
    runs = runs_of(commit)
    words = [f"{commit.number:>4}  {local_time(commit.began_ns)}  {size_text(kept_bytes(commit.directory)):>9}  {did}"]
    if runs:
        words.append(f"run{'s' if runs[1:] else ''} {', '.join(map(str, runs))}")
    if state := _state(commit):
        words.append(state)
    return "  ".join(words)


def _state(commit: Ended) -> str:
    part = "" if commit.is_undone else "in part "
    words = []
    if commit.is_given_up:
        words.append("given up half way")
    if commit.undoes is not None:
        words.append(f"undoes {'' if commit.undoes.is_whole else 'part of '}commit {commit.undoes.commit}")
    if commit.undone_by:
        words.append(f"undone {part}by {named(commit.undone_by)}")
    return f"[{'; '.join(words)}]" if words else ""


def age_and_runs(commit: Ended) -> str:
    """Return when a commit was made and what had changed the files, in words."""
    runs = runs_of(commit)
    by = f", of run{'s' if runs[1:] else ''} {', '.join(map(str, runs))}" if runs else ""
    return f"made {_ago(commit.began_ns)}{by}"


def _ago(time_ns: int) -> str:
    seconds = max(0, time.time_ns() - time_ns) // 1_000_000_000
    for length, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= length:
            count = seconds // length
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def runs_of(commit: Ended) -> list[int]:
    """Return the numbers of the runs whose changes the journal has that ended with a commit."""
    try:
        with open(open_plain(os.path.join(commit.directory, b"journal"), os.O_RDONLY), "rb") as file:
            return sorted(set(map(int, _RUN.findall(file.read()))))
    except OSError:
        return []


def _counts(commit: Ended) -> dict[str, int] | None:
    try:
        return tally(read_plan(commit.directory))
    except (YolofsError, OSError):
        return None


def tally(plan: Plan) -> dict[str, int]:
    """Return what a plan does, in words, with how often it does it."""
    counts: Counter[str] = Counter(added=0, modified=0, removed=0, moved=0)
    parked = {step.number for step in plan.steps if isinstance(step, Park)}
    for step in plan.steps:
        match step:
            case Place() if step.number in parked:
                counts["moved"] += 1
            case Create() | Link() | Duplicate() | MakeDirectory() | Place():
                counts["added" if getattr(step, "replaced", None) is None else "modified"] += 1
            case Remove():
                counts["removed"] += 1
            case Rewrite() | SetMetadata():
                counts["modified"] += 1
            case FinishDirectory():
                counts["modified"] += step.ino is not None and step.was is not None
            case Park() | Fetch():
                pass
    return dict(counts)


def _fields(commit: Ended) -> dict[str, Any]:
    return {
        "commit": commit.number,
        "time_ns": commit.began_ns,
        "runs": runs_of(commit),
        "counts": _counts(commit),
        "kept_bytes": kept_bytes(commit.directory),
        "given_up": commit.is_given_up,
        "undoes": commit.undoes.commit if commit.undoes is not None else None,
        "undone_by": list(commit.undone_by),
        "undone": commit.is_undone,
    }
