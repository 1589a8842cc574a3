"""The methods of the control socket (``docs/reference/rpc.md``)."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TypeVar

import trio

from yolofs.daemon.host import Host
from yolofs.daemon.protocol import (
    Done,
    LendParams,
    LoanKind,
    NoParams,
    SnapshotParams,
    SnapshotResult,
    StopParams,
    TravelParams,
    TravelResult,
    unquote,
)
from yolofs.daemon.server import Method, Result
from yolofs.errors import SessionBusyError, UsageError

log = logging.getLogger("yolofs.daemon")
T = TypeVar("T")

BUSY_WAIT_S = 30.0
"""How long a method waits for another one to end before it gives up."""


class Control:
    """What all conversations share: the host, and the lock that lets one of them at it at a time."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._lock = trio.Lock()
        self._is_lent = False
        self.ended = trio.Event()
        """Set once the mount is gone and the session given back."""

    @contextlib.asynccontextmanager
    async def converse(self) -> AsyncIterator[Mapping[str, Method]]:
        """Return the methods for one client.  What it has been lent comes back at the end, however that comes."""
        conversation = _Conversation(self)
        try:
            yield conversation.methods
        finally:
            with trio.CancelScope(shield=True):
                await conversation.end()

    async def end(self, *, unmount: bool) -> None:
        """Wait for what is going on, then unmount (if asked to) and give the session back."""
        async with self._lock:
            await self._close(unmount=unmount)

    async def _close(self, *, unmount: bool) -> None:
        """Unmount (if asked to) and give the session back.  What goes wrong is logged: the end comes all the same."""
        if self.ended.is_set():
            return
        with trio.CancelScope(shield=True):
            if unmount:
                await self._log_failure(lambda: self._host.unmount(force=True))
            await self._log_failure(self._host.close)
        self.ended.set()

    @staticmethod
    async def _log_failure(step: Callable[[], None]) -> None:
        try:
            await _in_thread(step)
        except Exception:
            log.exception("ending did not go well")

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[Host]:
        """Hold the lock."""
        await self._acquire()
        try:
            yield self._host
        finally:
            self._lock.release()

    async def _acquire(self) -> None:
        with trio.move_on_after(BUSY_WAIT_S):
            await self._lock.acquire()
            if self.ended.is_set():
                self._lock.release()
                raise SessionBusyError("the mount is ending", hint="yolofs mount")
            return
        what = "another process commits or aborts" if self._is_lent else "another command is at work"
        raise SessionBusyError(f"{what}, for more than {BUSY_WAIT_S:.0f} seconds now", hint="wait for it to end")


class _Conversation:
    """The methods as one client sees them."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._loan: LoanKind | None = None
        self.methods: Mapping[str, Method] = {
            "info": Method(NoParams, self._info),
            "flush": Method(NoParams, self._flush),
            "snapshot": Method(SnapshotParams, self._snapshot),
            "travel": Method(TravelParams, self._travel),
            "lend": Method(LendParams, self._lend),
            "return": Method(NoParams, self._return),
            "stop": Method(StopParams, self._stop),
        }

    async def end(self) -> None:
        """Take back what was lent: the client is gone, so nobody works on the session any more."""
        if self._loan is not None:
            await self._take_back()

    async def _info(self, _: NoParams) -> Result:
        return Result(self._control._host.info())

    async def _flush(self, _: NoParams) -> Result:
        self._check_not_lent()
        async with self._control._alone() as host:
            await _in_thread(host.flush)
        return Result(Done())

    async def _snapshot(self, params: SnapshotParams) -> Result:
        self._check_not_lent()
        async with self._control._alone() as host:
            name = unquote(params.name)
            generation = await _in_thread(lambda: host.snapshot(name, if_changed=params.if_changed))
        return Result(SnapshotResult(generation))

    async def _travel(self, params: TravelParams) -> Result:
        self._check_not_lent()
        async with self._control._alone() as host:
            text = os.fsdecode(unquote(params.target))
            target, generation = await _in_thread(lambda: host.travel(text, force=params.force))
        return Result(TravelResult(target, generation))

    async def _lend(self, params: LendParams) -> Result:
        self._check_not_lent()
        control = self._control
        await control._acquire()
        try:
            await _in_thread(control._host.lend)
        except BaseException:
            control._lock.release()
            raise
        self._loan = params.kind
        control._is_lent = True
        return Result(Done(), control._host.lock_fd)

    async def _return(self, _: NoParams) -> Result:
        if self._loan is None:
            raise UsageError("nothing has been lent to this connection")
        with trio.CancelScope(shield=True):
            await self._take_back()
        return Result(Done())

    async def _stop(self, params: StopParams) -> Result:
        self._check_not_lent()
        async with self._control._alone() as host:
            await _in_thread(lambda: host.unmount(force=params.force))
            await self._control._close(unmount=False)
        return Result(Done())

    def _check_not_lent(self) -> None:
        if self._loan is not None:
            raise UsageError("the session is lent to this connection: return it first")

    async def _take_back(self) -> None:
        control, loan = self._control, self._loan
        self._loan = None
        assert loan is not None
        try:
            await _in_thread(lambda: control._host.take_back(loan))
        finally:
            control._is_lent = False
            control._lock.release()


async def _in_thread(function: Callable[[], T]) -> T:
    return await trio.to_thread.run_sync(function)
