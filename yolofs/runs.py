"""The runs of a session, ``.yolofs/runs.jsonl``: which command ran when, and which generations it lies between.

One JSON object a line, two for each run: its start and its end.  A last line that is cut is passed over.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import assert_never
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

from yolofs.errors import GenerationError
from yolofs.journal import Journal
from yolofs.paths import Generation, RelPath
from yolofs.records import Delete, Record, Rename, Snapshot, Stage, Travel

FILE_NAME = b"runs.jsonl"
_TAIL_BYTES = 1 << 16


class Point(msgspec.Struct, frozen=True):
    """A generation of a journal: after a commit or abort the same number is another generation."""

    generation: int
    marker_ns: int
    """The time of its marker, 0 for base: with the number it tells which generation of which journal is meant."""


class Start(msgspec.Struct, frozen=True, tag="start", tag_field="event"):
    """A run begins."""

    run: int
    time_ns: int
    command: tuple[str, ...]
    """Percent-encoded, as is what follows."""
    directory: str
    before: Point


class End(msgspec.Struct, frozen=True, tag="end", tag_field="event"):
    """A run has ended."""

    run: int
    time_ns: int
    code: int | None
    """The exit code; None if nobody could tell it."""
    after: Point | None
    """The snapshot that holds what had changed; None if nothing had, or none was made."""


class Run(msgspec.Struct, frozen=True):
    """A run, with its end if that has come."""

    start: Start
    end: End | None

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


_decoder = msgspec.json.Decoder(Start | End)


def quoted(words: Iterator[bytes] | tuple[bytes, ...] | list[bytes]) -> tuple[str, ...]:
    """Return a command line as :class:`Start` holds it."""
    return tuple(map(quote_from_bytes, words))


def append(directory: bytes, event: Start | End) -> None:
    """Write an event to the session in ``directory`` (its ``.yolofs``).

    Raises:
        OSError: it cannot be written.
    """
    fd = os.open(os.path.join(directory, FILE_NAME), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, msgspec.json.encode(event) + b"\n")
    finally:
        os.close(fd)


def last_number(directory: bytes) -> int:
    """Return the number of the newest run, 0 if there has been none."""
    with contextlib.suppress(FileNotFoundError), open(os.path.join(directory, FILE_NAME), "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - _TAIL_BYTES, 0))
        return max((event.run for event in _events(file.read())), default=0)
    return 0


def read_runs(directory: bytes) -> list[Run]:
    """Return all runs, oldest first."""
    starts: dict[int, Start] = {}
    ends: dict[int, End] = {}
    with contextlib.suppress(FileNotFoundError), open(os.path.join(directory, FILE_NAME), "rb") as file:
        for event in _events(file.read()):
            if isinstance(event, Start):
                starts[event.run] = event
            else:
                ends[event.run] = event
    return [Run(start, ends.get(number)) for number, start in sorted(starts.items())]


def _events(data: bytes) -> Iterator[Start | End]:
    for line in data.split(b"\n"):
        with contextlib.suppress(msgspec.DecodeError):
            yield _decoder.decode(line)


# ---- runs and the journal


def run_of(record: Record) -> int:
    """Return the run that made a record, 0 if none did."""
    for key, value in record.extra:
        if key == "run" and value.isdigit():
            return int(value)
    return 0


def generation_of(point: Point | None, journal: Journal) -> Generation | None:
    """Return the generation that a point means, None if a commit or abort has ended its journal."""
    if point is None:
        return None
    if not point.generation:
        return Generation(0)
    markers = journal.markers
    if point.generation > len(markers) or markers[point.generation - 1].marker.time_ns != point.marker_ns:
        return None
    return Generation(point.generation)


def find_run(directory: bytes, number: int) -> Run:
    """Return a run of the session in ``directory``.

    Raises:
        GenerationError: there is none of this number.
    """
    run = next((run for run in read_runs(directory) if run.number == number), None)
    if run is None:
        raise GenerationError(f"there is no run {number}", hint="yolofs runs")
    return run


def touched_paths(journal: Journal, first_segment: int, number: int) -> list[RelPath]:
    """Return the paths that a run's records are about, from a segment on."""
    paths: dict[RelPath, None] = {}
    for segment in range(first_segment, len(journal.markers) + 2):
        for record in journal.read_segment(segment):
            if run_of(record) == number:
                match record:
                    case Stage() | Delete():
                        paths[record.path] = None
                    case Rename():
                        paths[record.src] = paths[record.dst] = None
                    case Snapshot() | Travel():
                        pass
                    case _:
                        assert_never(record)
    return list(paths)
