#!/usr/bin/env bash
# Compiles the core of a checkout into build/core, where the daemon takes it from while it is of the sources that are
# there (docs/design/compiled.md).  Does nothing if it is already; without a compiler it says so in one line, and that
# is no failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'setup: %s\n' "$1"; }

core=build/core
suffix=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
if [ -e "$core/yolofs/_core__mypyc$suffix" ] && sha256sum --check --status "$core/SOURCES" 2>/dev/null; then
    exit
fi
if [ "${YOLOFS_COMPILE-}" = 0 ]; then
    exit
fi
say "compiling the core into $core (two to four minutes; YOLOFS_COMPILE=0 leaves it out)"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if ! scripts/build-wheels.sh "$scratch" 1 2>"$scratch/log"; then
    why=$(sed -n 's/.*the core cannot be compiled: //p' "$scratch/log" | head -n 1)
    say "the core is not compiled, and slower: ${why:-$(tail -n 1 "$scratch/log")}"
    exit
fi
.venv/bin/python -m zipfile -e "$scratch"/*.whl "$scratch/wheel"
(
    cd "$scratch/wheel"
    find . -type f ! -name "*$suffix" ! -name '*.py' -delete
    # Of a module its source is noted; the one that is shared by all has none.
    find yolofs -name "*$suffix" ! -name '_core__mypyc*' | sed "s/${suffix//./\\.}\$/.py/" | sort | xargs sha256sum >SOURCES
    find . -name '*.py' -delete
    find . -type d -empty -delete
)
sha256sum setup.py >>"$scratch/wheel/SOURCES"
mkdir -p build
rm -rf "$core"
mv "$scratch/wheel" "$core"
