"""``yolofs undo``."""

from __future__ import annotations

import os

import click

from yolofs.cli.commit.undoing import UndoRequest, undo_commit
from yolofs.cli.completion.completing import commits, undone_paths
from yolofs.cli.path_types import PATH
from yolofs.cli.project.project import find_project
from yolofs.cli.same_command import same_command_with
from yolofs.errors import UsageError
from yolofs.paths import in_shell


@click.command()
@click.argument("number", metavar="[N]", required=False, shell_complete=commits)
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=PATH, shell_complete=undone_paths)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Say what would be done to which real file, in order, and do nothing.")
@click.option("--unfold", "unfolds", is_flag=True, help="List each change on a line of its own.")
@click.option(
    "--force", is_flag=True, help="Undo even where base has changed since: replace base's version, and keep it."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document; needs --yes.")
def command(
    number: str | None, paths: tuple[bytes, ...], yes: bool, dry_run: bool, unfolds: bool, force: bool, as_json: bool
) -> None:
    """Put the real files back to what they were before a commit.

    undo asks first. Without N it undoes the last commit that is not undone (`yolofs commits` lists
    them); with PATH, only what that commit changed at or below these paths. What the commit had
    applied is staged again. So the view stays as it is, and the next `yolofs commit` would apply it
    again. `yolofs abort` drops it.

    undo leaves alone paths that later commits have changed again, and paths in a directory that
    somebody else has moved. It names these paths, undoes all else, and the exit code is 16. If
    somebody else has changed what the commit left, undo does nothing (exit code 9) without --force.
    An undo is a commit of its own: it has a number, and keeps what it replaces. If it is
    interrupted, `yolofs commit --continue` finishes it, and --roll-back takes it back.
    """
    if as_json and dry_run:
        raise UsageError("--dry-run prints no JSON", hint="leave one of them out")
    if as_json and not yes:
        raise UsageError("--json leaves no place for a question", hint=same_command_with("undo", "--yes"))
    undo_commit(find_project(), UndoRequest(_number(number), paths, dry_run, unfolds, force), yes=yes, as_json=as_json)


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise UsageError(
            f"{in_shell(os.fsencode(text))} is not the number of a commit",
            hint="yolofs commits lists them; yolofs undo N PATH... takes paths",
        )
    return int(text)
