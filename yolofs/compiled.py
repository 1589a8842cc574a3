"""Whether the modules of the hot path are compiled (``docs/design/compiled.md``)."""

from __future__ import annotations

import os

from yolofs.state import tree


def is_compiled() -> bool:
    """Tell whether the modules that every request passes through are compiled to machine code."""
    return not str(tree.__file__).endswith(".py")


def stale_sources(directory: str) -> list[str]:
    """Return the sources below a directory that were changed since what stands in their place was
    compiled: they are not what runs.
    """
    found = []
    for place, _, names in os.walk(directory):  # follows no links
        for name in names:
            source = os.path.join(place, name.partition(".")[0] + ".py")
            if name.endswith(".so") and _changed_ns(source) > _changed_ns(os.path.join(place, name)):
                found.append(source)
    return sorted(found)


def _changed_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:  # what is shared by all has no source
        return 0
