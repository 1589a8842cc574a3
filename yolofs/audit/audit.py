"""``audit.jsonl``: questions and answers, refusals, changes of rules, and runs.

One JSON object a line (``docs/reference/format.md``), only ever appended to, each by one write(2).
Paths, names and arguments are bytes of anybody's choice: they are percent-encoded.  The last line
may be torn by a crash: a reader passes over what is no record, and the next writer begins on a new
line.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import msgspec

from yolofs.text.json_text import encode_json

FILE_NAME = b"audit.jsonl"
UNATTENDED = "nobody, as nobody watches"
"""By whom an ask was ended that had less time than others, as nobody was there to see it."""


class Process(msgspec.Struct, frozen=True, omit_defaults=True):
    """A process as it was at the time; ``pid`` is 0 where it could not be seen."""

    pid: int
    name: str = ""
    command: tuple[str, ...] = ()
    parent: int = 0
    parent_command: tuple[str, ...] = ()
    run: int = 0
    """The run that it belonged to, 0 for none."""


class RuleNote(msgspec.Struct, frozen=True):
    """A rule as it was at the time: what it is about, its state, and where it was written."""

    key: str
    state: str
    source: str


class AskNote(msgspec.Struct, frozen=True, tag="ask", tag_field="kind"):
    """An ask that has ended."""

    time_ns: int
    """When it ended."""
    id: int
    path: str
    operation: str
    state: str
    rule: RuleNote | None
    process: Process
    requesters: int
    outcome: str
    by: str
    """Who or what ended it, in words."""
    waited_ms: int
    size: int | None = None
    records: int | None = None
    """How many records, markers among them, the journal had by then; None if nobody could tell."""
    is_allowed: bool = False
    """Whether the access was allowed, be it by ``ask_default``; notes of earlier versions do not
    tell.
    """


class RefusalNote(msgspec.Struct, frozen=True, tag="refusal", tag_field="kind"):
    """Accesses that a rule refused, all alike; each is counted in one note."""

    time_ns: int
    """When the last of them came."""
    path: str
    operation: str
    state: str
    rule: RuleNote | None
    process: Process
    """Who came first."""
    count: int
    records: int | None = None
    """As :attr:`AskNote.records`, when the last of them came."""
    below: str = ""
    """The directory in which all of them were, where there were too many paths to note each:
    ``path`` is the first of these.
    """


class RuleChange(msgspec.Struct, frozen=True, tag="rule", tag_field="kind"):
    """A rule that was made, changed or removed while the view was mounted."""

    time_ns: int
    key: str
    state: str | None
    """None: it was removed."""
    before: str | None
    """None: there was none."""
    source: str
    records: int | None = None
    """As :attr:`AskNote.records`."""


class JournalEnd(msgspec.Struct, frozen=True, tag="journal", tag_field="kind"):
    """The journal ended: by a commit, or else by an abort."""

    time_ns: int
    is_commit: bool
    commit: int | None = None
    """The commit that ended it, or was given up; notes of earlier versions do not tell."""

    def is_again(self, before: JournalEnd) -> bool:
        """Tell whether it is the same end as an earlier one: a kill may have it noted twice."""
        return self.commit is not None and self.commit == before.commit


class Point(msgspec.Struct, frozen=True):
    """A generation of a journal: after a commit or abort the same number is another generation."""

    generation: int
    marker_ns: int
    """The time of its marker, 0 for base; with the number, it tells which generation of which
    journal is meant.
    """


class RunStart(msgspec.Struct, frozen=True, tag="run", tag_field="kind"):
    """A command of ``yolofs run`` begins."""

    time_ns: int
    run: int
    """Its number, from 1, for the session."""
    command: tuple[str, ...]
    directory: str
    before: Point


class RunEnd(msgspec.Struct, frozen=True, tag="run-end", tag_field="kind"):
    """A command of ``yolofs run`` has ended."""

    time_ns: int
    run: int
    code: int | None
    """The exit code; None if nobody could tell it."""
    after: Point | None
    """The snapshot that holds what had changed; None if nothing had, or none was made."""


def records_before(note: Note) -> int | None:
    """Return how many records the journal had when something was noted, None if nobody could
    tell.
    """
    return note.records if isinstance(note, AskNote | RefusalNote | RuleChange) else None


Note: TypeAlias = AskNote | RefusalNote | RuleChange | JournalEnd | RunStart | RunEnd
_RUN_LINE, _ASK_LINE = b'{"kind":"run', b'{"kind":"ask"'
"""How the lines about runs and asks begin; where these are wanted, all others are passed over
unread.
"""


class AuditLog:
    """Appends to the audit of a session; the file is opened or made when it is needed.  For one
    thread at a time.
    """

    def __init__(self, directory: bytes) -> None:
        """``directory`` is the session's."""
        self._path = os.path.join(directory, FILE_NAME)
        self._fd = -1

    @property
    def is_open(self) -> bool:
        """Whether a file is open; none is if the last try to open it failed."""
        return self._fd >= 0

    def open(self) -> None:
        """Make sure that the file that readers find is open, and make it if there is none.

        Raises:
            OSError: something else has taken its place, or it cannot be opened.
        """
        if self._fd >= 0 and not self._is_there():
            self.close()
        if self._fd < 0:
            self._open()

    def append(self, note: Note) -> None:
        """Append a note.

        Raises:
            OSError: it could not be written, or not all of it.
        """
        self.open()
        line = encode_json(note) + b"\n"
        if self._has_torn_end():
            line = b"\n" + line
        written = os.write(self._fd, line)
        if written < len(line):
            raise OSError(0, "cut short")

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _is_there(self) -> bool:
        """Tell whether readers find the file that is open: somebody may have moved it away, to
        begin another one.
        """
        try:
            found = os.lstat(self._path)
        except OSError:
            return False
        return os.path.samestat(found, os.fstat(self._fd))

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = os.open(self._path, flags, 0o600)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(0, "it is not a regular file")
        self._fd = fd

    def _has_torn_end(self) -> bool:
        size = os.fstat(self._fd).st_size
        return size > 0 and os.pread(self._fd, 1, size - 1) != b"\n"


def append_notes(directory: bytes, notes: Iterable[Note]) -> None:
    """Append some notes to the audit of the session in ``directory``.

    Raises:
        OSError: as for :meth:`AuditLog.append`.
    """
    audit = AuditLog(directory)
    try:
        for note in notes:
            audit.append(note)
    finally:
        audit.close()


def note_journal_end(directory: bytes, *, is_commit: bool, commit: int | None = None) -> None:
    """Note that another journal begins; that this fails is no reason to stop a commit, of which
    nothing is noted if there are no notes.

    ``commit``: the number of the commit that ended the one before, or was given up.
    """
    if is_commit and not os.path.isfile(os.path.join(directory, FILE_NAME)):
        return
    with contextlib.suppress(OSError):
        append_notes(directory, [JournalEnd(time.time_ns(), is_commit, commit)])


def read_audit(directory: bytes) -> Iterator[Note]:
    """Yield the notes since the journal began that is there now, oldest first; what is no note is
    passed over.
    """
    *_, (notes, _) = read_sections(directory)
    yield from notes


def read_sections(directory: bytes) -> Iterator[tuple[list[Note], JournalEnd | None]]:
    """Yield the notes of each journal, oldest first, with what ended it: of the one that is there
    now nothing.
    """
    notes: list[Note] = []
    ended: tuple[list[Note], JournalEnd] | None = None
    for note in _decoded(_lines(directory)):
        if not isinstance(note, JournalEnd):
            notes.append(note)
        elif ended is not None and note.is_again(ended[1]):
            ended[0].extend(notes)
            notes = []
        else:
            if ended is not None:
                yield ended
            ended, notes = (notes, note), []
    if ended is not None:
        yield ended
    yield notes, None


def run_notes(directory: bytes) -> Iterator[RunStart | RunEnd]:
    """Yield the notes about runs, oldest first, those of earlier journals too."""
    for note in _decoded(line for line in _lines(directory) if line.startswith(_RUN_LINE)):
        if isinstance(note, RunStart | RunEnd):
            yield note


def last_ask(directory: bytes) -> int:
    """Return the highest number that an ask has had, 0 if none has ended."""
    notes = _decoded(line for line in _lines(directory) if line.startswith(_ASK_LINE))
    return max((note.id for note in notes if isinstance(note, AskNote)), default=0)


def _lines(directory: bytes) -> Iterator[bytes]:
    """Yield the lines of the audit; none if something else has taken its place, which may have no
    end.
    """
    try:
        fd = os.open(os.path.join(directory, FILE_NAME), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno == errno.ELOOP:
            return
        raise
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            with open(fd, "rb", closefd=False) as file:
                yield from file
    finally:
        os.close(fd)


def _decoded(lines: Iterable[bytes]) -> Iterator[Note]:
    decoder = msgspec.json.Decoder[Note](Note)
    for line in lines:
        try:
            yield decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):  # torn, or of a later version
            continue
