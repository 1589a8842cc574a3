"""How a test starts a process: by vfork(2), which takes a tenth of the time of fork(2) in a process
as large as that of the tests, unless nobody could ever end it.

A child of vfork holds its parent's interpreter lock until it has called exec.  With a working
directory in a mount that this very process serves it would wait for us, and we for it, for ever:
SIGKILL is no help.
"""

from __future__ import annotations

import os


class UnlessServing:
    """In the place of ``subprocess._USE_VFORK``, which is asked whenever a process is started."""

    def __bool__(self) -> bool:
        """Tell whether this process serves no mount: it would have the device open."""
        return not any(_target(name) == "/dev/fuse" for name in os.listdir("/proc/self/fd"))


def _target(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except FileNotFoundError:  # of the listing itself, or of a thread that has closed it
        return ""
