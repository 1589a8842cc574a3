"""Decides which clients get a connection, and which have to make room.  No sockets, no clock of its
own.

A client may connect as often as it likes and then say nothing, or half a line, or never read.  So
when all connections are taken, or a process has its share, an idle connection of the client that
has most is closed; first one that is slow with its first line or does not read.  A connection at
work is left alone, and so is one on which something lasts (a watch, a run, a loan).  Of those there
is a limit, so that some connections are always left for short calls.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Hashable

from yolofs.errors import DaemonError

MAX_CONNECTIONS = 256
PEER_SHARE = 16
"""How many of them one process gets; `yolofs watch`, the one with most, takes two."""
GROUP_SHARE = 128
"""How many one group gets, such as all in one sandbox."""
_MODEST = 4
"""A client with as many gets no more once all are taken: others need not make room for that."""
_SLOW_S = 1.0
"""A client that has said nothing for this long, or not read an answer, makes room before others."""
_READS_S = 0.25
"""For this long, a client with one connection, whose answer is on its way, is not hung up on: what
it asked for has been done.
"""


class Lasting(enum.Enum):
    """What may last on a connection."""

    WATCH = "watch"
    RUN = "run"
    LOAN = "loan"


MOST_LASTING = {Lasting.WATCH: 64, Lasting.RUN: 128, Lasting.LOAN: 32}
"""How many connections there may be of each: together fewer than there are."""


class Guest:
    """A connection, as far as it counts here."""

    def __init__(self, peer: int, group: Hashable, arrived_s: float, hang_up: Callable[[], None]) -> None:
        """``peer``: the process, 0 if it cannot be seen; ``group``: those that share its limits."""
        self.peer = peer
        self.group = group
        self.active_s = arrived_s
        """When it came, said its last line, or was begun to be answered."""
        self.hang_up = hang_up
        self.has_spoken = False
        """Whether it has said a line."""
        self.is_at_work = False
        self.is_answered = False
        """Whether an answer is on its way: if it stays there the client does not read."""
        self.pending_bytes = 0
        """How much of a line has come."""
        self.lasting: set[Lasting] = set()


class Admission:
    """Counts the connections of each client."""

    def __init__(self, clock: Callable[[], float], most: int = MAX_CONNECTIONS) -> None:
        self._clock = clock
        self._most = most
        self._guests: dict[Guest, None] = {}
        """In the order of arrival."""
        self._peers: Counter[int] = Counter()
        self._groups: Counter[Hashable] = Counter()

    def admit(self, guest: Guest) -> bool:
        """Take in a connection; false if there is no room.  Others may be hung up on for it."""
        peers = self._peers[guest.peer] if guest.peer else 0
        if peers >= PEER_SHARE:
            has_room = self._make_room(lambda other: other.peer == guest.peer)
        elif self._groups[guest.group] >= GROUP_SHARE:
            has_room = peers < _MODEST and self._make_room(lambda other: other.group == guest.group)
        elif len(self._guests) >= self._most:
            has_room = peers < _MODEST and self._make_room(lambda _: True)
        else:
            has_room = True
        if has_room:
            self._guests[guest] = None
            self._peers[guest.peer] += 1
            self._groups[guest.group] += 1
        return has_room

    def leave(self, guest: Guest) -> None:
        """Note that a connection has ended."""
        if guest not in self._guests:
            return
        del self._guests[guest]
        self._peers -= Counter((guest.peer,))  # what has come to 0 is left out
        self._groups -= Counter((guest.group,))

    def begin_lasting(self, guest: Guest, what: Lasting) -> None:
        """Note that something lasts on a connection from now on.

        Raises:
            DaemonError: that many do so already.
        """
        count = sum(what in other.lasting for other in self._guests if other is not guest)
        if count >= MOST_LASTING[what]:
            raise DaemonError(f"{count} connections have a {what.value} already", hint="end some of them")
        guest.lasting.add(what)

    def check_pending(self, most_bytes: int) -> None:
        """Keep no more than ``most_bytes`` of lines that are not whole: those that sent most go."""
        while sum(guest.pending_bytes for guest in self._guests) > most_bytes:
            by_group: Counter[Hashable] = Counter()
            for guest in self._guests:
                by_group[guest.group] += guest.pending_bytes
            self._expel(max(self._guests, key=lambda guest: (by_group[guest.group], guest.pending_bytes)))

    def _make_room(self, may_go: Callable[[Guest], bool]) -> bool:
        """Hang up on one of some connections; return whether there was any that may be hung up
        on.
        """
        now_s = self._clock()
        lasting = {guest.peer for guest in self._guests if guest.lasting}
        ranked = [
            (rank, -self._groups[guest.group], -self._peers[guest.peer], guest.active_s, at, guest)
            for at, guest in enumerate(self._guests)
            if may_go(guest) and (rank := self._rank(guest, now_s, lasting)) is not None
        ]
        if not ranked:
            return False
        self._expel(min(ranked)[-1])
        return True

    def _expel(self, guest: Guest) -> None:
        self.leave(guest)
        guest.hang_up()

    def _rank(self, guest: Guest, now_s: float, lasting: set[int]) -> int | None:
        """Return how soon a connection has to go, the smallest first; None if it is left alone.

        ``lasting``: the processes that have a connection on which something lasts.
        """
        if guest.is_at_work or guest.lasting:
            return None
        quiet_s = now_s - guest.active_s
        if guest.is_answered:
            at_last = 4 if self._peers[guest.peer] > 1 else None
            return 0 if quiet_s > _SLOW_S else 1 if quiet_s > _READS_S else at_last
        if not guest.has_spoken:
            return 0 if quiet_s > _SLOW_S else 2
        if guest.peer in lasting:
            return 3
        return 1 if quiet_s > _SLOW_S else 2
