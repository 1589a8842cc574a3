"""``yolofs shell``."""

from __future__ import annotations

import os

import click

from yolofs.cli.run.around_a_run import RunManner, run_command
from yolofs.cli.run.prompt_mark import mark_prompt


@click.command()
@click.option("--no-review", is_flag=True, help="Do not say what was changed.")
def command(no_review: bool) -> None:
    """Start an interactive shell in the view, as `yolofs run` does.

    The shell is $SHELL, or sh. When it ends, its changes become one generation. The prompt of bash,
    zsh and fish, and of a sh that takes its prompt from the environment, begins with "(yolofs)"; in
    other shells, a prompt can show the variable YOLOFS_RUN.
    """
    shell = os.environb.get(b"SHELL") or b"sh"
    more = mark_prompt(shell, os.environ)
    manner = RunManner(is_reviewed=not no_review, name=b"shell", unsaid=more)
    raise click.exceptions.Exit(run_command([shell], manner))
