"""Which directories the next run gets straight from base: by the rules and the tree now, and by the
newest survey.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Collection, Iterable, Iterator

import trio

from yolofs.daemon.host import Host
from yolofs.daemon.runs import survey_process
from yolofs.daemon.runs.survey_process import SurveyProcess
from yolofs.errors import DaemonError, TrustError
from yolofs.paths import display
from yolofs.sandbox.partial_binds import apart, directories_beside

log = logging.getLogger("yolofs.daemon")

_FRESH_S = 60.0
"""A survey younger than this is not made again ..."""
_SHARE = 20
"""... and neither is one that took more than this part of its age."""
_FIRST_WAIT_S = 0.05
"""How long a run waits for the first survey.  What may be bound hardly saves it more."""


class NativeBinds:
    """Keeps the survey, and tells what may be bound.  For trio's thread.

    ``first``: the process of a survey that has begun, which is ended here.
    """

    def __init__(self, host: Host, first: SurveyProcess | None = None) -> None:
        self._host = host
        self._first = first
        self._found: dict[bytes, list[bytes]] = {}
        """What was found in each directory that was looked through."""
        self._asked: frozenset[bytes] = frozenset()
        """The directories of the newest survey."""
        self._started_s = trio.current_time()
        self._took_s = 0.0
        self._is_first_done = False
        self._is_awaited = True
        """Whether runs wait for the first survey."""
        self._is_told = trio.Event()
        """Set, and replaced, when there is a report, or runs wait no more."""
        self._is_due = trio.Event()
        if host.wants_native_binds:
            self._is_due.set()

    async def run(self) -> None:
        """Make a survey whenever one is due, until cancelled."""
        if self._first is not None and not self._host.wants_native_binds:
            os.close(self._first.wanted)
            os.close(self._first.reports)
            await _end(self._first, is_done=False)
        while True:
            await self._is_due.wait()
            self._is_due = trio.Event()
            try:
                await self._look_through(await self._candidates())
            except (OSError, DaemonError) as error:
                is_end = isinstance(error, DaemonError) and not isinstance(error.__cause__, OSError)  # of the mount
                level = logging.DEBUG if is_end else logging.WARNING
                log.log(level, "what may be bound straight from base cannot be found out: %s", error)
            self._is_first_done = True
            self._wait_no_more()

    async def choose(self) -> list[bytes]:
        """Return the directories that a run which begins now may get straight from base."""
        wanted = await self._candidates()
        if not self._asked.issuperset(wanted) or self._is_old():
            self._is_due.set()
        with trio.move_on_after(_FIRST_WAIT_S):
            while self._is_awaited and not (self._found.keys() >= wanted.keys()):
                await self._is_told.wait()
        found = {path: [*some, *self._found[path]] for path, some in wanted.items() if path in self._found}
        return await trio.to_thread.run_sync(
            lambda: apart(part for item in found.items() for part in directories_beside(*item))
        )

    def _is_old(self) -> bool:
        age_s = trio.current_time() - self._started_s
        return self._is_first_done and age_s > max(_FRESH_S, _SHARE * self._took_s)

    async def _candidates(self) -> dict[bytes, list[bytes]]:
        return await trio.to_thread.run_sync(self._host.native_candidates)

    async def _look_through(self, directories: Collection[bytes]) -> None:
        self._asked, self._started_s = frozenset(directories), trio.current_time()
        survey = await self._survey()
        is_done = False
        try:
            async with trio.open_nursery() as nursery, trio.lowlevel.FdStream(survey.reports) as reports:
                nursery.start_soon(_tell_wanted, survey.wanted, sorted(directories, key=len))  # most need /usr first
                pending = b""
                async for data in reports:
                    *told, pending = (pending + data).split(b"\0\0")
                    for report in told:
                        self._take(*report.split(b"\0"))
            is_done = True
        finally:
            await _end(survey, is_done=is_done)
        self._took_s = trio.current_time() - self._started_s

    async def _survey(self) -> SurveyProcess:
        """Return the process of the survey that has begun, or of a new one."""
        first, self._first = self._first, None
        if first is not None:
            return first
        with self._state() as state:
            return await trio.to_thread.run_sync(lambda: survey_process.start(state, is_first=not self._is_first_done))

    @contextlib.contextmanager
    def _state(self) -> Iterator[int]:
        """Open the directory where the survey is kept, -1 if it cannot be."""
        try:
            state = self._host.open_state()
        except (OSError, TrustError) as error:
            log.warning("what may be bound straight from base is not kept for the next mount: %s", error)
            yield -1
            return
        try:
            yield state
        finally:
            os.close(state)

    def _take(self, subject: bytes, *words: bytes) -> None:
        """Take a report of the survey."""
        if subject == b"read":
            log.info("for what may be bound straight from base, %d directories were read", int(words[0]))
        elif subject == b"idle":
            self._wait_no_more()
        else:
            self._take_found(subject, list(words))
            self._tell()

    def _wait_no_more(self) -> None:
        self._is_awaited = False
        self._tell()

    def _tell(self) -> None:
        self._is_told.set()
        self._is_told = trio.Event()

    def _take_found(self, directory: bytes, found: list[bytes]) -> None:
        if found and self._found.get(directory) != found:
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            where = display(directory)
            log.info("%s is not bound straight from base as a whole, because of %s%s", where, display(found[0]), more)
        self._found[directory] = found


async def _tell_wanted(fd: int, directories: Iterable[bytes]) -> None:
    """Tell a survey what to look through, unless it has ended."""
    with contextlib.suppress(trio.BrokenResourceError):
        async with trio.lowlevel.FdStream(fd) as stream:
            await stream.send_all(b"\0".join(directories))


async def _end(survey: SurveyProcess, *, is_done: bool) -> None:
    """Wait for the end of a survey; of one that is not done, by killing it."""
    if not is_done:
        survey.process.kill()
    with trio.CancelScope(shield=True):
        await trio.to_thread.run_sync(survey.process.wait)
