"""Answers as the kernel takes them.

Each is packed into one buffer and returned as a view of it, which holds until the next one.
"""

from __future__ import annotations

import os
import stat
from typing import TypeAlias

from yolofs.fuse.direct.kernel_protocol import (
    ATTR_OUT,
    COUNT_OUT,
    CREATE_OUT,
    DIRENTPLUS,
    DIRENTPLUS_LIFETIMES,
    DIRENTPLUS_LIFETIMES_AT,
    ENTRY_OUT,
    KEEP_CACHE,
    OFFSET_OUT,
    OPEN_OUT,
    OUT,
    OUT_SIZE,
    STATFS_OUT,
    STATX_BASIC,
    STATX_BIRTH,
    STATX_OUT,
)
from yolofs.fuse.results import EntryReply, Opened
from yolofs.overlay.inodes import Attr

_SECOND_NS = 1_000_000_000
_BLOCK_SIZE = 4096
_DEVICE_BITS = 0xFFFFFFFF
"""The kernel's encoding of a device number is the lower half of the C library's."""
_NO_ATTR = (0,) * 16

Reply: TypeAlias = memoryview | bytearray | bytes
"""An answer as it is written to the device."""


class DirEntry:
    """A name of a listing, packed; :mod:`yolofs.fuse.cache.listings` sets the two lifetimes
    anew.
    """

    __slots__ = ("_packed", "_packed_for", "attr_timeout", "entry_timeout")

    def __init__(self, answer: EntryReply, attr: Attr, name: bytes, next_offset: int) -> None:
        self.entry_timeout = self._packed_for = answer.name_timeout_s
        self.attr_timeout = answer.attr_timeout_s
        self._packed = bytearray(
            DIRENTPLUS.pack(*_entry(answer, attr), attr.number, next_offset, len(name), stat.S_IFMT(attr.mode) >> 12)
        )
        self._packed += name
        self._packed += bytes(-len(self._packed) % 8)

    def packed(self) -> bytearray:
        """Return it as the kernel takes it, with the lifetimes that it has by now."""
        name_s = self.entry_timeout
        if name_s != self._packed_for:
            attr_s = self.attr_timeout
            DIRENTPLUS_LIFETIMES.pack_into(
                self._packed, DIRENTPLUS_LIFETIMES_AT, int(name_s), int(attr_s), _rest_ns(name_s), _rest_ns(attr_s)
            )
            self._packed_for = name_s
        return self._packed


class Replies:
    """Packs answers; ``size`` is that of the longest one in bytes."""

    def __init__(self, size: int) -> None:
        self.out = bytearray(size)
        """For the names of a directory, packed after the first
        :data:`~yolofs.fuse.direct.kernel_protocol.OUT_SIZE` bytes.
        """
        self._view = view = memoryview(self.out)
        self._error = view[:OUT_SIZE]
        self._entry = view[: ENTRY_OUT.size]
        self._attr = view[: ATTR_OUT.size]
        self._open = view[: OPEN_OUT.size]
        self._create = view[: CREATE_OUT.size]
        self._count = view[: COUNT_OUT.size]

    def error(self, unique: int, number: int) -> memoryview:
        """An errno; 0: it is done, and there is nothing to say."""
        OUT.pack_into(self.out, 0, OUT_SIZE, -number, unique)
        return self._error

    def head(self, unique: int, size: int) -> memoryview:
        """What stands before ``size`` bytes."""
        OUT.pack_into(self.out, 0, OUT_SIZE + size, 0, unique)
        return self._error

    def listing(self, unique: int, end: int) -> memoryview:
        """The listing in :attr:`out`, which ends at ``end``."""
        OUT.pack_into(self.out, 0, end, 0, unique)
        return self._view[:end]

    def entry(self, unique: int, answer: EntryReply) -> memoryview:
        """A file under a name, or that there is none."""
        attr = answer.attr
        if attr is None:
            name_s = answer.name_timeout_s
            ENTRY_OUT.pack_into(
                self.out, 0, ENTRY_OUT.size, 0, unique, 0, 0, int(name_s), 0, _rest_ns(name_s), 0, *_NO_ATTR
            )
        else:
            ENTRY_OUT.pack_into(self.out, 0, ENTRY_OUT.size, 0, unique, *_entry(answer, attr))
        return self._entry

    def attributes(self, unique: int, answer: EntryReply) -> memoryview:
        """A file's attributes."""
        attr = answer.attr
        assert attr is not None
        attr_s = answer.attr_timeout_s
        atime, mtime, ctime = attr.atime_ns, attr.mtime_ns, attr.ctime_ns
        ATTR_OUT.pack_into(
            self.out, 0, ATTR_OUT.size, 0, unique, int(attr_s), _rest_ns(attr_s), 0,
            attr.number, attr.size, attr.blocks, atime // _SECOND_NS, mtime // _SECOND_NS, ctime // _SECOND_NS,
            atime % _SECOND_NS, mtime % _SECOND_NS, ctime % _SECOND_NS,
            attr.mode, attr.nlink, attr.uid, attr.gid, attr.rdev & _DEVICE_BITS, _BLOCK_SIZE, 0,
        )  # fmt: skip
        return self._attr

    def extended_attributes(self, unique: int, answer: EntryReply, birth_ns: int | None) -> memoryview:
        """A file's attributes as statx(2) tells them, with the time of its birth where that is
        known.
        """
        attr = answer.attr
        assert attr is not None
        mask = STATX_BASIC if birth_ns is None else STATX_BASIC | STATX_BIRTH
        birth, attr_s = birth_ns or 0, answer.attr_timeout_s
        STATX_OUT.pack_into(
            self.out, 0, STATX_OUT.size, 0, unique, int(attr_s), _rest_ns(attr_s), 0,
            mask, _BLOCK_SIZE, 0, attr.nlink, attr.uid, attr.gid, attr.mode, attr.number, attr.size, attr.blocks, 0,
            attr.atime_ns // _SECOND_NS, attr.atime_ns % _SECOND_NS, birth // _SECOND_NS, birth % _SECOND_NS,
            attr.ctime_ns // _SECOND_NS, attr.ctime_ns % _SECOND_NS,
            attr.mtime_ns // _SECOND_NS, attr.mtime_ns % _SECOND_NS,
            os.major(attr.rdev), os.minor(attr.rdev), 0, 0,
        )  # fmt: skip
        return self._view[: STATX_OUT.size]

    def opened(self, unique: int, handle: int, flags: int) -> memoryview:
        """An open file or directory."""
        OPEN_OUT.pack_into(self.out, 0, OPEN_OUT.size, 0, unique, handle, flags, 0)
        return self._open

    def created(self, unique: int, opened: Opened, answer: EntryReply) -> memoryview:
        """A file that was made and opened."""
        attr = answer.attr
        assert attr is not None
        flags = KEEP_CACHE if opened.keeps.pages else 0
        CREATE_OUT.pack_into(self.out, 0, CREATE_OUT.size, 0, unique, *_entry(answer, attr), opened.handle, flags, 0)
        return self._create

    def count(self, unique: int, size: int) -> memoryview:
        """A number of bytes."""
        COUNT_OUT.pack_into(self.out, 0, COUNT_OUT.size, 0, unique, size, 0)
        return self._count

    def offset(self, unique: int, offset: int) -> memoryview:
        """A place in a file."""
        OFFSET_OUT.pack_into(self.out, 0, OFFSET_OUT.size, 0, unique, offset)
        return self._view[: OFFSET_OUT.size]

    def statfs(self, unique: int, found: os.statvfs_result) -> memoryview:
        """What is free."""
        STATFS_OUT.pack_into(
            self.out, 0, STATFS_OUT.size, 0, unique, found.f_blocks, found.f_bfree, found.f_bavail, found.f_files,
            found.f_ffree, found.f_bsize, found.f_namemax, found.f_frsize,
        )  # fmt: skip
        return self._view[: STATFS_OUT.size]


def _entry(answer: EntryReply, attr: Attr) -> tuple[int, ...]:
    name_s, attr_s = answer.name_timeout_s, answer.attr_timeout_s
    number = attr.number
    atime, mtime, ctime = attr.atime_ns, attr.mtime_ns, attr.ctime_ns
    return (
        number, 0, int(name_s), int(attr_s), _rest_ns(name_s), _rest_ns(attr_s),
        number, attr.size, attr.blocks, atime // _SECOND_NS, mtime // _SECOND_NS, ctime // _SECOND_NS,
        atime % _SECOND_NS, mtime % _SECOND_NS, ctime % _SECOND_NS,
        attr.mode, attr.nlink, attr.uid, attr.gid, attr.rdev & _DEVICE_BITS, _BLOCK_SIZE, 0,
    )  # fmt: skip


def _rest_ns(lifetime_s: float) -> int:
    return int(lifetime_s % 1 * 1e9)
