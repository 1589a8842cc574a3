"""The server from which commands are forked in tests."""

from __future__ import annotations

import os

from tests.support import forked
from tests.support.idle_fork import idle_fork


def test_the_server_ends_though_a_process_that_was_forked_from_ours_goes_on() -> None:
    """It has all that we had open, the server's socket too."""
    server = forked.Server()
    with idle_fork():
        server.stop()
        assert not os.path.exists(f"/proc/{server.pid}")
