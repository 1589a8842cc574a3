"""Writes what is to show at each path as records, and makes the store inodes that they need."""

from __future__ import annotations

import os
import stat

import msgspec

from yolofs.commit.apply.kept_copies import metadata_of
from yolofs.commit.plan.kept_objects import KeptObject
from yolofs.commit.plan.plan import (
    MetadataBefore,
)
from yolofs.commit.undo.undoable_names import NameAfterUndo, UndoableNames
from yolofs.journal.records import Fingerprint, Keep
from yolofs.paths import RelPath, StoreIno


class AsRecords(UndoableNames):
    """Writes the records of what shows at each path, and makes the store inodes that they name."""

    def _record(self, path: RelPath, place: NameAfterUndo) -> None:
        if place.opened is not None:
            kept = place.opened.path(self._commits)
            ino = self._made_from(path, kept, None, data=True)
            self._found.directories_anew[ino] = os.lstat(kept).st_ino
            self._add(place, Keep(0, path, ino))
        elif place.kept is not None:
            self._add(place, self._kept(path, place, place.kept))
        elif place.link is not None:
            self._add_link(path, place.link)
        elif place.source is not None and place.was is not None:
            self._add(place, self._changed(path, place, place.source, place.was))
        elif place.source is not None:
            if path not in self._with_links:
                self._add(place, Keep(0, path, source=place.source))
        elif place.is_gone:
            self._add(place, Keep(0, path))

    def _add(self, place: NameAfterUndo, record: Keep) -> None:
        self._found.records.append(msgspec.structs.replace(record, touched_ns=place.touched_ns))

    def _kept(self, path: RelPath, place: NameAfterUndo, kept: KeptObject) -> Keep:
        """Return the record of a thing that comes back, with the file that it replaces, if there is
        one.
        """
        known = self._brought.get(kept)
        if known is not None:
            return msgspec.structs.replace(known, path=path)
        now = place.replaces
        st = self._base.look(now)
        record = Keep(0, path, kept.ino)
        if st is not None and not stat.S_ISDIR(st.st_mode) and now not in self._sources:
            record = Keep(0, path, kept.ino, home=now, base=self._base.fingerprint(st))
        self._brought[kept] = record
        return record

    def _changed(self, path: RelPath, place: NameAfterUndo, source: RelPath, was: MetadataBefore) -> Keep:
        st = self._base.lstat(source)
        ino = self._made(path, source, was, place.content)
        if stat.S_ISDIR(st.st_mode):
            return Keep(0, path, ino, origin=source)
        has_data = stat.S_ISREG(st.st_mode) and place.content is None
        is_in_place = place.content is not None or source in self._gets_links()  # so it keeps its inode number
        links = st.st_nlink if st.st_nlink > 1 or is_in_place else 0
        key = -self._base.number(st) if links else 0
        record = self._linked[st.st_dev, st.st_ino] = Keep(
            0,
            path,
            ino,
            origin=source if has_data else None,
            home=source,
            base=self._fingerprint(st),
            links=links,
            key=key,
        )
        return record

    def _gets_links(self) -> set[RelPath | None]:
        """Return the paths in base of files that get further names."""
        if self._linked_to is None:
            self._linked_to = {place.link for place in self._places.values()}
        return self._linked_to

    def _add_link(self, path: RelPath, other: RelPath) -> None:
        """Let a path be a hard link of what base has at another."""
        st = self._base.lstat(other)
        known = self._linked.get((st.st_dev, st.st_ino))
        if known is None:
            links = st.st_nlink if st.st_nlink > 1 else 0
            known = self._linked[st.st_dev, st.st_ino] = Keep(
                0,
                self._view(other),
                self._made(path, other, None, None),
                origin=other if stat.S_ISREG(st.st_mode) else None,
                home=other,
                base=self._fingerprint(st),
                links=links,
                key=-self._base.number(st) if links else 0,
            )
            self._found.records.append(known)
            self._with_links.add(known.path)
        self._found.records.append(msgspec.structs.replace(known, path=path, touched_ns=0))

    def _fingerprint(self, st: os.stat_result) -> Fingerprint:
        return self._base.fingerprint(st)

    def _made(self, path: RelPath, other: RelPath, was: MetadataBefore | None, content: int | None) -> StoreIno:
        """Make a store inode: what base has at another path, with the metadata and the content that
        it had.
        """
        source = self._base.path(other)
        if content is not None:
            source = KeptObject(self._applied.number, content).path(self._commits)
        return self._made_from(path, source, was, data=content is not None)

    def _made_from(self, path: RelPath, source: bytes, was: MetadataBefore | None, *, data: bool) -> StoreIno:
        ino = self._into.reserve()
        self._found.numbers.append(ino)
        left_out = self._into.copy_into(ino, source, data=data)
        if was is not None:
            left_out = self._into.give(ino, metadata_of(was))
        if left_out:
            self._found.left_out[path] = left_out
        return ino
