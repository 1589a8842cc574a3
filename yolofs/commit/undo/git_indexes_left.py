"""Git's index, if the host has only refreshed it since a commit left it: that is no drift.

It is the rule of :mod:`yolofs.commit.merge.git_indexes`.  What the commit left is known from the
store inode that it made the index from.  A copy of an index that an undo brings back is kept with
the undo, which may be undone itself (:data:`INDEXES`).
"""

from __future__ import annotations

import contextlib
import os
import stat

import msgspec

from yolofs.commit.apply.commit_directory import write_new
from yolofs.commit.merge.git_indexes import shared_parts
from yolofs.commit.merge.merging import UnmergeableError, read_base
from yolofs.commit.plan import kept_objects as kept_things
from yolofs.commit.plan.plan import Create, Fetch, Place, Plan, Step
from yolofs.commit.undo.applied import Applied
from yolofs.paths import RelPath
from yolofs.state.kept_bases import MOST_KEPT_BYTES, KeptBase, owned
from yolofs.store import copying
from yolofs.store.base import Base
from yolofs.store.store import Store
from yolofs.system.plain_files import open_plain, read_plain
from yolofs.text.git_index_format import SIGNATURE, is_same_but_for_caches, may_be_index

INDEXES = b"indexes"
"""In the directory of an undo: the indexes that it brings back, by path in base."""
_MOST_BYTES = 1 << 30


def is_only_refreshed(applied: Applied, step: Step, base: Base, store: Store) -> bool:
    """Tell whether base has an index that says the same as the one that a step has left
    there.

    Mode, owner and extended attributes have to be the same, too.  Blocks while indexes of up to
    :data:`MOST_KEPT_BYTES` are read.
    """
    if not may_be_index(step.path, SIGNATURE):
        return False
    try:
        left = _made(store, step) if isinstance(step, Create) else _brought(applied.directory).get(step.path)
        if left is None:
            return False
        theirs = read_base(base, step.path)
    except (OSError, UnmergeableError):
        return False
    return left.owned == owned(theirs.metadata) and is_same_but_for_caches(
        left.content, theirs.content, shared_parts(base, step.path)
    )


def _made(store: Store, step: Create) -> KeptBase | None:
    """Return the file that a step made of a store inode; None if that has changed since."""
    with open(store.open(step.ino, os.O_RDONLY), "rb") as file:
        st = os.fstat(file.fileno())
        is_as_it_was = (st.st_size, st.st_mtime_ns) == (step.size, step.mtime_ns)
        if not stat.S_ISREG(st.st_mode) or not is_as_it_was or st.st_size > MOST_KEPT_BYTES:
            return None
        return KeptBase(owned(copying.read_metadata(file.fileno(), st=st)), file.read(MOST_KEPT_BYTES))


def _brought(directory: bytes) -> dict[RelPath, KeptBase]:
    """Return the indexes that an undo has brought back; none if that is not known."""
    try:
        text = read_plain(os.path.join(directory, INDEXES), _MOST_BYTES)
        found = msgspec.msgpack.decode(text, type=dict[bytes, KeptBase])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return {RelPath(path): index for path, index in found.items()}


def note_indexes(directory: bytes, plan: Plan, commits: bytes) -> None:
    """Note durably, in the directory of an undo, the indexes that its plan brings back; ``commits``
    is the directory of all.

    One that cannot be read is left out.

    Raises:
        OSError: the note cannot be written.
    """
    places = {step.number: step.path for step in plan.steps if isinstance(step, Place)}
    found: dict[RelPath, KeptBase] = {}
    for step in plan.steps:
        if isinstance(step, Fetch) and may_be_index(places[step.number], SIGNATURE):
            kept = kept_things.KeptObject(step.commit, step.slot, step.inside).path(commits)
            with contextlib.suppress(OSError):
                index = _read(kept)
                if index is not None:
                    found[places[step.number]] = index
    if found:
        write_new(directory, INDEXES, msgspec.msgpack.encode(found))


def _read(path: bytes) -> KeptBase | None:
    """Return the file at a path, None if it is no index."""
    with open(open_plain(path, os.O_RDONLY), "rb") as file:
        st = os.fstat(file.fileno())
        if st.st_size > MOST_KEPT_BYTES:
            return None
        content = file.read(MOST_KEPT_BYTES)
        return (
            KeptBase(owned(copying.read_metadata(file.fileno(), st=st)), content)
            if content.startswith(SIGNATURE)
            else None
        )
