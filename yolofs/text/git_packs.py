"""Objects in git's packs (gitformat-pack(5)), read as bytes alone: no git is run, and nothing
that a pack says of itself is believed.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

MOST_DELTAS: Final = 50
"""How long a chain of deltas may be; git makes no longer ones unless told to."""
_INSTRUCTION_BYTES = 128
"""An instruction of a delta takes as long as this many bytes."""
_HEAD = b"\xfftOc\0\0\0\x02"
_FANOUT_AT = len(_HEAD)
_PACK_HEADS = (b"PACK\0\0\0\x02", b"PACK\0\0\0\x03")
_PACK_HEAD_BYTES = 12
_NAMES_AT = _FANOUT_AT + 256 * 4
_FAR = 1 << 31
"""Above it an offset of the index is the place of a longer one."""
_LAST_OFFSET = 1 << 62
_CHUNK_BYTES = 1 << 12
_MOST_HEAD_BYTES = 64
_COMMIT, _OFFSET_DELTA, _NAME_DELTA = 1, 6, 7
_TYPES = {_COMMIT: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}


class DamagedPackError(ValueError):
    """A pack or its index is none, or says what cannot be."""


class ReadingBudget:
    """How much may still be done to read packs, in bytes that are read or made: some kilobytes of
    deltas can make terabytes.
    """

    def __init__(self, most_bytes: int) -> None:
        self._left = most_bytes

    def take(self, count: int) -> None:
        """Take ``count`` bytes of it.

        Raises:
            DamagedPackError: so much is not left.
        """
        self._left -= count
        if self._left < 0:
            raise DamagedPackError("it takes too much work")


class PackedObject(NamedTuple):
    """An object as a pack has it."""

    type: bytes
    content: bytes


class PackIndex:
    """The index of a pack, version 2: which objects are in it, and where."""

    def __init__(self, fd: int, name_bytes: int) -> None:
        """Read from an open file, which stays the caller's; names have 20 or 32 bytes.

        Raises:
            DamagedPackError: it is no such index.
            OSError: it cannot be read.
        """
        self._fd = fd
        self._width = name_bytes
        if _read(fd, 0, len(_HEAD)) != _HEAD:
            raise DamagedPackError("no index of version 2")
        fanout = _read(fd, _FANOUT_AT, 256 * 4)
        self._fanout = [int.from_bytes(fanout[at : at + 4]) for at in range(0, len(fanout), 4)]
        if self._fanout != sorted(self._fanout):
            raise DamagedPackError("the numbers of objects do not grow")
        self.count = self._fanout[-1]
        """How many objects it lists."""

    def is_of(self, pack: int) -> bool:
        """Tell whether an open pack is the one that this lists, by all that git looks at before it
        uses it.

        Raises:
            DamagedPackError: one of them is cut off.
            OSError: one of them cannot be read.
        """
        lists_end = os.fstat(self._fd).st_size - 2 * self._width  # then the sum of the pack, and its own
        pack_end = os.fstat(pack).st_size - self._width
        places = lists_end - _NAMES_AT - self.count * (self._width + 8)
        head = _read(pack, 0, _PACK_HEAD_BYTES)
        return (
            places >= 0
            and places % 8 == 0
            and pack_end >= _PACK_HEAD_BYTES
            and head.startswith(_PACK_HEADS)
            and head.endswith(self.count.to_bytes(4))
            and _read(pack, pack_end, self._width) == _read(self._fd, lists_end, self._width)
        )

    def offset(self, name: bytes) -> int | None:
        """Return where in the pack an object begins, None if it is not in it.

        Raises:
            DamagedPackError: the index is cut off.
            OSError: it cannot be read.
        """
        low, high = self._fanout[name[0] - 1] if name[0] else 0, self._fanout[name[0]]
        while low < high:
            middle = (low + high) // 2
            found = _read(self._fd, _NAMES_AT + middle * self._width, self._width)
            if found == name:
                return self._offset_at(middle)
            low, high = (middle + 1, high) if found < name else (low, middle)
        return None

    def names(self) -> Iterator[bytes]:
        """Yield the names of all objects that it lists.

        Raises:
            DamagedPackError: the index is cut off.
            OSError: it cannot be read.
        """
        for number in range(self.count):
            yield _read(self._fd, _NAMES_AT + number * self._width, self._width)

    def _offset_at(self, number: int) -> int:
        offsets_at = _NAMES_AT + self.count * (self._width + 4)  # after the names, and a CRC of each
        offset = int.from_bytes(_read(self._fd, offsets_at + number * 4, 4))
        if offset < _FAR:
            return offset
        return int.from_bytes(_read(self._fd, offsets_at + self.count * 4 + (offset - _FAR) * 8, 8))


class Pack:
    """A pack, and its index."""

    def __init__(self, index: PackIndex, fd: int, name_bytes: int, work: ReadingBudget) -> None:
        """Read from an open file, which stays the caller's; packs may share their ``work``.

        Raises:
            DamagedPackError: it is not the pack of that index: git would not use it, either.
            OSError: it cannot be read.
        """
        if not index.is_of(fd):
            raise DamagedPackError("a pack and its index do not belong together")
        self._index = index
        self._work = work
        self._fd = fd
        self._width = name_bytes

    def find(self, name: bytes, most_bytes: int) -> PackedObject | None:
        """Return an object, None if it is not in the pack; ``name`` is binary.

        Raises:
            DamagedPackError: what is there is damaged, has more than ``most_bytes``, or takes more
                work than is left.
            OSError: it cannot be read.
        """
        offset = self._index.offset(name)
        return self._at(offset, most_bytes, MOST_DELTAS) if offset is not None else None

    def _at(self, offset: int, most_bytes: int, deltas: int) -> PackedObject:
        kind, size, at = self._head(offset)
        if size > most_bytes or not deltas:
            raise DamagedPackError("too large, or too long a chain of deltas")
        if kind in _TYPES:
            return PackedObject(_TYPES[kind], self._inflated(at, size))
        if kind == _OFFSET_DELTA:
            back, at = self._distance(at)
            base = offset - back if 0 < back < offset else None
        elif kind == _NAME_DELTA:
            base, at = self._index.offset(_read(self._fd, at, self._width)), at + self._width
        else:
            raise DamagedPackError("an object of no known type")
        if base is None:
            raise DamagedPackError("what a delta stands on is not there")
        below = self._at(base, most_bytes, deltas - 1)
        return PackedObject(below.type, patched(below.content, self._inflated(at, size), most_bytes, self._work))

    def _head(self, offset: int) -> tuple[int, int, int]:
        """Return the type and the size of what begins at an offset, and where its data begins."""
        head = _pread(self._fd, _MOST_HEAD_BYTES, offset)
        if not head:
            raise DamagedPackError("an offset beyond the end")
        size, rest = _number(head[1:], shift=4) if head[0] & 0x80 else (0, head[1:])
        return head[0] >> 4 & 7, size | head[0] & 15, offset + len(head) - len(rest)

    def _distance(self, at: int) -> tuple[int, int]:
        """Return how far before a delta the object begins that it stands on, and where its data
        begins.
        """
        read = _pread(self._fd, _MOST_HEAD_BYTES, at)
        distance = -1
        for length, byte in enumerate(read, 1):
            distance = (distance + 1) << 7 | byte & 0x7F
            if not byte & 0x80:
                return distance, at + length
        raise DamagedPackError("a number without an end")

    def _inflated(self, at: int, size: int) -> bytes:
        inflater, content = zlib.decompressobj(), b""
        while len(content) < size and not inflater.eof:
            read = _pread(self._fd, _CHUNK_BYTES, at)
            at += len(read)
            self._work.take(len(read))
            try:
                content += inflater.decompress(read, size - len(content))
            except zlib.error as error:
                raise DamagedPackError(str(error)) from None
            if not read:
                break
        if len(content) != size:
            raise DamagedPackError("an object is cut off")
        self._work.take(size)
        return content


def patched(base: bytes, delta: bytes, most_bytes: int, work: ReadingBudget) -> bytes:
    """Return what a delta makes of its base.

    Raises:
        DamagedPackError: it does not fit, makes more than ``most_bytes``, or takes more work than
            is left.
    """
    base_size, delta = _number(delta)
    size, delta = _number(delta)
    if base_size != len(base) or size > most_bytes:
        raise DamagedPackError("a delta does not fit")
    pieces: list[bytes] = []
    length, at = 0, 0
    while at < len(delta) and length <= size:
        code = delta[at]
        at += 1
        work.take(_INSTRUCTION_BYTES)
        if code & 0x80:  # copy from the base: seven bits tell which bytes of offset and length follow
            values = []
            for bits in (range(4), range(4, 7)):
                value = 0
                for place, bit in enumerate(bits):
                    if code >> bit & 1:
                        value |= int.from_bytes(delta[at : at + 1]) << 8 * place
                        at += 1
                values.append(value)
            start, count = values[0], values[1] or 0x10000
            piece = base[start : start + count]
        else:
            count = code
            piece = delta[at : at + count]
            at += count
        if not count or len(piece) != count:
            raise DamagedPackError("a delta goes beyond its end")
        pieces.append(piece)
        length += count
    if length != size:
        raise DamagedPackError("a delta has another length than it says")
    return b"".join(pieces)


def _number(data: bytes, *, shift: int = 0) -> tuple[int, bytes]:
    """Return the number that some bytes begin with, its lowest seven bits first, and the rest."""
    value = 0
    for length, byte in enumerate(data[:10], 1):
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, data[length:]
    raise DamagedPackError("a number without an end")


def _pread(fd: int, count: int, at: int) -> bytes:
    """Read as pread(2); what lies where no file can reach is not there."""
    return os.pread(fd, count, at) if at <= _LAST_OFFSET else b""


def _read(fd: int, at: int, count: int) -> bytes:
    found = _pread(fd, count, at)
    if len(found) != count:
        raise DamagedPackError("it is cut off")
    return found
