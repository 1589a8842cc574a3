"""Whether the modules of the hot path are compiled (``docs/design/compiled.md``)."""

from __future__ import annotations

import base64
import hashlib
import os
from importlib import metadata

from yolofs.state import tree


def is_compiled() -> bool:
    """Tell whether the modules that every request passes through are compiled to machine code."""
    return not str(tree.__file__).endswith(".py")


def stale_sources(directory: str) -> list[str]:
    """Return the sources of a package that have changed since they were compiled: what runs is
    older.

    An installed core goes by the content noted at the install, as an installer sets the time of all
    files as it writes them, in any order.  Where somebody has put a compiled module beside a source
    by hand, the later one of the two tells.
    """
    found = []
    noted = _noted_contents(directory)
    for place, _, names in os.walk(directory):  # follows no links
        for name in names:
            compiled, source = os.path.join(place, name), os.path.join(place, name.partition(".")[0] + ".py")
            if not name.endswith(".so"):
                continue
            if compiled in noted:
                is_stale = source in noted and _content(source) != noted[source]
            else:
                is_stale = _changed_ns(source) > _changed_ns(compiled)
            if is_stale:
                found.append(source)
    return sorted(found)


def _noted_contents(package: str) -> dict[str, str]:
    """Return by path what the install of a package notes of its files: SHA-256 as in RECORD."""
    name, around = os.path.basename(package), os.path.dirname(package)
    return {
        os.path.normpath(os.path.join(around, str(file))): file.hash.value
        for distribution in metadata.distributions(name=name, path=[around])
        for file in distribution.files or ()
        if file.hash is not None and file.hash.mode == "sha256"
    }


def _content(path: str) -> str:
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
    except FileNotFoundError:
        return ""
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _changed_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:  # what is shared by all has no source
        return 0
