"""Base files with hard links of which two successive states both change names or content.

Once base is as the first state shows it, the rest of such a file cannot be found name by name: the
change of one name depends on all of them.  So all names are found: base's present ones, its future
ones, and the view's.  What cannot be found is refused.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from yolofs.commit.plan.kept_objects import kept_of
from yolofs.commit.plan.overridden_names import OverriddenName
from yolofs.commit.plan.survivors import Survivors
from yolofs.commit.select.shown_paths import ShownPaths
from yolofs.paths import RelPath
from yolofs.state.hard_links import staged_for
from yolofs.state.link_names import find_all_names_at
from yolofs.state.tree import Staged, Tree
from yolofs.store.base import Base


class LinkedFile(NamedTuple):
    """A base file with all of its names."""

    number: int
    home: RelPath
    """Where base has it now: by a name that stays, if one does."""
    place: RelPath | None
    """Where base has that afterwards; None if it has the file no more."""
    after: frozenset[RelPath]
    """All its names in base afterwards."""
    view: tuple[RelPath, ...]
    """All its names in the view."""
    staged: Staged | None
    """What the view shows there, None if what base has now."""
    is_same: bool
    """Whether base has afterwards just what the view shows."""


class UntoldFile(NamedTuple):
    """A base file with names that cannot all be found, or told apart."""

    why: str
    """In words, to follow a colon."""
    staged: tuple[RelPath, ...]
    """The names in the view that show what is staged of it."""


class _CannotTellError(Exception):
    """Not all names of a file can be found, or told apart."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class LinkedFiles:
    """The files with hard links of which both states change names, by device and inode number; and
    how many names the first state takes from other files.
    """

    def __init__(
        self,
        first: Tree,
        second: Tree,
        base: Base,
        survivors: Survivors,
        shown_paths: ShownPaths,
        *,
        place_of: Callable[[RelPath], RelPath | None],
        is_far: Callable[[RelPath, RelPath], bool],
    ) -> None:
        """Find nothing yet.

        ``shown_paths`` are those of ``second``; ``place_of`` tells where base has something
        afterwards, ``is_far`` if that is copied.
        """
        self._first = first
        self._second = second
        self._base = base
        self._survivors = survivors
        self._place_of = place_of
        self._is_far = is_far
        self._shown_paths = shown_paths
        self._moved: set[tuple[int, int]] | None = None
        self.told: dict[tuple[int, int], LinkedFile] = {}
        self.untold: dict[RelPath, UntoldFile] = {}
        """The files with names that cannot all be found, or told apart, each by a path in base."""
        self.taken: Counter[int] = Counter()
        """By inode number, of files that neither state has staged."""

    def find(self, names: Iterable[OverriddenName]) -> None:
        """Examine the ``names`` that the first state changes.

        Raises:
            OSError: base cannot be read.
        """
        wanted = dict(sorted(self._wanted(names), reverse=True))  # by the first of its names
        if not wanted:
            return
        found = find_all_names_at(self._base, wanted.values())
        for file, rel in wanted.items():
            try:
                self.told[file] = self._tell(rel, found.get(file))
            except _CannotTellError as error:
                staged = staged_for(self._second, self._base, self._base.lstat(rel))
                self.untold[rel] = UntoldFile(error.why, tuple(_paths(staged)) if staged is not None else ())

    # ---- which

    def _wanted(self, names: Iterable[OverriddenName]) -> Iterator[tuple[tuple[int, int], RelPath]]:
        """Yield the files that both states are about, each with a path in base, and count what is
        taken of others.
        """
        numbers = self._second.linked.keys() | self._second.unlinked.keys()
        for name in names:
            if name.natural_path is not None and self._survivors.of.get(name.entry) == name.natural_path:
                continue
            for rel in self._changed_at(name):
                st = self._base.look(rel)
                if st is None or stat.S_ISDIR(st.st_mode):
                    continue
                if self._base.number(st) not in numbers and not (st.st_nlink > 1 and self._is_moved(st)):
                    continue
                if self._is_staged(rel):
                    yield (st.st_dev, st.st_ino), rel
                elif rel == name.natural_path and self._place_of(rel) is None:
                    if self._shown_paths.path(rel) is not None:
                        yield (st.st_dev, st.st_ino), rel
                    else:
                        self.taken[self._base.number(st)] += 1
        for staged in self._first.staged.values():
            later = self._second.staged.get(staged.ino)
            if later is None or staged.home is None or _paths(later) == _paths(staged):
                continue
            st = self._base.look(staged.home)
            if st is not None and not stat.S_ISDIR(st.st_mode) and self._place_of(staged.home) is not None:
                yield (st.st_dev, st.st_ino), staged.home

    def _is_moved(self, st: os.stat_result) -> bool:
        """Tell whether the view shows a file by a name that it has moved, and stages nothing of
        it.
        """
        if self._moved is None:
            sources = (entry.base for _, entry in self._second.walk() if entry.base is not None)
            found = [one for source in sources if (one := self._base.look(source)) is not None]
            self._moved = {(one.st_dev, one.st_ino) for one in found if one.st_nlink > 1}
        return (st.st_dev, st.st_ino) in self._moved

    @staticmethod
    def _changed_at(name: OverriddenName) -> list[RelPath]:
        staged = name.entry.staged
        home = staged.home if staged is not None and staged.links else None
        return sorted({rel for rel in (name.natural_path, name.entry.source, home) if rel is not None})

    def _is_staged(self, rel: RelPath) -> bool:
        st = self._base.lstat(rel)
        return self._survivors.version_of(st) is not None or staged_for(self._second, self._base, st) is not None

    # ---- its names

    def _tell(self, rel: RelPath, names: list[RelPath] | None) -> LinkedFile:
        if names is None:
            raise _CannotTellError(
                "not all its names were found, as some lie outside of base or there is too much to look through"
            )
        st = self._base.lstat(rel)
        number = self._base.number(st)
        version, staged = self._version(rel, names), self._staged(rel, names)
        places = {name: place for name in names if (place := self._place_of(name)) is not None}
        made = [entry.path() for entry in version.names if entry not in self._survivors.of] if version else []
        if made and not places:
            raise _CannotTellError("base is to have it only by new names")
        if any(self._is_far(name, place) for name, place in places.items()):
            raise _CannotTellError("it is to go to another disk, where it is another file")
        home = next(iter(places), rel)
        view = {shown for name in names if (shown := self._shown_paths.path(name)) is not None}
        if staged is not None:
            view.update(entry.path() for entry in staged.names)
        is_same = (version.ino if version else None) == (staged.ino if staged else None)
        after = frozenset((*places.values(), *made))
        return LinkedFile(number, home, places.get(home), after, tuple(sorted(view)), staged, is_same)

    def _version(self, rel: RelPath, names: list[RelPath]) -> Staged | None:
        """Return what the first state makes of the file at a path."""
        version = self._survivors.version_of(self._base.lstat(rel))
        if version is not None and kept_of(version.ino) is not None:
            version = None
        self._check_alone(self._first, version, names)
        return version

    def _staged(self, rel: RelPath, names: list[RelPath]) -> Staged | None:
        """Return what the view shows of the file at a path."""
        st = self._base.lstat(rel)
        staged = staged_for(self._second, self._base, st)
        if staged is None:  # a file with one name is known by that
            homes = set(names)
            staged = next((one for one in self._second.staged.values() if one.home in homes), None)
        self._check_alone(self._second, staged, names)
        return staged

    @staticmethod
    def _check_alone(tree: Tree, staged: Staged | None, names: list[RelPath]) -> None:
        """Check that a tree makes one file of the one with these names in base; the host may have
        joined some since.
        """
        homes = set(names)
        others = (one for one in tree.staged.values() if one is not staged and kept_of(one.ino) is None)
        if any(one.home in homes for one in others):
            raise _CannotTellError("names of it were staged as files of their own")


def _paths(staged: Staged) -> list[RelPath]:
    return sorted(entry.path() for entry in staged.names)
