"""What is left of a conversation once its connection has ended."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import trio

from yolofs.daemon.control import Control


class _Connection:
    """As much of a connection as a conversation takes note of."""

    pid = 1

    def __init__(self) -> None:
        self.guest = self
        self.group = 1


def test_a_conversation_that_has_ended_is_no_garbage() -> None:
    """A daemon at work looks for garbage every other minute, and may be connected to thousands of
    times a second.
    """
    nothing: Any = None

    async def run() -> None:
        control = Control(nothing, nothing)
        for converse in (control.converse, control.converse_with_agent):
            connection: Any = _Connection()
            connection.guest = _Connection()
            left = weakref.ref(connection)
            async with converse(connection) as methods:
                assert methods
            del connection, methods
            assert left() is None

    gc.disable()
    try:
        trio.run(run)
    finally:
        gc.enable()
