"""The server from which commands are forked in tests."""

from __future__ import annotations

import os

from tests.cli import forked


def test_the_server_ends_though_a_process_that_was_forked_from_ours_goes_on() -> None:
    """It has all that we had open, the server's socket too."""
    server = forked.Server()
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    try:
        server.stop()
        assert not os.path.exists(f"/proc/{server.pid}")
    finally:
        os.close(writing)
        os.close(reading)
        os.waitpid(pid, 0)
