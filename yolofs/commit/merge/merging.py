"""Merges the staged version of each path with base's present one, without writing anything."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import msgspec

from yolofs.commit.merge.text_merge import MOST_MERGED_BYTES, TextMerger, why_not_text
from yolofs.journal.records import ChangeRecord, Fingerprint, Keep, Stage
from yolofs.paths import RelPath
from yolofs.state.drift import has_changed, looks_changed
from yolofs.state.kept_bases import (
    MOST_COPIED_BYTES,
    KeptBase,
    Owned,
    digest_of_xattrs,
    find_kept,
    known_by,
    known_by_fingerprint,
    owned,
    recorded_xattrs,
)
from yolofs.state.tree import Entry, Staged, Tree, natural_path
from yolofs.store import copying
from yolofs.store.base import Base
from yolofs.store.restored import InodeCtime
from yolofs.store.store import Store
from yolofs.text.git_binary import is_binary

_FEW = 3
"""From this many files on, several are merged at the same time; fewer are merged one after another.
"""
_MOST_THREADS = 16


class Theirs(NamedTuple):
    """A file as base has it, which did not change while it was read."""

    path: RelPath
    st: os.stat_result
    metadata: copying.Metadata
    content: bytes


class Merge(msgspec.Struct, frozen=True):
    """What a staged file would be, merged with base's."""

    paths: tuple[RelPath, ...]
    """All its names in the view that are in conflict."""
    staged: Staged
    theirs: Theirs
    base: Fingerprint
    content: bytes | None
    """None if there is no text to merge: it is base's if only metadata was changed here, or the
    staged one if only metadata was changed in base.
    """
    conflicts: int
    """How many places have marks."""
    metadata: copying.Metadata
    """Its owner, mode and extended attributes."""


class Unmergeable(msgspec.Struct, frozen=True):
    """What cannot be merged."""

    paths: tuple[RelPath, ...]
    reason: str


class _Texts(NamedTuple):
    """What is to be merged of a file, and its metadata."""

    staged: Staged
    mine: copying.Metadata
    theirs: Theirs
    fingerprint: Fingerprint
    ours: bytes
    kept: KeptBase | None
    was: Owned | None
    """The metadata that the base file had, None if only ``kept`` tells."""


class UnmergeableError(Exception):
    """A path cannot be merged; the text is a sentence that says why and calls the path "it"."""


def merge_paths(
    tree: Tree,
    base: Base,
    store: Store,
    records: Iterable[ChangeRecord],
    paths: Sequence[RelPath],
    restored: AbstractSet[InodeCtime] = frozenset(),
) -> list[Merge | Unmergeable]:
    """Return the result of a merge at each conflict; ``records`` lead to the state, and
    ``restored`` are ctimes of yolofs's own doing.

    Blocks while texts are read and merged.
    """
    groups: dict[object, list[RelPath]] = {}
    for path in paths:
        entry = tree.find(path)
        groups.setdefault(entry.staged if entry is not None and entry.staged is not None else path, []).append(path)
    with TextMerger(os.path.dirname(store.directory)) as texts:
        merger = _Merger(tree, base, store, records, restored, texts)
        merger.look_up(group[0] for group in groups.values())
        return merger.merge_all([tuple(group) for group in groups.values()])


class _Merger:
    def __init__(
        self,
        tree: Tree,
        base: Base,
        store: Store,
        records: Iterable[ChangeRecord],
        restored: AbstractSet[InodeCtime],
        texts: TextMerger,
    ) -> None:
        self._texts = texts
        self._restored = restored
        self._reading = threading.Lock()
        """Held while base and the store are read: only texts are merged at the same time."""
        self._tree = tree
        self._base = base
        self._store = store
        self._kept: Mapping[tuple[RelPath, bytes], KeptBase] = {}
        self._xattrs: dict[bytes, bytes] = {}
        """Digests of the extended attributes that base files had, by :func:`known_by_fingerprint`.
        """
        for record in records:
            if isinstance(record, Stage | Keep) and record.base is not None:
                self._xattrs[known_by_fingerprint(record.base)] = recorded_xattrs(record.extra)

    def look_up(self, paths: Iterable[RelPath]) -> None:
        """Find what is kept of the base files that are about to be merged."""
        wanted = set()
        for path in paths:
            entry = self._tree.find(path)
            if entry is None or entry.staged is None:
                continue
            for home in (entry.staged.home, natural_path(entry)):
                if home is not None:
                    wanted.add((home, known_by(entry.staged)))
        self._kept = find_kept(self._store.directory, lambda path, known: (path, known) in wanted)

    def merge_all(self, groups: Sequence[tuple[RelPath, ...]]) -> list[Merge | Unmergeable]:
        """Merge staged files, each given by all its names that are in conflict."""
        if len(groups) < _FEW:
            return [self.merge(group) for group in groups]
        from concurrent.futures import ThreadPoolExecutor  # takes long, and is hardly ever needed

        with ThreadPoolExecutor(min(_MOST_THREADS, 2 * len(os.sched_getaffinity(0)))) as pool:
            return list(pool.map(self.merge, groups))

    def merge(self, paths: tuple[RelPath, ...]) -> Merge | Unmergeable:
        """Merge one staged file, by all its names that are in conflict."""
        try:
            return self._merge(paths)
        except UnmergeableError as refusal:
            return Unmergeable(paths, str(refusal))
        except OSError as error:
            return Unmergeable(paths, f"it cannot be read: {error.strerror}")

    def _merge(self, paths: tuple[RelPath, ...]) -> Merge:
        with self._reading:
            found = self._read(paths)
        if isinstance(found, Merge):
            return found
        ours, was = found.ours, found.kept.content if found.kept is not None else None
        merged = self._texts.merge(ours, was, found.theirs.content)
        known = found.was or (found.kept.owned if found.kept is not None else owned(found.theirs.metadata))
        metadata = _merged_metadata(found.mine, found.theirs.metadata, known)
        return Merge(paths, found.staged, found.theirs, found.fingerprint, merged.content, merged.conflicts, metadata)

    def _read(self, paths: tuple[RelPath, ...]) -> Merge | _Texts:
        """Return the texts to be merged, or the result if only metadata has to be merged.

        Raises:
            UnmergeableError: it cannot be merged.
            OSError: base or the store cannot be read.
        """
        entry = self._tree.find(paths[0])
        staged = self._staged(entry)
        home = self._home(entry, staged, len(paths))
        mine = self._store.metadata(staged.ino)
        if not stat.S_ISREG(mine.st.st_mode):
            raise UnmergeableError("it is not a regular file here")
        theirs = read_base(self._base, home)
        self._check_links(staged, theirs.st)
        fingerprint = self._base.fingerprint(theirs.st)
        kept = self._kept.get((home, known_by(staged)))
        if kept is not None and is_binary(kept.content):  # an index of git's, in whose place both have a text
            kept = None
        if staged.origin is not None:
            if staged.origin != home:
                raise UnmergeableError("its content is that of another file of base")
            metadata = _merged_metadata(mine, theirs.metadata, self._metadata_before(staged))
            return Merge(paths, staged, theirs, fingerprint, None, 0, metadata)
        if staged.home == home and self._has_same_content(staged, theirs, kept):
            metadata = _merged_metadata(mine, theirs.metadata, self._metadata_before(staged))
            return Merge(paths, staged, theirs, fingerprint, None, 0, metadata)
        ours = self._read_staged(staged)
        why_not = why_not_text(ours, theirs.content)
        if why_not:
            raise UnmergeableError(why_not)
        is_large = max(len(ours), len(theirs.content)) > MOST_COPIED_BYTES  # it was, too, if it took a name of base's
        if kept is None and (staged.base is not None or is_large):
            most = f"{MOST_COPIED_BYTES >> 20} MiB"
            raise UnmergeableError(
                f"what base had is not known: it was not text, or had more than {most}, when the view took it over"
            )
        return _Texts(staged, mine, theirs, fingerprint, ours, kept, self._metadata_before(staged))

    def _has_same_content(self, staged: Staged, theirs: Theirs, kept: KeptBase | None) -> bool:
        """Tell whether base's file has the content that it had at copy-up: by what was kept of it,
        else by its looks.
        """
        if kept is not None:
            return kept.content == theirs.content
        return not looks_changed(staged, theirs.st, self._base, self._restored)

    def _metadata_before(self, staged: Staged) -> Owned | None:
        """Return the metadata that the base file of a staged one had, None if that is not known."""
        if staged.base is None or staged.base.owner is None:
            return None
        return Owned(*staged.base.owner, self._xattrs.get(known_by(staged), b""))

    def _staged(self, entry: Entry | None) -> Staged:
        if entry is None:
            raise UnmergeableError("none of its names is known")
        if entry.is_tombstone:
            raise UnmergeableError("it is deleted here, and changed in base")
        if entry.staged is None:
            raise UnmergeableError("it was renamed here, and base has changed there")
        return entry.staged

    def _home(self, entry: Entry | None, staged: Staged, count: int) -> RelPath:
        """Return the base path of what it is to be merged with.

        Raises:
            UnmergeableError: its directory is gone from base, or it has several names.
        """
        assert entry is not None
        directory = entry.parent.source if entry.parent is not None else None
        if directory is not None:
            st = self._base.look(directory)
            if st is None or not stat.S_ISDIR(st.st_mode):
                raise UnmergeableError("its directory is gone from base")
        if has_changed(staged, self._base, self._store, self._restored):
            assert staged.home is not None
            return staged.home
        natural = natural_path(entry)
        if natural is None or count > 1 or len(staged.names) > 1 or staged.links:
            raise UnmergeableError("it has several names (hard links)")
        return natural

    def _check_links(self, staged: Staged, st: os.stat_result) -> None:
        """Check that base has the very file under as many names as it had, as all of them are to
        show the result.

        Raises:
            UnmergeableError: it has not.
        """
        is_same = staged.base is not None and self._base.number(st) == staged.base.ino
        if (staged.links or st.st_nlink > 1) and not (is_same and st.st_nlink == (staged.links or 1)):
            raise UnmergeableError("its names in base (hard links) have changed")

    def _read_staged(self, staged: Staged) -> bytes:
        fd = self._store.open(staged.ino, os.O_RDONLY)
        with open(fd, "rb") as file:
            return file.read(MOST_MERGED_BYTES + 1)


def read_base(base: Base, path: RelPath) -> Theirs:
    """Return a regular file of base; its content is read up to one byte more than
    :data:`MOST_MERGED_BYTES`.

    Raises:
        OSError: it cannot be read.
        UnmergeableError: there is none, or it changed while it was read.
    """
    st = base.look(path)
    if st is None:
        raise UnmergeableError("it is gone from base")
    if not stat.S_ISREG(st.st_mode):
        raise UnmergeableError("it is not a regular file in base")
    with _opened(base, path) as fd:
        before = os.fstat(fd)
        metadata = copying.read_metadata(fd, st=before)
        content = b""
        while len(content) <= MOST_MERGED_BYTES:
            chunk = os.read(fd, MOST_MERGED_BYTES + 1 - len(content))
            if not chunk:
                break
            content += chunk
        after = os.fstat(fd)
    now = base.look(path)
    if now is None or not _is_same(before, after) or not _is_same(before, now):
        raise UnmergeableError("base is changing just now")
    return Theirs(path, before, metadata, content)


@contextlib.contextmanager
def _opened(base: Base, path: RelPath) -> Iterator[int]:
    fd = base.open(path)
    try:
        yield fd
    finally:
        os.close(fd)


def _is_same(one: os.stat_result, other: os.stat_result) -> bool:
    """Tell whether a file is the same, and has not changed."""
    return all(
        getattr(one, field) == getattr(other, field)
        for field in ("st_dev", "st_ino", "st_mode", "st_size", "st_mtime_ns", "st_ctime_ns")
    )


def _merged_metadata(mine: copying.Metadata, theirs: copying.Metadata, was: Owned | None) -> copying.Metadata:
    """Return the metadata of both: of what one side alone has changed, that.

    Raises:
        UnmergeableError: both have changed the same, or it is not known which has.
    """
    ours_now, theirs_now = owned(mine), owned(theirs)
    known = was if was is not None else None
    takes_mode = _takes_theirs("mode", ours_now.mode, theirs_now.mode, known.mode if known else None)
    owners = (ours_now.uid, ours_now.gid), (theirs_now.uid, theirs_now.gid), (known.uid, known.gid) if known else None
    takes_owner = _takes_theirs("owner", *owners)
    digests = digest_of_xattrs(mine.xattrs), digest_of_xattrs(theirs.xattrs), known.xattrs if known else None
    takes_xattrs = _takes_theirs("extended attributes", *digests)
    mode = (theirs if takes_mode else mine).st.st_mode
    st = (theirs if takes_owner else mine).st
    fields = (mode, 0, 0, 1, st.st_uid, st.st_gid, 0, 0, 0, 0)
    return copying.Metadata(os.stat_result(fields), (theirs if takes_xattrs else mine).xattrs)


def _takes_theirs(what: str, ours: object, theirs: object, was: object) -> bool:
    if theirs in (ours, was):
        return False
    if ours != was:
        raise UnmergeableError(
            f"both changed its {what}" if was is not None else f"its {what} differs, and nobody knows who changed it"
        )
    return True
