"""The mark with which a shell in the view begins its prompt.

A shell's own start files set its prompt; so each is marked by what that shell reads, or does, after
them.  None of the user's files is touched, and all are read as ever.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping

_MARK = "(yolofs) "
_BASH = f'case $PS1 in "{_MARK}"*) ;; *) PS1="{_MARK}$PS1" ;; esac'
"""What bash does before each prompt."""
_ZSH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "zsh")
"""The directory of start files that zsh reads instead of the user's; they read these, too."""
_FISH = f"""\
functions -q _yolofs_prompt; or functions -c fish_prompt _yolofs_prompt
function fish_prompt
    set -l shown (_yolofs_prompt | string collect -N)
    printf '%s%s' '{_MARK}' "$shown"
end
test -w "$__fish_user_data_dir/fish_history"; or set -g fish_history ''
if not test -e "$__fish_config_dir/config.fish" -a -d "$__fish_user_data_dir/generated_completions"
    and functions -c __fish_config_interactive _yolofs_config_interactive
    function __fish_config_interactive
        set -l place (mktemp -d)
        and mkdir "$place/generated_completions"
        and touch "$place/config.fish"
        or begin
            _yolofs_config_interactive
            return
        end
        set -l theirs "$__fish_config_dir" "$__fish_user_data_dir"
        set -g __fish_config_dir "$place"
        set -g __fish_user_data_dir "$place"
        _yolofs_config_interactive
        set -g __fish_config_dir "$theirs[1]"
        set -g __fish_user_data_dir "$theirs[2]"
        rm -r "$place"
    end
end"""
"""What fish does after its start files.  Of a history that rules hide it keeps none, or it would
complain at its end.  On its first run fish makes files that it obeys later, and rules refuse that:
so it finds them ready, in a directory for that moment.
"""


def mark_prompt(shell: bytes, environment: MutableMapping[str, str]) -> tuple[bytes, ...]:
    """Have a shell with this environment begin its prompt with a mark, if the shell is a known one;
    return the arguments that it needs for that.
    """
    name = os.path.basename(shell)
    if name == b"fish":
        return (b"--init-command", _FISH.encode())
    if name == b"zsh":
        _mark_zsh(environment)
        return ()
    before = environment.get("PROMPT_COMMAND", "")
    if _BASH not in before:
        environment["PROMPT_COMMAND"] = f"{before}; {_BASH}" if before.strip() else _BASH
    prompt = environment.get("PS1", "$ ")
    environment["PS1"] = prompt if prompt.startswith(_MARK) else _MARK + prompt
    return ()


def _mark_zsh(environment: MutableMapping[str, str]) -> None:
    theirs = environment.get("ZDOTDIR")
    if theirs == _ZSH:
        return
    environment["ZDOTDIR"] = _ZSH
    if theirs is not None:
        environment["YOLOFS_ZDOTDIR"] = theirs
