"""The methods of the control socket (``docs/reference/rpc.md``)."""

from __future__ import annotations

import contextlib
import logging
import math
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TypeVar

import msgspec
import trio

from yolofs.access.asks import Ask, EndedAsk
from yolofs.access.gate import NOTED
from yolofs.daemon.agent_control import AgentMethods, Turns
from yolofs.daemon.follow.rule_keeper import SESSION_SOURCE
from yolofs.daemon.host import Host
from yolofs.daemon.hunk_control import HunkMethods
from yolofs.daemon.native_binds import NativeBinds
from yolofs.daemon.rpc.admission import Lasting
from yolofs.daemon.rpc.ask_messages import (
    AnswerParams,
    AnswerResult,
    AskInfo,
    AsksParams,
    AsksResult,
    WarningsInfo,
    answer_of,
    ask_info,
    ended_info,
)
from yolofs.daemon.rpc.backlog import News
from yolofs.daemon.rpc.hidden_messages import HiddenParams, HiddenResult, asked_paths
from yolofs.daemon.rpc.protocol import (
    MAX_LINE_BYTES,
    Done,
    LendParams,
    Lent,
    LoanKind,
    NoParams,
    SnapshotParams,
    SnapshotResult,
    StopParams,
    TravelParams,
    TravelResult,
    WatchParams,
    encode_notification,
    unquote,
)
from yolofs.daemon.rpc.rule_messages import (
    AccessesParams,
    RulesParams,
    SetRuleParams,
    UnsetRuleParams,
    UnsetRuleResult,
    accesses_page,
    decode_rule,
    page_of,
)
from yolofs.daemon.rpc.server import Connection, Method, Result
from yolofs.daemon.run_control import RunMethods
from yolofs.errors import BusyFilesError, SessionBusyError, UsageError
from yolofs.rules import RuleState
from yolofs.session.opening.lock import Holder

log = logging.getLogger("yolofs.daemon")
T = TypeVar("T")

BUSY_WAIT_S = 30.0
"""How long a method waits for another one to end before it gives up."""
_LEAVE_S = 1.0
"""How long processes have to leave after an unmount has answered their asks."""
_LEAVE_AGAIN_S = 0.02
_MAX_ASKS_BYTES = MAX_LINE_BYTES // 2
_MAX_BY_CHARS = 100
_MOST_IN_USE = 20_000
"""How many store inodes in use are listed: they have to fit into one message."""
_WARNINGS = 0
"""The number under which warnings are told; asks count from 1."""
_PING = -1
_SILENT_S = 3.0
"""How long a watcher may take to answer a ping: one that is stopped never does."""


class Control:
    """What all conversations share: the host, and the lock that gives it to one at a time."""

    def __init__(self, host: Host, native: NativeBinds) -> None:
        self._host = host
        self._native = native
        self._lock = trio.Lock()
        self._is_lent = False
        self._turns = Turns()
        self.ended = trio.Event()
        """Set once the mount is gone and the session given back."""

    @contextlib.asynccontextmanager
    async def converse_with_agent(self, connection: Connection) -> AsyncIterator[Mapping[str, Method]]:
        """Return the methods for a client inside a sandbox."""
        agent = AgentMethods(self._host, self._alone, self._turns, connection)
        try:
            yield agent.methods
        finally:
            agent.close()

    @contextlib.asynccontextmanager
    async def converse(self, connection: Connection) -> AsyncIterator[Mapping[str, Method]]:
        """Return the methods for one client.  What it has been lent comes back at the end, however
        that comes.
        """
        conversation = _Conversation(self, connection)
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
        """Unmount (if asked to) and give the session back.  What goes wrong is logged: the end
        comes all the same.
        """
        if self.ended.is_set():
            return
        with trio.CancelScope(shield=True):
            released = self._host.broker.close()  # while there is somebody to serve those who are let go
            if unmount:
                await self._log_failure(lambda: self._unmount(released, force=True))
            await self._log_failure(lambda: _in_thread(self._host.close))
        self.ended.set()

    @staticmethod
    async def _log_failure(step: Callable[[], Awaitable[None]]) -> None:
        try:
            await step()
        except Exception:
            log.exception("the mount did not end cleanly")

    async def _unmount(self, released: int, *, force: bool) -> None:
        """Unmount, which takes the mount from those who are in there if ``force`` is given.

        If asks were ``released`` for it, those who asked get a moment to leave first, with the
        answer they were given.

        Raises:
            BusyFilesError: processes are inside, and ``force`` is not given.
        """
        host = self._host
        deadline = trio.current_time() + (_LEAVE_S if released else 0.0)
        while trio.current_time() < deadline:
            try:
                await _in_thread(lambda: host.unmount(force=False))
            except BusyFilesError:
                host.broker.release_all()
                await trio.sleep(_LEAVE_AGAIN_S)
            else:
                return
        await _in_thread(lambda: host.unmount(force=force))

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
        for_long = f"for more than {BUSY_WAIT_S:.0f} seconds now"
        if not self._is_lent:
            raise SessionBusyError(f"another command is at work, {for_long}", hint="wait for it to end")
        borrower = Holder.noted_in(self._host.lock_fd)
        raise SessionBusyError(f"{borrower.text}, {for_long}", hint=borrower.hint)


class _Conversation:
    """The methods as one client sees them."""

    def __init__(self, control: Control, connection: Connection) -> None:
        self._control = control
        self._connection = connection
        self._loan: LoanKind | None = None
        self._watching = contextlib.ExitStack()
        self._watcher: _Watcher | None = None
        self._hunks = HunkMethods(lambda: control._host)
        self._runs = RunMethods(lambda: control._host, lambda: control._alone(), lambda: control._native, connection)

    async def end(self) -> None:
        """Take back what was lent: the client is gone, so nobody works on the session any more."""
        self._watching.close()
        self._hunks.close()
        await self._runs.end()
        if self._loan is not None:
            await self._take_back()

    @property
    def methods(self) -> Mapping[str, Method]:
        """The methods by their names, made anew for each caller: if they were kept, they and this
        object would refer to each other, and only a garbage collection would free them.
        """
        return {
            "info": Method(NoParams, self._info),
            "flush": Method(NoParams, self._flush),
            "snapshot": Method(SnapshotParams, self._snapshot),
            "travel": Method(TravelParams, self._travel),
            "lend": Method(LendParams, self._lend),
            "return": Method(NoParams, self._return),
            "stop": Method(StopParams, self._stop),
            "asks": Method(AsksParams, self._asks),
            "answer": Method(AnswerParams, self._answer),
            "watch": Method(WatchParams, self._watch),
            "here": Method(NoParams, self._here),
            "rules": Method(RulesParams, self._rules),
            "hidden": Method(HiddenParams, self._hidden),
            "accesses": Method(AccessesParams, self._accesses),
            "reload_rules": Method(NoParams, self._reload_rules),
            "set_rule": Method(SetRuleParams, self._set_rule),
            "unset_rule": Method(UnsetRuleParams, self._unset_rule),
            **self._hunks.methods,
            **self._runs.methods,
        }

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
        self._connection.begin_lasting(Lasting.LOAN)
        try:
            await control._acquire()
            try:
                in_use = await _in_thread(control._host.lend)
            except BaseException:
                control._lock.release()
                raise
        except BaseException:
            self._connection.end_lasting(Lasting.LOAN)
            raise
        self._loan = params.kind
        control._is_lent = True
        told = tuple(in_use) if len(in_use) <= _MOST_IN_USE else None
        return Result(Lent(told), control._host.lock_fd)

    async def _return(self, _: NoParams) -> Result:
        if self._loan is None:
            raise UsageError("nothing has been lent to this connection")
        with trio.CancelScope(shield=True):
            await self._take_back()
        return Result(Done())

    async def _stop(self, params: StopParams) -> Result:
        self._check_not_lent()
        async with self._control._alone() as host:
            if not params.force:
                host.runs.check_none()  # their mount namespaces keep the view, so that the kernel would let it go
            await self._control._unmount(host.broker.release_all(), force=params.force)
            await self._control._close(unmount=False)
        return Result(Done())

    # ---- asks; they need no turn, as the session is not touched

    async def _asks(self, params: AsksParams) -> Result:
        infos: list[AskInfo] = []
        size = 0
        for ask in self._control._host.broker.waiting:
            if ask.id > params.after:
                info = ask_info(ask)
                size += len(msgspec.json.encode(info)) + 1
                if size > _MAX_ASKS_BYTES:
                    return Result(AsksResult(tuple(infos), more=True))
                ask.is_listed |= params.to_user
                infos.append(info)
        return Result(AsksResult(tuple(infos), more=False))

    async def _answer(self, params: AnswerParams) -> Result:
        by = f"{params.by[:_MAX_BY_CHARS] or 'a client'}, process {self._connection.pid}"
        broker = self._control._host.broker
        answered = await broker.answer(
            params.id, answer_of(params), seen=params.seen, listed=params.listed, only=params.only, by=by
        )
        return Result(AnswerResult(tuple(answered.ids), tuple(answered.left), tuple(answered.unseen)))

    async def _watch(self, params: WatchParams) -> Result:
        self._connection.begin_lasting(Lasting.WATCH)
        self._watching.close()
        self._watcher = _Watcher(self._connection, params)
        self._watching.enter_context(self._control._host.broker.watched_by(self._watcher))
        return Result(Done())

    async def _here(self, _: NoParams) -> Result:
        if self._watcher is not None and self._watcher.is_here():
            self._control._host.broker.attention_changed()
        return Result(Done())

    async def _rules(self, params: RulesParams) -> Result:
        keeper = self._control._host.rules
        return Result(page_of(keeper.sources, keeper.warnings, params.after))

    async def _hidden(self, params: HiddenParams) -> Result:
        host = self._control._host
        hidden = (number for number, path in enumerate(asked_paths(params)) if host.hides(path))
        return Result(HiddenResult(tuple(hidden)))

    async def _accesses(self, params: AccessesParams) -> Result:
        noted = self._control._host.noted_accesses()
        return Result(accesses_page(noted, params.after, is_full=len(noted) >= NOTED))

    async def _reload_rules(self, _: NoParams) -> Result:
        keeper = self._control._host.rules
        await _in_thread(keeper.reload)
        return Result(Done())

    async def _set_rule(self, params: SetRuleParams) -> Result:
        keeper = self._control._host.rules
        rule = decode_rule(params.key, params.state, SESSION_SOURCE)
        await _in_thread(lambda: keeper.install([rule], lasting=params.lasting))
        return Result(Done())

    async def _unset_rule(self, params: UnsetRuleParams) -> Result:
        keeper = self._control._host.rules
        rule = decode_rule(params.key, RuleState.ASK, "")
        return Result(UnsetRuleResult(await _in_thread(lambda: keeper.remove(rule))))

    def _check_not_lent(self) -> None:
        if self._loan is not None:
            raise UsageError("the session is lent to this connection: return it first")

    async def _take_back(self) -> None:
        control, loan = self._control, self._loan
        self._loan = None
        self._connection.end_lasting(Lasting.LOAN)
        assert loan is not None
        try:
            await _in_thread(lambda: control._host.take_back(loan))
        finally:
            control._is_lent = False
            control._lock.release()


class _Watcher:
    """Passes on to a client what happens to asks."""

    def __init__(self, connection: Connection, params: WatchParams) -> None:
        self._connection = connection
        self._params = params
        self._pinged_s = math.inf
        """When it was asked whether it is there; infinite if it has answered that."""
        self._is_silent = False

    def attends(self, run: int) -> bool:
        return self._params.is_attended and not self._is_silent and self._params.run in (0, run)

    def check(self) -> bool:
        if not self._params.is_attended or not self._params.answers_pings or self._is_silent:
            return False
        now_s = trio.current_time()
        if self._pinged_s == math.inf:
            self._pinged_s = now_s
            self._connection.notify(News(_PING, False, lambda: encode_notification("ping", NoParams())))
        self._is_silent = now_s - self._pinged_s > _SILENT_S
        return self._is_silent

    def is_here(self) -> bool:
        """Take in that it has answered; tell whether it had been silent before."""
        was_silent = self._is_silent
        self._pinged_s, self._is_silent = math.inf, False
        return was_silent

    def asked(self, ask: Ask) -> None:
        self._connection.notify(News(ask.id, False, lambda: encode_notification("asked", ask_info(ask))))

    def ended(self, ended: EndedAsk) -> None:
        self._connection.notify(News(ended.ask.id, True, lambda: encode_notification("ended", ended_info(ended))))

    def warned(self, warnings: tuple[str, ...]) -> None:
        info = WarningsInfo(warnings)
        self._connection.notify(News(_WARNINGS, False, lambda: encode_notification("warnings", info)))


async def _in_thread(function: Callable[[], T]) -> T:
    return await trio.to_thread.run_sync(function)
