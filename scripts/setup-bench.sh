#!/usr/bin/env bash
# Installs what the benchmarks need beyond setup.sh: the peer, and the program that reads and writes.  Where that
# cannot be done it says so; the benchmarks then run without.
set -euo pipefail

missing=()
for package in fuse-overlayfs fio; do
    command -v "$package" >/dev/null || missing+=("$package")
done
[ ${#missing[@]} = 0 ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    printf 'setup-bench: installing Debian packages: %s\n' "${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq || true
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null && exit 0
fi
printf 'setup-bench: missing, so its figures will be too: %s\n' "${missing[*]}" >&2
printf 'setup-bench:     sudo apt-get install -y %s\n' "${missing[*]}" >&2
