"""Copies of the texts that an undo brings back into base where another version is staged: by these
they are known again, and merged (:mod:`yolofs.state.kept_bases`).
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable

from yolofs.commit.plan.kept_objects import KeptAndStore
from yolofs.journal.records import Keep
from yolofs.state.kept_bases import MOST_KEPT_BYTES, KeptBases, known_by_fingerprint
from yolofs.state.tree import Tree
from yolofs.store import copying
from yolofs.store.store import Store

_READING = os.O_RDONLY | os.O_NONBLOCK
"""What is kept may be a fifo, for whose writer nobody is to wait."""


def keep_texts(records: Iterable[Keep], first: Tree, kept: KeptAndStore, store: Store) -> None:
    """Keep what an undo brings back: texts, and git's indexes.

    ``records``: what is staged then; ``first``: what the undo makes of base.  What cannot be kept
    is no error.  Blocks while files of up to :data:`~yolofs.state.kept_bases.MOST_COPIED_BYTES` are
    copied.
    """
    bases = KeptBases(store)
    try:
        for record in records:
            if record.home is None or record.base is None or record.origin is not None:
                continue
            entry = first.find(record.home)
            if entry is None or entry.staged is None or entry.staged.origin is not None:
                continue
            with contextlib.suppress(OSError), open(kept.open(entry.staged.ino, _READING), "rb") as file:
                st = os.fstat(file.fileno())
                if stat.S_ISREG(st.st_mode) and st.st_size <= MOST_KEPT_BYTES:
                    metadata = copying.read_metadata(file.fileno(), st=st)
                    bases.keep(record.home, known_by_fingerprint(record.base), metadata, file.fileno())
    finally:
        bases.close()
