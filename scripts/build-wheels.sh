#!/usr/bin/env bash
# Builds wheels from a copy of the sources, as what a build leaves in build/ would be taken for part of the next one.
# Needs no package index.  Usage: build-wheels.sh DIRECTORY COMPILE...: 0 for a wheel as it is, which runs anywhere; 1
# for one with the core compiled, for this Python and this kind of machine.
set -euo pipefail
out=$(realpath -m "$1")
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
log=$scratch/log
for compile in "$@"; do
    source=$scratch/$compile
    mkdir "$source"
    cp -a yolofs cli config daemon pyproject.toml setup.py README.md LICENSE "$source"
    install -D -m 644 docs/yolofs.1 "$source/docs/yolofs.1"
    YOLOFS_COMPILE=$compile .venv/bin/python -m build --wheel --no-isolation --outdir "$out" "$source" >"$log" 2>&1 || {
        cat "$log" >&2
        exit 1
    }
done
