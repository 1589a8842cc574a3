"""The runs of a session, read from its audit: which command ran when, and between which
generations.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from yolofs.audit.audit import Point, RunEnd, RunStart, run_notes
from yolofs.errors import GenerationError
from yolofs.journal.journal import Journal
from yolofs.journal.records import Record
from yolofs.paths import Generation
from yolofs.text.percent import quote_from_bytes, unquote_to_bytes

ALSO = "also"
"""The key of an extra field: the runs before the last one, with commas between them."""


class Run(msgspec.Struct, frozen=True):
    """A run, with its end if that has come."""

    start: RunStart
    end: RunEnd | None

    @property
    def number(self) -> int:
        """Its number, from 1."""
        return self.start.run

    @property
    def command(self) -> tuple[bytes, ...]:
        """Its command line."""
        return tuple(map(unquote_to_bytes, self.start.command))

    @property
    def directory(self) -> bytes:
        """The directory that it was started in."""
        return unquote_to_bytes(self.start.directory)


def quoted_command(words: Iterator[bytes] | tuple[bytes, ...] | list[bytes]) -> tuple[str, ...]:
    """Return a command line as :class:`yolofs.audit.audit.RunStart` holds it."""
    return tuple(map(quote_from_bytes, words))


def read_runs(directory: bytes) -> list[Run]:
    """Return all runs, oldest first."""
    starts: dict[int, RunStart] = {}
    ends: dict[int, RunEnd] = {}
    for note in run_notes(directory):
        if isinstance(note, RunStart):
            starts[note.run] = note
        else:
            ends[note.run] = note
    return [Run(start, ends.get(number)) for number, start in sorted(starts.items())]


# ---- runs and the journal


def run_of(record: Record) -> int:
    """Return the run that made a record, 0 if none did."""
    for key, value in record.extra:
        if key == "run" and value.isdigit():
            return int(value)
    return 0


def runs_in(record: Record) -> frozenset[int]:
    """Return all runs that a record stands for: that of :func:`run_of`, and earlier ones, if a
    commit has left their work staged.  0 stands for processes in no run.
    """
    also = next((value for key, value in record.extra if key == ALSO), b"")
    return frozenset([run_of(record), *(int(one) for one in also.split(b",") if one.isdigit())])


def generation_of(point: Point | None, journal: Journal) -> Generation | None:
    """Return the generation that a point means, None if a commit or abort has ended its journal."""
    if point is None:
        return None
    if not point.generation:
        return Generation(0)
    markers = journal.markers
    if point.generation <= len(markers) and markers[point.generation - 1].marker.time_ns == point.marker_ns:
        return Generation(point.generation)
    found = (at for at, marker in enumerate(markers, 1) if marker.marker.time_ns == point.marker_ns)
    return next(map(Generation, found), None)  # it has another number where dead generations were dropped


def find_run(directory: bytes, number: int) -> Run:
    """Return a run of the session in ``directory``.

    Raises:
        GenerationError: there is none of this number.
    """
    run = next((run for run in read_runs(directory) if run.number == number), None)
    if run is None:
        raise GenerationError(f"there is no run {number}", hint="yolofs runs")
    return run
