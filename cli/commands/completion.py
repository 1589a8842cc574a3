"""``yolofs completion``."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from yolofs.cli.completing import VARIABLE
from yolofs.cli.output import emit


class _Bash(BashComplete):
    """Quotes what bash puts into the line: a program in the view may give files and snapshots any
    name.
    """

    source_template = """\
%(complete_func)s() {
    local response line value
    response=$(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD %(complete_var)s=bash_complete "$1")
    while IFS= read -r line; do
        case $line in
            dir,*) COMPREPLY=(); compopt -o dirnames ;;
            file,*) COMPREPLY=(); compopt -o default ;;
            plain,*) printf -v value %%q "${line#*,}"; COMPREPLY+=("$value") ;;
        esac
    done <<< "$response"
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


_KINDS = {"bash": _Bash, "zsh": ZshComplete, "fish": FishComplete}


@click.command()
@click.argument("shell", metavar="SHELL", type=click.Choice(sorted(_KINDS)))
def command(shell: str) -> None:
    """Print what has bash, zsh or fish complete commands and paths.

    Beside commands and options it completes generations, the names of snapshots and staged paths.
    For bash, in ~/.bashrc: eval "$(yolofs completion bash)"; for zsh, in ~/.zshrc: eval "$(yolofs
    completion zsh)"; for fish: yolofs completion fish > ~/.config/fish/completions/yolofs.fish
    """
    kind = _KINDS[shell](click.get_current_context().find_root().command, {}, "yolofs", VARIABLE)
    emit(kind.source_template % kind.source_vars())
