"""``yolofs restore``."""

from __future__ import annotations

import click

from yolofs.cli.commit.hunk_option import hunk_option, picks_of_option
from yolofs.cli.completion.completing import restorable_paths, sources
from yolofs.cli.history.restoring import bring_back, drop_picked
from yolofs.cli.history.versions import joined_run
from yolofs.cli.path_types import PATH
from yolofs.errors import UsageError


class _Command(click.Command):
    """Takes ``--from run N`` and ``--from commit N``, which are two words."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, joined_run(args))


@click.command(cls=_Command)
@click.argument("paths", metavar="PATH...", nargs=-1, type=PATH, shell_complete=restorable_paths)
@click.option(
    "--from",
    "text",
    metavar="GENERATION|run N|commit N|base",
    default="base",
    shell_complete=sources,
    help="The version to bring back: what a generation shows, what run N left, what base had after commit N, or "
    "what base has now, which is the default.",
)
@hunk_option("Drop this hunk alone (yolofs hunks), and leave all else as it is; with PATH, look for it there.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(paths: tuple[bytes, ...], text: str, words: tuple[str, ...], as_json: bool) -> None:
    """Bring back a path as a generation, base or a commit has it.

    restore stages the path with all that was below it, and removes what has come there since.
    Nothing else changes. What was there before becomes a generation, to which you can travel. Base
    is not touched.

    "commit N" is what base had right after that commit, whatever later commits made of it. "run N"
    is what the view showed when that run ended. Both, and the names of snapshots, also lead to what
    was before a commit, as long as the commit is kept; a file that base has changed since is
    refused. `yolofs undo` brings back what base had before a commit.

    With --hunk only these hunks become what they are in the other version; all other changes stay.
    A hunk that cannot go without others stays, and the exit code is 16.
    """
    if words:
        drop_picked(text, picks_of_option(words), paths, as_json=as_json)
        return
    if not paths and text in ("run", "commit"):
        hint = f"yolofs {text}s lists them; then --from {text} N PATH..."
        raise UsageError(f"--from {text} needs a number, and a path to bring back", hint=hint)
    if not paths:
        raise click.UsageError("Missing argument 'PATH...'.", click.get_current_context())
    bring_back(text, paths, as_json=as_json)
