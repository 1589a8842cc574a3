"""The runs that are going on, and which of them a process belongs to."""

from __future__ import annotations

import os
import threading
import time
from typing import NamedTuple

from yolofs.audit import runs
from yolofs.audit.audit import Point, RunEnd, RunStart
from yolofs.daemon.asks.auditor import Auditor
from yolofs.errors import BusyFilesError, UsageError
from yolofs.paths import display


class _Going(NamedTuple):
    """A run that goes on."""

    before: Point
    noted: int
    """How many asks and refusals had been noted when it began."""
    command: tuple[bytes, ...]


class RunResult(NamedTuple):
    """What there is to say of a run that has ended."""

    after: Point | None
    """The generation that holds what has changed since it began; None if nothing has, or none is to
    be told.
    """
    has_notes: bool
    """Whether anything was asked or refused meanwhile."""
    going_on: tuple[int, ...]
    """The runs that still go on."""


class LiveRuns:
    """Numbers runs, notes their start and end, and tells them apart by their pid namespaces.

    :meth:`number_of` may be called from any thread.
    """

    def __init__(self, directory: bytes, auditor: Auditor) -> None:
        """Take the directory of a session whose lock is held, and its auditor."""
        self._directory = directory
        self._auditor = auditor
        self._lock = threading.Lock()
        self._last = 0
        self._going_on: dict[int, _Going] = {}
        self._by_namespace: dict[bytes, int] = {}

    def take_up(self) -> None:
        """Go on behind the runs that there were; those that a daemon left behind when it died have
        ended with it.
        """
        for run in runs.read_runs(self._directory):
            self._last = run.number
            if run.end is None:
                self._auditor.note(RunEnd(time.time_ns(), run.number, None, None))

    def begin(self, command: tuple[bytes, ...], directory: bytes, before: Point) -> int:
        """Note that a run begins, and return its number."""
        with self._lock:
            number = self._last + 1
            words, (place,) = runs.quoted_command(command), runs.quoted_command([directory])
            self._auditor.note(RunStart(time.time_ns(), number, words, place, before))
            self._last = number
            self._going_on[number] = _Going(before, self._auditor.noted, command)
        return number

    def enter(self, number: int, namespace: int) -> None:
        """Note which pid namespace holds the processes of a run.

        Raises:
            UsageError: there is no such run, or another one has that namespace.
        """
        link = b"pid:[%d]" % namespace
        self._check(number)
        if link in self._by_namespace:
            raise UsageError(f"the pid namespace {namespace} belongs to run {self._by_namespace[link]}")
        self._by_namespace[link] = number

    def end(self, number: int, code: int | None, newest: Point | None) -> RunResult:
        """Note that a run has ended, with all its processes; ``newest`` is the newest generation,
        if it is to be told.

        Raises:
            UsageError: it does not go on.
        """
        self._check(number)
        going = self._going_on.pop(number)
        self._by_namespace = {link: other for link, other in self._by_namespace.items() if other != number}
        after = newest if newest != going.before else None
        self._auditor.count()  # the summary of the run tells how much it was refused
        self._auditor.note(RunEnd(time.time_ns(), number, code, after))
        return RunResult(after, self._auditor.noted > going.noted, tuple(sorted(self._going_on)))

    def is_last(self, number: int) -> bool:
        """Tell whether no other run goes on."""
        return self._going_on.keys() <= {number}

    def check_none(self) -> None:
        """Raise BusyFilesError if a run goes on, whose view must not be taken away."""
        lines = [f"run {number}: {display(b' '.join(one.command))}" for number, one in sorted(self._going_on.items())]
        if lines:
            hint = "wait for their end, or: yolofs unmount --force"
            raise BusyFilesError("commands of yolofs run are at work in the view", users=lines, hint=hint)

    def _check(self, number: int) -> None:
        if number not in self._going_on:
            raise UsageError(f"there is no run {number} that goes on")

    def number_of(self, pid: int) -> int:
        """Return the run that a process (or thread) belongs to, 0 if it belongs to none.

        Reads what the kernel says about that pid now: as long as its request waits, no other
        process can have it.
        """
        if not self._by_namespace or pid <= 0:
            return 0
        try:
            return self._by_namespace.get(os.readlink(b"/proc/%d/ns/pid" % pid), 0)
        except OSError:
            return 0
