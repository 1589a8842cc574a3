"""``yolofs hunks``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from yolofs.changes.changes import Change
from yolofs.changes.hunks import FileHunks
from yolofs.cli.commit.hunk_editing import edit_by_id
from yolofs.cli.guard import hidden_by, readable, seen
from yolofs.cli.hunk_option import hunk_ids
from yolofs.cli.missing_paths import check_somewhere
from yolofs.cli.options import options
from yolofs.cli.output import emit, emit_bytes, emit_json, progress, say
from yolofs.cli.path_types import PATH
from yolofs.cli.project import find_project, reading, relative_paths
from yolofs.cli.ranges import PathsCommand, paths_given, range_and_paths, ranges_and_paths
from yolofs.cli.rules.in_force import hiding
from yolofs.cli.show.hunk_lines import changed_lines, hunk_fields, title
from yolofs.cli.show.json_forms import text_fields
from yolofs.cli.show.listing import PathDisplay, group_lines, say_hidden, say_left_out, without_scratch
from yolofs.cli.show.marking import marks_of
from yolofs.cli.show.shortening import Shortener, set_apart
from yolofs.errors import UsageError
from yolofs.session.selecting import Hunks
from yolofs.session.session import Session

if TYPE_CHECKING:
    from yolofs.hostcode.mark import Marks


@click.command(cls=PathsCommand)
@click.argument("words", metavar="[RANGE]", nargs=-1, shell_complete=ranges_and_paths)
@click.option("--scratch", is_flag=True, help="Include changes in scratch directories.")
@click.option("--hidden", "shows_hidden", is_flag=True, help="Include paths that a rule hides.")
@click.option("--unfold", "unfolds", is_flag=True, help="List each change that status folds, at a terminal too.")
@click.option("--list", "as_list", is_flag=True, help="Print one line for each hunk, without what it changes.")
@click.option(
    "--edit",
    "to_edit",
    metavar="ID",
    shell_complete=hunk_ids,
    help="Edit a hunk in $EDITOR, and stage the result.",
)
@click.option(
    "--edited",
    "edited_path",
    metavar="FILE",
    type=PATH,
    help="With --edit: read the edited hunk from FILE (-: stdin).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the hunks as a JSON document.")
def command(
    words: tuple[str, ...],
    scratch: bool,
    shows_hidden: bool,
    unfolds: bool,
    as_list: bool,
    to_edit: str | None,
    edited_path: bytes | None,
    as_json: bool,
) -> None:
    """List the hunks of what changed, each with an id.

    A hunk is a run of changed lines, or one fact about a file: it was added, deleted or renamed, is
    of another type, or has another mode, owner, time, extended attributes or target. `yolofs commit
    --hunk ID` commits one, `yolofs restore --hunk ID` drops it, --edit lets you edit it. ID:1-3,5
    names some of its changed lines: removed lines are counted first, from 1, then added lines.

    An id stands for exactly what is shown. As soon as the file changes, in the view or in base, its
    hunks get other ids, and the old ids are refused (exit code 20).

    RANGE is as for `yolofs diff`; without it, hunks lists what a commit would apply. What status
    folds comes last, and at a terminal in one line, unless a PATH or --unfold asks for it.
    """
    if edited_path is not None and to_edit is None:
        raise UsageError(
            "--edited gives what has become of a hunk, and needs --edit", hint="yolofs hunks --edit ID --edited FILE"
        )
    project = find_project()
    if to_edit is not None:
        if words or as_json or as_list:
            raise UsageError("--edit goes with no other option", hint=f"yolofs hunks --edit {to_edit}")
        if options().guard is not None:
            raise UsageError("hunks are edited by the user, outside of the sandbox", hint="yolofs hunks")
        edit_by_id(project, to_edit, paths_given(), _patch(edited_path))
        return
    with reading(project) as session:
        range_text, typed = range_and_paths(session, words, paths_given())
        paths = relative_paths(session, typed)
        check_somewhere(session, paths, typed)
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


def _patch(path: bytes | None) -> bytes | None:
    """Return what a hunk has become. The file is opened only once it is known that the user asks:
    an agent must not learn what there is.
    """
    if path is None:
        return None
    with click.File("rb").convert(os.fsdecode(path), None, click.get_current_context()) as file:
        content: bytes = file.read()
    return content


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
