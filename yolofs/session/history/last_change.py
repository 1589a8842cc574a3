"""Finds the record that last changed a path, and the commit that put it into base."""

from __future__ import annotations

import math
import stat
from collections.abc import Sequence
from typing import NamedTuple, assert_never

import msgspec

from yolofs.changes.changes import ChangeKind
from yolofs.errors import YolofsError
from yolofs.journal.records import Delete, Keep, Record, Rename, Snapshot, Stage, Travel
from yolofs.journal.timeline import BASE
from yolofs.paths import RelPath, is_below
from yolofs.session.generations import States
from yolofs.session.history.chapters import Chapter
from yolofs.session.session import Session
from yolofs.session.undo_notes import read_undoes
from yolofs.state.tree import Shown, Staged


class LastChange(NamedTuple):
    """What made a path show what it shows."""

    what: str
    record: Record | None
    generation: int | None
    commit: int | None = None
    """The commit that made it real, if one did."""
    is_changed_since: bool = False
    """Whether base has changed it after that."""


def find_last_change(session: Session, path: RelPath) -> LastChange | None:
    """Return where the file at ``path`` came from, or what took it away; None if it is
    nowhere.
    """
    shown = session.state().resolve(path)
    if shown is not None and shown.staged is None and (shown.base is None or not session.base.has(shown.base)):
        shown = None
    if shown is not None and shown.staged is None and shown.base is not None:
        shown = msgspec.structs.replace(shown, staged=_by_another_name(session, shown.base))
    last = _last(session, path, shown)
    if last is not None:
        is_written = last.what == "written" and all(
            change.kind is not ChangeKind.METADATA for change in session.compare(BASE, paths=[path])
        )
        return last if is_written or last.what != "written" else last._replace(what="metadata changed")
    return LastChange("as in base", None, None) if shown is not None else None


class EarlierChange(NamedTuple):
    """What was done to a file before it was renamed."""

    path: RelPath
    """Where it was then."""
    change: LastChange


def find_change_before_rename(
    session: Session, path: RelPath, renamed: LastChange, chapters: Sequence[Chapter]
) -> EarlierChange | None:
    """Return the newest committed change, other than a rename, of what was ``renamed`` to ``path``;
    None if none is known.  ``chapters`` as for :func:`find_committed_change`.
    """
    last: LastChange | None = renamed
    at, place = path, path
    while last is not None and last.what == "renamed":
        if last.commit is None:
            shown = session.state().resolve(at)
        else:
            chapters = [chapter for chapter in chapters if chapter.commit is not None and chapter.commit <= last.commit]
            shown = _states_of(session, chapters[-1]).state().resolve(at)
            chapters = chapters[:-1]
        if shown is None or shown.base is None or shown.base == at:
            return None
        at, place = shown.base, shown.base if last.commit is None else place
        last = find_committed_change(session, at, chapters, place=place)
    return EarlierChange(at, last) if last is not None else None


def _states_of(session: Session, chapter: Chapter) -> States:
    return States(session.directory, session.base, session.store, chapter.journal)


def find_committed_change(
    session: Session, path: RelPath, chapters: Sequence[Chapter], *, place: RelPath | None = None
) -> LastChange | None:
    """Return the change by which the newest commit made or removed what base has at ``path``; None
    if no such commit is kept, or it was undone.  ``chapters`` are those that have ended, oldest
    first; ``place`` is where base has it now, if that is elsewhere.
    """
    undone = math.inf
    for chapter in reversed(chapters):
        assert chapter.commit is not None
        if chapter.commit >= undone or not _is_about(chapter, path):
            continue
        undoes = read_undoes(chapter.directory)
        if undoes is not None:  # base has again what it had before that commit
            undone = undoes.commit
            continue
        states = _states_of(session, chapter)
        last = _last(states, path, states.state().resolve(path))
        now = place if place is not None else path
        if last is not None and (not _only_above(last, path) or session.base.has(now)):
            return last._replace(commit=chapter.commit, is_changed_since=_has_changed(session, now, chapter))
    return None


def _only_above(last: LastChange, path: RelPath) -> bool:
    """Tell whether the last record only renames a directory above a path, so that the path itself
    may never have existed.
    """
    match last.record:
        case Rename(src=src, dst=dst):
            return path != dst and not is_below(path, src)
        case Keep(path=there):
            return last.what == "renamed" and path != there
        case _:
            return False


def _is_about(chapter: Chapter, path: RelPath) -> bool:
    """Tell whether a commit has changed a path of base, or a directory that it lies in."""
    from yolofs.commit.undo.commits_around import LaterCommit  # it takes all that commits need along

    assert chapter.commit is not None
    try:
        return LaterCommit.read(chapter.commit, chapter.directory).touches(path)
    except (YolofsError, OSError):
        return False


def _has_changed(session: Session, path: RelPath, chapter: Chapter) -> bool:
    """Tell whether base has a path's content from after a commit; a commit keeps the times of
    files.
    """
    ended_ns = chapter.ended_ns
    try:
        return ended_ns is not None and session.base.lstat(path).st_mtime_ns > ended_ns
    except OSError:
        return False


def _last(states: States, path: RelPath, shown: Shown | None) -> LastChange | None:
    """Return the last record that contributed to what is ``shown`` at a path; None if none did."""
    last = None
    for segment in states.timeline.live_segments:
        for record in states.journal.read_segment(segment):
            what = _effect_of(record, path, shown)
            if what:
                last = LastChange(what, record, segment)
    return last


def _by_another_name(session: Session, path: RelPath) -> Staged | None:
    """Return the staged version of a base file that was changed by another name (hard link) of it;
    None if none is.
    """
    try:
        st = session.base.lstat(path)
    except OSError:
        return None
    if st.st_nlink < 2 or stat.S_ISDIR(st.st_mode):
        return None
    return session.state().linked.get(session.base.number(st))


def _effect_of(record: Record, path: RelPath, shown: Shown | None) -> str:
    """Return a record's effect on the thing at ``path``; empty if it has none any more."""
    staged = shown.staged if shown is not None else None
    match record:
        case Stage():
            if staged is None or record.ino != staged.ino:
                return ""
            return "metadata changed" if record.origin is not None else "written"
        case Delete():
            return "deleted" if shown is None and is_below(path, record.path) else ""
        case Rename():
            moved_here = is_below(path, record.dst) or (record.exchange and is_below(path, record.src))
            if shown is None:
                return "renamed" if is_below(path, record.src) else ""
            return "renamed" if staged is None and moved_here else ""
        case Keep():
            return _effect_of_keep(record, path, shown)
        case Snapshot() | Travel():
            return ""
        case _:
            assert_never(record)


def _effect_of_keep(record: Keep, path: RelPath, shown: Shown | None) -> str:
    """Return the same for what a commit of other changes left staged."""
    staged = shown.staged if shown is not None else None
    if record.ino is not None:
        what = "metadata changed" if record.origin is not None else "written"
        return what if staged is not None and staged.ino == record.ino else ""
    if not is_below(path, record.path):
        return ""
    if record.source is None:
        return "deleted" if shown is None else ""
    return "renamed" if staged is None and shown is not None and record.source != record.path else ""
