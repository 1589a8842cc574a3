"""The runs that are going on, and which of them a process belongs to."""

from __future__ import annotations

import os
import threading
import time

from yolofs import runs
from yolofs.audit import Point, RunEnd, RunStart
from yolofs.daemon.auditor import Auditor
from yolofs.errors import UsageError


class Runs:
    """Numbers runs, notes their start and end, and tells them apart by their pid namespaces.

    :meth:`number_of` may be called from any thread.
    """

    def __init__(self, directory: bytes, auditor: Auditor) -> None:
        """Take the ``.yolofs`` of a session whose lock is held, and who keeps its audit."""
        self._directory = directory
        self._auditor = auditor
        self._lock = threading.Lock()
        self._last: int | None = None
        self._going_on: dict[int, int] = {}
        """How many asks and refusals had been noted when each began."""
        self._by_namespace: dict[bytes, int] = {}

    def begin(self, command: tuple[bytes, ...], directory: bytes, before: Point) -> int:
        """Note that a run begins, and return its number."""
        with self._lock:
            if self._last is None:
                self._last = runs.last_number(self._directory)
            number = self._last + 1
            words, (place,) = runs.quoted(command), runs.quoted([directory])
            self._auditor.note(RunStart(time.time_ns(), number, words, place, before))
            self._last = number
            self._going_on[number] = self._auditor.noted
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

    def end(self, number: int, code: int | None, after: Point | None) -> bool:
        """Note that a run has ended, with all its processes; return whether anything was asked or refused meanwhile.

        Raises:
            UsageError: it does not go on.
        """
        self._check(number)
        noted_before = self._going_on.pop(number)
        self._by_namespace = {link: other for link, other in self._by_namespace.items() if other != number}
        self._auditor.note(RunEnd(time.time_ns(), number, code, after))
        return self._auditor.noted > noted_before

    def _check(self, number: int) -> None:
        if number not in self._going_on:
            raise UsageError(f"there is no run {number} that goes on")

    def number_of(self, pid: int) -> int:
        """Return the run that a process (or thread) belongs to, 0 if it belongs to none.

        Reads what the kernel says about that pid now: as long as its request waits, no other process can have it.
        """
        if not self._by_namespace or pid <= 0:
            return 0
        try:
            return self._by_namespace.get(os.readlink(b"/proc/%d/ns/pid" % pid), 0)
        except OSError:
            return 0
