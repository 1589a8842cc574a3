"""A change as hunks: the smallest parts of it that can be committed, dropped or edited by
themselves.

A text that differs has one hunk for each run of lines that differ, without context.  Each fact
about a file as a whole (added, deleted, renamed, its mode …) is a hunk, too.
:mod:`yolofs.changes.picks` says what can be picked of them, and what a text is with just these;
``docs/design/review.md`` has the reasons.

A hunk is known by its *id*: a digest over its path, what it is about in both versions, and its
range.  Whoever names an id means exactly what was seen: a file that has changed since has other
ids, and the old ones are refused.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from enum import Enum

import msgspec

from yolofs.changes.changes import Aspect, Change, ChangeKind, Side
from yolofs.changes.contents import digest_of
from yolofs.paths import RelPath
from yolofs.store.interfaces import StoreFiles
from yolofs.text import git_binary, line_diff

ID_CHARS = 16
"""How long an id is, in hex digits."""
MAX_DIGEST_BYTES = 64 << 20
"""A version with more data, holes left out, is known by its size, times and place, as reading all
of it takes longer than a look may.

Its ctime is among these: a program in the view can set no other one.
"""


class HunkKind(Enum):
    """What a hunk is about; the value is the word that users see."""

    TEXT = "text"
    """Lines of a text."""
    ADDED = "added"
    """Something is there that was not: of a text, its lines can be picked."""
    DELETED = "deleted"
    RENAMED = "renamed"
    TYPE = "type"
    """Another type of file is in its place, or another device."""
    MODE = "mode"
    OWNER = "owner"
    """User or group."""
    XATTRS = "xattrs"
    """Extended attributes, ACLs among them."""
    TIME = "time"
    """The mtime, where the content is the same."""
    TARGET = "target"
    """Where a symlink leads."""
    BINARY = "binary"
    """The content of a file that is no text, or too large to be compared line by line."""


_OF_ASPECTS = {
    Aspect.MODE: HunkKind.MODE,
    Aspect.OWNER: HunkKind.OWNER,
    Aspect.XATTRS: HunkKind.XATTRS,
    Aspect.TIME: HunkKind.TIME,
}
PLACES = frozenset({HunkKind.ADDED, HunkKind.DELETED, HunkKind.RENAMED, HunkKind.TYPE})
"""These kinds are about a name and its file, not about content or metadata."""


class Hunk(msgspec.Struct, frozen=True):
    """One part of a change."""

    id: str
    """:data:`ID_CHARS` hex digits."""
    kind: HunkKind
    path: RelPath
    """In the new state; of ``deleted`` in the old one."""
    old_path: RelPath | None = None
    """In the old state, where that is another one."""
    old_start: int = 0
    """Of lines: how many lines of the old text stand before the hunk."""
    new_start: int = 0
    """The same of the new text."""
    old_lines: tuple[bytes, ...] = ()
    """The lines that go, each with its line end; the last one of a text may have none."""
    new_lines: tuple[bytes, ...] = ()
    """The lines that come."""
    old: str = ""
    """In words, what it was (``0644``, ``17:4``, a symlink's target with bytes that are no UTF-8 as
    U+FFFD).
    """
    new: str = ""
    """What it is now."""

    @property
    def line_count(self) -> int:
        """How many changed lines it has: those that go are counted first, from 1, then those that
        come.
        """
        return len(self.old_lines) + len(self.new_lines)

    @property
    def is_splittable(self) -> bool:
        """Whether single lines of it can be picked: of ``text`` and of an added text."""
        return self.kind in (HunkKind.TEXT, HunkKind.ADDED) and self.line_count > 1


class FileHunks(msgspec.Struct, frozen=True):
    """A change and its hunks, in the order in which they are shown.

    What lies where comes first, then content, then metadata.
    """

    change: Change
    hunks: tuple[Hunk, ...]

    @property
    def path(self) -> RelPath:
        """The path in the new state; of what was deleted, in the old one."""
        return self.change.path


def hunks_of(change: Change, store: StoreFiles, *, max_text_bytes: int = git_binary.MAX_TEXT_BYTES) -> FileHunks:
    """Return the hunks of a change from ``compare(..., expand_renames=False)``.

    Blocks while it reads both versions.  What cannot be read counts as binary, known by its size,
    time and place.
    """
    return FileHunks(change, tuple(_HunkMaker(change, store, max_text_bytes).hunks()))


def read_text(side: Side | None, store: StoreFiles, *, max_text_bytes: int = git_binary.MAX_TEXT_BYTES) -> bytes | None:
    """Return the content of a regular file, None if it is no text or too large; of no file it is
    empty.

    Raises:
        OSError: it cannot be read.
    """
    if side is None:
        return b""
    if side.type != stat.S_IFREG:
        return None
    fd = side.open(store)
    try:
        size = os.fstat(fd).st_size
        if size > max_text_bytes:
            return None
        data = b"".join(git_binary.read_chunks(fd, size))
    finally:
        os.close(fd)
    return None if git_binary.is_binary(data) else data


class _HunkMaker:
    """Makes the hunks of one change."""

    def __init__(self, change: Change, store: StoreFiles, max_text_bytes: int) -> None:
        self._change = change
        self._store = store
        self._max_text_bytes = max_text_bytes

    def hunks(self) -> Iterator[Hunk]:
        change = self._change
        match change.kind:
            case ChangeKind.ADDED:
                yield self._added()
                return
            case ChangeKind.DELETED:
                yield self._deleted()
                return
            case ChangeKind.TYPE:
                yield self._whole(HunkKind.TYPE, *(self._whole_side(side) for side in (change.old, change.new)))
                return
            case ChangeKind.RENAMED:
                yield self._whole(HunkKind.RENAMED, b"", b"")
        if change.content:
            yield from self._content()
        for aspect in change.metadata:
            yield self._metadata(_OF_ASPECTS[aspect])

    # ---- what lies where

    def _added(self) -> Hunk:
        side = self._change.new
        text = self._text(side)
        lines = tuple(line_diff.split_lines(text)) if text is not None else ()
        return self._whole(HunkKind.ADDED, b"", self._whole_side(side), new_lines=lines)

    def _deleted(self) -> Hunk:
        side = self._change.old
        text = self._text(side)
        lines = tuple(line_diff.split_lines(text)) if text is not None else ()
        return self._whole(HunkKind.DELETED, self._whole_side(side), b"", old_lines=lines)

    def _whole_side(self, side: Side | None) -> bytes:
        """Return all that is told of a file that comes or goes: its type, its content and its
        metadata.
        """
        assert side is not None
        facts = b"%o %o %d %d %d " % (side.type, side.mode, side.uid, side.gid, side.rdev)
        return facts + self._digest(side) + _xattrs(side)

    # ---- content

    def _content(self) -> Iterator[Hunk]:
        old, new = self._change.old, self._change.new
        assert old is not None
        assert new is not None
        if new.type == stat.S_IFLNK:
            yield self._target(old, new)
            return
        if new.type != stat.S_IFREG:
            yield self._whole(HunkKind.TYPE, self._whole_side(old), self._whole_side(new))
            return
        before, after = self._text(old), self._text(new)
        if before is None or after is None:
            yield self._whole(HunkKind.BINARY, self._digest(old), self._digest(new))
            return
        versions = _digest_of(before), _digest_of(after)
        texts = line_diff.compare_texts(before, after)
        for block in line_diff.blocks(texts):
            yield self._whole(
                HunkKind.TEXT,
                *versions,
                old_start=block.old_start,
                new_start=block.new_start,
                old_lines=tuple(texts.old[block.old_start : block.old_end]),
                new_lines=tuple(texts.new[block.new_start : block.new_end]),
            )

    def _target(self, old: Side, new: Side) -> Hunk:
        targets = [_target_of(side) for side in (old, new)]
        return self._whole(HunkKind.TARGET, *targets, told=[target.decode(errors="replace") for target in targets])

    def _text(self, side: Side | None) -> bytes | None:
        if side is None or side.type != stat.S_IFREG:
            return None
        try:
            return read_text(side, self._store, max_text_bytes=self._max_text_bytes)
        except OSError:
            return None

    def _digest(self, side: Side) -> bytes:
        """Return what stands for a file's content."""
        if side.type == stat.S_IFLNK:
            return _target_of(side)
        if side.type != stat.S_IFREG:
            return b""
        try:
            fd = side.open(self._store)
        except OSError:
            return _place_of(side)
        try:
            digest = digest_of(fd, most_bytes=MAX_DIGEST_BYTES)
            return digest if digest is not None else _place_of(side) + b" %d" % os.fstat(fd).st_ctime_ns
        except OSError:
            return _place_of(side)
        finally:
            os.close(fd)

    # ---- metadata

    def _metadata(self, kind: HunkKind) -> Hunk:
        told = [_fact(kind, side) for side in (self._change.old, self._change.new) if side is not None]
        if kind is HunkKind.XATTRS:
            return self._whole(kind, *(_xattrs(side) for side in (self._change.old, self._change.new)))
        return self._whole(kind, *(fact.encode() for fact in told), told=told)

    def _whole(
        self,
        kind: HunkKind,
        old: bytes,
        new: bytes,
        *,
        told: list[str] | None = None,
        old_start: int = 0,
        new_start: int = 0,
        old_lines: tuple[bytes, ...] = (),
        new_lines: tuple[bytes, ...] = (),
    ) -> Hunk:
        """Return a hunk; ``old`` and ``new`` stand for what it is about in both versions."""
        change = self._change
        ranges = b"%d,%d %d,%d" % (old_start, len(old_lines), new_start, len(new_lines))
        facts = (change.path, change.old_path or change.path, old, new, kind.value.encode(), ranges)
        return Hunk(
            _id_of(facts),
            kind,
            change.path,
            change.old_path,
            old_start,
            new_start,
            old_lines,
            new_lines,
            *(told or ("", "")),
        )


def _id_of(facts: Iterable[bytes]) -> str:
    digest = hashlib.blake2b(digest_size=ID_CHARS // 2, person=b"yolofs hunk")
    for fact in facts:
        digest.update(b"%d:" % len(fact))
        digest.update(fact)
    return digest.hexdigest()


def _digest_of(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _place_of(side: Side) -> bytes:
    return b"%d %d %d %b" % (side.size, side.mtime_ns, side.ino or 0, side.data or b"")


def _target_of(side: Side) -> bytes:
    try:
        return side.target()
    except OSError:
        return _place_of(side)


def _fact(kind: HunkKind, side: Side) -> str:
    match kind:
        case HunkKind.MODE:
            return f"{side.mode:04o}"
        case HunkKind.OWNER:
            return f"{side.uid}:{side.gid}"
        case HunkKind.TIME:
            return str(side.mtime_ns)
    return ""


def _xattrs(side: Side | None) -> bytes:
    """Return what stands for a file's extended attributes."""
    assert side is not None
    try:
        metadata = side.metadata()
    except OSError:
        return b"?"
    return repr(sorted(metadata.xattrs)).encode() if metadata.xattrs else b""
