"""The methods of the control socket that are about runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

import trio

from yolofs.daemon.host import Host
from yolofs.daemon.native_binds import NativeBinds
from yolofs.daemon.rpc.admission import Lasting
from yolofs.daemon.rpc.protocol import Done, quote, unquote
from yolofs.daemon.rpc.run_messages import (
    BeginRunParams,
    BeginRunResult,
    EndRunParams,
    EndRunResult,
    EnterRunParams,
    RuledTmp,
)
from yolofs.daemon.rpc.server import Connection, Method, Result
from yolofs.errors import UsageError, YolofsError

log = logging.getLogger("yolofs.daemon")

Alone = Callable[[], AbstractAsyncContextManager[Host]]
"""Gives the host for as long as no other method works on the session."""


class RunMethods:
    """The methods as one client sees them; it has at most one run at a time, which ends with its
    connection.
    """

    def __init__(
        self, host: Callable[[], Host], alone: Alone, native: Callable[[], NativeBinds], connection: Connection
    ) -> None:
        self._connection = connection
        self._host = host
        self._native = native
        self._alone = alone
        self._run: int | None = None

    async def end(self) -> None:
        """Note that whoever started a run is gone; its processes have been killed with it."""
        if self._run is None:
            return
        number, self._run = self._run, None
        try:
            await trio.to_thread.run_sync(lambda: self._host().runs.end(number, None, None))
        except (YolofsError, OSError) as error:
            log.warning("the end of run %d could not be noted: %s", number, error)

    @property
    def methods(self) -> Mapping[str, Method]:
        """The methods by their names, made anew for each caller: if they were kept, they and this
        object would refer to each other, and only a garbage collection would free them.
        """
        return {
            "begin_run": Method(BeginRunParams, self._begin),
            "enter_run": Method(EnterRunParams, self._enter),
            "end_run": Method(EndRunParams, self._end),
        }

    async def _begin(self, params: BeginRunParams) -> Result:
        if self._run is not None:
            raise UsageError(f"run {self._run} of this connection goes on")
        self._connection.begin_lasting(Lasting.RUN)
        try:
            return await self._begin_run(params)
        except BaseException:
            self._connection.end_lasting(Lasting.RUN)
            raise

    async def _begin_run(self, params: BeginRunParams) -> Result:
        command = tuple(map(unquote, params.command))
        directory = unquote(params.directory)
        native = await self._native().choose() if params.native else []
        waiting = await trio.to_thread.run_sync(self._host().rules.count_waiting)
        tmp = await trio.to_thread.run_sync(lambda: self._host().choose_tmp(params.tmp, unquote(params.home)))
        async with self._alone() as host:
            number, before = await trio.to_thread.run_sync(
                lambda: host.begin_run(command, directory, snapshot=params.snapshot)
            )
        self._run = number
        return Result(
            BeginRunResult(
                number,
                before.generation,
                before.marker_ns,
                quote(host.agent_socket_path),
                tuple(map(quote, native)),
                waiting,
                tuple(map(quote, tmp.private)),
                tuple(map(quote, tmp.shown)),
                tuple(RuledTmp(quote(one.directory), quote(one.path), one.source) for one in tmp.ruled),
            )
        )

    async def _enter(self, params: EnterRunParams) -> Result:
        self._check_own(params.run)
        self._host().runs.enter(params.run, params.namespace)
        return Result(Done())

    async def _end(self, params: EndRunParams) -> Result:
        self._check_own(params.run)
        async with self._alone() as host:
            self._run = None
            self._connection.end_lasting(Lasting.RUN)
            result = await trio.to_thread.run_sync(
                lambda: host.end_run(params.run, params.code, unquote(params.name), snapshot=params.snapshot)
            )
        after = result.after.generation if result.after is not None else None
        return Result(EndRunResult(after, result.has_notes, result.going_on))

    def _check_own(self, run: int) -> None:
        if run != self._run:
            raise UsageError(f"this connection has no run {run}")
