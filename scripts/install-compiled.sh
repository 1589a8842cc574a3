#!/usr/bin/env bash
# Builds the wheel with the core compiled, and installs it into a venv of its own, which borrows everything else from
# .venv.  Needs no package index.  Usage: install-compiled.sh VENV
set -euo pipefail
venv=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
scripts/build-wheels.sh "$scratch" 1
rm -rf "$venv"
.venv/bin/python -m venv --without-pip "$venv"
.venv/bin/python -m pip --quiet --disable-pip-version-check --python "$venv/bin/python" \
    install --no-deps --no-index "$scratch"/*.whl
borrowed=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
printf '%s\n' "$borrowed" >"$packages/borrowed.pth" # the .pth files in there, which lead to the checkout, are not read
