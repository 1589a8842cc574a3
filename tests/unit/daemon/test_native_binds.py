"""What the daemon says, and does not say, of directories that runs might get straight from base."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest
import trio

from yolofs.daemon.native_binds import NativeBinds
from yolofs.errors import DaemonError


class Host:
    """One of which nothing can be found out."""

    wants_native_binds = True

    def __init__(self, why: Exception) -> None:
        self._why = why

    def native_candidates(self) -> dict[bytes, list[bytes]]:
        raise self._why


def failed() -> DaemonError:
    """Return what the host makes of a failure on the device loop."""
    error = DaemonError("broken")
    error.__cause__ = OSError(5, "broken")
    return error


@pytest.mark.parametrize(
    ("why", "count"), [(DaemonError("the mount has just ended"), 0), (OSError(5, "broken"), 1), (failed(), 1)]
)
def test_that_the_mount_ended_meanwhile_is_nothing_to_worry_about(
    why: Exception, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        native = NativeBinds(cast("Any", Host(why)))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(native.run)
            while not native._is_first_done:
                await native._is_told.wait()
            nursery.cancel_scope.cancel()

    trio.run(run)
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == count
