"""Commits as lines for people, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from yolofs.cli.output import local_time, terminal_width
from yolofs.cli.show.listing import counts_text
from yolofs.session.history.commit_counts import read_counts, read_runs_of_commit
from yolofs.session.history.ended_commits import EndedCommit, named
from yolofs.system.disk_usage import size_text

_NO_COUNTS, _NO_CHANGES = "no counts kept", "hard links or times alone"
_USUAL_COLUMNS = 80
_SECONDS = 3
"""So many characters a time to the second has more than one to the minute."""


def commit_line(commit: EndedCommit, kept_bytes: int) -> str:
    """Return a commit in one line; ``kept_bytes`` is how much space the kept old versions take.

    If stdout is a terminal and has no room for it, it is said in short: first what has become of
    it, then the changes by their letters, and as many of its runs as there is room for.
    """
    counts, runs = read_counts(commit.directory), read_runs_of_commit(commit.directory)
    number, time, size = f"{commit.number:>4}", local_time(commit.began_ns), f"{size_text(kept_bytes):>9}"
    columns = terminal_width()
    is_narrow = columns is not None and columns < _USUAL_COLUMNS
    head = f"{number}  {time[:-_SECONDS] if is_narrow else time}  {size}  "
    whole = head + "  ".join(filter(None, (_did(counts), _runs(runs), _state(commit))))
    if columns is None or len(whole) <= columns:
        return whole
    from yolofs.cli.show.text_width import cut_end  # for terminals alone

    short = head + "  ".join(filter(None, (_state(commit, is_short=True), _did_in_short(counts), _runs(runs))))
    return cut_end(short, columns)


def _did(counts: Mapping[str, int] | None) -> str:
    return _NO_COUNTS if counts is None else counts_text(counts) or _NO_CHANGES


def _did_in_short(counts: Mapping[str, int] | None) -> str:
    """Return the counts as letters, such as ``2A 1M``."""
    if counts is None:
        return _NO_COUNTS
    return " ".join(f"{count}{letter}" for letter, count in counts.items() if count) or _NO_CHANGES


def _runs(runs: Sequence[int]) -> str:
    return f"run{'s' if runs[1:] else ''} {', '.join(map(str, runs))}" if runs else ""


def _state(commit: EndedCommit, *, is_short: bool = False) -> str:
    """Return what has become of a commit, in brackets; nothing if it stands as it was made."""
    words = []
    if commit.is_given_up:
        words.append("given up" if is_short else "given up half way")
    if commit.is_damaged:
        why = "" if is_short else ": its seal, or what says that it was done, is damaged or gone"
        words.append(f"cannot be undone{why}")
    if commit.undoes is not None:
        part, what = "" if commit.undoes.is_whole else "part of ", "" if is_short else "commit "
        words.append(f"undoes {part}{what}{commit.undoes.commit}")
    if commit.undone_by:
        by = ", ".join(map(str, commit.undone_by)) if is_short else named(commit.undone_by)
        words.append(f"undone {'' if commit.is_undone else 'in part '}by {by}")
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
