"""``yolofs watch`` with nobody at it: every ask gets the same answer, or the one that a command
gives.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec

from yolofs.access.answers import Lifetime
from yolofs.access.asks import how_it_ended
from yolofs.cli.output import emit, warn
from yolofs.cli.show.ask_lines import path_text, verb
from yolofs.daemon.rpc.ask_fields import ask_fields
from yolofs.daemon.rpc.ask_messages import AnswerParams, AskInfo, EndedInfo, PingInfo, WarningsInfo
from yolofs.daemon.rpc.client import Client
from yolofs.daemon.rpc.protocol import quote
from yolofs.errors import AskError, UsageError, YolofsError
from yolofs.rules import RuleState
from yolofs.system.processes import ending_text
from yolofs.text.json_text import encode_json

_BY = "yolofs watch"
_COMMANDS = 8
"""How many commands run at a time."""
_MAX_OUTPUT = 64 << 10


class CommandAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a command may say as JSON."""

    decision: str
    lifetime: Lifetime = Lifetime.ONCE
    scope: str | None = None
    state: RuleState | None = None


def answer_alone(events: Client, calls: Client, decision: str | None, shell_command: str) -> None:
    """Answer all asks with ``decision``, or as ``shell_command`` says, until the mount ends.

    Raises:
        DaemonError: it has.
        KeyboardInterrupt: a signal says that it is enough.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup(1) has it
            signal.signal(number, signal.default_int_handler)
    answerer = _Answerer(calls, decision, shell_command)
    events.watch(answers_pings=True)
    try:
        while True:
            match events.next_event():
                case AskInfo() as ask:
                    answerer.asked(ask)
                case EndedInfo() as ended:
                    answerer.ended(ended)
                case PingInfo():
                    events.here()
                case WarningsInfo(warnings=warnings):
                    for warning in warnings:
                        warn(warning)
    finally:
        answerer.close()


class _Answerer:
    def __init__(self, calls: Client, decision: str | None, shell_command: str) -> None:
        self._calls = calls
        self._decision = decision
        self._command = shell_command
        self._pool = ThreadPoolExecutor(_COMMANDS, "answer")
        self._lock = threading.Lock()
        """Guards the connection and what follows."""
        self._waiting: set[int] = set()
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def asked(self, ask: AskInfo) -> None:
        with self._lock:
            is_new = ask.id not in self._waiting
            self._waiting.add(ask.id)
        if not is_new:
            return
        if self._decision is not None:
            self._send(ask, CommandAnswer(self._decision))
        else:
            self._pool.submit(self._answer_with_command, ask)

    def ended(self, ended: EndedInfo) -> None:
        """Stop working on an ask: it has ended, by us or otherwise."""
        with self._lock:
            self._waiting.discard(ended.id)
            process = self._running.get(ended.id)
        if process is not None:
            _kill(process)
            how = how_it_ended(ended.outcome, ended.by)
            warn(f"ask {ended.id} ended ({how}) before its command answered; the command was killed")

    def close(self) -> None:
        """Kill what still runs."""
        with self._lock:
            self._waiting.clear()
            running = list(self._running.values())
        for process in running:
            _kill(process)
        self._pool.shutdown(cancel_futures=True)

    def _answer_with_command(self, ask: AskInfo) -> None:
        try:
            self._send(ask, self._run(ask))
        except (OSError, ValueError, YolofsError) as error:
            if self._is_waiting(ask.id):
                warn(f"ask {ask.id} gets the default, as the command failed: {error}")
                self._send(ask, CommandAnswer("default"), by=f"{_BY}, as its command failed")

    def _run(self, ask: AskInfo) -> CommandAnswer:
        """Run the command for an ask.

        Raises:
            ValueError: what it says is no answer, or it fails.
            OSError: it cannot be run.
        """
        with self._lock:
            if ask.id not in self._waiting:
                raise ValueError("the ask has ended")
            process = subprocess.Popen(
                ["/bin/sh", "-c", self._command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            self._running[ask.id] = process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with contextlib.suppress(BrokenPipeError):  # it need not read
                process.stdin.write(encode_json(ask_fields(ask)) + b"\n")
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            said = _said_until_its_end(process, process.stdout.fileno())
            status = process.wait()
        finally:
            with self._lock:
                del self._running[ask.id]
            process.stdout.close()
        if len(said) >= _MAX_OUTPUT:
            raise ValueError(f"it says more than {_MAX_OUTPUT} bytes")
        if status:
            raise ValueError(f"it {ending_text(status)}")
        return _parse(said)

    def _send(self, ask: AskInfo, answer: CommandAnswer, *, by: str = _BY) -> None:
        """Give an answer; that somebody was faster is nothing to worry about."""
        scope = quote(os.fsencode(answer.scope)) if answer.scope is not None else None
        params = AnswerParams(ask.id, answer.decision, answer.lifetime, scope, answer.state, only=True, by=by)
        with contextlib.suppress(AskError), self._lock:
            self._calls.answer(params)
            emit(f"{answer.decision}  {ask.id}  {verb(ask)} {path_text(ask)}")
            sys.stdout.flush()

    def _is_waiting(self, ask_id: int) -> bool:
        with self._lock:
            return ask_id in self._waiting


def _parse(said: bytes) -> CommandAnswer:
    word = said.strip()
    if word in (b"allow", b"deny", b"default"):
        return CommandAnswer(word.decode())
    try:
        answer = msgspec.json.decode(word, type=CommandAnswer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"neither allow, deny, default nor an answer in JSON: {error}") from None
    if answer.decision not in ("allow", "deny", "default"):
        raise UsageError(f"expected allow, deny or default, got {answer.decision!r}")
    return answer


def _said_until_its_end(process: subprocess.Popen[bytes], stdout: int) -> bytes:
    """Return what a command says, and kill it if it does not stop talking.

    What it has left running may keep its stdout open: the end of the command itself counts.
    """
    os.set_blocking(stdout, False)
    said = b""
    pidfd = os.pidfd_open(process.pid)
    try:
        poller = select.poll()
        for fd in (stdout, pidfd):
            poller.register(fd, select.POLLIN)
        while len(said) < _MAX_OUTPUT:
            has_ended = any(fd == pidfd for fd, _ in poller.poll())
            more = _read_all(stdout)
            if more is not None:
                said += more
            if has_ended:
                return said
            if more is None:
                poller.unregister(stdout)
    finally:
        os.close(pidfd)
    _kill(process)
    return said


def _read_all(fd: int) -> bytes | None:
    """Return what can be read without waiting, None at the end of a pipe."""
    try:
        return os.read(fd, _MAX_OUTPUT) or None
    except BlockingIOError:
        return b""


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
