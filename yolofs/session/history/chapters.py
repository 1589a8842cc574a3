"""The journals that kept commits have ended: the history before them, to be read and never written.

Each is a *chapter*: the timeline from one commit to the next.  A chapter goes when its commit is
not kept any more.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from yolofs.audit.audit import Note, Point, read_sections
from yolofs.audit.runs import Run, generation_of
from yolofs.errors import JournalError, YolofsError
from yolofs.journal.journal import Journal
from yolofs.journal.records import Keep, Snapshot, Travel
from yolofs.journal.timeline import BASE, Timeline
from yolofs.paths import Generation
from yolofs.session.archive import CommitEnd, commit_directory, commit_numbers, has_ended_journal
from yolofs.session.session import Session
from yolofs.system.open_file_limit import allow_open_files
from yolofs.system.plain_files import is_there

OnDamage: TypeAlias = Callable[[int, YolofsError | OSError], object]
"""Is told of a commit whose journal is damaged, or missing (FileNotFoundError), and why."""
BEFORE_SELECTED = b"before a commit of hunks"
"""The name of the generation that a commit of hunks goes back to, if it had to be made."""
SELECTED = b"hunks to commit"
"""The name of the generation that a commit of hunks is made of."""
_OTHER_FILES = 256
"""So many may be open beside the journals."""
_OWN_LIMITS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""What says nothing of a journal."""


class DroppedJournal(msgspec.Struct, frozen=True):
    """A journal that an abort has ended: it is gone, and what was noted meanwhile is kept."""

    ended_ns: int
    """When, in nanoseconds since 1970."""
    notes: Sequence[Note]


class Chapter(msgspec.Struct, frozen=True):
    """One journal, with what was noted meanwhile."""

    commit: int | None
    """The commit that ended it; None for the one that goes on."""
    directory: bytes
    """Of the commit; else the session's."""
    journal: Journal
    timeline: Timeline
    notes: Sequence[Note]
    """In the order in which they were noted."""
    dropped: Sequence[DroppedJournal]
    """What was dropped after the commit before it, oldest first."""

    @property
    def ended_ns(self) -> int | None:
        """When the commit was done, in nanoseconds since 1970; None if that cannot be told, or it
        goes on.
        """
        if self.commit is None:
            return None
        with contextlib.suppress(OSError):
            return os.lstat(os.path.join(self.directory, CommitEnd.DONE.value)).st_mtime_ns
        return None

    @property
    def count_seen(self) -> int:
        """How many of its generations (without base) somebody has made, from the first on: those
        after them are the steps of a commit of hunks, with which it ended.

        These steps are a state to come back to (if there was none), perhaps travels, the state to
        commit, and a travel back.
        """
        markers = [at.marker for at in self.journal.markers]
        if self.commit is None or len(markers) < 2:
            return len(markers)
        *_, selected, back = markers
        if not (isinstance(selected, Snapshot) and selected.name == SELECTED and isinstance(back, Travel)):
            return len(markers)
        before = back.generation
        if before > len(markers) - 2 or not all(isinstance(marker, Travel) for marker in markers[before:-2]):
            return len(markers)
        last = markers[before - 1] if before else None
        return before - (isinstance(last, Snapshot) and last.name == BEFORE_SELECTED)

    def generation(self, point: Point | None) -> Generation | None:
        """Return the generation that a point of this chapter means, None if it means none."""
        return generation_of(point, self.journal)

    @property
    def first_generation(self) -> Generation:
        """The state that the commit before it left: base, or the generation of what it has left
        staged.
        """
        left = self.journal.markers and any(isinstance(record, Keep) for record in self.journal.read_segment(1))
        return Generation(1) if left else BASE

    def has(self, run: Run) -> bool:
        """Tell whether a run began in this chapter."""
        before = run.start.before
        if not before.generation:  # base is in every journal
            return any(note == run.start for note in self.notes)
        return self.generation(before) is not None


@contextlib.contextmanager
def chapters(session: Session, on_damage: OnDamage = lambda *_: None) -> Iterator[list[Chapter]]:
    """Give the chapters of a session for the time of the block, oldest first, the one that goes on
    last.

    One whose journal is damaged or missing is left out, and ``on_damage`` is told of its commit and
    why.

    Blocks while the journals are read.
    """
    noted, present = _noted_until_commits(session.directory)
    numbers = [number for number in sorted(commit_numbers(session.directory)) if _is_done(session.directory, number)]
    by_number = {number: one for number, one in noted if number is not None}
    unnumbered = [one for number, one in noted if number is None]  # by earlier versions
    first_noted = min(by_number, default=numbers[-1] + 1 if numbers else 1)
    is_pending = has_ended_journal(session.directory)  # the newest one's is about to be put away
    allow_open_files(len(numbers) + _OTHER_FILES)
    with contextlib.ExitStack() as stack:
        found = []
        for number in reversed(numbers):
            notes, dropped = (
                unnumbered.pop() if unnumbered and number < first_noted else by_number.get(number, ([], []))
            )
            directory = commit_directory(session.directory, number)
            try:
                journal = stack.enter_context(Journal.open(os.path.join(directory, b"journal"), read_only=True))
            except (JournalError, OSError) as error:
                if isinstance(error, OSError) and error.errno in _OWN_LIMITS:
                    raise
                if not (isinstance(error, FileNotFoundError) and number == numbers[-1] and is_pending):
                    on_damage(number, error)
                continue
            timeline = Timeline(at.marker for at in journal.markers)
            found.append(Chapter(number, directory, journal, timeline, notes, dropped))
        yield [*reversed(found), Chapter(None, session.directory, session.journal, session.timeline, *present)]


_Noted: TypeAlias = tuple[list[Note], list[DroppedJournal]]
"""What was noted of a chapter, and what was dropped before it."""


def _noted_until_commits(directory: bytes) -> tuple[list[tuple[int | None, _Noted]], _Noted]:
    """Return what was noted of each chapter that a commit ended, oldest first, with the commit's
    number if that was noted, and of the chapter that goes on.
    """
    found: list[tuple[int | None, _Noted]] = []
    dropped: list[DroppedJournal] = []
    present: list[Note] = []
    for notes, end in read_sections(directory):
        if end is None:
            present = notes
        elif end.is_commit:
            found.append((end.commit, (notes, dropped)))
            dropped = []
        else:
            dropped.append(DroppedJournal(end.time_ns, notes))
    return found, (present, dropped)


def chapter_of(run: Run, found: Iterable[Chapter]) -> Chapter | None:
    """Return the chapter that a run began in, None if that is not kept."""
    return next((chapter for chapter in found if chapter.has(run)), None)


def chapters_after(first: Chapter, run: Run, found: Sequence[Chapter]) -> list[Chapter]:
    """Return the later chapters of a run that went on during a commit, oldest first; none if the
    chapter in which it ended is not known.
    """
    at = next(at for at, chapter in enumerate(found) if chapter is first)
    for end, chapter in enumerate(found[at:], at):
        if run.end is None or any(note == run.end for note in chapter.notes):
            return list(found[at + 1 : end + 1 if run.end is not None else None])
    return []


def _is_done(directory: bytes, number: int) -> bool:
    return is_there(os.path.join(commit_directory(directory, number), CommitEnd.DONE.value))
