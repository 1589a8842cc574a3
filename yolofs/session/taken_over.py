"""The changes of a run to files that the host has changed since, compared with what the view took
over then, as far as that is kept.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from yolofs.changes.changes import Aspect, Change, Kind, Side, is_same_data
from yolofs.errors import MissingInodeError
from yolofs.paths import RelPath
from yolofs.session.session import Session
from yolofs.state.drift import has_changed
from yolofs.state.kept_bases import Kept, find_kept, known_by
from yolofs.state.tree import Staged, Tree


class TakenOver(NamedTuple):
    """The changes, and what is not known."""

    changes: list[Change]
    unknown: list[RelPath]
    """Paths whose old version is not kept: it is shown as base has it now."""


def as_taken_over(session: Session, tree: Tree, changes: Sequence[Change], directory: Callable[[], bytes]) -> TakenOver:
    """Return changes, each with the old version that its file had when the view took it over.

    ``tree`` is the newer state.  What was kept is written to what ``directory`` gives, which has to
    stay as long as the changes are read; nobody asks for it where base has not changed.

    Raises:
        OSError: what was kept cannot be read or written.
    """
    files = [_staged(session, tree, change) for change in changes]
    wanted = {place for place, _ in filter(None, files)}
    kept = find_kept(session.store, lambda *place: place in wanted) if wanted else {}
    found: list[Change] = []
    unknown: list[RelPath] = []
    for number, (change, file) in enumerate(zip(changes, files, strict=True)):
        one = kept.get(file[0]) if file is not None else None
        if file is None or change.old is None or not _is_other(session, change.old, file[1], one):
            found.append(change)
        elif one is None:
            found.append(change)
            unknown.append(change.path)
        else:
            base = file[1].base
            time_ns = base.mtime_ns if base is not None else change.old.mtime_ns
            changed = _compared(session, change, _side(one, time_ns, os.path.join(directory(), b"%d" % number)))
            found += [changed] if changed is not None else []
    return TakenOver(found, unknown)


def _staged(session: Session, tree: Tree, change: Change) -> tuple[tuple[RelPath, bytes], Staged] | None:
    """Return what a changed file of base is kept by, and what is staged of it or took its place."""
    old = change.old
    if old is None or old.ino is not None or old.data is None or old.type != stat.S_IFREG:
        return None
    entry = tree.find(change.path)
    staged = entry.staged if entry is not None else None
    home = session.base.relative(old.data)
    if staged is None or home is None or staged.home not in (None, home):
        return None
    return (home, known_by(staged)), staged


def _is_other(session: Session, old: Side, staged: Staged, kept: Kept | None) -> bool:
    """Tell whether the host has changed a file of base since it was taken over."""
    try:
        if staged.home is not None:
            return has_changed(staged, session.base, session.store)
        if kept is None:
            return False
        with open(old.open(), "rb") as file:  # another file has taken its place
            return file.read(len(kept.content) + 1) != kept.content
    except (OSError, MissingInodeError):
        return False


def _side(kept: Kept, mtime_ns: int, place: bytes) -> Side:
    with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(kept.content)
    mode, size = stat.S_IMODE(kept.owned.mode), len(kept.content)
    return Side(stat.S_IFREG, mode, kept.owned.uid, kept.owned.gid, mtime_ns, size, 0, place, place, None)


def _compared(session: Session, change: Change, old: Side) -> Change | None:
    """Return what differs from that old version, None if nothing does."""
    new = change.new
    if new is None:
        return msgspec.structs.replace(change, old=old)
    content = new.type == stat.S_IFREG and (new.size != old.size or not is_same_data(old, new, session.store))
    differs = {
        Aspect.MODE: old.mode != new.mode,
        Aspect.OWNER: (old.uid, old.gid) != (new.uid, new.gid),
        Aspect.TIME: not content and old.mtime_ns != new.mtime_ns,
        Aspect.XATTRS: Aspect.XATTRS in change.metadata,
    }
    metadata = tuple(aspect for aspect, is_other in differs.items() if is_other) if new.type == old.type else ()
    kind = change.kind
    if kind in (Kind.MODIFIED, Kind.METADATA):
        kind = Kind.MODIFIED if content else Kind.METADATA
    if kind is Kind.METADATA and not metadata:
        return None
    return msgspec.structs.replace(
        change, kind=kind, old=old, content=content or new.type != old.type, metadata=metadata
    )
