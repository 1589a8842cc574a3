"""Waits until the next change is later by every clock that is compared."""

from __future__ import annotations

import time

from yolofs.state.drift import CLOCK_SLACK_NS

LATER_S = 2 * CLOCK_SLACK_NS / 1e9
"""Records, and some file systems' files, have the time of the kernel's last tick, other files that
of the change itself.  So a change by the host is surely later only if it comes that much later.
There is no condition that could be polled instead.
"""


def let_clocks_pass() -> None:
    """Wait until files that change from now on are later than all that was recorded and written
    before.
    """
    time.sleep(LATER_S)
