"""Copies of base files as they were when the view took them over: what a merge starts from
(``docs/design/merging.md``).

Texts are kept, for merges, and indexes of git's, to tell whether the host has done more to them
than look.

One file, ``bases`` in the store, that is only appended to: 16 random bytes, then entries, each of
which begins with them again::

    key[16]  header length (4, big-endian)  content length (8)  CRC-32 of all but itself (4)
    header  content

The header is a :class:`Header` in MessagePack.  What a crash has torn off has no right checksum,
and is passed over.  Losing the file loses no work: what it would tell is not known then.

Content above 128 KiB shares its blocks with the base file (a reflink) if the disk can do that.
Then the header is made so long that the content begins at a block, and the content is not read.
Elsewhere it is copied.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple, TypeAlias

import msgspec

from yolofs.journal.records import Fingerprint
from yolofs.paths import RelPath
from yolofs.state.tree import Staged
from yolofs.store.copying import Metadata
from yolofs.store.store import BASES, NEW_BASES, Store
from yolofs.system.plain_files import is_there, open_plain
from yolofs.text.git_binary import is_binary
from yolofs.text.git_index_format import may_be_index

MOST_KEPT_BYTES = 4 << 20
"""Of a larger text nothing is kept, as nothing larger is merged."""
MOST_COPIED_BYTES = 1 << 20
"""Nor of one above this where blocks cannot be shared: others wait for a copy, which takes a
millisecond.
"""
_LEAST_SHARED_BYTES = 128 << 10
"""Content below this size is copied, as that is faster than sharing blocks."""
_BLOCK_BYTES = 4096
"""What is shared begins at a multiple of that; a disk of larger blocks refuses, and it is
copied.
"""
_FICLONERANGE = 0x4020940D  # _IOW(0x94, 13, struct file_clone_range) of linux/fs.h
_CLONE_RANGE = struct.Struct("qQQQ")
_SHORT_PADDING_BYTES = 256
"""Longer ones take one byte more of MessagePack to say how long they are."""
_SNIFFED_BYTES = 8192
_MOST_FILE_BYTES = 1 << 30
_KEY_BYTES = 16
_LENGTHS = struct.Struct(">IQI")
_START_BYTES = _KEY_BYTES + _LENGTHS.size
_MOST_HEADER_BYTES = 1 << 16
_CHUNK_BYTES = 1 << 20


class Owned(msgspec.Struct, frozen=True, array_like=True):
    """The metadata of a base file that a merge looks at."""

    mode: int
    """As ``st_mode``."""
    uid: int
    gid: int
    xattrs: bytes
    """A digest of the extended attributes, empty if there are none."""


class Header(msgspec.Struct, frozen=True, array_like=True):
    """What a base file was, or (with ``like``) that it is known by another name, too."""

    path: RelPath
    """In base."""
    known_by: bytes
    """Which staged file was made of it, or took its place: see :func:`known_by`."""
    owned: Owned | None = None
    like: bytes = b""
    """Of the same path what is known by this."""
    is_shared: bool = False
    """Whether the content shares blocks with what base had, and so has not been read, and is in no
    checksum.
    """
    padding: bytes = b""


Extra: TypeAlias = tuple[tuple[str, bytes], ...]
"""Further options of a record."""
XATTRS = "xattrs"
"""The option of a record that tells what extended attributes a base file had."""


class KeptBase(NamedTuple):
    """What was kept of a base file."""

    owned: Owned
    content: bytes


def owned(metadata: Metadata) -> Owned:
    """Return what is kept of some metadata."""
    st = metadata.st
    return Owned(st.st_mode, st.st_uid, st.st_gid, digest_of_xattrs(metadata.xattrs))


def xattrs_option(xattrs: Collection[tuple[str, bytes]]) -> Extra:
    """Return the option :data:`XATTRS` for extended attributes; none if there are none."""
    digest = digest_of_xattrs(xattrs)
    return ((XATTRS, digest.hex().encode()),) if digest else ()


def recorded_xattrs(extra: Extra) -> bytes:
    """Return the digest that :func:`xattrs_option` told, empty if there is no such option, or one
    that is none.
    """
    try:
        return bytes.fromhex(dict(extra).get(XATTRS, b"").decode("ascii"))
    except ValueError:
        return b""


def digest_of_xattrs(xattrs: Collection[tuple[str, bytes]]) -> bytes:
    """Return a digest of extended attributes, empty if there are none."""
    if not xattrs:
        return b""
    fields = [os.fsencode(name) + b"\0%d\0" % len(value) + value for name, value in sorted(xattrs)]
    import hashlib  # takes long, and status wants only the size of what is kept

    return hashlib.blake2b(b"".join(fields), digest_size=16).digest()


def known_by(staged: Staged) -> bytes:
    """Return the id of a staged file, the same over all its versions: its fingerprint, or its key
    if it has none.
    """
    return known_by_fingerprint(staged.base) if staged.base is not None else b"#%b" % str(staged.key).encode()


def known_by_fingerprint(base: Fingerprint) -> bytes:
    """Return the id of a file that is copied up from a base file with this fingerprint."""
    return b"%d:%d:%d" % (base.mtime_ns, base.size, base.ino)


class KeptBases:
    """Appends what base files are.  One process at a time does; what cannot be kept is no error."""

    def __init__(self, store: Store) -> None:
        """Open nothing yet."""
        self._path = path_in(store)
        self._fd = -1
        self._key = b""
        self._size = 0
        self._may_share = True

    def close(self) -> None:
        """Close the file; the next entry opens it anew."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def keep(self, path: RelPath, known: bytes, metadata: Metadata, fd: int, *, is_copy: bool = False) -> None:
        """Keep what the base file ``path`` is, of which ``fd`` is open and ``metadata`` read: a
        text or an index.

        Nothing is kept if it has changed since.  With ``is_copy`` the descriptor is of a copy that
        is staged.  Blocks while up to :data:`MOST_COPIED_BYTES` are copied.
        """
        size = metadata.st.st_size
        if size > MOST_KEPT_BYTES:
            return
        header = Header(path, known, owned(metadata))
        with contextlib.suppress(OSError):
            if size > _LEAST_SHARED_BYTES and (
                not _is_of_use(path, os.pread(fd, _SNIFFED_BYTES, 0))
                or self._share(header, metadata.st, fd, is_copy=is_copy)
            ):
                return
            content = os.pread(fd, size + 1, 0) if size <= MOST_COPIED_BYTES else b""
            is_whole = len(content) == size and (is_copy or _is_unchanged(fd, metadata.st))
            if is_whole and _is_of_use(path, content):
                self._append(header, content)

    def also_known(self, path: RelPath, known: bytes, like: bytes) -> None:
        """Note that a kept base counts for another staged file, too, which replaces the first."""
        with contextlib.suppress(OSError):
            self._append(Header(path, known, like=like), b"")

    def add(self, path: RelPath, known: bytes, kept: KeptBase) -> None:
        """Keep what has been read of a base file.

        Raises:
            OSError: it cannot be written.
        """
        self._append(Header(path, known, kept.owned), kept.content)

    def _append(self, header: Header, content: bytes) -> None:
        self._open()
        if self._size > _MOST_FILE_BYTES:
            return
        text = msgspec.msgpack.encode(header)
        start = _start(self._key, text, len(content), content)
        try:  # and no context manager, which takes as long as the write
            self._write(start + text, content)
        except OSError:
            os.ftruncate(self._fd, self._size)
            raise
        self._size += _START_BYTES + len(text) + len(content)

    def _write(self, *buffers: bytes) -> None:
        if os.pwritev(self._fd, buffers, self._size) != sum(map(len, buffers)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _share(self, header: Header, st: os.stat_result, fd: int, *, is_copy: bool) -> bool:
        """Append an entry whose content shares blocks with a file of the same disk; return whether
        that is possible.

        Raises:
            OSError: the disk is full.
        """
        self._open()
        if not self._may_share or os.fstat(self._fd).st_dev != st.st_dev or self._size > _MOST_FILE_BYTES:
            return False
        entry = _encode_shared(self._key, header, st.st_size, self._size)
        end = self._size + len(entry) + st.st_size
        with self._cut_on_error():
            self._write(entry)
            try:
                fcntl.ioctl(self._fd, _FICLONERANGE, _CLONE_RANGE.pack(fd, 0, 0, self._size + len(entry)))
            except OSError:  # whatever it is, the content may still be copied
                self._may_share = False
                os.ftruncate(self._fd, self._size)
                return False
            if os.fstat(self._fd).st_size != end or not (is_copy or _is_unchanged(fd, st)):
                raise OSError(errno.ESTALE, "it has changed by now")
        self._size = end
        return True

    @contextlib.contextmanager
    def _cut_on_error(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            os.ftruncate(self._fd, self._size)
            raise

    def _open(self) -> None:
        if self._fd >= 0:
            return
        fd = open_plain(self._path, os.O_RDWR | os.O_CREAT)  # no O_APPEND: by it no blocks can be shared
        try:
            self._size = os.fstat(fd).st_size
            self._key = os.pread(fd, _KEY_BYTES, 0)
            if len(self._key) < _KEY_BYTES:
                os.ftruncate(fd, 0)
                self._key = os.urandom(_KEY_BYTES)
                self._size = os.pwrite(fd, self._key, 0)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd


def _is_unchanged(fd: int, st: os.stat_result) -> bool:
    """Tell whether an open file is as it was when it had the attributes ``st``."""
    now = os.fstat(fd)
    is_same_file = now.st_ino == st.st_ino and now.st_size == st.st_size
    return is_same_file and now.st_mtime_ns == st.st_mtime_ns and now.st_ctime_ns == st.st_ctime_ns


def _is_of_use(path: RelPath, head: bytes) -> bool:
    """Tell from its first bytes whether a file is one that is kept: a text, for merges, or an index
    of git's.
    """
    return not is_binary(head) or may_be_index(path, head)


def path_in(store: Store) -> bytes:
    """Return where the file lies."""
    return os.path.join(store.directory, BASES)


def find_kept(directory: bytes, is_wanted: Callable[[RelPath, bytes], bool]) -> dict[tuple[RelPath, bytes], KeptBase]:
    """Return what is kept of base files, by path and by the key of the entry, if that is wanted; of
    several the last.

    ``directory`` is the store's, or that of the commit that ended a journal.

    Blocks while the headers of all are read.
    """
    return dict(_found(os.path.join(directory, BASES), is_wanted))


def _found(
    path: bytes, is_wanted: Callable[[RelPath, bytes], bool]
) -> Iterator[tuple[tuple[RelPath, bytes], KeptBase]]:
    with _reading(path) as fd:
        if fd < 0:
            return
        places: dict[tuple[RelPath, bytes], tuple[Header, int, int]] = {}
        for header, start, end in _entries(fd):
            places[header.path, header.known_by] = header, start, end
        for place in [place for place in places if is_wanted(*place)]:
            kept = _follow(fd, places, place)
            if kept is not None:
                yield place, kept


def put_in_archive(directory: bytes, archive: bytes) -> None:
    """Have the directory of a commit keep all that the store in ``directory`` keeps of base files,
    if it does not yet.
    """
    with contextlib.suppress(OSError):  # without it less can be told of what ended
        os.link(os.path.join(directory, BASES), os.path.join(archive, BASES))


def retain(store: Store, staged: Iterable[Staged]) -> None:
    """Drop all kept bases but those of some staged files; this follows the end of a journal.

    Raises:
        OSError: it cannot be written anew.
    """
    path = path_in(store)
    if not is_there(path):
        return
    left = frozenset(map(known_by, staged))
    new = KeptBases(store)
    new._path = os.path.join(store.directory, NEW_BASES)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new._path)
    try:
        for (base_path, known), one in _found(path, lambda _, known: known in left) if left else ():
            new._append(Header(base_path, known, one.owned), one.content)
    finally:
        new.close()
    with contextlib.suppress(FileNotFoundError):
        if new._size:
            os.rename(new._path, path)
        else:
            os.unlink(path)


def _encode_shared(key: bytes, header: Header, size: int, position: int) -> bytes:
    """Return all of an entry at a position but its content, which is to begin at a block."""
    header = msgspec.structs.replace(header, is_shared=True)
    unpadded = len(msgspec.msgpack.encode(header))
    padding = -(position + _START_BYTES + unpadded) % _BLOCK_BYTES
    if padding <= _SHORT_PADDING_BYTES:
        padding += _BLOCK_BYTES
    text = msgspec.msgpack.encode(msgspec.structs.replace(header, padding=b"\0" * (padding - 1)))
    return _start(key, text, size, b"") + text


def _start(key: bytes, text: bytes, size: int, checked: bytes) -> bytes:
    """Return what an entry begins with; ``checked`` is the content, as far as the checksum is to
    cover it.
    """
    return key + _LENGTHS.pack(len(text), size, zlib.crc32(checked, zlib.crc32(text, size)))


@contextlib.contextmanager
def _reading(path: bytes) -> Iterator[int]:
    try:
        fd = open_plain(path, os.O_RDONLY)
    except OSError:
        yield -1
        return
    try:
        yield fd
    finally:
        os.close(fd)


def _entries(fd: int) -> Iterator[tuple[Header, int, int]]:
    """Yield the header of each entry, and where the entry begins and ends; what is not shared has
    not been checked.
    """
    key, size = os.pread(fd, _KEY_BYTES, 0), os.fstat(fd).st_size
    position = _KEY_BYTES
    while 0 <= position < size and len(key) == _KEY_BYTES:
        header, end = _entry_at(fd, key, position)
        is_followed = end == size or os.pread(fd, _KEY_BYTES, end) == key
        if header is not None and (is_followed or not header.is_shared):  # the checksum tells of the others
            yield header, position, end
        if header is not None and is_followed:
            position = end
        else:  # this one is torn, or the next: that begins anew
            position = _find(fd, key, position + 1, size)


def _entry_at(fd: int, key: bytes, position: int) -> tuple[Header | None, int]:
    start = os.pread(fd, _START_BYTES + 512, position)
    if len(start) < _START_BYTES or not start.startswith(key):
        return None, 0
    header_bytes, content_bytes, crc = _LENGTHS.unpack_from(start, _KEY_BYTES)
    text = start[_START_BYTES : _START_BYTES + header_bytes]
    if header_bytes > _MOST_HEADER_BYTES:
        return None, 0
    if len(text) < header_bytes:
        text = os.pread(fd, header_bytes, position + _START_BYTES)
    try:
        header = msgspec.msgpack.decode(text, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None, 0
    if header.is_shared and zlib.crc32(text, content_bytes) != crc:
        return None, 0
    return header, position + _START_BYTES + header_bytes + content_bytes


def _find(fd: int, key: bytes, position: int, size: int) -> int:
    """Return where the next entry begins, -1 if there is none."""
    while position < size:
        chunk = os.pread(fd, _CHUNK_BYTES, position)
        at = chunk.find(key)
        if at >= 0:
            return position + at
        if len(chunk) < _KEY_BYTES:
            return -1
        position += len(chunk) - _KEY_BYTES + 1
    return -1


def _follow(
    fd: int, places: dict[tuple[RelPath, bytes], tuple[Header, int, int]], place: tuple[RelPath, bytes]
) -> KeptBase | None:
    """Return the content kept for an entry, or for the one that it refers to; None if it is not
    whole.
    """
    seen = set()
    while place in places and place not in seen:
        seen.add(place)
        header, start, end = places[place]
        if not header.like:
            return _content(fd, header, start, end)
        place = (header.path, header.like)
    return None


def _content(fd: int, header: Header, start: int, end: int) -> KeptBase | None:
    if end - start > _START_BYTES + _MOST_HEADER_BYTES + (1 << 23) or header.owned is None:
        return None
    entry = os.pread(fd, end - start, start)
    if len(entry) < end - start:
        return None
    header_bytes, content_bytes, crc = _LENGTHS.unpack_from(entry, _KEY_BYTES)
    body = memoryview(entry)[_START_BYTES:]
    if not header.is_shared and zlib.crc32(body, content_bytes) != crc:
        return None
    return KeptBase(header.owned, bytes(body[header_bytes:]))
