"""Commits as lines for people, and as JSON for programs."""

from __future__ import annotations

from typing import Any

from yolofs.cli.output import local_time
from yolofs.cli.show.listing import counts_text
from yolofs.session.history.commit_counts import read_counts, read_runs_of_commit
from yolofs.session.history.ended_commits import EndedCommit, named
from yolofs.system.disk_usage import size_text


def commit_line(commit: EndedCommit, kept_bytes: int) -> str:
    """Return a commit in one line; ``kept_bytes`` is how much space the kept old versions take."""
    counts = read_counts(commit.directory)
    did = "no counts kept" if counts is None else counts_text(counts) or "hard links or times alone"
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


def commit_fields(commit: EndedCommit, kept_bytes: int) -> dict[str, Any]:
    """Return a commit for a JSON document."""
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
