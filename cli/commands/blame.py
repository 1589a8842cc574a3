"""``yolofs blame``."""

from __future__ import annotations

import math
import stat
from typing import Any, NamedTuple, assert_never

import click

from yolofs.audit.runs import find_run, run_of
from yolofs.changes.changes import Change, Kind
from yolofs.changes.counting import counts
from yolofs.cli.completing import staged_paths
from yolofs.cli.earlier_history import chapters_told
from yolofs.cli.guard import seen
from yolofs.cli.missing_paths import nothing_at
from yolofs.cli.options import options
from yolofs.cli.output import emit, emit_json, local_time
from yolofs.cli.path_types import PATH
from yolofs.cli.project import find_project, reading, relative_paths
from yolofs.cli.show.json_forms import text_fields, words_fields
from yolofs.cli.show.listing import Place, counts_text
from yolofs.cli.show.run_lines import command_line
from yolofs.errors import YolofsError
from yolofs.journal.records import Delete, Keep, Record, Rename, Snapshot, Stage, Travel
from yolofs.journal.timeline import BASE
from yolofs.paths import RelPath, absolute, in_shell, is_below
from yolofs.session.generations import States
from yolofs.session.history import Chapter
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


@click.command()
@click.argument("path", type=PATH, shell_complete=staged_paths)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(path: bytes, as_json: bool) -> None:
    """Tell which run and generation made the present content of PATH.

    If several have written to a file, it tells the last one; `yolofs log -- PATH` lists them all.
    For a directory it also tells how much has changed below it. For a path that is no longer staged
    it tells which commit applied it, as long as that commit is kept (see the setting keep_commits).
    """
    with reading(find_project()) as session:
        (relative,) = relative_paths(session, [path])
        guard = options().guard
        if guard is not None and not guard.may_see(session.base.path(relative)):
            raise nothing_at(session, relative, path, ", neither in the view nor in base")
        last = find_last_change(session, relative)
        if last is None or last.record is None:
            last = _before_a_commit(session, relative) or last
        if last is None:
            raise nothing_at(session, relative, path, ", neither in the view nor in base")
        number = run_of(last.record) if last.record is not None else 0
        run = find_run(session.directory, number) if number else None
        words = run.command if run is not None and guard is None else ()  # inside it may be another agent's
        below = _changes_below(session, relative)
        if as_json:
            emit_json({**_document(session, relative, last, number, words), "below": counts(below)})
            return
        line = Place(session.base.root, session.base.relative(session.project)).show_path(relative) + f": {last.what}"
        if last.record is not None:
            assert last.generation is not None
            what = "since then" if last.generation > session.timeline.present else f"generation {last.generation}"
            if last.commit is not None:
                what = f"commit {last.commit}"
            line += f", {local_time(last.record.time_ns)}, {what}"
            line += f", run {number}: {command_line(words)}".removesuffix(": ") if number else ", not by a run"
            line += "; base has changed since" if last.is_changed_since else ""
        if below:
            line += f"; below it {counts_text(counts(below))}: yolofs log -- {in_shell(path)}"
        emit(line)


def _changes_below(session: Session, path: RelPath) -> list[Change]:
    """Return what differs from base below a path, and may be shown."""
    changes = session.compare(BASE, paths=[path], expand_renames=True)
    return seen(options().guard, [change for change in changes if path not in change.paths], session.base.root)


def _before_a_commit(session: Session, path: RelPath) -> LastChange | None:
    """Return the change by which the newest commit made or removed what base has at ``path``; None
    if no such commit is kept, or it was undone.
    """
    with chapters_told(session) as found:
        undone = math.inf
        for chapter in reversed(found[:-1]):
            assert chapter.commit is not None
            if chapter.commit >= undone or not _is_about(chapter, path):
                continue
            undoes = read_undoes(chapter.directory)
            if undoes is not None:  # base has again what it had before that commit
                undone = undoes.commit
                continue
            states = States(session.directory, session.base, session.store, chapter.journal)
            last = _last(states, path, states.state().resolve(path))
            if last is not None:
                return last._replace(commit=chapter.commit, is_changed_since=_has_changed(session, path, chapter))
    return None


def _is_about(chapter: Chapter, path: RelPath) -> bool:
    """Tell whether a commit has changed a path of base, or a directory that it lies in."""
    from yolofs.commit.undo.applied import LaterCommit  # it takes all that commits need along

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


def find_last_change(session: Session, path: RelPath) -> LastChange | None:
    """Return where the file at ``path`` came from, or what took it away; None if it is
    nowhere.
    """
    shown = session.state().resolve(path)
    if shown is not None and shown.staged is None and (shown.base is None or not session.base.has(shown.base)):
        shown = None
    if shown is not None and shown.staged is None and shown.base is not None:
        shown = shown._replace(staged=_by_another_name(session, shown.base))
    last = _last(session, path, shown)
    if last is not None:
        is_written = last.what == "written" and all(
            change.kind is not Kind.METADATA for change in session.compare(BASE, paths=[path])
        )
        return last if is_written or last.what != "written" else last._replace(what="metadata changed")
    return LastChange("as in base", None, None) if shown is not None else None


def _last(states: States, path: RelPath, shown: Shown | None) -> LastChange | None:
    """Return the last record that contributed to what is ``shown`` at a path; None if none did."""
    last = None
    for segment in states.timeline.live_segments:
        for record in states.journal.read_segment(segment):
            what = _what(record, path, shown)
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


def _what(record: Record, path: RelPath, shown: Shown | None) -> str:
    """Return what a record has done to what is shown at ``path``, empty if nothing that counts
    now.
    """
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
            return _kept(record, path, shown)
        case Snapshot() | Travel():
            return ""
        case _:
            assert_never(record)


def _kept(record: Keep, path: RelPath, shown: Shown | None) -> str:
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


def _document(
    session: Session, path: RelPath, last: LastChange, run: int, command: tuple[bytes, ...]
) -> dict[str, Any]:
    record = last.record
    return {
        **text_fields("path", absolute(session.base.root, path)),
        "what": last.what,
        "time_ns": record.time_ns if record is not None else None,
        "generation": last.generation,
        "commit": last.commit,
        "changed_since": last.is_changed_since,
        "run": run or None,
        **words_fields("command", command),
    }
