"""``yolofs shell``."""

from __future__ import annotations

import os

import click

from yolofs.cli.run.around_a_run import Manner, passed_on, run_command


@click.command()
@click.option("--no-review", is_flag=True, help="Do not say what was changed.")
def command(no_review: bool) -> None:
    """Start an interactive shell in the view, as `yolofs run` does.

    It is $SHELL, or sh. What is changed in it becomes one generation, at its end.
    """
    shell = os.environb.get(b"SHELL") or b"sh"
    manner = Manner(is_reviewed=not no_review, name=b"shell")
    raise click.exceptions.Exit(passed_on(run_command([shell], manner)))
