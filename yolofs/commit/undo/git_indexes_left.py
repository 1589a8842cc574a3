"""Git's index, which a commit has left and the host has but looked at since: no drift.

It is the rule of :mod:`yolofs.commit.merge.git_indexes`.  What the commit left is known from the
store inode that it made the index from.  Of an index that an undo has brought back a copy is kept
(:mod:`yolofs.state.kept_bases`), as long as another one is staged in its place.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable

from yolofs.commit.merge.merging import RefusedError, read_base
from yolofs.commit.plan.kept import KeptAndStore, kept_of
from yolofs.commit.plan.plan import Create, Step
from yolofs.commit.undo.applied import Applied
from yolofs.journal.records import Keep
from yolofs.paths import RelPath
from yolofs.state.kept_bases import MOST_KEPT_BYTES, Kept, KeptBases, find_kept, known_by_fingerprint, owned
from yolofs.state.tree import Tree
from yolofs.store import copying
from yolofs.store.base import Base
from yolofs.store.store import Store
from yolofs.text.git_index_format import SIGNATURE, is_same_but_for_caches, may_be_index


def is_looked_at_alone(applied: Applied, index: int, step: Step, base: Base, store: Store) -> bool:
    """Tell whether base has an index that says the same as the one that a step (by its index) has
    left there.

    Mode, owner and extended attributes have to be the same, too.  Blocks while indexes of up to
    :data:`MOST_KEPT_BYTES` are read.
    """
    if not may_be_index(step.path, SIGNATURE):
        return False
    try:
        if isinstance(step, Create):
            left = _made(store, step)
        else:
            left = _brought(applied.came(index), step.path, base, store)
        if left is None:
            return False
        theirs = read_base(base, step.path)
    except (OSError, RefusedError):
        return False
    return left.owned == owned(theirs.metadata) and is_same_but_for_caches(left.content, theirs.content)


def _made(store: Store, step: Create) -> Kept | None:
    """Return what a store inode has, None if that is not what it was made into any more."""
    with open(store.open(step.ino, os.O_RDONLY), "rb") as file:
        st = os.fstat(file.fileno())
        is_as_it_was = (st.st_size, st.st_mtime_ns) == (step.size, step.mtime_ns)
        if not stat.S_ISREG(st.st_mode) or not is_as_it_was or st.st_size > MOST_KEPT_BYTES:
            return None
        return Kept(owned(copying.read_metadata(file.fileno(), st=st)), file.read(MOST_KEPT_BYTES))


def _brought(came: int | None, path: RelPath, base: Base, store: Store) -> Kept | None:
    """Return what is kept of what an undo has brought back, by the inode number that came."""
    st = base.look(path)
    if came is None or st is None:
        return None
    number = base.number(os.stat_result((st.st_mode, came, *st[2:10])))  # as that lay on the same disk
    found = find_kept(store, lambda of, known: of == path and known.endswith(b":%d" % number))
    return next(iter(found.values()), None)


def keep_indexes(records: Iterable[Keep], first: Tree, kept: KeptAndStore, store: Store) -> None:
    """Keep a copy of each index that an undo brings back and in whose place another one is staged.

    ``records``: what is staged then; ``first``: what the undo makes of base.  What cannot be kept
    is no error.
    """
    bases = KeptBases(store)
    try:
        for record in records:
            if record.home is None or record.base is None or not may_be_index(record.home, SIGNATURE):
                continue
            entry = first.find(record.home)
            if entry is None or entry.staged is None or kept_of(entry.staged.ino) is None:
                continue
            with contextlib.suppress(OSError), open(kept.open(entry.staged.ino, os.O_RDONLY), "rb") as file:
                if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    metadata = copying.read_metadata(file.fileno())
                    bases.keep(record.home, known_by_fingerprint(record.base), metadata, file.fileno())
    finally:
        bases.close()
