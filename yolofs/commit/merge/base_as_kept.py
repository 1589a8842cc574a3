"""Whether a file of base still is what was kept of it when the view took over its name.

Its times do not count: the host may have touched it, or written the same again, as two calls of
``git checkout`` do.

:mod:`yolofs.state.kept_bases` says what is kept, and of which files.
"""

from __future__ import annotations

from collections.abc import Iterable

from yolofs.commit.merge.merging import UnmergeableError, read_base
from yolofs.paths import RelPath
from yolofs.state.kept_bases import find_kept, known_by, owned
from yolofs.state.tree import Staged
from yolofs.store.base import Base
from yolofs.store.store import Store


def still_as_kept(base: Base, store: Store, places: Iterable[tuple[RelPath, Staged]]) -> set[tuple[RelPath, Staged]]:
    """Return those of some places at which base has the content, mode, owner and extended
    attributes that were kept.

    A place is a base path, and what is staged instead of the file that was there.  A file with
    other names (hard links) than it had is not the same.  Blocks while the files are read, of up to
    :data:`~yolofs.state.kept_bases.MOST_KEPT_BYTES` each.
    """
    wanted = {(path, known_by(staged)): (path, staged) for path, staged in places if staged.origin is None}
    if not wanted:
        return set()
    kept = find_kept(store.directory, lambda *place: place in wanted)
    found = set()
    for place, one in kept.items():
        path, staged = wanted[place]
        try:
            theirs = read_base(base, path)
        except (OSError, UnmergeableError):
            continue
        is_same_file = staged.base is not None and base.number(theirs.st) == staged.base.ino
        if theirs.st.st_nlink != (staged.links or 1) or (staged.links and not is_same_file):
            continue
        if (theirs.content, owned(theirs.metadata)) == (one.content, one.owned):
            found.add((path, staged))
    return found
