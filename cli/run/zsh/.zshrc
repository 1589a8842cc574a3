# What zsh reads next: the user's own file, and after it what marks the prompt.
if (( $+_yolofs_theirs )); then ZDOTDIR=$_yolofs_theirs; else unset ZDOTDIR; fi
unset _yolofs_theirs _yolofs_here
_yolofs_mark() {
    [[ $PS1 == "(yolofs) "* ]] || PS1="(yolofs) $PS1"
    precmd_functions=(${precmd_functions:#_yolofs_mark} _yolofs_mark) # stays the last
}
[[ ! -r ${ZDOTDIR-$HOME}/.zshrc ]] || source "${ZDOTDIR-$HOME}/.zshrc"
typeset -ga precmd_functions
precmd_functions+=(_yolofs_mark)
