"""The journal: the append-only file of records that a session is replayed from.

The line format is in :mod:`yolofs.journal.codec` and in ``docs/reference/format.md``.  Opening
reads the whole file once and checks every checksum, but builds objects for markers only;
:meth:`Journal.read` decodes.

One process writes (the session's lock sees to that), any number read.  A writer that dies in the
middle of a write leaves a *torn tail*: a last line that is cut or fails its checksum.  The next
writer moves it to ``journal.torn`` and notes that (:mod:`yolofs.journal.cuts`), readers ignore it.
A bad line with others after it, or a good line in the wrong place, does not come from a crash.  It
is damage: a :class:`~yolofs.errors.JournalError`, until :meth:`Journal.repair` cuts the file there.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import NoReturn, Self

import msgspec

from yolofs.errors import JournalError
from yolofs.journal import cuts, journal_damage, journal_file, journal_length
from yolofs.journal.checksums import has_right_checksum
from yolofs.journal.codec import decode, encode
from yolofs.journal.cuts import Cut
from yolofs.journal.header import KEY_LIMIT, JournalForm
from yolofs.journal.journal_damage import Damage
from yolofs.journal.journal_file import Room
from yolofs.journal.records import Delete, Marker, Record, Snapshot, Travel
from yolofs.paths import display
from yolofs.system.plain_files import open_plain

__all__ = ["Damage", "Journal", "KnownBeginning", "MarkerAt"]

_CHANGE_TAGS = b"SDRK"
_NOTED_EACH = 64
"""Their number is noted after this many records at the latest."""
_MARKERS = (Snapshot, Travel)
_REPAIR_HINT = (
    "yolofs doctor --repair --keep-rest loses the bad lines alone; yolofs doctor --repair all changes from there on"
)
_end_of = attrgetter("end_bytes")


class MarkerAt(msgspec.Struct, frozen=True):
    """A marker and where its line is: from ``offset_bytes`` up to, not including, ``end_bytes``."""

    offset_bytes: int
    end_bytes: int
    marker: Marker


class KnownBeginning(msgspec.Struct, frozen=True):
    """What is known of a journal whose first ``size`` bytes have the CRC-32 ``crc``."""

    size: int
    crc: int
    record_count: int
    markers: list[MarkerAt]
    counts_before: list[int]
    """For each marker, how many records stand before it."""


class Journal:
    """An open journal.  Not safe for concurrent use, except :meth:`sync`, which may run in another
    thread.

    Attributes:
        path: of the file, as given.  read_only: opened for reading only; nothing is ever moved, cut
        or appended.  size: how many bytes are good; everything is addressed by byte offsets below
        it.  markers: every marker in order; the one that starts generation i is ``markers[i - 1]``.
        known_bytes: how much of the beginning was as known, and was not looked at line by line.
        torn_bytes: how long the torn tail was that the last scan found, 0 if there was none.  cuts:
        what it was found to have lost at its end when it was opened: a torn tail that was cut,
        missing lines.  missing_records: how many whole records the journal had at its end when it
        was last noted, and has not now; its
            writer has to :meth:`accept_loss` before that is forgotten.
        form: what the first line says.
    """

    def __init__(self, path: bytes, fd: int, form: JournalForm, *, read_only: bool) -> None:
        """Take over ``fd``; use :meth:`create` or :meth:`open` instead."""
        self.path = path
        self.read_only = read_only
        self.form = form
        self.size = form.header_bytes
        self.markers: list[MarkerAt] = []
        self.torn_bytes = 0
        self.cuts: list[Cut] = []
        self.missing_records = 0
        self._fd = fd
        self._key, self._step = form.key, form.step  # as a call for the stamp of each record would be felt
        self._record_count = 0
        self._counts_before: list[int] = []  # for each marker: how many records stand before it
        self._room = Room(fd)
        self.known_bytes = 0
        self._counted = (form.header_bytes, 0)  # an offset, and how many records stand before it
        self._is_whole = True  # False: after a failed write the file may be longer than size
        self._notes_length = False  # it is to be read, or not in its place yet
        self._writes, self._durable_writes = 0, -1  # of what was there already nobody knows

    # --- opening and closing ---

    @classmethod
    def create(cls, path: bytes, *, key: int | None = None, spare: bytes | None = None) -> Self:
        """Make an empty journal (mode 0600) and open it for writing.  It appears complete or not at
        all.

        On a full disk the file ``spare`` becomes it.

        Its ``key`` is drawn, so that no line of another journal is ever taken for one of this.

        Raises:
            FileExistsError: there is one already.
            OSError: it cannot be written.
        """
        drawn = int.from_bytes(os.urandom(4), "big") % KEY_LIMIT if key is None else key
        fd = journal_file.create(path, drawn, spare=spare)
        return cls(path, fd, journal_file.read_form(fd, path), read_only=False)

    @classmethod
    def open(cls, path: bytes, *, read_only: bool = False, known: KnownBeginning | None = None) -> Self:
        """Open and check a journal.

        A torn tail is moved to ``journal.torn`` (:attr:`cuts`), or ignored if ``read_only``.

        If it begins as ``known`` says, only the rest is looked at (:attr:`known_bytes`).

        Blocks while the whole file is read: about a second and a half for a million records.

        Raises:
            JournalError: it is no journal, of an unknown version, or has a bad line that is not the
                last.
            OSError: it cannot be opened, read or (to move a torn tail) written.
        """
        journal = cls._open(path, read_only=read_only)
        try:
            noted = journal_length.read(path, journal.form.key)
            if known is not None:
                journal._take_known(known)
            journal._scan()
            is_torn = journal.torn_bytes > 0
            if is_torn and not read_only:
                journal._cut_tail()
            journal.missing_records = max(noted - journal._record_count - is_torn, 0)
            if not read_only:
                journal._notes_length = True
                journal.note_length()
        except BaseException:
            journal.close()
            raise
        return journal

    @classmethod
    def _open(cls, path: bytes, *, read_only: bool) -> Self:
        """Open without looking at more than the header."""
        try:
            fd = open_plain(path, os.O_RDONLY if read_only else os.O_RDWR | os.O_APPEND)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            raise JournalError(f"{display(path)}: {error.strerror}", hint="put it back from a backup") from None
        try:
            form = journal_file.read_form(fd, path)
        except BaseException:
            os.close(fd)
            raise
        return cls(path, fd, form, read_only=read_only)

    @classmethod
    def form_of(cls, path: bytes) -> JournalForm:
        """Return what the first line of a journal says.

        Raises:
            JournalError: it is no journal of a known version.
            OSError: it cannot be read.
        """
        with cls._open(path, read_only=True) as journal:
            return journal.form

    def _cut_tail(self) -> None:
        tail = journal_file.read_tail(self._fd, self.size)
        cut = Cut.now(self.form.key, self._record_count + 2, self.size, tail)
        journal_file.move_tail(self._fd, self.path, self.size, cut)
        self.cuts.append(cut)

    def close(self) -> None:
        """Close the file.  Closing twice does no harm."""
        if self._fd >= 0:
            self.note_length()
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def give_back(self) -> None:
        """Free the room on the disk that was taken for more records, as nothing more will be
        appended.  A close does not do this: if the disk is full, removals are recorded in that room
        after the next open.
        """
        with contextlib.suppress(OSError):  # it is only room
            if self._is_whole and os.fstat(self._fd).st_size == self.size:
                os.ftruncate(self._fd, self.size)
                self._room.forget()

    # --- writing ---

    def take_no_room(self) -> None:
        """Take no more of the disk than the records need, as it is full and they are to replace
        others.
        """
        self._room.take_none()

    def append(self, *records: Record) -> None:
        """Write ``records`` by one write(2): all of them or, after an error, none.

        Nothing is durable before :meth:`sync`.

        Raises:
            OSError: the disk is full, for example.
            ValueError: a record could not be read back (see :func:`~yolofs.journal.codec.encode`).
            io.UnsupportedOperation: the journal is open for reading only.
        """
        if self.read_only:
            raise io.UnsupportedOperation("the journal is open for reading only")
        stamp = self._key + self._step * (self._record_count + 1)
        if len(records) == 1:
            data = encode(records[0], stamp)
            lines = [data]
        else:
            lines = [encode(record, stamp + self._step * index) for index, record in enumerate(records)]
            data = b"".join(lines)
        offset = self.size
        if not self._room.has(offset, len(data)):
            self._room.take(offset, len(data), is_removal=all(isinstance(record, Delete) for record in records))
        self._write(data)
        for record, line in zip(records, lines, strict=True):
            end = offset + len(line)
            if is_marker := isinstance(record, _MARKERS):
                self._take_marker(record, offset, end)
            self._record_count += 1
            if is_marker or self._record_count % _NOTED_EACH == 1:
                self.note_length()
            offset = end

    def sync(self) -> None:
        """Make durable what was appended (fdatasync), if it is not.  Blocks; may run in another
        thread.

        A disk is told to write out its cache even where nothing is to be written, which takes as
        long as a write.

        Raises:
            OSError: the disk failed.
        """
        writes = self._writes
        if writes != self._durable_writes:
            os.fdatasync(self._fd)
            self._durable_writes = max(self._durable_writes, writes)

    def note_length(self) -> None:
        """Note how many records there are, for whoever opens the journal next.  Some
        microseconds.
        """
        if self._notes_length and not self.missing_records:
            journal_length.write(self.path, self._key, self._record_count)

    def accept_loss(self, lost: int) -> Cut:
        """Go on without the records that are missing at the end, and note that durably, for the
        user to be told.

        ``lost`` is where the files are kept that only those named (:attr:`Cut.lost`).

        Raises:
            OSError: it cannot be noted; the loss is found again by the next open then.
        """
        cut = Cut.missing(self.form.key, self._record_count + 2, self.size, self.missing_records, lost)
        journal_file.append_to(self.path + cuts.CUTS_SUFFIX, cut.encode())
        self.cuts.append(cut)
        self.missing_records = 0
        self.note_length()
        return cut

    def _write(self, data: bytes) -> None:
        if not self._is_whole:
            self._cut_back()
        self._is_whole = False
        try:
            journal_file.write_whole(self._fd, data)
            self.size += len(data)
            self._writes += 1  # after it: a sync that has begun meanwhile may have missed it
            self._is_whole = True
        finally:
            if not self._is_whole:
                with contextlib.suppress(OSError):  # then the next append tries again, before it writes
                    self._cut_back()

    def _cut_back(self) -> None:
        """Drop what a failed write may have left.  Danger: cutting anywhere else would lose staged
        work.
        """
        os.ftruncate(self._fd, self.size)
        self._room.forget()
        self._is_whole = True

    def _take_marker(self, record: Snapshot | Travel, offset: int, end: int) -> None:
        self.markers.append(MarkerAt(offset, end, record))
        self._counts_before.append(self._record_count)

    # --- reading ---

    def read(self, start: int = 0, end: int | None = None) -> Iterator[Record]:
        """Yield the records between two byte offsets, each the start of a line or :attr:`size`.

        ``start`` 0 means the first record; ``end`` None means :attr:`size` as it is now.  A million
        records take about three seconds.

        Raises:
            JournalError: a line cannot be decoded, or an offset is not the start of a line.
        """
        offset = max(start, self.form.header_bytes)
        stop = self.size if end is None else min(end, self.size)
        stamp, step = self.form.stamp(self._count_before(offset) + 1), self.form.step
        for lines in journal_file.read_lines(self._fd, offset, stop):
            for line in lines:
                try:
                    yield decode(line, stamp)
                except JournalError as error:
                    self._fail(offset, error)
                offset += len(line) + 1
                stamp += step
        if offset < stop:
            self._fail(offset, JournalError("the line is cut"))

    def _count_before(self, offset: int) -> int:
        """Return how many records stand before ``offset``, the start of a line."""
        if offset == self.size:
            return self._record_count
        at = bisect_right(self.markers, offset, key=_end_of)
        start, count = self.form.header_bytes, 0
        if at:
            start, count = self.markers[at - 1].end_bytes, self._counts_before[at - 1] + 1
        if start < self._counted[0] <= offset:
            start, count = self._counted
        return count + journal_file.count_lines(self._fd, start, offset)

    def segment_range(self, segment: int) -> tuple[int, int]:
        """Return the byte offsets between which segment ``segment`` stands, its marker not
        included.

        Segments count from 1; the last one, ``len(markers) + 1``, holds the records after the last
        marker.

        Raises:
            IndexError: there is no such segment.
        """
        if not 1 <= segment <= len(self.markers) + 1:
            raise IndexError(f"no segment {segment}")
        start = self.markers[segment - 2].end_bytes if segment > 1 else self.form.header_bytes
        end = self.markers[segment - 1].offset_bytes if segment <= len(self.markers) else self.size
        return start, end

    def read_segment(self, segment: int) -> Iterator[Record]:
        """Yield the records of one segment, without its marker."""
        return self.read(*self.segment_range(segment))

    def segment_counts(self) -> list[int]:
        """Return how many records each segment holds, its marker not counted, from segment 1 to the
        last.
        """
        starts = [0, *(before + 1 for before in self._counts_before)]
        ends = [*self._counts_before, self._record_count]
        return [end - start for start, end in zip(starts, ends, strict=True)]

    @property
    def goes_on(self) -> bool:
        """Whether the file at its path is still this one, and as long as what was read of it."""
        try:
            here = os.stat(self.path)
        except FileNotFoundError:  # a commit is replacing it
            return False
        return os.path.samestat(here, os.fstat(self._fd)) and here.st_size >= self.size

    def refresh(self) -> bool:
        """Take in what another process has appended since; return whether there was anything new.

        If the writer has cut the file (after a failed write, or by a repair), all of it is read
        again.

        Raises:
            JournalError: as :meth:`open`.
        """
        before = self.size
        was_cut = os.fstat(self._fd).st_size < before
        if not was_cut:
            try:
                self._scan()
            except JournalError:  # it may have been cut, and be as long again by now
                was_cut = True
        if was_cut:
            self._forget_lines()
            self._scan()
        if is_new := was_cut or self.size != before:
            self._writes += 1
        return is_new

    def _forget_lines(self) -> None:
        self.size, self._record_count = self.form.header_bytes, 0
        self.markers, self._counts_before = [], []
        self._counted = (self.form.header_bytes, 0)

    def known(self) -> KnownBeginning:
        """Return what is known of the journal as it is now.  Blocks while the whole file is
        read.
        """
        crc = journal_file.checksum(self._fd, self.size)
        return KnownBeginning(self.size, crc, self._record_count, list(self.markers), list(self._counts_before))

    def begins_as(self, known: KnownBeginning) -> bool:
        """Tell whether ``known`` is about a beginning of this journal.  Blocks while that is
        read.
        """
        if known.size > self.size or journal_file.checksum(self._fd, known.size) != known.crc:
            return False
        self._counted = (known.size, known.record_count)
        return True

    @property
    def record_count(self) -> int:
        """How many records there are, markers among them."""
        return self._record_count

    # --- scanning ---

    def _take_known(self, known: KnownBeginning) -> None:
        """Take over the known beginning, if the file really begins with it."""
        if os.fstat(self._fd).st_size < known.size or journal_file.checksum(self._fd, known.size) != known.crc:
            return
        self.size = self.known_bytes = known.size
        self._counted = (known.size, known.record_count)
        self._record_count = known.record_count
        self.markers = list(known.markers)
        self._counts_before = list(known.counts_before)

    def _scan(self) -> None:
        """Check all lines from :attr:`size` on and take them in.  Stops before a torn tail."""
        file_size = os.fstat(self._fd).st_size
        offset = self.size
        stamp, step = self.form.stamp(self._record_count + 1), self.form.step
        try:
            for lines in journal_file.read_lines(self._fd, offset, file_size):
                for line in lines:
                    end = offset + len(line) + 1
                    if not has_right_checksum(line, stamp):
                        number = self._record_count + 1
                        if end < file_size or journal_damage.is_misplaced(line, self.form, number):
                            self._fail_at(offset, number)
                        return
                    if line[0] not in _CHANGE_TAGS:
                        record = self._decode_at(offset, line, stamp)
                        assert isinstance(record, _MARKERS)
                        self._take_marker(record, offset, end)
                    self._record_count += 1
                    stamp += step
                    offset = end
        finally:
            self.size = offset  # also after an error: it has to agree with the markers taken in
            self.torn_bytes = file_size - offset

    def _decode_at(self, offset: int, line: bytes, stamp: int) -> Record:
        try:
            return decode(line, stamp)
        except JournalError as error:
            self._fail(offset, error)

    def _fail_at(self, offset: int, number: int) -> NoReturn:
        self._fail(offset, JournalError(journal_damage.explain(self._fd, self.form, offset, number)))

    def _fail(self, offset: int, cause: JournalError) -> NoReturn:
        number = 1 + journal_file.count_lines(self._fd, 0, offset)
        raise JournalError(
            f"{display(self.path)}, line {number} (byte {offset}): {cause.message}",
            hint=cause.hint or _REPAIR_HINT,
        ) from cause

    # --- repair ---

    @classmethod
    def find_damage(cls, path: bytes) -> Damage | None:
        """Decode every line; return where the first bad one is (a torn tail too), None if there is
        none.

        Raises:
            JournalError: it is no journal of a known version, so that nothing can be said about its
                lines.
            OSError: it cannot be read.
        """
        with cls._open(path, read_only=True) as journal:
            return journal_damage.find(journal._fd, journal.form)

    @classmethod
    def repair(cls, path: bytes, damage: Damage | None = None) -> Damage | None:
        """Cut the journal before its first bad line and move the rest, byte for byte, to
        ``journal.torn``.

        Returns what was cut, None if the journal is sound.  ``damage`` says where, if not at a line
        that is bad in itself.

        Danger: the store inodes that only the cut records name look unreferenced from now on;
        whoever collects the store next deletes the staged data in them.

        Raises:
            JournalError: it is no journal of a known version.
            OSError: it cannot be read or written.
        """
        with cls._open(path, read_only=False) as journal:
            damage = damage or journal_damage.find(journal._fd, journal.form)
            if damage is not None:
                journal_file.move_tail(journal._fd, path, damage.offset_bytes)
                journal_length.write(path, journal.form.key, damage.line_number - 2)
            return damage
