#!/usr/bin/env bash
# A tour of yolofs on real files: a copy of the Python standard library, real tools working through the view, and
# at each turn a check that the real files are what they should be.  Everything lies in one temporary
# directory, which is removed at the end, also after a failure.
set -euo pipefail
export LC_ALL=C.UTF-8
exec 2>&1 # one transcript, in order

command -v yolofs >/dev/null || {
    echo "demo: there is no yolofs on the PATH; run it as: make demo"
    exit 1
}

scratch=$(mktemp -d "${TMPDIR:-/tmp}/yolofs-demo.XXXXXX")
project=$scratch/project
view=$project/.yolofs/mnt
export XDG_RUNTIME_DIR=$scratch/run # the mountpoint and the socket lie there
export XDG_STATE_HOME=$scratch/state # and the session there
mkdir -m 700 "$XDG_RUNTIME_DIR" "$project"

mounted() { awk -v top="$scratch/" 'index($2, top) == 1 { print $2 }' /proc/self/mounts; }

clean_up() {
    local status=$?
    trap - EXIT
    cd /
    if [ -n "$(mounted)" ]; then
        (cd "$project" && yolofs unmount) >/dev/null 2>&1 || true
    fi
    for mountpoint in $(mounted); do # only if unmount failed
        fusermount3 -u -z "$mountpoint" || umount -l "$mountpoint" || true
    done
    rm -rf --one-file-system "$scratch"
    [ "$status" = 0 ] || echo "demo: failed (exit code $status)"
    exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' plain=$'\e[0m'; fi

say() { printf '\n%s# %s%s\n' "$bold" "$1" "$plain"; }
run() { # COMMANDLINE: shows it and runs it
    printf '%s$ %s%s\n' "$bold" "$1" "$plain"
    eval "$1"
}
check() { # CLAIM COMMAND...: stops the demo unless the command succeeds
    local claim=$1
    shift
    "$@" || {
        echo "demo: this should hold and does not: $claim"
        exit 1
    }
    echo "checked: $claim"
}

# What a directory holds, .yolofs excepted: names, types, modes, owners, sizes, times, link targets and content.
everything() { list "$1" '%p %y %m %u %g %s %T@ %l\n' '%p %y %m %u %g %s %T@ %l\n'; }
# The same without times and sizes of directories, in which two equal trees may differ.
visible() { list "$1" '%p %y %m %l\n' '%p %y %m %s %T@ %l\n'; }
list() { # DIRECTORY FORMAT-OF-DIRECTORIES FORMAT-OF-FILES
    (
        cd "$1"
        find . -path ./.yolofs -prune -o \( -type d -printf "$2" -o -printf "$3" \) | sort
        find . -path ./.yolofs -prune -o -type f -print0 | sort -z | xargs -0 sha256sum
    )
}

say "A project: the Python standard library, without its tests"
library=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
(
    cd "$library"
    find . \( -name test -o -name tests -o -name '*-packages' \) -prune -o -type f -name '*.py' -print0
) | tar -C "$library" --null --files-from=- -cf - | tar -C "$project" -xf -
cd "$project"
printf '%s files in %s directories\n' "$(find . -type f | wc -l)" "$(find . -type d | wc -l)"

say "From here on everything that happens to it is staged"
run 'yolofs init'
before=$(everything .)
run 'yolofs mount --root .'

say "Ordinary tools work through the view"
run 'cd .yolofs/mnt'
run "sed -i 's/JSONDecodeError/JsonDecodeError/g' json/*.py"
run 'mv email mail'
run 'rm -rf unittest'
run 'python3 -m compileall -q json logging'
run "tar -cf html.tar html && mkdir unpacked && tar -xf html.tar -C unpacked && rm html.tar"
run 'ln -s mail/message.py message.py && chmod 600 http/client.py'
run 'ls --directory j* l* m*'
run 'cd ../..'
check "not a byte of the real files has changed" [ "$before" = "$(everything .)" ]

say "What is staged"
run 'yolofs status | tail -n 12'
run 'yolofs diff -- json/decoder.py | sed -n 1,24p'

say "A snapshot, and then a mistake"
run 'yolofs snapshot before-the-mistake'
good=$(visible "$view")
run 'rm -rf .yolofs/mnt/*'
run 'ls .yolofs/mnt'
bad=$(visible "$view")

say "Back to before the mistake, to the mistake, and back again: nothing is ever lost"
run 'yolofs travel 1'
check "the view is what it was at the snapshot" [ "$good" = "$(visible "$view")" ]
run 'yolofs travel -'
check "the view is what the mistake made of it" [ "$bad" = "$(visible "$view")" ]
run 'yolofs travel 1'
run 'yolofs log | tail -n 4'
run 'yolofs timeline'
check "the view is what it was at the snapshot" [ "$good" = "$(visible "$view")" ]
check "not a byte of the real files has changed" [ "$before" = "$(everything .)" ]

say "Apply it to the real files"
run 'yolofs commit --yes | tail -n 3'
check "the real files are what the view showed" [ "$good" = "$(visible .)" ]
check "the view shows the same as before" [ "$good" = "$(visible "$view")" ]
run 'yolofs status'
run 'yolofs unmount'
check "nothing is mounted any more" [ -z "$(mounted)" ]
