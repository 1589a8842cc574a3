# What zsh reads first in `yolofs shell`, as ZDOTDIR leads here: the user's own file, if there is one.
_yolofs_here=$ZDOTDIR
if (( $+YOLOFS_ZDOTDIR )); then ZDOTDIR=$YOLOFS_ZDOTDIR; else unset ZDOTDIR; fi
unset YOLOFS_ZDOTDIR
[[ ! -r ${ZDOTDIR-$HOME}/.zshenv ]] || source "${ZDOTDIR-$HOME}/.zshenv"
if [[ -o interactive ]]; then # to come back for .zshrc
    (( $+ZDOTDIR )) && _yolofs_theirs=$ZDOTDIR
    ZDOTDIR=$_yolofs_here
fi
