"""Bringing some paths back from another state: for restore, and for ``travel --only``."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any

from yolofs.changes.picks import Picks
from yolofs.cli.history.missing_paths import nothing_at
from yolofs.cli.output import emit_json, say
from yolofs.cli.project.project import changing, find_project, reading_whole, relative_paths
from yolofs.cli.show.held_hunks import check_held, held_fields, hunks_of_range
from yolofs.cli.show.json_forms import change_fields, text_fields
from yolofs.cli.show.listing import PathDisplay, emit_changes
from yolofs.cli.show.marking import marks_of
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.errors import YolofsError
from yolofs.hostcode.mark import Marks
from yolofs.os_errors import said_as
from yolofs.paths import RelPath, display, numbered_state
from yolofs.session.history.named_states import named_state, spelled_state, tree_of_named_state
from yolofs.session.restore import LINKS, Restored, restore
from yolofs.session.selecting import Hunks, drop_hunks
from yolofs.session.session import Session
from yolofs.session.state_files import StateFiles


def bring_back(text: str, typed: Sequence[bytes], *, as_json: bool) -> None:
    """Stage the version of some paths in a generation, and print the changes that this made.

    Raises:
        UsageError: there is nothing at a path, neither then nor now.
    """
    project = find_project()
    with reading_whole(project) as session:  # whoever has mistyped keeps nobody waiting
        paths = _check(session, text, typed)
    with changing(project, LoanKind.RESTORE, needs_settings=False) as (session, _):
        source = named_state(session, text)
        named = source.named
        sentence = "nothing is brought back, and the view is as before"
        with said_as(YolofsError, sentence, again="the same command", place=session.directory):
            done = restore(session, source, paths, f"restored from {named}".encode())
        marks = marks_of(session, done.changes)
        if as_json:
            emit_json(_fields(session, named, done, marks))
            return
        _tell(session, named, done, marks)


def drop_picked(text: str, picks: Picks, typed: Sequence[bytes], *, as_json: bool) -> None:
    """Stage the picked hunks as a generation has them, and print what changed by that.  All other
    hunks stay.

    Raises:
        StaleHunkError: a hunk does not exist (any more); nothing is done.
        UnnamedError: a hunk stays, as it goes only together with others.
    """
    project = find_project()
    with reading_whole(project) as session:  # whoever names what is gone keeps nobody waiting
        paths = relative_paths(session, typed)
        source = tree_of_named_state(session, text)[0]
        is_listed = text == "base" or numbered_state(text) is not None  # hunks takes no range of a run
        with contextlib.nullcontext() if is_listed else hunks_of_range(f"{text}.."):
            found = Hunks(session, source, paths=paths, only_apart=True).find(picks)
        paths = [path for file in found.values() for path in file.change.paths]  # where an id is, it stays
    with changing(project, LoanKind.RESTORE, needs_settings=False) as (session, _):
        source, named = tree_of_named_state(session, text)
        done = drop_hunks(session, source, picks, f"hunks as in {named}".encode(), paths=paths)
        marks = marks_of(session, done.changes)
        restored = Restored(done.changes, done.before, done.left_out)
        if as_json:
            emit_json(
                {**_fields(session, named, restored, marks), "held": held_fields(done.held_hunks, session.base.root)}
            )
        elif done.changes or not done.held_hunks:
            _tell(session, named, restored, marks)
        from_text = "" if text == "base" else f" --from {spelled_state(text)}"
        check_held(done.held_hunks, session.base.root, f"yolofs restore{from_text}")


def _fields(session: Session, named: str, done: Restored, marks: Marks) -> dict[str, Any]:
    return {
        "from": named,
        "generation": session.timeline.present if done.changes else None,
        "changes": [change_fields(change, session.base.root, session.regions, marks) for change in done.changes],
        "held": [],
        "left_out": [
            text_fields("path", session.base.path(path)) | {"what": list(what)} for path, what in done.left_out.items()
        ],
    }


def _check(session: Session, text: str, typed: Sequence[bytes]) -> list[RelPath]:
    """Return the paths that were typed.

    Raises:
        UsageError: there is nothing at one, neither then nor now.
    """
    source = named_state(session, text)
    named, then, now = source.named, source.files, StateFiles(session, session.state())
    paths = relative_paths(session, typed, [now, then])
    for path, word in zip(paths, typed, strict=True):
        if then.look(path) is None and now.look(path) is None:
            raise nothing_at(session, path, word, f", neither in {named} nor in the view")
    return paths


def _tell(session: Session, named: str, done: Restored, marks: Marks) -> None:
    if not done.changes:
        say(f"nothing to bring back: it is as in {named} already")
        return
    path_display = PathDisplay(session.base.root, session.base.relative(session.project))
    emit_changes(done.changes, path_display, session.regions, marks)
    say(f"brought back from {named}; to undo that: yolofs travel {done.before}")
    for path, what in done.left_out.items():
        if LINKS in what:
            shown = path_display.show_path(path)
            say(f"note: {shown} comes back as a file of its own, no hard link of its other names")
        unset = [one for one in what if one != LINKS]
        if unset:
            say(f"note: of {display(os.path.join(session.base.root, path))} could not be set: {', '.join(unset)}")
