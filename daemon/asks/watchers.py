"""The watchers of asks, and the runs without one; all on trio's thread."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Protocol

from yolofs.access.asks import Ask, EndedAsk

_MOST_UNATTENDED = 10_000
"""How many paths of runs are remembered that were given the default as nobody watched; beyond that
all are forgotten, and wait once more.
"""


class Watcher(Protocol):
    """Hears what happens to asks and rules, on trio's thread; must not wait."""

    def asked(self, ask: Ask) -> None:
        """An ask is new, or has changed."""

    def ended(self, ended: EndedAsk) -> None:
        """An ask that the watcher has heard of waits no longer."""

    def warned(self, warnings: tuple[str, ...]) -> None:
        """There is something else now that the user should know, or nothing any more."""

    def attends(self, run: int) -> bool:
        """Tell whether somebody sees the asks of a run; 0 stands for processes in no run."""
        ...

    def check(self) -> bool:
        """Ask the watcher for a sign of life, while something waits; tell whether it has fallen
        silent since the last check.
        """
        ...


class Watchers:
    """The watchers of one mount, and what was given the default because nobody watched."""

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []
        self._warnings: tuple[str, ...] = ()
        self._left_alone: set[tuple[bytes, int]] = set()
        """What was given the default as nobody watched: by path and run."""

    @contextlib.contextmanager
    def with_one_more(self, watcher: Watcher) -> Iterator[None]:
        """Have a watcher hear of all that happens in the block."""
        self._watchers.append(watcher)
        try:
            yield
        finally:
            self._watchers.remove(watcher)

    def bring_up_to_date(self, watcher: Watcher, waiting: Iterable[Ask]) -> None:
        """Tell a watcher how things stand: what the user should know, and the asks that wait."""
        if self._warnings:
            watcher.warned(self._warnings)
        for ask in waiting:
            if ask.is_shown:
                watcher.asked(ask)

    def asked(self, ask: Ask) -> None:
        """Tell of an ask that is new, or has changed."""
        for watcher in list(self._watchers):
            watcher.asked(ask)

    def ended(self, ended: EndedAsk) -> None:
        """Tell of an ask that waits no longer."""
        for watcher in list(self._watchers):
            watcher.ended(ended)

    def warn(self, warnings: tuple[str, ...]) -> None:
        """Tell what the user should know now, if that is something else than before."""
        if warnings != self._warnings:
            self._warnings = warnings
            for watcher in list(self._watchers):
                watcher.warned(warnings)

    def have_stopped(self) -> bool:
        """Tell whether any has stopped since the last check."""
        stopped = [watcher for watcher in self._watchers if watcher.check()]  # each is checked
        return bool(stopped)

    def attend(self, run: int) -> bool:
        """Tell whether somebody sees what a run asks.  A process outside of all runs counts as the
        user's own.
        """
        return not run or any(watcher.attends(run) for watcher in self._watchers)

    def is_seen(self, ask: Ask) -> bool:
        """Tell whether somebody sees what one of those that wait for an ask wants."""
        return any(self.attend(waiter.requester.run) for waiter in ask.waiters)

    def leave_alone(self, path: bytes, runs: Iterable[int]) -> bool:
        """Remember that nobody answered the asks of runs about a path: unattended runs do not wait
        for it again.  Tell whether there are such runs.
        """
        unattended = {(path, run) for run in runs if not self.attend(run)}
        if unattended and len(self._left_alone) >= _MOST_UNATTENDED:
            self._left_alone.clear()
        self._left_alone |= unattended
        return bool(unattended)

    def have_left_alone(self, path: bytes, run: int) -> bool:
        """Tell whether a run was given the default for a path as nobody watched."""
        return (path, run) in self._left_alone

    def forget_attended(self) -> None:
        """Have those runs wait again that somebody attends now."""
        self._left_alone = {known for known in self._left_alone if not self.attend(known[1])}
