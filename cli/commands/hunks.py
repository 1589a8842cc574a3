"""``yolofs hunks``."""

from __future__ import annotations

import os

import click

from yolofs.cli.commit.hunk_editing import edit_by_id
from yolofs.cli.commit.hunk_listing import HunkForm, list_hunks
from yolofs.cli.commit.hunk_option import hunk_ids
from yolofs.cli.history.ranges import PathsCommand, paths_given, ranges_and_paths
from yolofs.cli.options import options
from yolofs.cli.path_types import PATH
from yolofs.cli.project.project import find_project
from yolofs.errors import UsageError


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
    form = HunkForm(scratch, shows_hidden, unfolds, as_list, as_json)
    list_hunks(project, words, paths_given(), form)


def _patch(path: bytes | None) -> bytes | None:
    """Return what a hunk has become. The file is opened only once it is known that the user asks:
    an agent must not learn what there is.
    """
    if path is None:
        return None
    with click.File("rb").convert(os.fsdecode(path), None, click.get_current_context()) as file:
        content: bytes = file.read()
    return content
