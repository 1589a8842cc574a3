"""The commands' end of the control socket: plain blocking calls.

What is about rules and asks is imported where it is used: every command waits for its imports, and
few need these.
"""

from __future__ import annotations

import _socket
import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

import msgspec

from yolofs.daemon.rpc import endpoint
from yolofs.daemon.rpc.daemon_files import DaemonFile, check_version, log_path, read_daemon_file, socket_path
from yolofs.daemon.rpc.protocol import (
    INVALID_PARAMS,
    MAX_LINE_BYTES,
    METHOD_NOT_FOUND,
    NO_ROOM,
    Done,
    Info,
    LendParams,
    Lent,
    LoanKind,
    NoParams,
    RpcMessage,
    SnapshotParams,
    SnapshotResult,
    StopParams,
    TravelParams,
    TravelResult,
    WatchParams,
    encode_notification,
    encode_request,
    error_from,
    quote,
)
from yolofs.daemon.rpc.run_messages import (
    BeginRunParams,
    BeginRunResult,
    EndRunParams,
    EndRunResult,
    EnterRunParams,
    LookParams,
    LookResult,
    NewsResult,
)
from yolofs.errors import DaemonError, YolofsError
from yolofs.paths import Generation, display
from yolofs.system import descriptor_passing
from yolofs.system.processes import pidfd_of

if TYPE_CHECKING:
    from yolofs.access.questions import Operation
    from yolofs.daemon.rpc.ask_messages import AnswerParams, AnswerResult, AskInfo, EndedInfo, PingInfo, WarningsInfo
    from yolofs.daemon.rpc.rule_messages import SourcedRule
    from yolofs.rules import Level, Rule, Sources

R = TypeVar("R", bound=msgspec.Struct)
Event: TypeAlias = "AskInfo | EndedInfo | PingInfo | WarningsInfo"
"""An ask that is new or has changed, or what became of one."""

_CONNECT_TIMEOUT_S = 3.0
_INFO_TIMEOUT_S = 10.0
"""The daemon does nothing for it, but many others may want something at the same time."""
_TIMEOUT_S = 120.0
"""How long an answer may take; a flush of gigabytes takes long."""
_COMMIT_TIMEOUT_S = 3600.0
"""The same for what the daemon has a command do."""
_FORCE_TIMEOUT_S = 20.0
"""The same for a forced stop, after which the daemon is killed."""
_LOOK_UP_S = 0.5
"""How often a wait for events is interrupted to look for signals: one that came just before the
wait would not end it.
"""
_ROOM_S = 20.0
"""How long to go on connecting when others take all connections."""
_ROOM_AGAIN_S = 0.02
"""How long to wait before each new try: nothing tells when there is room."""
_HANGS_HINT = "yolofs unmount --force"


def _nothing() -> None:
    pass


class CommandOutput(msgspec.Struct, frozen=True):
    """What a command has said, in the file ``fd``: stdout, then stderr."""

    code: int
    fd: int
    out_bytes: int
    err_bytes: int


class Client:
    """A connection to a living daemon; use :meth:`connect`, and :meth:`close` or ``with``."""

    def __init__(self, path: bytes, log: bytes = b"", described: DaemonFile | None = None) -> None:
        """Connect to the socket at ``path``; ``log`` is the path of the daemon's log, empty where
        it cannot be seen, as is then what is ``described`` of it.

        Raises:
            OSError: nobody listens there.
        """
        self._hint = f"see {display(log)}" if log else "the user can see why in the daemon's log"
        self._path = path
        self.described = described
        self._socket = endpoint.connect(path, _CONNECT_TIMEOUT_S)
        self._pending = bytearray()
        self._last_id = 0
        self._received_fds: list[int] = []
        self._events: deque[Event] = deque()
        self.pid, self.uid = endpoint.peer(self._socket)
        """The daemon's, 0 if it lives in another pid namespace."""

    @classmethod
    def connect(cls, directory: bytes) -> Self | None:
        """Connect to the daemon of the session in ``directory``; None if there is none.

        Raises:
            DaemonError: there is one, but it takes no connection, or its socket is gone; or
                somebody else listens there.
        """
        described = read_daemon_file(directory)
        if described is None:
            return None
        try:
            client = cls(socket_path(described), log_path(directory), described)
        except TimeoutError:
            raise DaemonError(f"the daemon, process {described.pid}, takes no connection", hint=_HANGS_HINT) from None
        except OSError:
            from yolofs.daemon.rpc.daemon_process import is_daemon_alive  # hardly a command comes here

            if is_daemon_alive(directory):
                raise DaemonError(
                    f"the daemon, process {described.pid}, cannot be reached: nobody listens at"
                    f" {display(socket_path(described))} any more",
                    hint=f"{_HANGS_HINT} ends it, and nothing that is staged is lost",
                ) from None
            return None
        if client.uid != os.geteuid():
            client.close()
            raise DaemonError(
                f"process {client.pid} of user {client.uid} answers at the session's socket, not a daemon of yours",
                hint=f"end it, and remove {display(socket_path(described))}",
            )
        return client

    def close(self) -> None:
        """Hang up."""
        self._socket.close()
        for fd in self._received_fds:
            os.close(fd)
        self._received_fds = []

    def hang_up(self) -> None:
        """End the connection, also for another thread that waits at it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(_socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- methods

    def info(self) -> Info:
        """Return the daemon's process and version, and what it serves where."""
        return self._call("info", NoParams(), Info, timeout_s=_INFO_TIMEOUT_S)

    def flush(self) -> None:
        """Have the kernel hand over what it holds back of writes: then the journal and the store
        are true.
        """
        self._call("flush", NoParams(), Done)

    def snapshot(self, name: bytes, *, if_changed: bool) -> Generation | None:
        """Snapshot; None if nothing had changed and ``if_changed``."""
        generation = self._call("snapshot", SnapshotParams(quote(name), if_changed), SnapshotResult).generation
        return Generation(generation) if generation is not None else None

    def travel(self, text: str, *, force: bool) -> tuple[Generation, Generation]:
        """Travel; return the generation shown and the one started.

        Raises:
            BusyFilesError, GenerationError: as :meth:`yolofs.daemon.host.Host.travel`.
        """
        result = self._call("travel", TravelParams(quote(os.fsencode(text)), force), TravelResult)
        return Generation(result.target), Generation(result.generation)

    def look(self, words: Sequence[bytes], directory: bytes) -> CommandOutput:
        """Have a command carried out, from inside a sandbox; the descriptor is closed with this
        connection.

        Raises:
            UsageError: it is no command for the inside of a sandbox.
            DaemonError: the daemon has sent no output, or it cannot be reached.
        """
        result = self._call("look", LookParams(tuple(map(quote, words)), quote(directory)), LookResult)
        if not self._received_fds:
            raise DaemonError("the daemon has sent no output")
        return CommandOutput(result.code, self._received_fds[-1], result.out_bytes, result.err_bytes)

    def has_news(self) -> bool:
        """Tell, inside a sandbox, whether the user has told something that no agent knows yet."""
        return self._call("news", NoParams(), NewsResult, timeout_s=_INFO_TIMEOUT_S).has_news

    def carry_out(self, method: str, params: msgspec.Struct) -> CommandOutput:
        """Have hunks listed, committed, dropped or edited; the descriptor is closed with this
        connection.

        ``method`` and ``params`` are those of :mod:`yolofs.daemon.rpc.hunk_messages`.

        Raises:
            DaemonError: the daemon has sent no output, or it cannot be reached.
        """
        result = self._call(method, params, LookResult, timeout_s=_COMMIT_TIMEOUT_S)
        if not self._received_fds:
            raise DaemonError("the daemon has sent no output")
        return CommandOutput(result.code, self._received_fds[-1], result.out_bytes, result.err_bytes)

    def begin_run(
        self,
        command: Sequence[bytes],
        directory: bytes,
        *,
        snapshot: bool,
        native: bool,
        tmp: str,
        home: bytes,
        meanwhile: Callable[[], None] = _nothing,
    ) -> BeginRunResult:
        """Begin a run, which ends with :meth:`end_run` or with this connection.

        ``native``: tell what may be bound straight from base.  ``tmp``: what the run is to have as
        ``/tmp``, as :attr:`BeginRunParams.tmp`.  ``home`` is the command's home directory.
        ``meanwhile`` is called once the daemon has been told.
        """
        params = BeginRunParams(tuple(map(quote, command)), quote(directory), snapshot, native, tmp, quote(home))
        return self._call("begin_run", params, BeginRunResult, meanwhile=meanwhile)

    def enter_run(self, run: int, namespace: int) -> None:
        """Tell which pid namespace holds the processes of a run: what they change counts as the
        run's.
        """
        self._call("enter_run", EnterRunParams(run, namespace), Done)

    def end_run(self, run: int, code: int | None, name: bytes, *, snapshot: bool) -> EndRunResult:
        """End a run."""
        return self._call("end_run", EndRunParams(run, code, snapshot, quote(name)), EndRunResult)

    @contextlib.contextmanager
    def lend(self, kind: LoanKind, command: str = "") -> Iterator[frozenset[int] | None]:
        """Borrow the session for the time of the block: no request is served meanwhile, and its
        lock is ours too, for ``command``.

        Gives the store inodes that somebody has open, None if that is not known.

        Raises:
            DaemonError: the daemon is of another version: it could misread what we write.
        """
        check_version(self.described)
        from yolofs.session.opening.lock import note_holder  # for commands that change something alone

        in_use = self._call("lend", LendParams(kind), Lent).in_use
        try:
            if self._received_fds:
                note_holder(self._received_fds[-1], command)
            yield frozenset(in_use) if in_use is not None else None
        except BaseException:
            with contextlib.suppress(YolofsError):  # the first error is the one to tell
                self._call("return", NoParams(), Done)
            raise
        self._call("return", NoParams(), Done)

    def asks(self, *, to_user: bool = False) -> list[AskInfo]:
        """Return all asks that wait, oldest first; ``to_user``: the user gets to see them, and may
        answer them by group.
        """
        from yolofs.daemon.rpc.ask_messages import AsksParams, AsksResult

        asks: list[AskInfo] = []
        more = True
        while more:
            page = self._call("asks", AsksParams(asks[-1].id if asks else 0, to_user), AsksResult)
            asks += page.asks
            more = page.more and bool(page.asks)
        return asks

    def rules(self) -> Sources:
        """Return the rules that are in force."""
        from yolofs.daemon.rpc.rule_messages import RulesParams, RulesResult, sources_of

        page = self._call("rules", RulesParams(), RulesResult)
        rules: list[SourcedRule] = list(page.rules)
        while page.more and page.rules:
            page = self._call("rules", RulesParams(len(rules)), RulesResult)
            rules += page.rules
        return sources_of(rules, page.warnings)

    def hidden(self, paths: Sequence[bytes]) -> set[bytes]:
        """Return which of some absolute paths, at most a thousand, the rules hide."""
        from yolofs.daemon.rpc.hidden_messages import HiddenParams, HiddenResult

        found = self._call("hidden", HiddenParams(tuple(map(quote, paths))), HiddenResult).hidden
        return {paths[number] for number in found}

    def accesses(self) -> tuple[list[tuple[bytes, Operation]], bool]:
        """Return what rules let be read, executed and listed, each once, and whether that may not
        be all.
        """
        from yolofs.daemon.rpc.protocol import unquote
        from yolofs.daemon.rpc.rule_messages import AccessesParams, AccessesResult

        found: list[tuple[bytes, Operation]] = []
        while True:
            page = self._call("accesses", AccessesParams(len(found)), AccessesResult)
            found += [(unquote(noted.path), noted.operation) for noted in page.accesses]
            if not (page.more and page.accesses):
                return found, page.is_full

    def reload_rules(self) -> None:
        """Have the files that rules come from read at once, and what the user has agreed to."""
        self._call("reload_rules", NoParams(), Done)

    def set_rule(self, rule: Rule, *, lasting: bool = True) -> None:
        """Put a rule in force, for good or for this session.

        Raises:
            ConfigError: ``rules.toml`` cannot be changed.
        """
        from yolofs.daemon.rpc.rule_messages import SetRuleParams, encode_key

        self._call("set_rule", SetRuleParams(encode_key(rule), rule.state, lasting), Done)

    def unset_rule(self, rule: Rule) -> tuple[Level, ...]:
        """Remove the learned rule and the answer that are about the same as ``rule``; return where
        there was one.

        Raises:
            ConfigError: ``rules.toml`` cannot be changed.
        """
        from yolofs.daemon.rpc.rule_messages import UnsetRuleParams, UnsetRuleResult, encode_key

        return self._call("unset_rule", UnsetRuleParams(encode_key(rule)), UnsetRuleResult).removed

    def answer(self, params: AnswerParams) -> AnswerResult:
        """Answer an ask; return which this answered.

        Raises:
            AskError: it does not wait any more.
            UsageError: the answer does not fit.
        """
        from yolofs.daemon.rpc.ask_messages import AnswerResult

        return self._call("answer", params, AnswerResult)

    def watch(self, *, is_attended: bool = True, run: int = 0, answers_pings: bool = False) -> None:
        """Have the daemon send what happens to asks, from all that wait now on: see
        :meth:`next_event`.

        ``is_attended``: somebody sees them, or with ``run`` those of that run, so that they wait
        longer.  ``answers_pings``: as long as :meth:`here` follows each ping.
        """
        self._call("watch", WatchParams(is_attended, run, answers_pings), Done)

    def here(self) -> None:
        """Answer a ping; while another thread waits for events, too.  Never fails: that the daemon
        is gone is told by the next event.
        """
        with contextlib.suppress(OSError):
            self._socket.sendall(encode_notification("here", NoParams()))

    def next_event(self) -> Event:
        """Wait for the next event, however long.

        Raises:
            DaemonError: the daemon is gone.
        """
        self._socket.settimeout(_LOOK_UP_S)
        while not self._events:
            try:
                self._take_event(msgspec.json.decode(self._read_line(), type=RpcMessage))
            except TimeoutError:
                continue
            except OSError as error:
                raise DaemonError(f"the daemon has hung up: {error.strerror}") from error
        return self._events.popleft()

    def stop(self, *, force: bool) -> None:
        """End the daemon; on return the mount and the process are gone, and the session's lock is
        free.

        Raises:
            BusyFilesError: processes are inside the mount, and ``force`` is not given.
        """
        with pidfd_of(self.pid) as pidfd:
            self._call("stop", StopParams(force), Done, timeout_s=_FORCE_TIMEOUT_S if force else _TIMEOUT_S)
            self._wait_for_exit(pidfd)

    def kill(self) -> None:
        """Kill a daemon that hangs.  Nothing is lost by it, but the dead mount has to be taken
        away.
        """
        from yolofs.daemon.rpc.daemon_process import kill

        with pidfd_of(self.pid) as pidfd:
            kill(pidfd)
            self._wait_for_exit(pidfd)

    def _wait_for_exit(self, pidfd: int | None) -> None:
        from yolofs.daemon.rpc.daemon_process import has_ended

        if not has_ended(pidfd):
            raise DaemonError(f"the daemon, process {self.pid}, does not end", hint=f"kill -9 {self.pid}")

    # ---- messages

    def _call(
        self,
        method: str,
        params: msgspec.Struct,
        result: type[R],
        *,
        timeout_s: float = _TIMEOUT_S,
        meanwhile: Callable[[], None] = _nothing,
    ) -> R:
        self._last_id += 1
        self._socket.settimeout(timeout_s)
        try:
            answer = self._exchange(encode_request(self._last_id, method, params), meanwhile)
            if answer.error is not None:
                if answer.error.code in (METHOD_NOT_FOUND, INVALID_PARAMS):
                    check_version(self.described)
                raise error_from(answer.error, self._hint)
            return msgspec.json.decode(answer.result, type=result)
        except TimeoutError:
            message = f"the daemon, process {self.pid}, has not answered for {timeout_s:.0f} seconds"
            raise DaemonError(message, hint=_HANGS_HINT) from None
        except OSError as error:
            raise DaemonError(f"the daemon has hung up: {error.strerror}", hint=self._hint) from error
        except msgspec.DecodeError as error:
            check_version(self.described)
            raise DaemonError(f"the daemon's answer makes no sense: {error}", hint="yolofs unmount") from error

    def _exchange(self, request: bytes, meanwhile: Callable[[], None]) -> RpcMessage:
        """Send a request and return its response; where others have taken our connection, once
        more on another one.

        ``meanwhile`` is called as soon as it has been sent, and raises no OSError.
        """
        deadline = time.monotonic() + _ROOM_S
        while True:
            with contextlib.suppress(BrokenPipeError):  # we have been told why
                self._socket.sendall(request)
            meanwhile()
            meanwhile = _nothing
            message = msgspec.json.decode(self._read_line(), type=RpcMessage)
            while message.method:
                self._take_event(message)
                message = msgspec.json.decode(self._read_line(), type=RpcMessage)
            if message.error is None or message.error.code != NO_ROOM or time.monotonic() > deadline:
                return message
            timeout_s = self._socket.gettimeout()
            self._socket.close()
            time.sleep(_ROOM_AGAIN_S)
            self._pending.clear()
            self._socket = endpoint.connect(self._path, _CONNECT_TIMEOUT_S)
            self._socket.settimeout(timeout_s)

    def _take_event(self, message: RpcMessage) -> None:
        """Keep a notification for :meth:`next_event`; what this version does not know it passes
        over.
        """
        from yolofs.daemon.rpc.ask_messages import AskInfo, EndedInfo, PingInfo, WarningsInfo

        match message.method:
            case "asked":
                self._events.append(msgspec.json.decode(message.params, type=AskInfo))
            case "ended":
                self._events.append(msgspec.json.decode(message.params, type=EndedInfo))
            case "ping":
                self._events.append(PingInfo())
            case "warnings":
                self._events.append(msgspec.json.decode(message.params, type=WarningsInfo))

    def _read_line(self) -> bytes:
        while (end := self._pending.find(b"\n")) < 0:
            if len(self._pending) > MAX_LINE_BYTES:
                raise DaemonError("the daemon's answer does not end")
            chunk, fds = descriptor_passing.receive(self._socket, 65536, 1)
            self._received_fds += fds
            if not chunk:
                raise DaemonError("the daemon has hung up", hint=self._hint)
            self._pending += chunk
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        return line
