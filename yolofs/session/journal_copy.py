"""A copy of the session's journal that is extended and then takes its place: all is done, or
nothing.

Nobody else sees its records, or the store inodes made for them, before :meth:`JournalCopy.keep`.  A
crash before that leaves only files that the next open or ``yolofs gc`` removes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from yolofs.errors import YolofsError
from yolofs.journal.journal import Journal
from yolofs.journal.journal_file import read_bytes_between, sync_directory_of
from yolofs.journal.journal_length import LENGTH_SUFFIX
from yolofs.journal.records import Record, Snapshot, Travel
from yolofs.os_errors import said_as
from yolofs.paths import Generation
from yolofs.session.generations import States
from yolofs.session.session import Session
from yolofs.system.clock import coarse_clock_ns
from yolofs.system.plain_files import open_plain

MERGED_JOURNAL = b".merged"
"""At the end of the name of the journal that is being written."""


class JournalCopy(States):
    """The states of a session with what is tried.  Use :func:`journal_copy`."""

    def __init__(self, session: Session, journal: Journal) -> None:
        """Take the journal over, a copy of the session's."""
        super().__init__(session.directory, session.base, session.store, journal)
        self._checkpoint = session.known_checkpoint
        self._session = session
        self._first = session.store.next_ino
        self.is_kept = False

    def append(self, *records: Record) -> None:
        """Append records and markers, all of them or, after an error, none.

        Raises:
            OSError: the disk is full, for example.
        """
        self.journal.append(*records)
        for record in records:
            if isinstance(record, Snapshot | Travel):
                self.timeline.add(record)

    def snapshot(self, name: bytes = b"", *, if_changed: bool = False) -> Generation:
        """Write a P marker, unless nothing has changed and ``if_changed``; return the present
        generation.
        """
        if not if_changed or self.has_unsnapshotted():
            self.append(Snapshot(coarse_clock_ns(), name))
        return self.timeline.present

    def travel(self, generation: Generation) -> None:
        """Write a T marker."""
        self.append(Travel(coarse_clock_ns(), generation))

    def keep(self) -> None:
        """Have the session go on with this, durably and at once.  Blocks while the disk writes.

        Raises:
            OSError: it cannot be written; nothing has changed.
        """
        if self.store.next_ino > self._first:
            self.store.sync()
        self.journal.sync()
        new, path = self.journal.path, self._session.journal.path
        self.journal.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new + LENGTH_SUFFIX)
        os.rename(new, path)
        self.is_kept = True
        sync_directory_of(path)
        self._session.reopen()

    def drop(self) -> None:
        """Leave nothing of it."""
        self.journal.close()
        for name in (self.journal.path, self.journal.path + LENGTH_SUFFIX):
            with contextlib.suppress(OSError):
                os.unlink(name)
        for ino in list(self.store.since(self._first)):
            with contextlib.suppress(OSError):
                self.store.remove(ino)


@contextlib.contextmanager
def journal_copy(session: Session) -> Iterator[JournalCopy]:
    """Copy the journal, and yield what goes on from it; unless it is kept, nothing of it is left at
    the end.

    The session is open for writing, and a mount of it paused.

    Raises:
        OSError: it cannot be written.
    """
    session.skip_named_numbers()
    path = session.journal.path
    new = path + MERGED_JOURNAL
    for name in (new, new + LENGTH_SUFFIX):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    with (
        open(open_plain(path, os.O_RDONLY), "rb") as old,
        open(open_plain(new, os.O_WRONLY | os.O_CREAT), "wb") as copy,
    ):
        for chunk in read_bytes_between(old.fileno(), 0, session.journal.size):
            copy.write(chunk)
    trying = JournalCopy(session, Journal.open(new))
    try:
        yield trying
    finally:
        if not trying.is_kept:
            trying.drop()


@contextlib.contextmanager
def trying_journal_copy(session: Session) -> Iterator[JournalCopy]:
    """Do what :func:`journal_copy` does; if the system fails, raise an error about the state of the
    session.

    Raises:
        YolofsError: it refused something; the sentence tells whether anything is done.
    """
    trying: JournalCopy | None = None
    try:
        with journal_copy(session) as trying:
            yield trying
    except OSError:
        is_done = trying is not None and trying.is_kept
        sentence = (
            "it is done, but a power cut may take it back" if is_done else "nothing is done, and all is as it was"
        )
        with said_as(YolofsError, sentence, again="the same command", place=session.directory):
            raise
