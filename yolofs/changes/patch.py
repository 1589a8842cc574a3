"""Changes as a patch that ``git apply`` takes, and notes about all that git has no words for.

The form is that of ``git diff --binary --full-index``.  What git knows is regular files (mode 644 or 755) and
symlinks; a directory is there when a file is in it.  ``git apply`` looks at all of a patch before it changes
anything: names that swap, chains and files that make way for directories are fine, as long as a name's deletion
comes before what takes its place.  So all deletions come first.  ``git apply --reverse`` is not as thorough (2.47
makes deleted files again with mode 644): the patch of the two states the other way round is.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from yolofs.changes.changes import Change, Kind, Side
from yolofs.changes.patch_notes import Notes, is_refused_by_git
from yolofs.paths import ROOT, RelPath, display, is_below, quote_c
from yolofs.store.store import Store
from yolofs.text import git_binary, line_diff

MAX_TEXT_BYTES = 16 << 20
"""Above this size a file is written as binary, and never held in memory as a whole."""

MOST_BYTES = (1 << 30) - (1 << 20)
"""What is larger is left out: git (from 2.38 on) takes no patch of more than 1,023 MiB, and a file of 15 TiB costs
whoever makes it nothing."""

Out: TypeAlias = Callable[[bytes], object]
"""Takes the patch piece by piece, as the ``write`` of a binary file does."""


class Version(NamedTuple):
    """One side of a file in the patch: where it is, relative to the patch's prefix, and what."""

    path: bytes
    side: Side

    @property
    def mode(self) -> bytes:
        """The mode as git has it."""
        if self.side.type == stat.S_IFLNK:
            return b"120000"
        return b"100755" if self.side.mode & 0o100 else b"100644"


class Pair(NamedTuple):
    """A file in the patch: both versions, or one alone if it is added or deleted."""

    old: Version | None
    new: Version | None
    has_other_content: bool


def write_patch(
    changes: Iterable[Change],
    out: Out,
    *,
    prefix: RelPath = ROOT,
    context: int = 3,
    max_text_bytes: int = MAX_TEXT_BYTES,
    store: Store | None = None,
) -> list[str]:
    """Write the changes as a patch with paths relative to ``prefix``; return what it cannot express.

    The changes have to come from ``compare(..., expand_renames=True)``, as git knows no directories.  Each note is
    a sentence without a full stop.  A file that cannot be read is left out, and noted.  A file moved across
    ``prefix`` is added or deleted; below a repository's top, ``git apply`` needs ``--directory`` for such a patch.
    ``context`` is a number of lines.  With ``store``, store inodes are read even where their own mode forbids it.

    Raises:
        ValueError: a change stands for all that is below a renamed directory.
        OSError: a file larger than ``max_text_bytes`` became unreadable or shorter while it was written; or what
            ``out`` raises.  The patch is then incomplete.
    """
    notes = Notes(prefix)
    pairs: list[Pair] = []
    for change in changes:
        if change.is_subtree:
            raise ValueError(f"the files below {display(change.path)} are not listed: compare with expand_renames=True")
        pairs.extend(_pairs(change, prefix, notes))
    pairs.sort(key=_is_kept)
    writer = _Writer(out, context, max_text_bytes, store, notes)
    for pair in pairs:
        writer.write(pair)
    return notes.all()


def _is_kept(pair: Pair) -> bool:
    return pair.new is not None


def _pairs(change: Change, prefix: RelPath, notes: Notes) -> Iterator[Pair]:
    """Yield what git can say about a change, and note what it cannot."""
    old = _version(change.old_path or change.path, change.old, prefix)
    new = _version(change.path, change.new, prefix)
    notes.see(change, has_old=old is not None, has_new=new is not None, is_outside=not _is_inside(change, prefix))
    if change.kind is Kind.TYPE:
        if old is not None:
            yield Pair(old, None, True)
        if new is not None:
            yield Pair(None, new, True)
    elif old is not None or new is not None:
        yield Pair(old, new, change.content or old is None or new is None)


def _is_inside(change: Change, prefix: RelPath) -> bool:
    return is_below(change.path, prefix) or (change.old_path is not None and is_below(change.old_path, prefix))


def _version(path: RelPath, side: Side | None, prefix: RelPath) -> Version | None:
    """Return a side as git sees it, None if it does not."""
    if side is None or side.type not in (stat.S_IFREG, stat.S_IFLNK) or not is_below(path, prefix):
        return None
    inside = path[len(prefix) + 1 :] if prefix else path
    if is_refused_by_git(inside, is_symlink=side.type == stat.S_IFLNK):
        return None
    return Version(inside, side)


class _Content(NamedTuple):
    """What a version holds; ``data`` is None if it is too large for the memory."""

    name: bytes
    """git's, 40 hex digits."""
    size: int
    data: bytes | None
    side: Side | None

    @property
    def is_binary(self) -> bool:
        return self.data is None or git_binary.is_binary(self.data)

    def chunks(self, store: Store | None) -> Iterator[bytes]:
        if self.data is not None:
            yield self.data
            return
        assert self.side is not None
        fd = self.side.open(store)
        try:
            yield from git_binary.read_chunks(fd, self.size)
        finally:
            os.close(fd)


_NOTHING = _Content(git_binary.NO_BLOB, 0, b"", None)


class _TooLargeError(Exception):
    """A file is left out; the argument is the note that says so."""


class _Writer:
    """Writes the parts of a patch, one file after the other."""

    def __init__(self, out: Out, context: int, max_text_bytes: int, store: Store | None, notes: Notes) -> None:
        self._out = out
        self._context = context
        self._max_text_bytes = max_text_bytes
        self._store = store
        self._notes = notes

    def write(self, pair: Pair) -> None:
        try:
            old, new = (self._read(pair, version) for version in (pair.old, pair.new))
        except OSError as error:
            last = pair.new or pair.old
            assert last is not None
            self._notes.add(f"{display(last.path)} is left out, as it cannot be read: {error.strerror or error}")
            return
        except _TooLargeError as error:
            self._notes.add(str(error))
            return
        texts = None
        if old.name != new.name and not old.is_binary and not new.is_binary:
            assert old.data is not None
            assert new.data is not None
            texts = line_diff.compare_texts(old.data, new.data)
        head = b"".join(_head(pair, _similarity(old, new, texts)))
        if not head and old.name == new.name:
            return  # a change that git has no words for
        self._out(b"diff --git %b %b\n" % _names(pair))
        self._out(head)
        if old.name != new.name or _is_symlink(pair):
            self._out(_index(pair, old, new))
        if old.name != new.name:
            self._write_content(pair, old, new, texts)

    def _read(self, pair: Pair, version: Version | None) -> _Content:
        """Return the content of one version, or nothing where both have the same."""
        if version is None or not (pair.has_other_content or _is_symlink(pair)):
            return _NOTHING
        side = version.side
        if side.type == stat.S_IFLNK:
            return _in_memory(side.target())
        fd = side.open(self._store)
        try:
            size = os.fstat(fd).st_size
            if size > MOST_BYTES:
                gib = f"{size / (1 << 30):,.1f} GiB"
                raise _TooLargeError(
                    f"{display(version.path)} is left out, as it has {gib}: no patch takes more than 1"
                )
            if size > self._max_text_bytes:
                return _Content(git_binary.hash_blob_of(fd, size), size, None, side)
            return _in_memory(b"".join(git_binary.read_chunks(fd, size)))
        finally:
            os.close(fd)

    def _write_content(self, pair: Pair, old: _Content, new: _Content, texts: line_diff.Texts | None) -> None:
        if texts is None:
            self._out(b"GIT binary patch\n")
            for content in (new, old):  # the second one is for git apply --reverse
                for part in git_binary.literal(content.size, content.chunks(self._store)):
                    self._out(part)
        elif texts.old or texts.new:
            self._out(b"--- %b\n+++ %b\n" % _labels(pair))
            for hunk in line_diff.hunks(texts, self._context):
                self._out(hunk)


def _is_symlink(pair: Pair) -> bool:
    """Tell whether it is a symlink: these have an index line always, from which alone git learns, when one is renamed
    and a directory takes its place, that what it puts into that directory is not beyond a symlink."""
    version = pair.new or pair.old
    return version is not None and version.side.type == stat.S_IFLNK


def _in_memory(data: bytes) -> _Content:
    return _Content(git_binary.hash_blob(data), len(data), data, None)


def _head(pair: Pair, similarity: int) -> Iterator[bytes]:
    """Yield the lines about modes and names."""
    old, new = pair.old, pair.new
    if old is None:
        assert new is not None
        yield b"new file mode %b\n" % new.mode
    elif new is None:
        yield b"deleted file mode %b\n" % old.mode
    else:
        if old.mode != new.mode:
            yield b"old mode %b\nnew mode %b\n" % (old.mode, new.mode)
        if old.path != new.path:
            yield b"similarity index %d%%\n" % similarity
            yield b"rename from %b\nrename to %b\n" % (_quoted(old.path), _quoted(new.path))


def _similarity(old: _Content, new: _Content, texts: line_diff.Texts | None) -> int:
    """Return a number for git's similarity index: true for text; of binary files only the sizes are compared."""
    if old.name == new.name:
        return 100
    if texts is not None:
        return line_diff.similarity(texts)
    return min(99, min(old.size, new.size) * 100 // max(old.size, new.size, 1))


def _index(pair: Pair, old: _Content, new: _Content) -> bytes:
    is_same_mode = pair.old is not None and pair.new is not None and pair.old.mode == pair.new.mode
    mode = b" " + pair.old.mode if is_same_mode and pair.old is not None else b""
    return b"index %b..%b%b\n" % (old.name, new.name, mode)


def _names(pair: Pair) -> tuple[bytes, bytes]:
    """Return the names for the ``diff --git`` line."""
    old, new = pair.old or pair.new, pair.new or pair.old
    assert old is not None
    assert new is not None
    return _quoted(b"a/" + old.path), _quoted(b"b/" + new.path)


def _labels(pair: Pair) -> tuple[bytes, bytes]:
    """Return the names for the ``---`` and ``+++`` lines."""
    old = b"/dev/null" if pair.old is None else _label(b"a/" + pair.old.path)
    new = b"/dev/null" if pair.new is None else _label(b"b/" + pair.new.path)
    return old, new


def _label(path: bytes) -> bytes:
    name = _quoted(path)
    return name + (b"\t" if b" " in name and name == path else b"")  # so that the name's end is certain, as git does


def _quoted(path: bytes) -> bytes:
    """Return a name as git writes it; one that starts or ends with a space in quotes, as git 2.39 loses such spaces."""
    is_plain = all(32 <= byte < 127 for byte in path) and b'"' not in path and b"\\" not in path
    if is_plain and not any(name.startswith(b" ") or name.endswith(b" ") for name in path.split(b"/")):
        return path
    return b'"%b"' % quote_c(path).encode()
