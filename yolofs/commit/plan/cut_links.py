"""Which hard links a commit cuts, as names of a file move to another disk or mount, into a
subvolume, or to where another project number is handed down (:mod:`yolofs.system.rename_domains`).

Each such name becomes a file of its own.  It gets what is staged; so do names of base that stay.
Names that base lacks, or that were not found, keep the file as it was.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from yolofs.commit.plan.moves import Moves
from yolofs.commit.plan.overridden_names import OverriddenName
from yolofs.commit.plan.plan import Link, Park, Place, Plan, Rewrite, SetMetadata
from yolofs.paths import RelPath, join, split
from yolofs.state.link_names import MOST_SEARCHED, find_names_at
from yolofs.store.base import Base
from yolofs.system.rename_domains import RenameDomain, rename_domain


class CutLink(NamedTuple):
    """A name that becomes a file of its own."""

    path: RelPath
    """Where it comes to be."""
    others: list[bytes]
    """The other names of the file afterwards, absolute, as far as they were found."""
    missing: int
    """How many more it has."""
    keeps_old: bool
    """Whether those others keep what the file was, though the name gets something else."""


class Ways:
    """Knows between which names of base a rename or a hard link leads."""

    def __init__(self, base: Base) -> None:
        self._base = base
        self._known: dict[RelPath, RenameDomain] = {}

    def are_cut(self, old: RelPath, new: RelPath) -> bool:
        """Tell whether what is at ``old`` is copied to ``new``; both may be paths of the view."""
        if self._base.mount_above(old) != self._base.mount_above(new):
            return True
        above, below = self._nearest(split(old)[0]), self._nearest(split(new)[0])
        return above != below and not self._domain(above).leads_to(self._domain(below))

    def _nearest(self, directory: RelPath) -> RelPath:
        """Return the directory, or the next one above it that base has: what is made in there is on
        its disk.
        """
        while directory:
            st = self._base.look(directory)
            if st is not None and stat.S_ISDIR(st.st_mode):
                break
            directory = split(directory)[0]
        return directory

    def _domain(self, directory: RelPath) -> RenameDomain:
        if directory not in self._known:
            self._known[directory] = rename_domain(self._base.path(directory))
        return self._known[directory]


def moves_between_disks(names: Iterable[OverriddenName], base: Base) -> bool:
    """Tell whether any of the names of a tree moves to another disk or mount, or to where else no
    rename leads, or is to be a hard link of a name there.

    Raises:
        OSError: base cannot be read.
    """
    ways = Ways(base)
    for name in names:
        staged = name.entry.staged
        source = staged.home if staged is not None and staged.home is not None else name.entry.source
        if source and source != name.natural_path and ways.are_cut(source, name.path):
            return True
        if staged is not None and staged.names[1:] and ways.are_cut(staged.names[0].path(), name.path):
            return True
    return False


def find_cut_links(plan: Plan, base: Base) -> list[CutLink]:
    """Return the names that a plan cuts off from other names of the same file.  No step of the plan
    may be done yet.

    It searches for names where the view does not reach, too, for a bounded time each.  Blocks.

    Raises:
        OSError: base cannot be read.
    """
    return list(_Cutting(plan, base).links())


def find_links_to_copy(plan: Plan, base: Base) -> list[Link]:
    """Return the steps that are to make hard links where none can be, so that they make copies.

    Raises:
        OSError: base cannot be read.
    """
    ways = Ways(base)
    return [step for step in plan.steps if isinstance(step, Link) and ways.are_cut(step.existing, step.path)]


class _Cutting:
    def __init__(self, plan: Plan, base: Base) -> None:
        self._plan = plan
        self._base = base
        self._ways = Ways(base)
        self._moves = Moves(plan)
        self._changed = {step.path for step in plan.steps if isinstance(step, Rewrite | SetMetadata)}

    def links(self) -> Iterator[CutLink]:
        moved = list(self._moved())
        for old, new, file in moved:
            known, _ = find_names_at(self._base, old)
            left = self._base.lstat(old).st_nlink - len(known)
            gone = {one for one, _, other in moved if other == file}
            stay = [now for one in known if one not in gone and (now := self._moves.after(one)) is not None]
            outside = self._outside(old, left)
            others = [*(self._base.path(one) for one in stay), *outside]
            missing = left - len(outside)
            if others or missing > 0:
                keeps_old = new in self._changed and self._changed.isdisjoint(stay)
                yield CutLink(new, others, missing, keeps_old)

    def _moved(self) -> Iterator[tuple[RelPath, RelPath, tuple[int, int]]]:
        """Yield each file with hard links that a move copies: its old path, its new path, its
        device and inode number.
        """
        parks = {step.number: step.path for step in self._plan.steps if isinstance(step, Park)}
        for step in self._plan.steps:
            if not isinstance(step, Place) or step.number not in parks:
                continue
            old = parks[step.number]
            if self._ways.are_cut(old, step.path):
                yield from self._files(old, step.path)

    def _files(self, old: RelPath, new: RelPath) -> Iterator[tuple[RelPath, RelPath, tuple[int, int]]]:
        todo = [(old, new)]
        for one, other in todo:
            if len(todo) > MOST_SEARCHED:
                return
            st = self._base.look(one)
            if st is None or (one != old and self._moves.goes(one)):
                continue
            if stat.S_ISDIR(st.st_mode):
                todo += [(join(one, name), join(other, name)) for name in self._base.names(one)]
            elif st.st_nlink > 1:
                yield one, other, (st.st_dev, st.st_ino)

    def _outside(self, old: RelPath, left: int) -> list[bytes]:
        """Return the absolute paths of the file's names outside of base; ``left`` is how many names
        were not found in base.
        """
        if not left or self._base.root == b"/":
            return []
        everything = Base(b"/")
        path = everything.relative(self._base.path(old))
        names, _ = find_names_at(everything, path) if path is not None else ([], False)
        paths = map(everything.path, names)
        return [one for one in paths if self._base.relative(one) is None]
