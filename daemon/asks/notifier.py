"""Tells the user of asks by the command in ``notify``: a desktop's notification, say, or a message
to a phone.

The command is a setting of the user's own file alone.  What a program in the view chose (a path, a
name) reaches it as JSON on its stdin and as one harmless line in a variable, never as a part of the
command.
"""

from __future__ import annotations

import logging
import os
import subprocess
from typing import TYPE_CHECKING

import trio

from yolofs.access.asks import Ask, Ended, Outcome
from yolofs.daemon.rpc.ask_fields import ask_fields
from yolofs.daemon.rpc.ask_messages import ask_info
from yolofs.paths import display, in_shell
from yolofs.text.json_text import encode_json

if TYPE_CHECKING:
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

    def __init__(self, project: bytes, command: str) -> None:
        self.command = command
        """Empty: nobody is told.  May be set from any thread."""
        self._project = project
        self._told = 0
        """The highest number of an ask that was seen."""
        self._waiting: dict[int, Ask] = {}
        self._newest: Ask | None = None
        self._unanswered: set[int] = set()
        """The runs of which the user was told, and let an ask go by; until there is an answer."""
        self._came = trio.Event()

    # ---- as a watcher

    def asked(self, ask: Ask) -> None:
        """Have the user told of an ask that is new."""
        if not self.command:
            return
        self._waiting[ask.id] = ask
        if ask.id > self._told:
            self._told = ask.id
            self._newest = ask
            self._came.set()

    def ended(self, ended: Ended) -> None:
        """Tell nobody of an ask that has ended before its turn came."""
        if ended.outcome is Outcome.TIMEOUT and self._waiting.get(ended.ask.id) is ended.ask:
            self._unanswered.update(waiter.requester.run for waiter in ended.ask.waiters)
        elif ended.outcome in (Outcome.ALLOWED, Outcome.DENIED, Outcome.RULE):
            self._unanswered.clear()
        self._waiting.pop(ended.ask.id, None)
        if self._newest is ended.ask:
            self._newest = None

    def warned(self, warnings: tuple[str, ...]) -> None:
        """Do nothing: the user is told of warnings elsewhere."""

    def attends(self, run: int) -> bool:
        """Tell whether the user is told of what a run asks, and may well answer."""
        return bool(self.command) and run not in self._unanswered

    # ---- on trio's thread

    async def run(self, broker: Broker) -> None:
        """Serve until cancelled."""
        with broker.watched_by(self):
            while True:
                await self._came.wait()
                self._came = trio.Event()
                ask, self._newest = self._newest, None
                if ask is not None:
                    await self._tell(ask)

    async def _tell(self, ask: Ask) -> None:
        text = f"{ask.question.operation.value} {display(ask.question.path)}?"
        document = {
            **ask_fields(ask_info(ask)),
            "text": text,
            "waiting": len(self._waiting),
            "answer": f"yolofs -C {in_shell(self._project)} answer {ask.id} allow|deny",
        }
        try:
            with trio.move_on_after(_MOST_S) as scope:
                done = await trio.run_process(
                    [_SHELL, "-c", self.command],
                    stdin=encode_json(document) + b"\n",
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, TEXT_VARIABLE: text},
                    check=False,
                    umask=0o077,  # that of the daemon is 0
                )
                if done.returncode:
                    log.warning("notify: the command ended with exit code %d", done.returncode)
            if scope.cancelled_caught:
                log.warning("notify: the command took more than %.0f seconds, and was ended", _MOST_S)
        except OSError as error:
            log.warning("notify: %s", error)
