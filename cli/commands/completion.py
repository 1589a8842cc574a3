"""``yolofs completion``."""

from __future__ import annotations

import click

from yolofs.cli.completion.completing_shells import SHELLS
from yolofs.cli.output import emit


@click.command()
@click.argument("shell", metavar="SHELL", type=click.Choice(sorted(SHELLS)))
def command(shell: str) -> None:
    """Print a script that completes commands in bash, zsh or fish.

    Besides commands and options it completes generations, names of snapshots, staged paths, paths
    in GENERATION:PATH, ids of hunks and sessions, and numbers of runs, commits and asks. For bash,
    in ~/.bashrc: eval "$(yolofs completion bash)"; for zsh, in ~/.zshrc: eval "$(yolofs completion
    zsh)"; for fish: yolofs completion fish > ~/.config/fish/completions/yolofs.fish
    """
    emit(SHELLS[shell].script)
