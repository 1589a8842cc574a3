"""Keeps the audit of a mount: asks as they end, refusals counted, changes of rules."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

import msgspec

from yolofs.access.asks import EndedAsk, Waiter
from yolofs.access.questions import Decision, Question
from yolofs.access.rule_notes import rule_note
from yolofs.audit.audit import AskNote, AuditLog, Note, Process, RefusalNote, RuleChange
from yolofs.daemon.rpc.protocol import quote
from yolofs.paths import is_in
from yolofs.rules import Rule
from yolofs.system.requesters import Requester, read_requester

log = logging.getLogger("yolofs.daemon")

_MAX_KINDS = 10_000
"""How many different refusals are counted at a time."""
_MAX_NAMES = 20
"""How many paths of one directory have notes of their own, if they are refused alike to one run."""
_MAX_DIRECTORIES = 20
"""In how many directories that is so; what is refused in others is counted together."""

_Alike: TypeAlias = tuple[str, Rule | None, int]
"""What refusals have in common that are counted together: operation, rule and run."""


class _Refusals:
    """Refusals that are alike."""

    __slots__ = ("below", "count", "process", "question", "records", "time_ns")

    def __init__(
        self, question: Question, process: Process, time_ns: int, records: int | None, below: bytes | None
    ) -> None:
        self.below = below
        """The directory in which all of them are; None if they are about one path."""
        self.question = question
        self.process = process
        self.count = 0
        """Of those that are in no note yet."""
        self.time_ns = time_ns
        """When the last of them came, and how many records there were by then."""
        self.records = records

    def widen(self, path: bytes) -> None:
        """Move the common directory up until it holds another path, too."""
        while self.below is not None and not is_in(path, self.below):
            self.below = os.path.dirname(self.below)


class Auditor:
    """Writes notes; for any thread.  That one cannot be written is logged, once, and stops
    nothing.
    """

    def __init__(self, audit: AuditLog, run_of: Callable[[int], int], record_count: Callable[[], int | None]) -> None:
        """``run_of`` tells which run a thread belongs to, 0 for none.

        ``record_count`` tells how many records the journal has, or None while that is unknown.
        Both are called in any thread.
        """
        self._audit = audit
        self._run_of = run_of
        self.record_count = record_count
        """Tells how many records the journal has."""
        self._lock = threading.Lock()
        """Guards the refusals; never held over a write, as the device loop takes it."""
        self._refusals: dict[tuple[bytes, bool, _Alike], _Refusals] = {}
        self._places: dict[_Alike, dict[bytes, int]] = {}
        """Of how many names in which directories there are notes."""
        self._to_write: deque[Note] = deque()
        self._file_lock = threading.Lock()
        """Guards the file and what follows."""
        self._problem = ""
        """Why the last note could not be written, if it could not."""
        self._is_closed = False
        self.noted = 0
        """How many asks and kinds of refusals have been noted."""

    @property
    def problem(self) -> str:
        """Why nothing can be noted, if that is so.  After a note failed, each call tries to open
        the file again.

        Only the next note tells whether a full disk has room again.
        """
        if not self._problem:
            return ""
        with self._file_lock:
            if not (self._is_closed or self._audit.is_open):
                with contextlib.suppress(OSError):
                    self._audit.open()
                    self._problem = ""
            return self._problem

    def requester(self, thread: int) -> Requester:
        """Return what is known of the process of a thread, its run too."""
        return read_requester(thread)._replace(run=self._run_of(thread))

    def refused(self, question: Question, thread: int) -> bool:
        """Count a refusal; return whether it is the first of its kind, so that there is a note to
        :meth:`write`.

        A program that goes through a tree is refused each path of it.  After the first paths,
        refusals are counted by directory; after the first directories, all together.
        """
        run = self._run_of(thread)
        alike = question.operation.value, question.rule, run
        place: bytes | None = None
        with self._lock:
            known = self._refusals.get((question.path, False, alike))
            if known is None:
                place = self._place(question.path, alike)
                known = self._refusals.get((place, True, alike)) if place is not None else None
            if known is not None:
                known.count += 1
                known.time_ns, known.records = time.time_ns(), self.record_count()
                known.widen(question.path)
                return False
            if len(self._refusals) >= _MAX_KINDS:
                self._count()
                self._refusals.clear()
                self._places.clear()
            process = _process(read_requester(thread)._replace(run=run))
            below = os.path.dirname(question.path) if place is not None else None
            known = _Refusals(question, process, time.time_ns(), self.record_count(), below)
            if place is not None:
                known.count = 1
                self._refusals[place, True, alike] = known
                return False
            self._refusals[question.path, False, alike] = known
            self._to_write.append(_refusal_note(known, 1))
            self.noted += 1
            return True

    def _place(self, path: bytes, alike: _Alike) -> bytes | None:
        """Return the directory by which one more path is counted, empty for the rest of all; None
        if it gets notes of its own.
        """
        names = self._places.setdefault(alike, {})
        directory = os.path.dirname(path)
        if directory not in names and len(names) >= _MAX_DIRECTORIES:
            return b""
        count = names[directory] = names.get(directory, 0) + 1
        return directory if count > _MAX_NAMES else None

    def ended(self, ended: EndedAsk) -> None:
        """Note an ask that has ended."""
        ask, question = ended.ask, ended.ask.question
        self.noted += 1
        self._to_write.append(
            AskNote(
                time.time_ns(),
                ask.id,
                quote(question.path),
                question.operation.value,
                question.state.value,
                rule_note(question.rule),
                _process_of(ask.waiters[0]),
                len(ask.waiters),
                ended.outcome.value,
                ended.by,
                max(ended.waited_ns, 0) // 1_000_000,
                question.size,
                ended.records,
                ended.decision is Decision.ALLOW,
            )
        )
        self.write()

    def rules_changed(self, changes: Iterable[RuleChange]) -> None:
        """Take the notes of rules that are in force from now on, for :meth:`write`; they get this
        moment's time.
        """
        time_ns, records = time.time_ns(), self.record_count()
        self._to_write.extend(msgspec.structs.replace(one, time_ns=time_ns, records=records) for one in changes)

    def note(self, note: Note) -> None:
        """Write a note."""
        self._to_write.append(note)
        self.write()

    def count(self) -> None:
        """Note how many refusals there were since the last notes about them."""
        with self._lock:
            self._count()
        self.write()

    def write(self) -> None:
        """Write the notes that there are."""
        with self._file_lock:
            while self._to_write:
                note = self._to_write.popleft()
                if not self._is_closed:
                    self._write(note)

    def close(self) -> None:
        """Write what is left, and close the file; nothing is noted any more."""
        self.count()
        with self._file_lock:
            if not self._is_closed:
                self._is_closed = True
                self._audit.close()

    def _count(self) -> None:
        for refusals in self._refusals.values():
            if refusals.count:
                self._to_write.append(_refusal_note(refusals, refusals.count))
                refusals.count = 0

    def _write(self, note: Note) -> None:
        try:
            self._audit.append(note)
            self._problem = ""
        except OSError as error:
            why = error.strerror or error
            problem = f".yolofs/audit.jsonl cannot be written: {why}; what is asked and refused meanwhile is not noted"
            if problem != self._problem:
                log.error("%s", problem)
            self._problem = problem


def _refusal_note(refusals: _Refusals, count: int) -> RefusalNote:
    question = refusals.question
    return RefusalNote(
        refusals.time_ns,
        quote(question.path),
        question.operation.value,
        question.state.value,
        rule_note(question.rule),
        refusals.process,
        count,
        refusals.records,
        quote(refusals.below) if refusals.below is not None else "",
    )


def _process_of(waiter: Waiter) -> Process:
    commands, requester = waiter.commands, waiter.requester
    own, parent = tuple(map(quote, commands.own)), tuple(map(quote, commands.parent))
    return Process(requester.pid, quote(requester.name), own, requester.parent, parent, requester.run)


def _process(requester: Requester) -> Process:
    return Process(requester.pid, quote(requester.name), parent=requester.parent, run=requester.run)
