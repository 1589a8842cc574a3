"""Which directories the next run gets straight from base: by the rules and the tree now, and by the
newest survey.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Collection
from functools import partial

import trio

from yolofs.daemon.host import Host
from yolofs.daemon.runs import native_survey
from yolofs.errors import DaemonError
from yolofs.paths import display
from yolofs.sandbox.partial_binds import apart, directories_beside

log = logging.getLogger("yolofs.daemon")

_FRESH_S = 60.0
"""A survey younger than this is not made again ..."""
_SHARE = 20
"""... and neither is one that took more than this part of its age."""
_FIRST_WAIT_S = 2.0
"""How long after the start runs wait for the first survey."""
_NICE = 10
"""The niceness of later ones, which nobody waits for."""


class NativeBinds:
    """Keeps the survey, and tells what may be bound.  For trio's thread."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._found: dict[bytes, list[bytes]] = {}
        """What was found in each directory that was looked through."""
        self._asked: frozenset[bytes] = frozenset()
        """The directories of the newest survey."""
        self._started_s = trio.current_time()
        self._took_s = 0.0
        self._is_first_done = trio.Event()
        self._is_due = trio.Event()
        if host.wants_native_binds:
            self._is_due.set()

    async def run(self) -> None:
        """Make a survey whenever one is due, until cancelled."""
        while True:
            await self._is_due.wait()
            self._is_due = trio.Event()
            try:
                await self._look_through(await self._candidates())
            except (OSError, DaemonError) as error:
                is_end = isinstance(error, DaemonError) and not isinstance(error.__cause__, OSError)  # of the mount
                level = logging.DEBUG if is_end else logging.WARNING
                log.log(level, "what may be bound straight from base cannot be found out: %s", error)
            self._is_first_done.set()

    async def choose(self) -> list[bytes]:
        """Return the directories that a run which begins now may get straight from base."""
        wanted = await self._candidates()
        if not self._asked.issuperset(wanted) or self._is_old():
            self._is_due.set()
        with trio.move_on_at(self._started_s + _FIRST_WAIT_S):
            await self._is_first_done.wait()
        found = {path: [*some, *self._found[path]] for path, some in wanted.items() if path in self._found}
        return await trio.to_thread.run_sync(
            lambda: apart(part for item in found.items() for part in directories_beside(*item))
        )

    def _is_old(self) -> bool:
        age_s = trio.current_time() - self._started_s
        return self._is_first_done.is_set() and age_s > max(_FRESH_S, _SHARE * self._took_s)

    async def _candidates(self) -> dict[bytes, list[bytes]]:
        return await trio.to_thread.run_sync(self._host.native_candidates)

    async def _look_through(self, directories: Collection[bytes]) -> None:
        self._asked, self._started_s = frozenset(directories), trio.current_time()
        nearest_first = sorted(directories, key=len)  # /usr is what most runs need first
        niceness = str(_NICE if self._is_first_done.is_set() else 0)
        command = [sys.executable, "-I", "-S", native_survey.__file__, niceness, *map(os.fsdecode, nearest_first)]
        run = partial(trio.run_process, command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
        async with trio.open_nursery() as nursery:
            process: trio.Process = await nursery.start(run)
            assert process.stdout is not None
            pending = b""
            async for data in process.stdout:
                *reports, pending = (pending + data).split(b"\0\0")
                for report in reports:
                    directory, *found = report.split(b"\0")
                    self._take(directory, found)
        self._took_s = trio.current_time() - self._started_s

    def _take(self, directory: bytes, found: list[bytes]) -> None:
        if found and self._found.get(directory) != found:
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            where = display(directory)
            log.info("%s is not bound straight from base as a whole, because of %s%s", where, display(found[0]), more)
        self._found[directory] = found
