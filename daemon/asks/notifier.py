"""Tells the user of asks by the command in ``notify``: a desktop's notification, say, or a message
to a phone.

The command is a setting of the user's own file alone.  What a program in the view chose (a path, a
name) reaches it as JSON on its stdin and as one harmless line in a variable, never as a part of the
command.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import trio

from yolofs.access.asks import Ask, AskOutcome, EndedAsk
from yolofs.daemon.rpc.ask_fields import ask_fields
from yolofs.daemon.rpc.ask_messages import ask_info
from yolofs.paths import display, in_shell
from yolofs.system.processes import ending_text, pidfd_of, session_members
from yolofs.text.json_text import encode_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from yolofs.daemon.asks.broker import Broker

log = logging.getLogger("yolofs.daemon")

TEXT_VARIABLE = "YOLOFS_ASK"
_MOST_S = 30.0
"""How long a command may take."""
_SHELL = "/bin/sh"


class Notifier:
    """Runs the user's command for what is asked: one at a time, and for the newest ask of those
    that came meanwhile.
    """

    def __init__(self, project: bytes, command: str, settle: Callable[[], Awaitable[object]]) -> None:
        """``settle`` waits until the command is the one that the user's file names now."""
        self._command = command
        self._settle = settle
        self._project = project
        self._told = 0
        """The highest number of an ask that was seen."""
        self._waiting: dict[int, Ask] = {}
        self._newest: Ask | None = None
        self._unanswered: set[int] = set()
        """The runs of which the user was told, and let an ask go by; until there is an answer."""
        self._left: set[int] = set()
        """The sessions of commands that have ended and left something in the background."""
        self._came = trio.Event()
        self.problem = ""
        """Why the user is told of nothing, as far as the last try shows; for any thread."""

    def set_command(self, command: str) -> None:
        """Run another command from now on; if it is empty nobody is told.  From any thread."""
        if command != self._command:
            self._command, self.problem = command, ""

    # ---- as a watcher

    def asked(self, ask: Ask) -> None:
        """Have the user told of an ask that is new."""
        self._waiting[ask.id] = ask
        if ask.id > self._told:
            self._told = ask.id
            self._newest = ask
            self._came.set()

    def ended(self, ended: EndedAsk) -> None:
        """Tell nobody of an ask that has ended before its turn came."""
        if ended.outcome is AskOutcome.TIMEOUT and self._waiting.get(ended.ask.id) is ended.ask:
            self._unanswered.update(waiter.requester.run for waiter in ended.ask.waiters)
        elif ended.outcome in (AskOutcome.ALLOWED, AskOutcome.DENIED, AskOutcome.RULE):
            self._unanswered.clear()
        self._waiting.pop(ended.ask.id, None)
        if self._newest is ended.ask:
            self._newest = None

    def warned(self, warnings: tuple[str, ...]) -> None:
        """Do nothing: the user is told of warnings elsewhere."""

    def check(self) -> bool:
        """Return False: a command does not fall silent."""
        return False

    def attends(self, run: int) -> bool:
        """Tell whether the user is told of what a run asks, and may well answer."""
        return bool(self._command) and not self.problem and run not in self._unanswered

    # ---- on trio's thread

    async def run(self, broker: Broker) -> None:
        """Serve until cancelled; then end what the commands have left in the background."""
        with self._nothing_left(), broker.watched_by(self):
            while True:
                await self._came.wait()
                self._came = trio.Event()
                await self._settle()
                ask, self._newest = self._newest, None
                if ask is not None and self._command:
                    before, self.problem = self.problem, await self._tell(ask)
                    if self.problem and self.problem != before:
                        log.warning("%s", self.problem)
                    if bool(before) != bool(self.problem):
                        broker.attention_changed()

    @contextlib.contextmanager
    def _nothing_left(self) -> Iterator[None]:
        try:
            yield
        finally:
            for session in self._left:
                _end_session(session)

    async def _tell(self, ask: Ask) -> str:
        """Run the command for an ask; return what went wrong, nothing if it did not."""
        text = f"{ask.question.operation.value} {display(ask.question.path)}?"
        document = {
            **ask_fields(ask_info(ask)),
            "text": text,
            "waiting": len(self._waiting),
            "answer": f"yolofs -C {in_shell(self._project)} answer {ask.id} allow|deny",
        }
        run_shell = functools.partial(
            trio.run_process,
            [_SHELL, "-c", self._command],
            stdin=encode_json(document) + b"\n",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, TEXT_VARIABLE: text},
            check=False,
            umask=0o077,  # that of the daemon is 0
            start_new_session=True,
            deliver_cancel=_kill_all,
        )
        done: trio.Process | None = None
        problem = ""
        try:
            with trio.move_on_after(_MOST_S):
                async with trio.open_nursery() as nursery:
                    started: trio.Process = await nursery.start(run_shell)
                done = started
        except* OSError as errors:
            problem = f"notify: {errors.exceptions[0]}, so nobody is told of asks"
        if problem:
            return problem
        if done is None:
            return f"notify: the command took more than {_MOST_S:.0f} seconds, so nobody is told of asks"
        self._left = {session for session in {*self._left, done.pid} if session_members(session)}
        if done.returncode:
            return f"notify: the command {ending_text(done.returncode)}, so nobody is told of asks"
        return ""


def _end_session(session: int) -> None:
    """End what a command has left in its session; its number may stand for another one by now."""
    mark = f"{TEXT_VARIABLE}=".encode()
    for pid in session_members(session):
        with pidfd_of(pid) as fd, contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as environment:
            if fd is not None and any(line.startswith(mark) for line in environment.read().split(b"\0")):
                signal.pidfd_send_signal(fd, signal.SIGKILL)


async def _kill_all(process: trio.Process) -> None:
    """End a command with all that it has started: a shell that is ended leaves its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
