"""The methods of the restricted socket, for programs inside a sandbox: reading, snapshots and
travel; no commit and no change of rules.

The socket that a client comes through decides what the client may do.  A sandbox has only this one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Hashable, Mapping

import trio

from yolofs.daemon.command_process import CommandRunner
from yolofs.daemon.host import Host
from yolofs.daemon.rpc.protocol import NoParams, SnapshotParams, SnapshotResult, TravelParams, TravelResult, unquote
from yolofs.daemon.rpc.run_messages import LookParams, NewsResult
from yolofs.daemon.rpc.server import Connection, Method, Result
from yolofs.daemon.run_control import Alone
from yolofs.errors import UsageError

COMMANDS_INSIDE = (
    "status", "diff", "hunks", "log", "runs", "blame", "timeline", "cat", "ls", "asks", "feedback", "snapshot", "travel"
)  # fmt: skip
"""What may be done from inside."""
_LOOK_S = 110.0
"""How long a command may take."""
_LOOKING = 2
"""How many commands from inside sandboxes are carried out at a time."""


class Turns:
    """Queues the commands of programs in sandboxes, so that the user's own need not wait."""

    def __init__(self) -> None:
        self._looking = trio.CapacityLimiter(_LOOKING)
        self._changing = trio.CapacityLimiter(1)
        self._waiting: dict[Hashable, tuple[trio.Lock, int]] = {}

    @contextlib.asynccontextmanager
    async def to_look(self, group: Hashable) -> AsyncIterator[None]:
        """Wait until a command may be carried out: one of each sandbox, and :data:`_LOOKING` of
        all, at a time.
        """
        lock, count = self._waiting.get(group, (trio.Lock(), 0))
        self._waiting[group] = lock, count + 1
        try:
            async with lock, self._looking:
                yield
        finally:
            lock, count = self._waiting.pop(group)
            if count > 1:
                self._waiting[group] = lock, count - 1

    def to_change(self) -> trio.CapacityLimiter:
        """Return the lock that lets one client at a time wait for the session."""
        return self._changing


class AgentMethods:
    """The methods as one client sees them."""

    def __init__(self, host: Host, alone: Alone, turns: Turns, connection: Connection) -> None:
        self._pid = connection.pid
        self._group = connection.guest.group
        self._host = host
        self._alone = alone
        self._turns = turns
        self._commands = CommandRunner()

    def close(self) -> None:
        """Close the output that was sent last."""
        self._commands.close()

    @property
    def methods(self) -> Mapping[str, Method]:
        """The methods by their names, made anew for each caller: if they were kept, they and this
        object would refer to each other, and only a garbage collection would free them.
        """
        return {
            "look": Method(LookParams, self._look),
            "snapshot": Method(SnapshotParams, self._snapshot),
            "travel": Method(TravelParams, self._travel),
            "news": Method(NoParams, self._news),
        }

    async def _look(self, params: LookParams) -> Result:
        words = [unquote(word) for word in params.words]
        if not words or os.fsdecode(words[0]) not in COMMANDS_INSIDE:
            command = " ".join(["yolofs", *map(os.fsdecode, words[:1])])
            raise UsageError(
                f"{command} is for the user, outside of the sandbox",
                hint=f"inside there are: {', '.join(COMMANDS_INSIDE)}",
            )
        told = [self._host.project, b"%d" % self._pid, unquote(params.directory), *words]
        try:
            async with self._turns.to_look(self._group):
                with trio.fail_after(_LOOK_S):
                    return await self._commands.run("yolofs.cli.guarded_command", told)
        except trio.TooSlowError:
            raise UsageError(
                f"that takes more than {_LOOK_S:.0f} seconds", hint="name some paths, or leave it to the user"
            ) from None

    async def _snapshot(self, params: SnapshotParams) -> Result:
        name = unquote(params.name)
        async with self._turns.to_change(), self._alone() as host:
            generation = await trio.to_thread.run_sync(lambda: host.snapshot(name, if_changed=params.if_changed))
        return Result(SnapshotResult(generation))

    async def _travel(self, params: TravelParams) -> Result:
        text = os.fsdecode(unquote(params.target))
        async with self._turns.to_change(), self._alone() as host:
            target, generation = await trio.to_thread.run_sync(lambda: host.travel(text, force=params.force))
        return Result(TravelResult(target, generation))

    async def _news(self, _: NoParams) -> Result:
        return Result(NewsResult(await trio.to_thread.run_sync(self._host.has_news)))
