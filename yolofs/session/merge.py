"""Settling conflicts in the view before a commit: merged files are staged; where base wins, nothing
stays staged.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence

from yolofs.commit.merge.merging import Merge, Unmergeable, merge_paths
from yolofs.commit.merge.text_merge import MOST_MERGED_BYTES, has_marks
from yolofs.commit.select.entry_authors import MARKS, OURS
from yolofs.commit.select.restate import Rebased, restate
from yolofs.errors import ConflictError, NotPreparedError
from yolofs.journal.journal_file import may_have_marks
from yolofs.journal.records import Keep, Snapshot, marker_of_whole_state
from yolofs.os_errors import said_as
from yolofs.paths import RelPath, StoreIno, display
from yolofs.session.authors import authors_of
from yolofs.session.journal_copy import journal_copy
from yolofs.session.session import Session
from yolofs.state.kept_bases import (
    XATTRS,
    Extra,
    KeptBase,
    KeptBases,
    known_by_fingerprint,
    owned,
    recorded_xattrs,
    xattrs_option,
)
from yolofs.state.tree import Entry, Staged, Tree, natural_path
from yolofs.store import file_data, restored
from yolofs.system.clock import coarse_clock_ns

MODE_MADE_AGAIN = 0o700
"""Of a directory that base has no more: nobody knows what it was, so it is for the user alone."""


def merges_at(session: Session, paths: Sequence[RelPath]) -> list[Merge | Unmergeable]:
    """Return what merging comes to at the paths of conflicts; nothing is written."""
    tree = session.state()
    marked = frozenset(marked_paths(session, tree))
    found = merge_paths(
        tree,
        session.base,
        session.store,
        session.live_changes(),
        [path for path in paths if path not in marked],
        restored.read(session.directory),
    )
    return [*found, *(Unmergeable((path,), "it still has the marks of a conflict") for path in paths if path in marked)]


def marked_paths(session: Session, tree: Tree) -> list[RelPath]:
    """Return the paths of a state that still have the marks of an earlier merge in them."""
    if not may_have_marks(session.journal.path):
        return []
    homes = {record.home or record.path for record in _marked_records(session)}
    return sorted(
        path
        for path, entry in tree.walk()
        if entry.staged is not None
        and (entry.staged.home in homes or natural_path(entry) in homes)
        and _has_marks(session, entry)
    )


def _marked_records(session: Session) -> Iterator[Keep]:
    """Yield the records of files that a merge has left with marks."""
    for record in session.live_changes():
        if isinstance(record, Keep) and any(key == MARKS for key, _ in record.extra):
            yield record


def before_merge(session: Session, paths: Collection[RelPath]) -> dict[RelPath, StoreIno]:
    """Return the store inodes that files with marks had before the merge, except for those that are
    not kept any more.
    """
    if not paths:
        return {}
    told = {record.home or record.path: dict(record.extra).get(OURS, b"") for record in _marked_records(session)}
    tree = session.state()
    found = {}
    for path in paths:
        entry = tree.find(path)
        if entry is None or entry.staged is None:
            continue
        ino, _, digest = (told.get(entry.staged.home or path) or told.get(natural_path(entry) or path, b"")).partition(
            b"."
        )
        if ino.isdigit() and _digest_of(session, StoreIno(int(ino))) == digest:
            found[path] = StoreIno(int(ino))
    return found


def _digest_of(session: Session, ino: StoreIno) -> bytes:
    """Return a digest of a staged text as it is now; empty if it is not there, or too large to have
    been merged.
    """
    with contextlib.suppress(OSError), open(session.store.open(ino, os.O_RDONLY), "rb") as file:
        content = file.read(MOST_MERGED_BYTES + 1)
        if len(content) <= MOST_MERGED_BYTES:
            return hashlib.blake2b(content, digest_size=16).hexdigest().encode()
    return b""


def _has_marks(session: Session, entry: Entry) -> bool:
    assert entry.staged is not None
    with contextlib.suppress(OSError), open(session.store.open(entry.staged.ino, os.O_RDONLY), "rb") as file:
        return has_marks(file.read(2 * MOST_MERGED_BYTES))
    return False


def settle_conflicts(
    session: Session,
    merges: Sequence[Merge],
    dropped: Collection[RelPath],
    unmerged: Mapping[RelPath, StoreIno] = {},
    made_again: Mapping[RelPath, StoreIno | None] = {},
) -> tuple[RelPath, ...]:
    """Stage what was merged, and let base win at the ``dropped`` paths; return all paths that show
    base again.

    ``unmerged`` files show again what they were before a merge, as :func:`before_merge` told.  The
    directories ``made_again`` are new ones from now on, as
    :func:`yolofs.commit.merge.gone_from_base.missing_directories` told.  What was staged before all
    this is a generation.  Durable when this returns; a mount of the session must be paused.

    Raises:
        ConflictError: base has changed since it was read; nothing was done.
        NotPreparedError: it cannot be written; nothing that was staged is lost.
    """
    sentence = "nothing is committed, as not all conflicts are settled; base is as it was, and all stays staged"
    with said_as(NotPreparedError, sentence, again="the same command", place=session.directory):
        return _settle(session, merges, dropped, unmerged, made_again)


def _settle(
    session: Session,
    merges: Sequence[Merge],
    dropped: Collection[RelPath],
    unmerged: Mapping[RelPath, StoreIno],
    made_again: Mapping[RelPath, StoreIno | None],
) -> tuple[RelPath, ...]:
    for merge in merges:
        now = session.base.look(merge.theirs.path)
        if now is None or session.base.fingerprint(now) != merge.base or now.st_ctime_ns != merge.theirs.st.st_ctime_ns:
            raise ConflictError(
                f"base is changing just now at {display(session.base.path(merge.theirs.path))}, so nothing is merged",
                paths=merge.paths,
                hint="try again when the program that writes there is done",
            )
    tree = session.state()
    session.skip_named_numbers()
    rebased = {**dict(_staged(session, merges)), **_unmerged(session, tree, unmerged)}
    directories = {
        path: ino if ino is not None else session.store.create_dir(MODE_MADE_AGAIN)[0]
        for path, ino in made_again.items()
    }
    if merges or directories:
        session.store.sync()
    authors = authors_of(session.live_changes)
    restated = restate(
        tree, session.base, session.store, authors, dropped=dropped, rebased=rebased, made_again=directories
    )
    _replace_journal(session, restated.records, b"before merging", b"merged with base")
    return restated.dropped


def let_base_win(session: Session, paths: Collection[RelPath]) -> None:
    """Show base again at some paths, durably; the caller writes the marker of the new generation.

    A mount of the session must be paused.

    Raises:
        OSError: it cannot be written; nothing has changed.
    """
    authors = authors_of(session.live_changes)
    restated = restate(session.state(), session.base, session.store, authors, dropped=paths)
    _replace_journal(session, restated.records)


def _unmerged(session: Session, tree: Tree, unmerged: Mapping[RelPath, StoreIno]) -> dict[StoreIno, Rebased]:
    """Return the rebasing of files that go back to before a merge, by store inode."""
    xattrs = {record.base: recorded_xattrs(record.extra) for record in _marked_records(session)}
    rebased = {}
    for path, ino in unmerged.items():
        entry = tree.find(path)
        staged = entry.staged if entry is not None else None
        assert staged is not None
        assert staged.home is not None
        assert staged.base is not None
        digest = xattrs.get(staged.base, b"")
        extra = ((XATTRS, digest.hex().encode()),) if digest else ()
        rebased[staged.ino] = Rebased(ino, staged.home, staged.base, is_in_base=False, extra=extra)
    return rebased


def _staged(session: Session, merges: Sequence[Merge]) -> Iterator[tuple[StoreIno, Rebased]]:
    """Make what was merged in the store, and keep what base is; neither is durable yet."""
    bases = KeptBases(session.store)
    try:
        for merge in merges:
            ino = _make(session, merge)
            theirs = merge.theirs
            if merge.content is not None:
                kept = KeptBase(owned(theirs.metadata), theirs.content)
                bases.add(theirs.path, known_by_fingerprint(merge.base), kept)
            extra = (*_marks(session, merge), *xattrs_option(theirs.metadata.xattrs))
            yield merge.staged.ino, Rebased(ino, theirs.path, merge.base, merge.staged.origin is not None, extra)
    finally:
        bases.close()


def _marks(session: Session, merge: Merge) -> Extra:
    """Return what is told of a merge that has left marks."""
    if not merge.conflicts:
        return ()
    ino = merge.staged.ino
    return ((MARKS, b"1"), (OURS, b"%d.%b" % (ino, _digest_of(session, ino))))


def _make(session: Session, merge: Merge) -> StoreIno:
    ino = session.store.reserve()
    path = session.store.path(ino)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "wb") as file:
        if merge.content is not None:
            file.write(merge.content)
        elif merge.staged.origin is not None:
            file.truncate(merge.theirs.st.st_size)
        else:
            _copy_staged(session, merge.staged, file.fileno())
        file.flush()
        if "mode" in session.store.give(ino, merge.metadata, times=False):  # what is new is for us alone
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), path)
        if merge.content is None:
            os.utime(file.fileno(), ns=(merge.theirs.st.st_atime_ns, _mtime_ns(session, merge)))
    return ino


def _copy_staged(session: Session, staged: Staged, target: int) -> None:
    fd = session.store.open(staged.ino, os.O_RDONLY)
    try:
        file_data.copy_data(fd, target, os.fstat(fd).st_size)
    finally:
        os.close(fd)


def _mtime_ns(session: Session, merge: Merge) -> int:
    """Return the mtime of a file whose data is in base: the view's, if that was set there."""
    staged_ns = os.lstat(session.store.path(merge.staged.ino)).st_mtime_ns
    was_set = merge.staged.base is not None and staged_ns != merge.staged.base.mtime_ns
    return staged_ns if was_set else merge.theirs.st.st_mtime_ns


def _replace_journal(
    session: Session, records: Sequence[Keep], name_before: bytes = b"", name_after: bytes | None = None
) -> None:
    """Go on with another state, durably and at once: no crash leaves a part of it.

    The names are those of the generations before and after it; None: the latter has no marker yet.
    """
    now = coarse_clock_ns()
    with journal_copy(session) as new:
        before = [Snapshot(now, name_before)] if session.has_unsnapshotted() else []
        after = [Snapshot(now, name_after)] if name_after is not None else []
        new.append(*before, marker_of_whole_state(now), *records, *after)
        new.keep()
