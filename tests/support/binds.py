"""What a sandbox has straight from base, as its own mount table tells."""

from __future__ import annotations

import os

from tests.support.program import Program
from yolofs.registry.runtime import AGENT_SOCKET_NAME

_MADE_BY_BUBBLEWRAP = ("fuse.yolofs ", "proc ", "devtmpfs ", "devpts ")


def native_binds(program: Program) -> list[str]:
    """Run something and return the directories that it had straight from base."""
    return binds_in(program("run", "--no-review", "cat", "/proc/self/mountinfo").out)


def binds_in(mountinfo: str) -> list[str]:
    """Return the directories in a sandbox's mount table that come from a disk and are read-only."""
    found = []
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        place, options = fields.split(" ")[4:6]
        name = os.path.basename(place)
        is_ours = name.startswith("yolofs") or name == os.fsdecode(AGENT_SOCKET_NAME)  # covers, the socket
        if "ro" in options.split(",") and not rest.startswith(_MADE_BY_BUBBLEWRAP) and not is_ours:
            found.append(place)
    return found
