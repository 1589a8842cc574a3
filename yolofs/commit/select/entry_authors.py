"""When each entry of a state was last changed and by which run, for records that state it anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import msgspec

from yolofs.audit.runs import ALSO, run_of, runs_in
from yolofs.commit.select.written_at import WrittenAt
from yolofs.journal.records import ChangeRecord, Fingerprint, Keep, Rename, Stage
from yolofs.paths import RelPath, split
from yolofs.state.kept_bases import XATTRS, Extra
from yolofs.state.tree import Staged

MARKS = "marks"
"""The option of a record of what was merged and may have marks in it."""
OURS = "ours"
"""The option beside it of what was staged before the merge: ``INO.DIGEST``, of a store inode and
its content.
"""
RunsAt: TypeAlias = Callable[[RelPath, RelPath, bool], frozenset[int]]
"""Tells which runs contributed to what is at a path, and was at another one before; or is gone from
there.
"""


class Authors:
    """When each entry of a state was last changed, and by which run, as far as paths tell."""

    def __init__(self, records: Iterable[ChangeRecord], now_ns: int, runs_at: RunsAt | None = None) -> None:
        """``now_ns`` stands in for what is not known.  ``runs_at`` is asked only if several runs
        are among the authors; without it only the last one of each entry is known.
        """
        self._runs_at = runs_at
        self._runs: set[int] = set()
        self._last_run: dict[RelPath, int] = {}
        self._with_several: set[RelPath] = set()
        """Where records of several runs are about the very path, or something was moved."""
        self._by_file: dict[int, ChangeRecord] = {}
        self._by_path: dict[RelPath, ChangeRecord] = {}
        self._written = WrittenAt()
        self._since_ns: dict[RelPath, int] = {}
        """When the first change of a path was."""
        self._now_ns = now_ns
        self._xattrs: dict[Fingerprint, Extra] = {}
        """What is told of the extended attributes of base files, by what they were at copy-up."""
        self._marked: dict[RelPath, Extra] = {}
        """The extra fields of merged files that may hold marks, by base path."""
        for record in records:
            if runs_at is not None:
                self._note_runs(record)
            if isinstance(record, Keep) and any(key == MARKS for key, _ in record.extra):
                self._marked[record.home or record.path] = tuple(
                    field for field in record.extra if field[0] in (MARKS, OURS)
                )
            if isinstance(record, Stage | Keep) and record.base is not None:
                self._xattrs[record.base] = tuple(field for field in record.extra if field[0] == XATTRS)
            if isinstance(record, Rename):
                self._written.move(record)
                for path in (record.src, record.dst):
                    self._by_path[path] = record
                    self._since_ns.setdefault(path, record.time_ns)
                continue
            if isinstance(record, Keep) and record.had is not None:
                continue
            since_ns = record.since_ns if isinstance(record, Keep) else 0
            self._since_ns.setdefault(record.path, since_ns or record.time_ns)
            self._by_path[record.path] = record
            ino = getattr(record, "ino", None)
            self._written.put(record.path, record if ino is not None else None)
            if ino is not None:
                self._by_file[ino] = record

    def sign(self, record: Keep, staged: Staged | None) -> Keep:
        """Return a record with the time and the run of the change that it stands for."""
        source = self._by_file.get(staged.ino) if staged is not None else self._by_path.get(record.path)
        if staged is None and record.ino is not None:  # a file that is staged anew: whoever moved it has not made it
            source = self._written.get(record.path) or source
        if source is None:
            return msgspec.structs.replace(record, time_ns=self._now_ns)
        extra = tuple(field for field in source.extra if field[0] == "run") + self._earlier_runs(record, source)
        if record.base is not None:
            extra += self._xattrs.get(record.base, ())
        if staged is not None:
            extra += self._marked.get(staged.home or record.path) or self._marked.get(record.path, ())
        since_ns = min(self._since_ns.get(record.path, source.time_ns), source.time_ns)
        return msgspec.structs.replace(
            record, time_ns=source.time_ns, since_ns=since_ns if since_ns < source.time_ns else 0, extra=extra
        )

    def _note_runs(self, record: ChangeRecord) -> None:
        run = run_of(record)
        self._runs.add(run)
        if isinstance(record, Rename):
            self._with_several.update((record.src, record.dst))
        elif self._last_run.setdefault(record.path, run) != run:
            self._with_several.add(record.path)
        if isinstance(record, Keep) and len(runs := runs_in(record)) > 1:
            self._runs |= runs
            self._with_several.add(record.path)

    def may_have_several(self, path: RelPath) -> bool:
        """Tell cheaply whether several runs may have contributed to what is at a path; if not, only
        those did that records about the very path name.
        """
        while path not in self._with_several:
            if not path:
                return False
            path = split(path)[0]
        return True

    def _earlier_runs(self, record: Keep, source: ChangeRecord) -> Extra:
        """Return a field with the runs that contributed to an entry before the last one."""
        if self._runs_at is None or len(self._runs) < 2 or not self.may_have_several(record.path):
            return ()
        old = record.home or record.source or record.path
        is_gone = record.ino is None and record.source is None
        earlier = sorted(self._runs_at(record.path, old, is_gone) - {run_of(source)})
        return ((ALSO, b",".join(b"%d" % run for run in earlier)),) if earlier else ()
