"""What a patch is about, file by file: pairs of versions, and what they hold."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

import msgspec

from yolofs.changes.changes import Change, ChangeKind, Side
from yolofs.changes.patch_notes import Notes, is_refused_by_git
from yolofs.paths import RelPath, display, is_below
from yolofs.store.store import Store
from yolofs.text import git_binary, line_diff

MOST_BYTES = (1 << 30) - (1 << 20)
"""What is larger is left out: git (from 2.38 on) takes no patch of more than 1,023 MiB, and a file
of 15 TiB costs whoever makes it nothing."""


class PatchSide(msgspec.Struct, frozen=True):
    """One side of a file in the patch: where it is, relative to the patch's prefix, and what."""

    path: bytes
    side: Side

    @property
    def mode(self) -> bytes:
        """The mode as git has it."""
        if self.side.type == stat.S_IFLNK:
            return b"120000"
        return b"100755" if self.side.mode & 0o100 else b"100644"


class Pair(msgspec.Struct, frozen=True):
    """A file in the patch: both versions, or one alone if it is added or deleted."""

    old: PatchSide | None
    new: PatchSide | None
    has_other_content: bool


class Content(msgspec.Struct, frozen=True):
    """What a version holds; ``data`` is None if it is too large for the memory."""

    name: bytes
    """git's, 40 hex digits."""
    size: int
    data: bytes | None
    side: Side | None

    @property
    def is_binary(self) -> bool:
        """Whether a patch has it as binary: a NUL is near its start, or it is too large."""
        return self.data is None or git_binary.is_binary(self.data)

    def chunks(self, store: Store | None) -> Iterator[bytes]:
        """Yield the content piece by piece.

        Raises:
            OSError: it cannot be read, or has become shorter.
        """
        if self.data is not None:
            yield self.data
            return
        assert self.side is not None
        fd = self.side.open(store)
        try:
            yield from git_binary.read_chunks(fd, self.size)
        finally:
            os.close(fd)


NOTHING = Content(git_binary.NO_BLOB, 0, b"", None)


class _TooLargeError(Exception):
    """A file is left out; the argument is the note that says so."""


class ComparedPair(msgspec.Struct, frozen=True):
    """A pair with what both versions hold."""

    pair: Pair
    old: Content
    new: Content
    texts: line_diff.Texts | None
    """None if they are the same, or one is binary."""

    @property
    def differs(self) -> bool:
        """Whether there is a difference to show; none is one that was to be ignored."""
        if self.texts is None or self.pair.old is None or self.pair.new is None:
            return self.old.name != self.new.name
        return any(self.texts.removed) or any(self.texts.added)


class Reading(msgspec.Struct, frozen=True):
    """How versions are read and compared."""

    store: Store | None = None
    """With it store inodes are read even where their own mode forbids it."""
    max_text_bytes: int = git_binary.MAX_TEXT_BYTES
    ignores_space: bool = False
    """Whether lines that differ in white space alone are equal."""

    def compare(self, pair: Pair, notes: Notes) -> ComparedPair | None:
        """Return what a pair holds; None if it is left out, which is noted."""
        try:
            old, new = (self._read(pair, version) for version in (pair.old, pair.new))
        except OSError as error:
            last = pair.new or pair.old
            assert last is not None
            notes.add(f"{display(last.path)} is left out, as it cannot be read: {error.strerror or error}")
            return None
        except _TooLargeError as error:
            notes.add(str(error))
            return None
        texts = None
        if old.name != new.name and not old.is_binary and not new.is_binary:
            assert old.data is not None
            assert new.data is not None
            texts = line_diff.compare_texts(old.data, new.data, ignores_space=self.ignores_space)
        return ComparedPair(pair, old, new, texts)

    def _read(self, pair: Pair, version: PatchSide | None) -> Content:
        """Return the content of one version, or nothing where both have the same."""
        if version is None or not (pair.has_other_content or is_symlink(pair)):
            return NOTHING
        side = version.side
        if side.type == stat.S_IFLNK:
            return _in_memory(side.target())
        fd = side.open(self.store)
        try:
            size = os.fstat(fd).st_size
            if size > MOST_BYTES:
                gib = f"{size / (1 << 30):,.1f} GiB"
                raise _TooLargeError(
                    f"{display(version.path)} is left out, as it has {gib}: no patch takes more than 1"
                )
            if size > self.max_text_bytes:
                return Content(git_binary.hash_blob_of(fd, size), size, None, side)
            return _in_memory(b"".join(git_binary.read_chunks(fd, size)))
        finally:
            os.close(fd)


def pairs_of(changes: Iterable[Change], prefix: RelPath, notes: Notes) -> list[Pair]:
    """Return the files of a patch in their order, deletions first, and note what git has no words
    for.

    Raises:
        ValueError: a change stands for all that is below a renamed directory.
    """
    pairs: list[Pair] = []
    for change in changes:
        if change.is_subtree:
            raise ValueError(f"the files below {display(change.path)} are not listed: compare with expand_renames=True")
        pairs.extend(_pairs(change, prefix, notes))
    pairs.sort(key=_is_kept)
    return pairs


def _is_kept(pair: Pair) -> bool:
    return pair.new is not None


def _pairs(change: Change, prefix: RelPath, notes: Notes) -> Iterator[Pair]:
    """Yield what git can say about a change, and note what it cannot."""
    old = _version(change.old_path or change.path, change.old, prefix)
    new = _version(change.path, change.new, prefix)
    notes.add_change(
        change, has_old=old is not None, has_new=new is not None, is_outside=not _is_inside(change, prefix)
    )
    if change.kind is ChangeKind.TYPE:
        if old is not None:
            yield Pair(old, None, True)
        if new is not None:
            yield Pair(None, new, True)
    elif old is not None or new is not None:
        yield Pair(old, new, change.content or old is None or new is None)


def _is_inside(change: Change, prefix: RelPath) -> bool:
    return is_below(change.path, prefix) or (change.old_path is not None and is_below(change.old_path, prefix))


def _version(path: RelPath, side: Side | None, prefix: RelPath) -> PatchSide | None:
    """Return a side as git sees it, None if it does not."""
    if side is None or side.type not in (stat.S_IFREG, stat.S_IFLNK) or not is_below(path, prefix):
        return None
    inside = path[len(prefix) + 1 :] if prefix else path
    if is_refused_by_git(inside, is_symlink=side.type == stat.S_IFLNK):
        return None
    return PatchSide(inside, side)


def is_symlink(pair: Pair) -> bool:
    """Tell whether it is a symlink.  Symlinks always have an index line.  If one is renamed and a
    directory takes its place, only that line tells git that what it puts into the directory is not
    beyond a symlink.
    """
    version = pair.new or pair.old
    return version is not None and version.side.type == stat.S_IFLNK


def _in_memory(data: bytes) -> Content:
    return Content(git_binary.hash_blob(data), len(data), data, None)
