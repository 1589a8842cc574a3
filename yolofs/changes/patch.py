"""Changes as a patch that ``git apply`` takes, and notes about all that git has no words for.

The form is that of ``git diff --binary --full-index``.  What git knows is regular files (mode 644
or 755) and symlinks; a directory is there when a file is in it.  ``git apply`` looks at all of a
patch before it changes anything: names that swap, chains and files that make way for directories
are fine, as long as a name's deletion comes before what takes its place.  So all deletions come
first.  ``git apply --reverse`` is not as thorough (2.47 makes deleted files again with mode 644):
the patch of the two states the other way round is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

from yolofs.changes.changes import Change
from yolofs.changes.patch_files import ComparedPair, Content, Pair, Reading, is_symlink, pairs_of
from yolofs.changes.patch_notes import Notes
from yolofs.paths import ROOT, RelPath, quote_c
from yolofs.store.store import Store
from yolofs.system.disk_usage import size_text
from yolofs.text import git_binary, line_diff, word_diff

Out: TypeAlias = Callable[[bytes], object]
"""Takes the patch piece by piece, as the ``write`` of a binary file does."""


class PatchStyle(msgspec.Struct, frozen=True):
    """What a patch is made for people by; each of these makes it one that `git apply` may not
    take.
    """

    tells_sizes: bool = False
    """Of binary files the sizes alone."""
    ignores_space: bool = False
    """Without lines that differ in white space alone."""
    by_words: bool = False
    """Words between ``[-`` and ``-]`` and between ``{+`` and ``+}`` in place of lines."""
    abbreviates: bool = False
    """Contents by the first digits of their names alone, except for a binary patch, whose names git
    apply checks in full.
    """


EXACT = PatchStyle()
_FEW_DIGITS = 7
"""As many digits of a name as git shows."""


def write_patch(
    changes: Iterable[Change],
    out: Out,
    *,
    prefix: RelPath = ROOT,
    context: int = 3,
    max_text_bytes: int = git_binary.MAX_TEXT_BYTES,
    store: Store | None = None,
    look: PatchStyle = EXACT,
) -> list[str]:
    """Write the changes as a patch with paths relative to ``prefix``; return what it cannot
    express.

    The changes have to come from ``compare(..., expand_renames=True)``, as git knows no
    directories.  Each note is a sentence without a full stop.  A file that cannot be read is left
    out, and noted.  A file moved across ``prefix`` is added or deleted; below a repository's top,
    ``git apply`` needs ``--directory`` for such a patch.  ``context`` is a number of lines.  With
    ``store``, store inodes are read even where their own mode forbids it.

    Raises:
        ValueError: a change stands for all that is below a renamed directory.
        OSError: a file larger than ``max_text_bytes`` became unreadable or shorter while it was
            written; or what ``out`` raises.  The patch is then incomplete.
    """
    notes = Notes(prefix)
    reading = Reading(store, max_text_bytes, look.ignores_space)
    writer = _Writer(out, context, store, look)
    for pair in pairs_of(changes, prefix, notes):
        compared = reading.compare(pair, notes)
        if compared is not None:
            writer.write(compared)
    return notes.all()


class _Writer:
    """Writes the parts of a patch, one file after the other."""

    def __init__(self, out: Out, context: int, store: Store | None, look: PatchStyle) -> None:
        self._out = out
        self._context = context
        self._store = store
        self._look = look

    def write(self, compared: ComparedPair) -> None:
        pair, old, new, texts = compared.pair, compared.old, compared.new, compared.texts
        head = b"".join(_head(pair, _similarity(old, new, texts)))
        if not head and not compared.differs:
            return  # a change that git has no words for, or one of white space alone
        self._out(b"diff --git %b %b\n" % quoted_names(pair))
        self._out(head)
        if compared.differs or is_symlink(pair):
            is_short = self._look.abbreviates and (texts is not None or self._look.tells_sizes)
            self._out(_index(pair, old, new, _FEW_DIGITS if is_short else None))
        if compared.differs:
            self._write_content(pair, old, new, texts)

    def _write_content(self, pair: Pair, old: Content, new: Content, texts: line_diff.Texts | None) -> None:
        if texts is not None:
            if texts.old or texts.new:
                self._out(b"--- %b\n+++ %b\n" % _labels(pair))
                make_hunks = word_diff.hunks if self._look.by_words else line_diff.hunks
                for hunk in make_hunks(texts, self._context):
                    self._out(hunk)
        elif self._look.tells_sizes:
            sizes = [_size(content) for version, content in ((pair.old, old), (pair.new, new)) if version is not None]
            self._out(f"binary, {' -> '.join(sizes)}\n".encode())
        else:
            self._out(b"GIT binary patch\n")
            for content in (new, old):  # the second one is for git apply --reverse
                for part in git_binary.literal(content.size, content.chunks(self._store)):
                    self._out(part)


def _size(content: Content) -> str:
    return size_text(content.size).replace(".0 ", " ")


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
            yield b"rename from %b\nrename to %b\n" % (quoted_name(old.path), quoted_name(new.path))


def _similarity(old: Content, new: Content, texts: line_diff.Texts | None) -> int:
    """Return a number for git's similarity index: true for text; of binary files only the sizes are
    compared.
    """
    if old.name == new.name:
        return 100
    if texts is not None:
        return line_diff.similarity(texts)
    return min(99, min(old.size, new.size) * 100 // max(old.size, new.size, 1))


def _index(pair: Pair, old: Content, new: Content, digits: int | None) -> bytes:
    """Return the line with the names of the contents, or a number of digits of each."""
    is_same_mode = pair.old is not None and pair.new is not None and pair.old.mode == pair.new.mode
    mode = b" " + pair.old.mode if is_same_mode and pair.old is not None else b""
    return b"index %b..%b%b\n" % (old.name[:digits], new.name[:digits], mode)


def quoted_names(pair: Pair) -> tuple[bytes, bytes]:
    """Return the names for the ``diff --git`` line."""
    old, new = pair.old or pair.new, pair.new or pair.old
    assert old is not None
    assert new is not None
    return quoted_name(b"a/" + old.path), quoted_name(b"b/" + new.path)


def _labels(pair: Pair) -> tuple[bytes, bytes]:
    """Return the names for the ``---`` and ``+++`` lines."""
    old = b"/dev/null" if pair.old is None else _label(b"a/" + pair.old.path)
    new = b"/dev/null" if pair.new is None else _label(b"b/" + pair.new.path)
    return old, new


def _label(path: bytes) -> bytes:
    name = quoted_name(path)
    return name + (b"\t" if b" " in name and name == path else b"")  # so that the name's end is certain, as git does


def quoted_name(path: bytes) -> bytes:
    """Return a name as git writes it; one that starts or ends with a space in quotes, as git 2.39
    loses such spaces.
    """
    is_plain = all(32 <= byte < 127 for byte in path) and b'"' not in path and b"\\" not in path
    if is_plain and not any(name.startswith(b" ") or name.endswith(b" ") for name in path.split(b"/")):
        return path
    return b'"%b"' % quote_c(path).encode()
