"""How bash, zsh and fish ask what may stand at the end of a command line, and what they do with the
answer.

A program in the view may give files and snapshots any name.  So each script has the shell quote
what it puts into the line, and takes each line of an answer apart in one place only.
"""

from __future__ import annotations

import os
from typing import ClassVar

import click
from click.shell_completion import BashComplete, CompletionItem, ShellComplete, ZshComplete, split_arg_string

from yolofs.cli.completion.completing import COMPLETION_VARIABLE, is_after_dashes

_BREAKS = frozenset(":=@")
"""Characters that a word may contain, but that bash treats as words of their own."""


class _Shell(ShellComplete):
    """Takes note of what stands before the word that is completed, and offers whole words: click
    offers for ``--option=`` only the value.

    Gets the line as it was typed: what the shell will make of a ``~`` is looked for.
    """

    def get_completion_args(self) -> tuple[list[str], str]:
        *words, last = split_arg_string(os.environ["COMP_WORDS"])[1:] or [""]
        if last and not os.environ["COMP_CWORD"]:
            words, last = [*words, last], ""
        return [os.path.expanduser(word) for word in words], last

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        is_after_dashes.set("--" in args)
        tilde, home = self._tilde(incomplete)
        found = super().get_completions(args, home + incomplete.removeprefix(tilde))
        option, equals, _ = incomplete.partition("=")
        before = f"{option}=" if equals and option.startswith("-") and "--" not in args else ""
        return [
            CompletionItem(before + tilde + item.value.removeprefix(home), item.type, item.help)
            if item.type == "plain"
            else item
            for item in found
        ]

    def _tilde(self, incomplete: str) -> tuple[str, str]:
        """Return with what in the word the shell means a home directory, and that directory."""
        tilde, slash, _ = incomplete.partition("/")
        if not slash or not tilde.startswith("~") or not os.environ["COMP_CWORD"].startswith(f"{tilde}/"):
            return "", ""
        return tilde, os.path.expanduser(tilde)


class _Bash(_Shell, BashComplete):
    """Gets a line for each word: its type, and what of the word is to stand for the last piece.

    Bash takes the line apart at each colon, too, and puts in what goes for the last piece.  Within
    quotes that were begun it needs what stands between them, and ends them itself.  Between double
    quotes nothing keeps it from taking ``!`` for a command of before: there it gets no such name.
    """

    script: ClassVar[str] = f"""\
_yolofs_completion() {{
    local response line value ended="'\\''" typed="${{COMP_LINE:0:COMP_POINT}}" piece="${{COMP_WORDS[COMP_CWORD]}}"
    response=$(env COMP_WORDS="$typed" COMP_CWORD="$piece" {COMPLETION_VARIABLE}=bash_complete "$1" 2>/dev/null)
    while IFS= read -r line; do
        case $line in
            dir,*) COMPREPLY=(); compopt -o dirnames ;;
            file,*) COMPREPLY=(); compopt -o default ;;
            plain,*)
                value=${{line#*,}}
                case $piece in
                    \\'*) value=${{value//\\'/$ended}} ;;
                    \\"*)
                        [[ $value == *!* ]] && continue
                        for line in '\\' '"' '$' '`'; do value=${{value//"$line"/"\\\\$line"}}; done ;;
                    \\~*/*) printf -v value '%s/%q' "${{piece%%/*}}" "${{value#*/}}" ;;
                    *) printf -v value %q "$value" ;;
                esac
                COMPREPLY+=("$value")
                case $value in *[:/]) compopt -o nospace ;; esac ;;
        esac
    done <<< "$response"
}}
complete -o nosort -F _yolofs_completion yolofs
"""
    _at = 0
    """Where the part that the shell inserts begins in each word on offer."""

    def get_completion_args(self) -> tuple[list[str], str]:
        words, last = super().get_completion_args()
        typed = (split_arg_string(os.environ["COMP_CWORD"]) or [""])[-1]
        begin = "" if typed in _BREAKS else typed
        self._at = len(last) - len(begin) if last.endswith(begin) else 0
        return words, last

    def format_completion(self, item: CompletionItem[str]) -> str:
        return f"{item.type},{item.value[self._at :]}"


class _Zsh(_Shell, ZshComplete):
    """Gets three lines for each word: its type, the word, and what is said of it."""

    script: ClassVar[str] = f"""\
#compdef yolofs

_yolofs_completion() {{
    local kind value about program="${{(Q)words[1]}}"
    local -a plain shown apart
    while IFS= read -r kind && IFS= read -r value && IFS= read -r about; do
        case $kind in
            dir) _path_files -/ ;;
            file) _path_files -f ;;
            plain)
                plain+=("$value")
                shown+=("$value${{about:+  -- $about}}")
                [[ -n $about ]] && apart=(-l)
                [[ $value == *[:/] ]] && apart+=(-S '') ;;
        esac
    done < <(env COMP_WORDS="${{words[1,CURRENT]}}" COMP_CWORD="${{words[CURRENT]}}" \\
        {COMPLETION_VARIABLE}=zsh_complete "${{program/#\\~\\//$HOME/}}" 2>/dev/null)
    if [[ $PREFIX == \\~*/* ]]; then
        IPREFIX+=${{PREFIX%%/*}}/ PREFIX=${{PREFIX#*/}} plain=("${{(@)plain#*/}}")
    fi
    (( $#plain )) && compadd -V yolofs "${{apart[@]}}" -d shown -a plain
}}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _yolofs_completion "$@"
else
    (( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit -i }}
    compdef _yolofs_completion yolofs
fi
"""

    def format_completion(self, item: CompletionItem[str]) -> str:
        return f"{item.type}\n{item.value}\n{_one_line(item.help)}"


class _Fish(_Shell):
    """Gets a line for each word: its type, the word, and after a tab what is said of it."""

    name = "fish"
    script: ClassVar[str] = f"""\
function _yolofs_completion
    set -l words (commandline -poc)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    set -l line (commandline -cp | string collect)
    set -l token (commandline -ct | string collect)
    for found in (env COMP_WORDS="$line" COMP_CWORD="$token" {COMPLETION_VARIABLE}=fish_complete $program 2>/dev/null)
        set -l parts (string split -m 1 , -- $found)
        switch $parts[1]
            case dir
                __fish_complete_directories "$token"
            case file
                complete -C"'' $token"
            case plain
                printf '%s\\n' $parts[2]
        end
    end
end

complete --no-files --keep-order --command yolofs --arguments '(_yolofs_completion)'
"""

    def format_completion(self, item: CompletionItem[str]) -> str:
        about = _one_line(item.help)
        return f"{item.type},{item.value}\t{about}" if about else f"{item.type},{item.value}"


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


SHELLS: dict[str, type[_Bash | _Zsh | _Fish]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}
"""By the names of shells."""


def answer(cli: click.Command, instruction: str) -> int:
    """Print what a shell asks for, and return the exit code; ``instruction`` is what
    :data:`COMPLETION_VARIABLE` holds.
    """
    shell, _, what = instruction.partition("_")
    if shell not in SHELLS or what != "complete":
        return 1
    click.echo(SHELLS[shell](cli, {}, "yolofs", COMPLETION_VARIABLE).complete().encode())
    return 0
