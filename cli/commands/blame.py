"""``yolofs blame``."""

from __future__ import annotations

import stat
from typing import Any, NamedTuple, assert_never

import click

from yolofs.audit.runs import find_run, run_of
from yolofs.changes.changes import Kind
from yolofs.cli.completing import staged_paths
from yolofs.cli.output import emit, emit_json, local_time
from yolofs.cli.project import find_project, reading, relative_paths
from yolofs.cli.show.json_forms import text_fields, words_fields
from yolofs.cli.show.listing import Place
from yolofs.errors import UsageError
from yolofs.journal.records import Delete, Keep, Record, Rename, Snapshot, Stage, Travel
from yolofs.journal.timeline import BASE
from yolofs.paths import RelPath, absolute, display, is_below
from yolofs.session.session import Session
from yolofs.state.tree import Shown, Staged


class Origin(NamedTuple):
    """Where what a path shows came from."""

    what: str
    record: Record | None
    generation: int | None


@click.command()
@click.argument("path", type=click.Path(path_type=bytes), shell_complete=staged_paths)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(path: bytes, as_json: bool) -> None:
    """Tell which run and generation made what PATH shows now.

    Where several have written to a file, it tells the last one; `yolofs log -- PATH` has them all.
    """
    with reading(find_project()) as session:
        (relative,) = relative_paths(session, [path])
        origin = find_origin(session, relative)
        if origin is None:
            where = display(absolute(session.base.root, relative))
            raise UsageError(
                f"there is nothing at {where}, neither in the view nor in base",
                hint=f"what was done there in other generations: yolofs log -- {display(path)}",
            )
        number = run_of(origin.record) if origin.record is not None else 0
        run = find_run(session.directory, number) if number else None
        words = run.command if run is not None else ()
        if as_json:
            emit_json(_document(session, relative, origin, number, words))
            return
        line = Place(session.base.root, session.base.relative(session.project)).show_path(relative) + f": {origin.what}"
        if origin.record is not None:
            assert origin.generation is not None
            what = "since then" if origin.generation > session.timeline.present else f"generation {origin.generation}"
            line += f", {local_time(origin.record.time_ns)}, {what}"
            command_line = " ".join(display(word) for word in words)
            line += f", run {number}: {command_line}" if number else ", not by a run"
        emit(line)


def find_origin(session: Session, path: RelPath) -> Origin | None:
    """Return where what the view shows at ``path`` came from, or what took it away; None if it is nowhere."""
    shown = session.state().resolve(path)
    if shown is not None and shown.staged is None and (shown.base is None or not session.base.has(shown.base)):
        shown = None
    if shown is not None and shown.staged is None and shown.base is not None:
        shown = shown._replace(staged=_by_another_name(session, shown.base))
    last: Origin | None = None
    for segment in session.timeline.live_segments:
        for record in session.journal.read_segment(segment):
            what = _what(record, path, shown)
            if what:
                last = Origin(what, record, segment)
    if last is not None:
        is_written = last.what == "written" and all(
            change.kind is not Kind.METADATA for change in session.compare(BASE, paths=[path])
        )
        return last if is_written or last.what != "written" else last._replace(what="metadata changed")
    return Origin("as in base", None, None) if shown is not None else None


def _by_another_name(session: Session, path: RelPath) -> Staged | None:
    """Return the staged version of a base file that was changed by another name (hard link) of it; None if none is."""
    try:
        st = session.base.lstat(path)
    except OSError:
        return None
    if st.st_nlink < 2 or stat.S_ISDIR(st.st_mode):
        return None
    return session.state().linked.get(session.base.number(st))


def _what(record: Record, path: RelPath, shown: Shown | None) -> str:
    """Return what a record has done to what is shown at ``path``, empty if nothing that counts now."""
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


def _document(session: Session, path: RelPath, origin: Origin, run: int, command: tuple[bytes, ...]) -> dict[str, Any]:
    record = origin.record
    return {
        **text_fields("path", absolute(session.base.root, path)),
        "what": origin.what,
        "time_ns": record.time_ns if record is not None else None,
        "generation": origin.generation,
        "run": run or None,
        **words_fields("command", command),
    }
