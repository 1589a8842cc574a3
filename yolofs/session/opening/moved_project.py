"""Letting a session go on where its project is now, or at another directory that stands for it.

The journal's paths are relative to base.  If base is an ancestor of the project (mostly ``/``),
those in the project follow it: the journal is written anew beside the old one, and one change of
``session.json`` puts it in force.
"""

from __future__ import annotations

import os

import msgspec

from yolofs.errors import NoSessionError, UsageError
from yolofs.journal import cuts, journal_length
from yolofs.journal.journal import Journal
from yolofs.journal.records import NOTHING, Delete, Fingerprint, Keep, Record, Rename, Snapshot, Stage, Travel
from yolofs.paths import RelPath, display, is_below
from yolofs.registry.identity import NO_IDENTITY, identity_of, lasting_identity_of
from yolofs.registry.link import put_link, remove_link
from yolofs.registry.private import private_directory
from yolofs.registry.registry import SessionEntry
from yolofs.registry.search import FoundProject
from yolofs.registry.start import register
from yolofs.registry.state_directory import state_of
from yolofs.session.archive import finish_put_away, has_ended_journal, interrupted_commit
from yolofs.session.opening.lock import session_locked
from yolofs.session.opening.opening import finish_move
from yolofs.session.opening.root import MOVED_JOURNAL, SessionFile, read_session_file, write_session_file
from yolofs.state import checkpoint
from yolofs.store.base import Base
from yolofs.system.git_exclude import exclude_from_git
from yolofs.system.own_names import SESSION_LINK
from yolofs.system.plain_files import is_there

_BATCH = 1000


def move_session(found: FoundProject) -> FoundProject:
    """Let a session go on with the directory ``found.project``, wherever its project was before.

    Returns what the registry has of it then.  Blocks for as long as reading and writing the journal
    takes.

    Raises:
        UsageError: what is staged cannot follow; the message says what.
        SessionBusyError: the session is mounted, or in use.
        NoSessionError: the session's directory is gone.
        TrustError: it could be changed by others.
        JournalError: its journal cannot be read.
    """
    entry, session, old, new = found.entry, found.session, found.entry.project_path or found.project, found.project
    try:
        with private_directory(session), session_locked(session):
            finish_move(session)
            if has_ended_journal(session):  # by its first line, which the journal is to get anew
                finish_put_away(session)
            content = read_session_file(session)
            before = (content.project_path if content is not None else b"") or old
            is_back = before == new and entry.identity == NO_IDENTITY  # where the registry alone was damaged
            is_interrupted = interrupted_commit(session) is not None
            if is_interrupted and not is_back:
                raise UsageError(
                    f"a commit was interrupted when the project was {display(old)}, and can only be finished there",
                    hint=f"move it back to {display(old)}; then: yolofs commit",
                )
            if content is not None and not is_interrupted:  # it may be in line already, if the last try was killed
                is_copy = not entry.identity.is_same(identity_of(new))
                _follow(session, content, before, new, is_copy=is_copy)
            after = SessionEntry.make(session, new, lasting_identity_of(new))
            register(after, state_of(session), instead_of=entry)
    except FileNotFoundError:
        raise NoSessionError(
            f"the session of {display(old)} is gone: {display(session)} does not exist",
            hint=f"mount the disk that it was on, or: yolofs sessions --forget {entry.id}",
        ) from None
    remove_link(old, session)
    put_link(new, session)
    exclude_from_git(new, SESSION_LINK)
    return FoundProject(new, after)


def _follow(session: bytes, content: SessionFile, old: bytes, new: bytes, *, is_copy: bool) -> None:
    """Bring ``session.json`` and the journal in line; in force at once or not at all.

    ``is_copy``: it is another directory, whose files have other numbers.
    """
    if old == new and not is_copy:
        return
    root = content.root_path
    moved_root = _moved(root, old, new)
    after = content.with_paths(root=moved_root, configured=_moved(content.configured_path, old, new), project=new)
    before, now = _within(old, root), _within(new, moved_root)
    journal = os.path.join(session, b"journal")
    if before is None or (before == now and not is_copy) or not is_there(journal):
        write_session_file(session, after)  # nothing has another path, or another number
        return
    if now is None:
        raise UsageError(
            f"{display(new)} lies outside {display(root)}, which what is staged is relative to",
            hint=f"move it back to {display(old)}, and commit or abort first",
        )
    _rewrite(journal, os.path.join(session, MOVED_JOURNAL), _Mapping(Base(moved_root), before, now, display(old)))
    checkpoint.remove(session)
    write_session_file(session, msgspec.structs.replace(after, has_moved_journal=True))
    finish_move(session)


def _within(project: bytes, root: bytes) -> RelPath | None:
    """Return where a project lies in base, empty if base lies in it; None if neither lies in the
    other.
    """
    top = root.rstrip(b"/")
    if is_below(project, top):
        return RelPath(project[len(top) + 1 :])
    return RelPath(b"") if is_below(root, project) else None


def _moved(path: bytes, old: bytes, new: bytes) -> bytes:
    return new + path[len(old) :] if is_below(path, old) else path


def _rewrite(path: bytes, target: bytes, mapping: _Mapping) -> None:
    """Write a journal anew, durably, its paths as they are now."""
    if is_there(target):
        os.unlink(target)
    with Journal.open(path) as old, Journal.create(target) as new:  # a torn tail is cut, and noted
        for cut in cuts.read(path, old.form.key):
            _note_again(path, msgspec.structs.replace(cut, key=new.form.key))
        batch: list[Record] = []
        for record in old.read():
            batch.append(mapping.record(record))
            if len(batch) == _BATCH:
                new.append(*batch)
                batch = []
        new.append(*batch)
        new.sync()
        journal_length.write(path, new.form.key, new.record_count + old.missing_records)


def _note_again(journal: bytes, cut: cuts.Cut) -> None:
    """Have it told also of the journal as it is now what was cut off it before."""
    with open(journal + cuts.CUTS_SUFFIX, "ab") as notes:
        notes.write(cut.encode())


class _Mapping:
    """Where paths relative to base are after the project has moved."""

    def __init__(self, base: Base, old: RelPath, new: RelPath, old_place: str) -> None:
        self._base = base
        self._old = old
        self._new = new
        self._old_place = old_place

    def record(self, record: Record) -> Record:
        """Return a record with its paths as they are now.

        Raises:
            UsageError: it cannot follow.
        """
        match record:
            case Stage(path=path, origin=origin):
                return msgspec.structs.replace(
                    record, path=self._path(path), origin=self._optional(origin), base=self._base_of(record)
                )
            case Delete(path=path):
                base = self._fingerprint(path, record.base)
                is_it = record.base is not None and record.unlinks == record.base.ino
                unlinks = base.ino if base is not None and is_it else record.unlinks
                return msgspec.structs.replace(record, path=self._path(path, moves=True), base=base, unlinks=unlinks)
            case Rename(src=src, dst=dst):
                return msgspec.structs.replace(
                    record,
                    src=self._path(src, moves=True),
                    dst=self._path(dst, moves=True),
                    src_was=self._fingerprint(src, record.src_was),
                    dst_was=self._fingerprint(dst, record.dst_was),
                )
            case Keep():
                is_plain = record.path == record.source or (record.ino is not None and record.origin is None)
                return msgspec.structs.replace(
                    record,
                    path=self._path(record.path, moves=not is_plain),
                    source=self._optional(record.source),
                    origin=self._optional(record.origin),
                    home=self._optional(record.home),
                    base=self._fingerprint(record.home, record.base),
                    had=self._optional(record.had),
                    was=self._fingerprint(record.had, record.was),
                )
            case Snapshot() | Travel():
                return record

    def _base_of(self, record: Stage) -> Fingerprint | None:
        return self._fingerprint(record.origin if record.origin is not None else record.path, record.base)

    def _fingerprint(self, at: RelPath | None, known: Fingerprint | None) -> Fingerprint | None:
        """Return a fingerprint with the number and ctime that the file has now, where it was copied
        and is the same otherwise.
        """
        if known is None or at is None or not is_below(at, self._old):
            return known
        try:
            st = self._base.lstat(self._path(at))
        except OSError:
            return known
        now = self._base.fingerprint(st)
        is_same = known != NOTHING and now.mtime_ns == known.mtime_ns and now.size == known.size
        if not is_same or now.ino == known.ino:
            return known
        return msgspec.structs.replace(known, ino=now.ino, ctime_ns=now.ctime_ns if known.ctime_ns else 0)

    def _optional(self, path: RelPath | None) -> RelPath | None:
        return self._path(path) if path is not None else None

    def _path(self, path: RelPath, *, moves: bool = False) -> RelPath:
        """Return where a path is now; ``moves``: the record is about the name itself, not about
        what is there.
        """
        if is_below(path, self._old):
            return RelPath(self._new + path[len(self._old) :])
        if is_below(path, self._new):
            raise self._cannot_follow(path, "is staged already, where the project is now")
        if moves and is_below(self._old, path):
            raise self._cannot_follow(path, "was renamed or deleted in the view, and the project lay in it")
        return path

    def _cannot_follow(self, path: RelPath, why: str) -> UsageError:
        return UsageError(
            f"what is staged cannot follow the project: {display(self._base.path(path))} {why}",
            hint=f"move the project back to {self._old_place}, and commit or abort first",
        )
