"""The hunks of what changed, listed with their ids."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from yolofs.changes.changes import Change
from yolofs.changes.hunks import FileHunks
from yolofs.cli.guard import hidden_by, readable_changes, visible_changes
from yolofs.cli.history.missing_paths import check_somewhere
from yolofs.cli.history.ranges import range_and_paths
from yolofs.cli.options import options
from yolofs.cli.output import emit, emit_bytes, emit_json, progress
from yolofs.cli.project.project import reading, relative_paths
from yolofs.cli.rules.in_force import hiding
from yolofs.cli.show.hunk_lines import changed_lines, hunk_fields, title
from yolofs.cli.show.json_forms import text_fields
from yolofs.cli.show.listing import PathDisplay, group_lines, say_hidden, say_illegible, say_left_out, without_scratch
from yolofs.cli.show.marking import marks_of
from yolofs.cli.show.shortening import Shortener, set_apart
from yolofs.paths import RelPath
from yolofs.session.selecting import Hunks
from yolofs.session.session import Session
from yolofs.state.tree import Tree

if TYPE_CHECKING:
    from yolofs.hostcode.mark import Marks


class HunkForm(NamedTuple):
    """What of the hunks is listed, and how."""

    scratch: bool
    """Changes in scratch directories, too."""
    shows_hidden: bool
    """Paths that a rule hides, too."""
    unfolds: bool
    """Each change at a terminal, too."""
    as_list: bool
    """A line for each hunk, without what it changes."""
    as_json: bool


class _Listed(NamedTuple):
    """The hunks of a range, and what of them may be shown."""

    old: int
    new: int | None
    new_tree: Tree
    hunks: Hunks
    shown: list[Change]
    legible: list[Change]
    """Those that are shown of which the content may be, too."""
    scratch_left_out: int
    hidden_left_out: int
    marks: Marks


def list_hunks(project: bytes, words: Sequence[str], typed: Sequence[bytes], form: HunkForm) -> None:
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
        listed = _look(session, range_text, paths, form)
        if form.as_json:
            emit_json(_document(session, listed))
        else:
            _emit(session, listed, form, folds=sys.stdout.isatty() and not (form.unfolds or paths))


def _look(session: Session, range_text: str, paths: Sequence[RelPath], form: HunkForm) -> _Listed:
    """Compare the two ends of a range, and tell which changes may be shown."""
    old, new = session.timeline.parse_range(range_text)
    with progress("comparing") as update:
        old_tree, new_tree = session.states(old, new)
        hunks = Hunks(session, old_tree, new=new_tree, paths=paths, progress=update)
    changes = [hunks.changes[index] for index in hunks.wanted]
    root, guard = session.base.root, options().guard
    everything = visible_changes(guard, changes, root)
    wanted = everything if form.scratch or paths else without_scratch(everything, session.regions)
    hider = hiding(session.project, shows_all=form.shows_hidden)
    shown = visible_changes(hider, wanted, root)
    return _Listed(
        old,
        new,
        new_tree,
        hunks,
        shown,
        readable_changes(guard, shown, root),
        scratch_left_out=len(everything) - len(wanted),
        hidden_left_out=len(hidden_by(hider, wanted, root)),
        marks=marks_of(session, shown),
    )


def _document(session: Session, listed: _Listed) -> dict[str, Any]:
    root = session.base.root
    return {
        **text_fields("root", root),
        "from": listed.old,
        "to": listed.new,
        "hunks": [
            hunk_fields(hunk, root) | _file_fields(session, file.change, listed.marks)
            for file in map(listed.hunks.read, listed.legible)
            for hunk in file.hunks
        ],
        "scratch_left_out": listed.scratch_left_out,
        "hidden_left_out": listed.hidden_left_out,
    }


def _file_fields(session: Session, change: Change, marks: Marks) -> dict[str, object]:
    return {
        "region": session.regions.of_all(change.paths).value,
        "marks": [mark.value for mark in marks.get(change.path, ())] if change.new is not None else [],
    }


def _emit(session: Session, listed: _Listed, form: HunkForm, *, folds: bool) -> None:
    """Write the hunks, and then, on stderr, how much is left out."""
    path_display = PathDisplay(session.base.root, session.base.relative(session.project))
    shortener = Shortener(session, path_display, "--unfold", listed.new_tree)
    apart = set_apart(listed.legible, shortener, listed.marks)
    for file in map(listed.hunks.read, apart.first if folds else (*apart.first, *apart.last)):
        _emit_file(file, path_display, with_lines=not form.as_list)
    for line in group_lines(apart.groups, shortener, path_display) if folds else ():
        emit(line)
    say_illegible(len(listed.shown) - len(listed.legible))
    say_left_out(listed.scratch_left_out)
    say_hidden(listed.hidden_left_out)


def _emit_file(file: FileHunks, path_display: PathDisplay, *, with_lines: bool) -> None:
    for hunk in file.hunks:
        emit(f"{hunk.id}  {title(hunk, path_display)}")
        if with_lines:
            for lines in changed_lines(hunk):
                emit_bytes(lines)
