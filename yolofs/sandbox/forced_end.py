"""When a run has to be ended from outside: its command has ended and nobody says so, or a signal
changes nothing.

The sandbox's first process is bubblewrap's.  The others cannot reach it, but a run must not depend
on that.  So the command is watched from here, too.
"""

from __future__ import annotations

import signal
import time

import msgspec

from yolofs.system.processes import children

LOOKS_S = 1.0
"""How often to look."""
GRACE_S = 10.0
"""How long a command has to end after a signal that tells it to."""
_NOTICED_WITHIN_S = 2.0
"""How long bubblewrap may take to notice that the command has ended; usually less than a
millisecond.
"""
_NUMBER_INSIDE = b"2"
"""The command's pid in the sandbox: it is the first process that bubblewrap's own starts there."""


class ForcedEnd:
    """Tells when to end a run, and why."""

    def __init__(self, init: int) -> None:
        """``init`` is the pid of the sandbox's first process, as we see it."""
        self._init = init
        self._command = 0
        self._ended_s: float | None = None
        self._orders: dict[int, float] = {}
        self.status: int | None = None
        """What the command has ended with, as wait(2) tells it, if bubblewrap did not notice."""

    def note_signal(self, number: int) -> None:
        """Take note of a signal that has been passed on."""
        if number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            self._orders.setdefault(number, time.monotonic() + GRACE_S)

    def why_now(self) -> str:
        """Return why the run has to be ended now, or nothing; to be called each :data:`LOOKS_S`."""
        now_s = time.monotonic()
        command = self._look()
        if self._command and (command is None or command.has_ended):
            if self._ended_s is None:
                self._ended_s = now_s
            if now_s - self._ended_s >= _NOTICED_WITHIN_S:
                self.status = command.status if command is not None else None
                return (
                    f"bubblewrap did not notice within {_NOTICED_WITHIN_S:g} s that the command has ended; "
                    "what that has left behind was killed"
                )
        due = [number for number, deadline_s in self._orders.items() if now_s >= deadline_s]
        for number in due:
            del self._orders[number]
            # Ctrl-C tells an interpreter to drop what it does, not to end: the handler decides.
            if number != signal.SIGINT or command is None or not command.answers(number):
                return (
                    f"the command has not ended {GRACE_S:g} s after {signal.Signals(number).name}; it was killed, "
                    "with all that it has started"
                )
        return ""

    def _look(self) -> _Status | None:
        started = children(self._init)
        if not self._command:
            self._command = next((pid for pid in started if _number_inside(pid) == _NUMBER_INSIDE), 0)
        return _read_status(self._command) if self._command in started else None


class _Status(msgspec.Struct, frozen=True):
    """How a process is."""

    state: bytes
    caught: int
    """The signals that it has a handler for, one bit each."""
    blocked: int
    status: int

    @property
    def has_ended(self) -> bool:
        return self.state in (b"Z", b"X")

    def answers(self, number: int) -> bool:
        """Tell whether it handles a signal, and is not kept from doing so."""
        bit = 1 << number - 1
        return self.state not in (b"T", b"t") and bool(self.caught & ~self.blocked & bit)


def _read_status(pid: int) -> _Status | None:
    fields = _fields(pid)
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            last = stat.read().split()[-1]
    except OSError:
        return None
    state = fields.get(b"State", b"X").split()[0]
    return _Status(state, int(fields.get(b"SigCgt", b"0"), 16), int(fields.get(b"SigBlk", b"0"), 16), int(last))


def _number_inside(pid: int) -> bytes:
    return _fields(pid).get(b"NSpid", b"").rpartition(b"\t")[2]


def _fields(pid: int) -> dict[bytes, bytes]:
    try:
        with open(f"/proc/{pid}/status", "rb") as status:
            lines = status.read().splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(b":") for line in lines)}
