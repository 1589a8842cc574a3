"""Telling a directory's names, with the attributes of each."""

from __future__ import annotations

from collections.abc import Sequence

from yolofs.fuse.cache.listings import ToldName
from yolofs.fuse.direct.kernel_protocol import OUT_SIZE
from yolofs.fuse.direct.replies import DirEntry
from yolofs.fuse.handlers import Handlers
from yolofs.fuse.results import DirHandle


class Listed:
    """Packs names into ``out``, behind the place of the answer's header."""

    def __init__(self, handlers: Handlers, out: bytearray) -> None:
        self._handlers = handlers
        self._out = out

    def tell(self, handle: int, start: int, room: int) -> int:
        """Pack names of an open directory from offset ``start`` on into ``room`` bytes, and return
        where they end.
        """
        directory = self._handlers.directory(handle, start)
        limit = OUT_SIZE + room
        if directory.was_told and directory.listing is not None:
            return self._tell_again(directory, directory.listing.rows, start, limit)
        return self._tell(directory, start, OUT_SIZE, limit)

    def _tell_again(self, directory: DirHandle, rows: Sequence[ToldName], start: int, limit: int) -> int:
        at, out = OUT_SIZE, self._out
        for offset in range(start, len(rows)):
            row = rows[offset]
            inode = row.inode
            if inode is None or (inode.changes == row.changes and inode.lookups):
                packed = row.entry.packed()
                end = at + len(packed)
                if end > limit:
                    return at
                out[at:end] = packed
                at = end
                if inode is not None:
                    inode.lookups += 1
                continue
            end = self._tell_name(directory, offset, row.name, at, limit)
            if end < 0:
                return at
            at = end
            if not directory.was_told:  # the rest, likewise
                return self._tell(directory, offset + 1, at, limit)
        return at

    def _tell(self, directory: DirHandle, start: int, at: int, limit: int) -> int:
        names = directory.names
        for offset in range(start, len(names)):
            end = self._tell_name(directory, offset, names[offset], at, limit)
            if end < 0:
                break
            at = end
        return at

    def _tell_name(self, directory: DirHandle, offset: int, name: bytes, at: int, limit: int) -> int:
        """Look up and tell one name; return where the next one goes, or -1 if there was no room."""
        handlers = self._handlers
        # "." and ".." count as no look-up
        answer = handlers.dot(directory, name) if offset < 2 else handlers.listed(directory, name)
        attr = answer.attr
        if attr is None:  # gone since reading began
            handlers.look_up_again(directory)
            return at
        entry = DirEntry(answer, attr, name, offset + 1)
        packed = entry.packed()
        end = at + len(packed)
        if end > limit:
            if offset >= 2:
                handlers.forget([(attr.number, 1)])
            return -1
        self._out[at:end] = packed
        handlers.note_told(directory, offset, name, answer, entry)
        return end
