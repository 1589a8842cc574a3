"""What has made a path what it is: in one line for people, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from yolofs.changes.changes import Change
from yolofs.changes.counting import counts
from yolofs.cli.output import local_time
from yolofs.cli.show.json_forms import command_fields, text_fields
from yolofs.cli.show.listing import PathDisplay, counts_text
from yolofs.cli.show.run_lines import command_line
from yolofs.paths import RelPath, absolute, in_shell
from yolofs.session.history.last_change import LastChange
from yolofs.session.session import Session


def blame_line(
    session: Session,
    path: RelPath,
    last: LastChange,
    run: int,
    command: Sequence[bytes],
    below: Sequence[Change] = (),
    *,
    typed: bytes = b"",
) -> str:
    """Return the line about a path, ``typed`` as the user has typed it.

    ``run`` is the number of the run that made the last change, 0 if none did; ``command`` what that
    ran; ``below`` what differs from base below the path.
    """
    line = PathDisplay(session.base.root, session.base.relative(session.project)).show_path(path) + f": {last.what}"
    if last.record is not None:
        assert last.generation is not None
        what = "since then" if last.generation > session.timeline.present else f"generation {last.generation}"
        if last.commit is not None:
            what = f"commit {last.commit}"
        line += f", {local_time(last.record.time_ns)}, {what}"
        line += f", run {run}: {command_line(command)}".removesuffix(": ") if run else ", not by a run"
        line += "; base has changed since" if last.is_changed_since else ""
    if below:
        line += f"; below it {counts_text(counts(below))}: yolofs log -- {in_shell(typed)}"
    return line


def blame_document(
    session: Session,
    path: RelPath,
    last: LastChange,
    run: int,
    command: tuple[bytes, ...],
) -> dict[str, Any]:
    """Return the JSON document of a path's last change, without what lies below the path."""
    record = last.record
    return {
        **text_fields("path", absolute(session.base.root, path)),
        "what": last.what,
        "time_ns": record.time_ns if record is not None else None,
        "generation": last.generation,
        "commit": last.commit,
        "changed_since": last.is_changed_since,
        "run": run or None,
        **command_fields("command", command),
    }
