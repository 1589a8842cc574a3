"""``yolofs completion``."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from yolofs.cli.completing import VARIABLE
from yolofs.cli.output import emit

_KINDS = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command()
@click.argument("shell", metavar="SHELL", type=click.Choice(sorted(_KINDS)))
def command(shell: str) -> None:
    """Print what has bash, zsh or fish complete commands and paths.

    Beside commands and options it completes generations, the names of snapshots and staged paths. For bash, in
    ~/.bashrc: eval "$(yolofs completion bash)"; for zsh, in ~/.zshrc: eval "$(yolofs completion zsh)"; for fish: yolofs
    completion fish > ~/.config/fish/completions/yolofs.fish
    """
    kind = _KINDS[shell](click.get_current_context().find_root().command, {}, "yolofs", VARIABLE)
    emit(kind.source_template % kind.source_vars())
