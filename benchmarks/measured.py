"""What a run has measured, as values that go to JSON and come back."""

from __future__ import annotations

import statistics
from pathlib import Path

import msgspec

REFERENCE = "plain"
PEER = "fuse-overlayfs"
FLOOR = "floor"
"""A pass-through in C, which stages nothing."""


class Requests(msgspec.Struct, frozen=True):
    """The requests of one kind in one workload, set-up and checks included."""

    count: int
    handler_s: float
    """Seconds in handlers, all of them together."""


class Row(msgspec.Struct):
    """One row of the table in one mode."""

    name: str
    title: str
    mode: str
    seconds: dict[str, list[float]] = msgspec.field(default_factory=dict)
    """By column: one figure for each round."""
    work_s: dict[str, list[float]] = msgspec.field(default_factory=dict)
    """By column: seconds of processor time that the workload itself took in each round, with set-up
    and checks, but without dropping the kernel's caches.
    """
    server_s: dict[str, list[float]] = msgspec.field(default_factory=dict)
    """By column that user space serves: the same of the process that did, all its threads."""
    notes: dict[str, str] = msgspec.field(default_factory=dict)
    """By column: why there is no figure."""
    requests: dict[str, Requests] = msgspec.field(default_factory=dict)
    """What yolofs was asked in the last round, by kind; only with ``--trace``."""
    requests_each: int = 0
    """Where the server is kept busy: how many requests one of the row's figures is the time of."""

    def median(self, column: str) -> float | None:
        """Return the median of a column's figures, None if it has none."""
        found = self.seconds.get(column)
        return statistics.median(found) if found else None

    def ratio(self, column: str, reference: str) -> float | None:
        """Return how many times as long a column takes as another one, by their medians; None if
        one has none.
        """
        ours, theirs = self.median(column), self.median(reference)
        return ours / theirs if ours is not None and theirs else None

    def requests_a_second(self, column: str) -> float | None:
        """Return how many requests a column's server answers, by the median; None if it is not kept
        busy, or the column has none.
        """
        median = self.median(column)
        return self.requests_each / median if median and self.requests_each and column in self.server_s else None

    def serial_share(self, column: str) -> float | None:
        """Return how many seconds a column's server computes for each second that the workload
        computes in the plain directory, by their medians; None if one has none.
        """
        served, work = self.server_s.get(column), self.work_s.get(REFERENCE)
        return statistics.median(served) / statistics.median(work) if served and work else None


class Results(msgspec.Struct):
    """A whole run."""

    machine: dict[str, str]
    size: str
    rounds: int
    columns: list[str]
    missing: dict[str, str]
    """Columns that were asked for and are not there, with the reason."""
    rows: list[Row] = msgspec.field(default_factory=list)
    failures: list[str] = msgspec.field(default_factory=list)
    """What went wrong: a run with any is not to be trusted."""

    def row(self, name: str, title: str, mode: str) -> Row:
        """Return the row of that name and mode, made if it is new."""
        for row in self.rows:
            if (row.name, row.mode) == (name, mode):
                return row
        self.rows.append(Row(name, title, mode))
        return self.rows[-1]

    def save(self, path: Path) -> None:
        """Write JSON."""
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read JSON.

        Raises:
            msgspec.DecodeError: it is something else.
        """
        return msgspec.json.decode(path.read_bytes(), type=cls)
