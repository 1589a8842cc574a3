#!/usr/bin/env bash
# Makes the machine ready: Debian packages, the project's own .venv with yolofs and its tools in it, a look at
# /dev/fuse.  Does only what is missing, says what it does, and can be run any number of times.  With --nightly also
# what only the tests of `make nightly` need.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

unset VIRTUAL_ENV PYTHONPATH PYTHONHOME # the caller's

say() { printf 'setup: %s\n' "$1"; }
stop() {
    printf 'setup: %s\n' "$@" >&2
    exit 1
}

is_recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

is_whole() { # has what a venv and a C extension need
    "$1" -c 'import ensurepip, os, sysconfig, venv; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null
}

# Prints the first Python that is recent enough; of a venv, the one that it was made from.  The system's comes first,
# if it is whole or can be made whole: distributions build theirs with a profile, by which tests and requests take a
# tenth less time, and what builds a Python from its source mostly does not.
find_python() {
    local name
    if is_recent /usr/bin/python3 && { [ "$(id -u)" = 0 ] || is_whole /usr/bin/python3; }; then
        echo /usr/bin/python3
        return
    fi
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        if is_recent "$name"; then
            "$name" -c 'import sys; print(sys._base_executable)'
            return
        fi
    done
}

missing=()
need() { # PACKAGE COMMAND...: the command tells whether the package is there
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}

need_python() {
    local python=$1 package=python3
    if [ -n "$python" ]; then
        case $(readlink -f "$python") in
        /usr/bin/python3*) package=$(basename "$(readlink -f "$python")") ;;
        *) # not Debian's: its packages are no help, and it brings its headers along
            "$python" -c 'import ensurepip, venv' 2>/dev/null ||
                stop "$python has no venv module; install it, or use another Python"
            return
            ;;
        esac
    else
        missing+=(python3)
    fi
    need "$package-venv" "$python" -c 'import ensurepip, venv'
    need "$package-dev" "$python" -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")'
}

install_missing() {
    if ! command -v apt-get >/dev/null; then
        stop "these are missing (Debian's names; there is no apt-get here): ${missing[*]}"
    fi
    if [ "$(id -u)" != 0 ]; then
        stop "these Debian packages are missing; install them and run this again:" \
            "    sudo apt-get update && sudo apt-get install -y ${missing[*]}"
    fi
    say "installing Debian packages: ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq || say "apt-get update failed; trying with the lists that are there"
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
        stop "apt-get could not install: ${missing[*]}"
}

# What pyfuse3 is built with, what mounts and the sandbox need at run time, and what tests and demo use.
need gcc command -v gcc
need libc6-dev test -e /usr/include/stdio.h
need pkg-config command -v pkg-config
need libfuse3-dev pkg-config --exists fuse3
need fuse3 command -v fusermount3
need bubblewrap command -v bwrap
need git command -v git
need sqlite3 command -v sqlite3
need make command -v make
need rsync command -v rsync
need acl command -v setfacl
need attr command -v setfattr
need vim command -v vim
need tmux command -v tmux
need zsh command -v zsh
need fish command -v fish
need xfsprogs test -x /usr/sbin/mkfs.xfs -o -x /sbin/mkfs.xfs
need btrfs-progs test -x /usr/sbin/mkfs.btrfs -o -x /sbin/mkfs.btrfs
need bindfs command -v bindfs
if [ "${1-}" = --nightly ]; then
    need npm command -v npm
    need apt command -v apt-get
fi
need_python "$(find_python)"
[ ${#missing[@]} = 0 ] || install_missing
python=$(find_python)
[ -n "$python" ] || stop "Python 3.11 or newer is needed, and neither python3 nor python3.11 to python3.14 is that"

# The venv is made anew when it does not work (as after a new Python) or the project was moved, and filled when
# pyproject.toml or this script has changed.
stamp=.venv/.setup
content=$(cat pyproject.toml scripts/setup.sh | sha256sum)
if [ "$(sed -n 1p "$stamp" 2>/dev/null)" != "$PWD" ] || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    say "making .venv with $("$python" -V) ($python)"
    rm -rf .venv
    "$python" -m venv .venv || stop "$python -m venv failed"
fi
if [ "$(sed -n 2p "$stamp" 2>/dev/null)" != "$content" ]; then
    say "installing yolofs and its tools into .venv (a minute or two the first time)"
    # As it is, as any editable install: to compile the core takes minutes, and a checkout is edited.  By a path alone:
    # what pip installs otherwise to find the sources takes each start of Python longer than Python does.
    YOLOFS_COMPILE=0 .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input \
        --config-settings editable_mode=compat --editable '.[dev]' ||
        stop "pip failed; its message is above" \
            "it needs a package index: is the network up? for a mirror set PIP_INDEX_URL, for a proxy HTTPS_PROXY"
    printf '%s\n%s\n' "$PWD" "$content" >"$stamp"
fi

if [ ! -e /dev/fuse ]; then
    say "there is no /dev/fuse, so nothing can be mounted, and tests that mount are skipped.  To mend it:"
    say "    modprobe fuse                                     on a machine of your own, as root"
    say "    --device /dev/fuse --cap-add SYS_ADMIN            for docker run or podman run"
elif [ ! -r /dev/fuse ] || [ ! -w /dev/fuse ]; then
    say "/dev/fuse may not be opened by $(id -un), so nothing can be mounted: chmod 666 /dev/fuse, as root"
fi
