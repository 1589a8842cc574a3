"""Says while ``yolofs run`` goes on that its command waits for an answer, and how to give one.

That goes to stderr, once for all that waits at a time, and not at all if somebody answers at once.
It would spoil the screen of a full-screen program: then the terminal's title says it instead, until
the answer comes.
"""

from __future__ import annotations

import contextlib
import math
import os
import termios
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from yolofs.daemon.rpc.client import Client
from yolofs.errors import YolofsError
from yolofs.sandbox.jobs import start_without_signals

if TYPE_CHECKING:  # what a run needs to start does not need these
    from yolofs.daemon.rpc.ask_messages import AskInfo

_TITLE = "\x1b]0;{}\x07"
"""OSC 0: the title of the window and of its icon."""
_KEEP_TITLE, _GIVE_BACK_TITLE = "\x1b[22;0t", f"{_TITLE.format('')}\x1b[23;0t"
"""Of terminals that cannot keep a title, the title is their own again: an empty one."""
_GRACE_S = 1.5
"""How long somebody who watches has time to answer, before the question is written to the command's
terminal.
"""


@contextlib.contextmanager
def announcing_asks(directory: bytes, run: int, pid_namespace: int) -> Iterator[None]:
    """Tell of the asks of a sandbox's processes while the block runs; ``directory`` is the
    session's.
    """
    client = Client.connect(directory)
    if client is None:
        yield
        return
    with client:
        thread = threading.Thread(target=_tell, args=(client, run, pid_namespace), name="asks", daemon=True)
        start_without_signals(thread)
        try:
            yield
        finally:
            client.hang_up()
            thread.join()


def _tell(client: Client, run: int, pid_namespace: int) -> None:
    waiting = _Waiting(run)
    try:
        # whoever sits there is told, and can answer
        client.watch(is_attended=os.isatty(2), run=run, answers_pings=True)
        while True:
            event = client.next_event()
            # most runs ask nothing, and start faster so
            from yolofs.daemon.rpc.ask_messages import AskInfo, EndedInfo, PingInfo

            match event:
                case AskInfo() as ask if _is_in(ask.process.pid, pid_namespace):
                    waiting.asked(ask)
                case EndedInfo(id=number):
                    waiting.ended(number)
                case PingInfo():
                    client.here()
    except YolofsError:  # we have hung up, or the daemon has gone, which the run itself will say
        waiting.close()


class _Waiting:
    """What waits for an answer now."""

    def __init__(self, run: int) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._asks: dict[int, AskInfo] = {}
        self._ends_s: dict[int, float] = {}
        """When each of them gets the default."""
        self._timer: threading.Timer | None = None
        self._has_title = False
        """Whether the terminal's title says how much waits."""

    def asked(self, ask: AskInfo) -> None:
        with self._lock:
            self._asks[ask.id] = ask
            self._ends_s[ask.id] = time.monotonic() + ask.left_ms / 1000
            if self._has_title:
                self._set_title()
            if self._timer is None:
                self._timer = threading.Timer(_GRACE_S, self._say)
                self._timer.daemon = True
                self._timer.start()

    def ended(self, number: int) -> None:
        with self._lock:
            self._asks.pop(number, None)
            if self._has_title:
                self._set_title()
            if not self._asks and self._timer is not None:
                self._timer.cancel()
                self._timer = None  # the next one that waits is told of again

    def close(self) -> None:
        with self._lock:
            self._asks.clear()
            if self._has_title:
                self._set_title()
            if self._timer is not None:
                self._timer.cancel()

    def _say(self) -> None:
        from yolofs.cli.show.ask_lines import path_text, verb

        with self._lock:
            first = next(iter(self._asks.values()), None)
            ends_s = self._ends_s[first.id] if first is not None else 0.0
            count = len(self._asks)
            if first is not None and _is_full_screen():
                self._set_title()
                return
        if first is None:
            return
        more = f" (and {count - 1} more)" if count > 1 else ""
        left_s = max(1, math.ceil(ends_s - time.monotonic()))  # a wait of 0 s is none
        text = (
            f"yolofs: run {self._run} waits for an answer: {verb(first)} {path_text(first)}?{more}\n"
            f"yolofs: in another terminal: yolofs answer {first.id} allow|deny, or yolofs watch; "
            f"without an answer the wait ends in {left_s} s\n"
        )
        with contextlib.suppress(OSError):
            os.write(2, text.encode())

    def _set_title(self) -> None:
        """Have the terminal's title say how much waits, or give it back; the lock is held."""
        count = len(self._asks)
        text = _TITLE.format(f"yolofs: {count} question{'s' if count > 1 else ''}") if count else _GIVE_BACK_TITLE
        if count and not self._has_title:
            text = _KEEP_TITLE + text
        self._has_title = count > 0
        with contextlib.suppress(OSError):
            os.write(2, text.encode())


def _is_in(pid: int, pid_namespace: int) -> bool:
    """Tell whether a process belongs to a sandbox."""
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino == pid_namespace
    except OSError:
        return False


def _is_full_screen() -> bool:
    """Tell whether stderr is a terminal that somebody has taken line editing from."""
    try:
        return not termios.tcgetattr(2)[3] & termios.ICANON
    except termios.error:
        return False
