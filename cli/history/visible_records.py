"""Which records of the journal may be shown, and how many.  Inside a sandbox, records about hidden
paths are left out.
"""

from __future__ import annotations

from typing import assert_never

from yolofs.cli.options import options
from yolofs.journal.records import Delete, Keep, Record, Rename, Snapshot, Stage, Travel
from yolofs.paths import Generation, RelPath, absolute, is_below
from yolofs.session.session import Session


def paths_of_record(record: Record) -> tuple[RelPath, ...]:
    """Return the paths that a record is about; none for a marker."""
    match record:
        case Stage() | Delete() | Keep(had=None):
            return (record.path,)
        case Keep():
            return (record.had or record.path,)
        case Rename():
            return (record.src, record.dst)
        case Snapshot() | Travel():
            return ()
        case _:
            assert_never(record)


def is_about(record: Record, path: RelPath) -> bool:
    """Tell whether a record is about a path or what is below it, or takes a directory away in which
    it lies.
    """
    takes_all = isinstance(record, Delete | Rename)
    return any(is_below(one, path) or (takes_all and is_below(path, one)) for one in paths_of_record(record))


def may_show(record: Record, root: bytes) -> bool:
    """Tell whether a record may be shown to whoever asks."""
    guard = options().guard
    return guard is None or all(guard.may_see(absolute(root, path)) for path in paths_of_record(record))


def segment_counts(session: Session) -> list[int]:
    """Return how many records each segment holds that may be shown, its marker not counted, from
    the first to the last.

    Inside a sandbox all records are read for it.
    """
    counts = session.journal.segment_counts()
    if options().guard is None:
        return counts
    return [_count(session, Generation(segment)) if count else 0 for segment, count in enumerate(counts, 1)]


def count_since(session: Session) -> int:
    """Return how many records that may be shown there are since the last marker."""
    counts = session.journal.segment_counts()
    return _count(session, Generation(len(counts))) if options().guard is not None and counts[-1] else counts[-1]


def _count(session: Session, segment: Generation) -> int:
    return sum(may_show(record, session.base.root) for record in session.journal.read_segment(segment))
