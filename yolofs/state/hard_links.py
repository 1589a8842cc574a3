"""Base files with several names (hard links): finds the staged file that such a name shows.

The override tree knows a base file that was copied up by its inode number.  Numbers alone prove
nothing: the host may have deleted the file and given its number to another.  So what base has at a
name is taken for the staged file only if it is the same file (device and number) as at the path
that was copied up.  If the host has put something else at that path, the file must still have the
fingerprint that was taken at copy-up.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from yolofs.journal.records import ChangeRecord, Keep, Stage
from yolofs.paths import RelPath, StoreIno
from yolofs.state.tree import Staged, Tree, link_key
from yolofs.store.base import Base


def staged_for(tree: Tree, base: Base, st: os.stat_result) -> Staged | None:
    """Return the staged file that a name of base shows that leads to a file with these attributes;
    None if none.

    Costs next to nothing while no file with hard links is staged.
    """
    if not tree.linked or stat.S_ISDIR(st.st_mode):
        return None
    staged = tree.linked.get(base.number(st))
    return staged if staged is not None and _is_home_of(staged, base, st) else None


def has_data(staged: Staged, base: Base, st: os.stat_result) -> bool:
    """Tell whether what is staged, with the attributes ``st`` in the store, still has its data,
    should that be in base.

    Where the host has taken it, what another name of base leads to shows base's file.
    """
    if staged.origin is None or not stat.S_ISREG(st.st_mode):
        return True
    there = base.look(staged.origin)
    return there is not None and stat.S_ISREG(there.st_mode)


def key_for(tree: Tree, base: Base, st: os.stat_result) -> int | None:
    """Return what is :attr:`~yolofs.state.tree.Staged.key` of a base file once it is copied up, if
    it has several names.
    """
    if stat.S_ISDIR(st.st_mode) or not (st.st_nlink > 1 or tree.linked):
        return None
    number = base.number(st)
    return link_key(number) if st.st_nlink > 1 or number in tree.linked else None


def nlink_of(tree: Tree, base: Base, st: os.stat_result) -> int:
    """Return how many names of the view lead to a base file that is not staged and not a
    directory.
    """
    if st.st_nlink < 2 or not tree.unlinked:
        return st.st_nlink
    return max(1, st.st_nlink - tree.unlinked.get(base.number(st), 0))


def find_misnamed(records: Iterable[ChangeRecord]) -> tuple[Tree, list[tuple[Staged, RelPath]]]:
    """Return the tree of some records, and its files that were recorded with the base path of
    another name, one that did not move.

    That is how older versions recorded a file with hard links one name of which had been renamed
    after another was looked at.  The tree has the path that is right
    (:attr:`~yolofs.state.tree.Staged.origin`).

    Raises:
        JournalError: the records contradict themselves.
    """
    tree = Tree()
    recorded: dict[StoreIno, RelPath] = {}
    for record in records:
        tree.apply(record)
        if not isinstance(record, Stage | Keep) or record.ino is None:
            continue
        staged = tree.staged.get(record.ino)
        if staged is not None and staged.links and record.origin not in (None, staged.origin):
            assert record.origin is not None
            recorded[staged.ino] = record.origin
        else:
            recorded.pop(record.ino, None)
    return tree, [(tree.staged[ino], rel) for ino, rel in recorded.items() if ino in tree.staged]


def _is_home_of(staged: Staged, base: Base, st: os.stat_result) -> bool:
    if staged.home is not None:
        try:
            home = base.lstat(staged.home)
        except OSError:
            home = None
        if home is not None and (home.st_dev, home.st_ino) == (st.st_dev, st.st_ino):
            return True
    return staged.base is not None and base.fingerprint(st).fits(staged.base)
