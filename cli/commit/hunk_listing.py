"""The hunks of what changed, listed with their ids."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from yolofs.changes.changes import Change
from yolofs.changes.hunks import FileHunks
from yolofs.cli.guard import hidden_by, readable, seen
from yolofs.cli.history.missing_paths import check_somewhere
from yolofs.cli.history.ranges import range_and_paths
from yolofs.cli.options import options
from yolofs.cli.output import emit, emit_bytes, emit_json, progress, say
from yolofs.cli.project.project import reading, relative_paths
from yolofs.cli.rules.in_force import hiding
from yolofs.cli.show.hunk_lines import changed_lines, hunk_fields, title
from yolofs.cli.show.json_forms import text_fields
from yolofs.cli.show.listing import PathDisplay, group_lines, say_hidden, say_left_out, without_scratch
from yolofs.cli.show.marking import marks_of
from yolofs.cli.show.shortening import Shortener, set_apart
from yolofs.session.selecting import Hunks
from yolofs.session.session import Session

if TYPE_CHECKING:
    from yolofs.hostcode.mark import Marks


def list_hunks(
    project: bytes,
    words: Sequence[str],
    typed: Sequence[bytes],
    *,
    scratch: bool,
    shows_hidden: bool,
    unfolds: bool,
    as_list: bool,
    as_json: bool,
) -> None:
    """Write the hunks of a range, or of the paths that were typed, with what each changes.

    ``words`` are those before ``--``: a range, paths, or both; ``typed`` the paths after it.

    Raises:
        GenerationError: the first word is neither a range nor a path.
        UsageError: a further word is no path, or a path lies outside base or never was anywhere.
    """
    with reading(project) as session:
        range_text, all_typed = range_and_paths(session, words, typed)
        paths = relative_paths(session, all_typed)
        check_somewhere(session, paths, all_typed)
        old, new = session.timeline.parse_range(range_text)
        with progress("comparing") as update:
            old_tree, new_tree = session.states(old, new)
            hunks = Hunks(session, old_tree, new=new_tree, paths=paths, progress=update)
        changes = [hunks.changes[index] for index in hunks.wanted]
        root, guard = session.base.root, options().guard
        everything = seen(guard, changes, root)
        wanted = everything if scratch or paths else without_scratch(everything, session.regions)
        hider = hiding(session.project, shows_all=shows_hidden)
        shown = seen(hider, wanted, root)
        legible = readable(guard, shown, root)
        marks = marks_of(session, shown)
        left_out = {
            "scratch_left_out": len(everything) - len(wanted),
            "hidden_left_out": len(hidden_by(hider, wanted, root)),
        }
        if as_json:
            emit_json(
                {
                    **text_fields("root", root),
                    "from": old,
                    "to": new,
                    "hunks": [
                        hunk_fields(hunk, root) | _file_fields(session, file.change, marks)
                        for file in map(hunks.read, legible)
                        for hunk in file.hunks
                    ],
                    **left_out,
                }
            )
            return
        path_display = PathDisplay(root, session.base.relative(session.project))
        shortener = Shortener(session, path_display, "--unfold", new_tree)
        apart = set_apart(legible, shortener, marks)
        folds = sys.stdout.isatty() and not (unfolds or paths)
        for file in map(hunks.read, apart.first if folds else (*apart.first, *apart.last)):
            _emit(file, path_display, with_lines=not as_list)
        for line in group_lines(apart.groups, shortener, path_display) if folds else ():
            emit(line)
        if len(legible) < len(shown):
            say(f"note: {len(shown) - len(legible)} files that may not be read are left out")
        say_left_out(left_out["scratch_left_out"])
        say_hidden(left_out["hidden_left_out"])


def _file_fields(session: Session, change: Change, marks: Marks) -> dict[str, object]:
    return {
        "region": session.regions.of_all(change.paths).value,
        "marks": [mark.value for mark in marks.get(change.path, ())] if change.new is not None else [],
    }


def _emit(file: FileHunks, path_display: PathDisplay, *, with_lines: bool) -> None:
    for hunk in file.hunks:
        emit(f"{hunk.id}  {title(hunk, path_display)}")
        if with_lines:
            for line in changed_lines(hunk):
                emit_bytes(line)
