"""``yolofs run``."""

from __future__ import annotations

import os

import click

from yolofs.cli.completion.completing import files
from yolofs.cli.run.around_a_run import RunManner, passed_on, run_command


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--no-review", is_flag=True, help="Do not say what the command changed.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the summary as a JSON document, in the last line of stderr."
)
@click.option("--no-snapshot", is_flag=True, help="Make no generation before and after.")
@click.option("--name", metavar="NAME", help="Call the generation made afterwards NAME, not by the command.")
@click.argument(
    "words", metavar="[--] COMMAND [ARG]...", nargs=-1, required=True, type=click.UNPROCESSED, shell_complete=files
)
def command(no_review: bool, as_json: bool, no_snapshot: bool, name: str | None, words: tuple[str, ...]) -> None:
    """Run a command in the view, cut off from the real files.

    The command sees the whole machine as usual, and what it changes anywhere is staged. Its changes
    become a generation, and a summary on stderr lists them: deletions first, then what lies outside
    the project. If the view is not mounted, run mounts it.

    stdin, stdout and stderr are the command's own; its exit code is passed on.
    """
    manner = RunManner(
        is_reviewed=not no_review,
        as_json=as_json,
        has_snapshots=not no_snapshot,
        name=os.fsencode(name) if name is not None else None,
    )
    raise click.exceptions.Exit(passed_on(run_command([os.fsencode(word) for word in words], manner)))
