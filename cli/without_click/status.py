"""What ``yolofs status`` shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from yolofs.changes.changes import Change
from yolofs.changes.counting import counts
from yolofs.cli.guard import PathGuard, hidden_by, visible_changes
from yolofs.cli.history.visible_records import count_since
from yolofs.cli.options import options
from yolofs.cli.output import emit, emit_json, progress, say, warn
from yolofs.cli.project.connection import connected, warn_of_other_version
from yolofs.cli.project.project import find_project, session_directory, warnings_of
from yolofs.cli.rules.hidden_changes import hiding_of
from yolofs.cli.rules.hidden_tracked import untracked, untracked_lines
from yolofs.cli.rules.untrusted_settings import say_what_waits, waiting_fields, waiting_lines
from yolofs.cli.show.drift_lines import Drifts, drift_fields, emit_drift
from yolofs.cli.show.json_forms import change_fields, host_code_fields, text_fields
from yolofs.cli.show.listing import PathDisplay, emit_changes, say_hidden, say_left_out, say_marked, without_scratch
from yolofs.cli.show.marking import marks_of
from yolofs.daemon.rpc.daemon_files import read_daemon_file
from yolofs.daemon.rpc.protocol import Info, unquote
from yolofs.errors import ConfigError
from yolofs.journal import cuts
from yolofs.paths import RelPath, absolute, display
from yolofs.session import run_tmp
from yolofs.session.history.kept_size import size_of_session
from yolofs.session.session import Session, SessionAccess
from yolofs.state.regions import Region
from yolofs.store.readers import reading_store
from yolofs.system.disk_usage import size_at_least_text, size_text

if TYPE_CHECKING:  # takes long
    from yolofs.cli.show.shortening import Shortener
    from yolofs.config.trust import WaitingLine
    from yolofs.hostcode.mark import Marks
    from yolofs.session.interrupted import Interrupted


def show_status(
    *, scratch: bool = False, shows_hidden: bool = False, unfolds: bool = False, as_json: bool = False
) -> None:
    """Show the mount, and what a commit would change.  The parameters are the command's options."""
    project = find_project()
    with reading_store(session_directory(project)):
        _show(project, scratch=scratch, shows_hidden=shows_hidden, unfolds=unfolds, as_json=as_json)


def _show(project: bytes, *, scratch: bool, shows_hidden: bool, unfolds: bool, as_json: bool) -> None:
    info = None
    with connected(project) as client:
        if client is not None:
            warn_of_other_version(client)
            info = client.info()
            client.flush()
    waiting = _waiting(project)
    say_what_waits(len(waiting))
    with Session.open(project, SessionAccess.READ) as session:
        said = warnings_of(session)
        warnings = _warnings(session, info, said)
        for warning in dict.fromkeys((*said, *warnings)):
            warn(warning)
        is_half_made = session.interrupted_commit() is not None  # what the commit did to base would be called drift
        drifts = Drifts(session)
        everything = [] if is_half_made else _everything(session, drifts)
        changes = everything if scratch else without_scratch(everything, session.regions)
        left_out = len(everything) - len(changes)
        wants_guard = bool(changes or drifts.unlisted) and not shows_hidden
        guard = hiding_of(project, changes, session.base.root) if wants_guard else None
        hidden = len(hidden_by(guard, changes, session.base.root))
        changes = visible_changes(guard, changes, session.base.root)
        marks = marks_of(session, changes)

        def is_shown(path: RelPath) -> bool:
            is_left_out = not scratch and session.regions.of(path) is Region.SCRATCH
            return not is_left_out and _may_see((guard, options().guard), absolute(session.base.root, path))

        drift = drifts.of(changes, is_shown)
        if as_json:
            document = _document(session, info, changes, warnings, marks)
            document["waiting"] = waiting_fields(waiting)
            document |= {"scratch_left_out": left_out, "hidden_left_out": hidden}
            document["hidden_untracked"] = [text_fields("path", path) for path in untracked(session, changes)]
            document["open_files"] = _open_files(session, changes) if info is not None else []
            emit_json(document | {"drift": drift_fields(drift, session.base.root)})
        else:
            _emit_place(session, info)
            if is_half_made:
                say("what is staged is listed once that is settled: base has a part of it already")
                return
            emit()
            path_display = PathDisplay(session.base.root, session.base.relative(session.project))
            short = None if unfolds or not changes else _shortener(session, path_display)
            emit_changes(changes, path_display, session.regions, marks, shortener=short)
            for line in untracked_lines(session, changes):
                say(line)
            emit_drift(drift, path_display)
            say_left_out(left_out)
            say_hidden(hidden)
            say_marked(changes, marks)


def _waiting(project: bytes) -> tuple[WaitingLine, ...]:
    """Return the lines of `.yolofs.toml` that are not in force; none if the files are not in order,
    which is said.
    """
    try:
        return waiting_lines(project)
    except ConfigError:
        return ()


def _shortener(session: Session, path_display: PathDisplay) -> Shortener:
    from yolofs.cli.show.shortening import Shortener  # what asks git is for changes alone

    return Shortener(session, path_display, "--unfold")


def _open_files(session: Session, changes: Sequence[Change]) -> list[dict[str, Any]]:
    from yolofs.cli.commit.open_files import find_open_files, open_files_fields  # for JSON alone

    return open_files_fields(find_open_files(session, changes))


def _may_see(guards: Sequence[PathGuard | None], path: bytes) -> bool:
    return all(guard is None or guard.may_see(path) for guard in guards)


def _everything(session: Session, drifts: Drifts) -> list[Change]:
    with progress("comparing") as update:
        return visible_changes(options().guard, drifts.compare(progress=update), session.base.root)


def _emit_place(session: Session, info: Info | None) -> None:
    if info is not None:
        emit(f"mounted at {display(unquote(info.mountpoint))}, process {info.pid}")
    elif read_daemon_file(session.directory) is not None:
        emit("not mounted: the daemon has died; yolofs mount starts another one")
    else:
        emit("not mounted")
    emit(f"base {display(session.base.root)}, {_generation(session)}")
    size = size_of_session(session.directory, session.fresh_from())
    if size.all:
        of_it = f", {size_text(size.kept)} of it for what base had before commits" if size.kept else ""
        emit(f".yolofs takes {size_text(size.all)}{of_it}")
    tmp = run_tmp.size(session.directory)
    if tmp.size_bytes or tmp.is_more:
        where = display(run_tmp.top_of(session.directory))
        emit(f"the private /tmp of runs takes {size_at_least_text(tmp)}, in {where}")


def _generation(session: Session) -> str:
    present = session.timeline.present
    text = f"generation {present}"
    if present:
        name = session.journal.markers[present - 1].marker.name
        text += f" ({display(name)})" if name else ""
    count = count_since(session)
    return text + (f" and {count} record{'s' if count > 1 else ''} since" if count else "")


def _document(
    session: Session, info: Info | None, changes: list[Change], warnings: list[str], marks: Marks
) -> dict[str, Any]:
    root, regions = session.base.root, session.regions
    size = size_of_session(session.directory, session.fresh_from())
    return {
        **text_fields("project", session.project),
        **text_fields("root", root),
        "mounted": info is not None,
        **(text_fields("mountpoint", unquote(info.mountpoint)) if info is not None else {"mountpoint": None}),
        "pid": info.pid if info is not None else None,
        "warnings": warnings,
        "cuts": [_cut_fields(cut, session) for cut in cuts.read(session.journal.path, session.journal.form.key)],
        "interrupted": _interrupted_fields(session.interrupted()),
        "size_bytes": size.all,
        "kept_bytes": size.kept,
        "run_tmp": _run_tmp_fields(session.directory),
        "generation": session.timeline.present,
        "records_since": count_since(session),
        "counts": counts(changes),
        "changes": [change_fields(change, root, regions, marks) for change in changes],
        "host_code": host_code_fields(changes, root, marks),
    }


def _run_tmp_fields(directory: bytes) -> dict[str, Any]:
    found = run_tmp.size(directory)
    return {
        **text_fields("path", run_tmp.top_of(directory)),
        "size_bytes": found.size_bytes,
        "is_more": found.is_more,
    }


def _interrupted_fields(found: Interrupted | None) -> dict[str, Any] | None:
    if found is None:
        return None
    plan = found.plan or found.way_back
    return {
        "commit": found.number,
        "steps": len(plan.steps) if plan is not None else None,
        "done": found.done if plan is not None else None,
        "way": found.way or None,
        "why": found.why,
    }


def _cut_fields(cut: cuts.Cut, session: Session) -> dict[str, Any]:
    kept = cut.kept_in(session.journal.path)
    return {
        "kind": "missing" if cut.is_missing else "torn",
        "line": cut.line_number,
        "offset": cut.offset_bytes,
        "bytes": cut.size_bytes,
        "records": cut.record_count,
        "time_ns": cut.time_ns,
        **({"kept_in": None} if not kept else text_fields("kept_in", kept)),
    }


def _warnings(session: Session, info: Info | None, found: list[str]) -> list[str]:
    """Return what should be looked into, ``found`` of the session among it; of torn tails all that
    were cut.
    """
    journal = session.journal
    warnings = [cuts.sentence(cut, journal.path) for cut in cuts.read(journal.path, journal.form.key)]
    if info is not None:
        problem = session.settings_problem  # the daemon tells of it, and what it means for the mount
        found = [warning for warning in found if not (problem and warning.startswith(problem))]
        return [*warnings, *(warning for warning in info.warnings if warning not in warnings), *found]
    if _is_torn(session):
        torn = cuts.torn_message(journal.size, journal.record_count + 2, journal.torn_bytes)
        warnings.append(f"{torn}; {cuts.TORN_NEXT}")
    if journal.missing_records:
        warnings.append(cuts.missing_sentence(journal.missing_records, journal.record_count + 2))
    return [*warnings, *found]


def _is_torn(session: Session) -> bool:
    """Tell whether the journal has a torn tail, and not only a line that another command is writing
    just now.
    """
    if session.journal.torn_bytes:
        session.journal.refresh()
    return session.journal.torn_bytes > 0
