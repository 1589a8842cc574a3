"""Finds the runs behind everything left staged, for the records that state it anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from yolofs.commit.select.entry_authors import Authors
from yolofs.journal.records import ChangeRecord, Delete, Rename
from yolofs.paths import RelPath
from yolofs.session.attribution import NO_RUN, Attribution
from yolofs.system.clock import coarse_clock_ns


def authors_of(records: Callable[[], Iterable[ChangeRecord]]) -> Authors:
    """Return when each entry of a state was changed, and by which runs; ``records`` reads those
    that led to it.
    """
    found: list[Attribution] = []

    def runs_at(path: RelPath, old: RelPath, is_gone: bool) -> frozenset[int]:
        if not found:
            found.append(Attribution(record for record in records() if has_to_be_followed(record)))
        return found[0].runs_at(path, old, is_gone=is_gone) - {NO_RUN}

    def has_to_be_followed(record: ChangeRecord) -> bool:
        return isinstance(record, Rename | Delete) or authors.may_have_several(record.path)

    authors = Authors(records(), coarse_clock_ns(), runs_at)
    return authors
