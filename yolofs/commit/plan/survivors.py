"""Finds the objects of base that survive a commit, and the name of the view under which each does.

An object that the view still has survives under one name.  If that is where it is already, it
stays; if it is elsewhere, it moves.  An object that survives under no name goes, and a name under
which none survives is made from the store.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from yolofs.commit.plan.kept_objects import kept_of
from yolofs.commit.plan.overridden_names import OverriddenName
from yolofs.errors import YolofsError
from yolofs.paths import RelPath, display, join, split
from yolofs.state.hard_links import staged_for
from yolofs.state.link_names import find_names
from yolofs.state.tree import Entry, Staged, Tree
from yolofs.store.base import Base
from yolofs.store.base_opening import read_link
from yolofs.store.interfaces import StorePaths
from yolofs.store.owners import GivableOwners
from yolofs.system.deep_paths import DeepPaths


class Survivors:
    """Which objects of base one state still shows, and under which name.  It looks at base and the
    store once, when it is made.
    """

    def __init__(self, tree: Tree, base: Base, store: StorePaths, names: Sequence[OverriddenName]) -> None:
        """Find out what survives where; ``names`` are the overridden names of the tree.

        Raises:
            YolofsError: two names show the same base object without being hard links.
            OSError: base or the store cannot be read.
        """
        self._tree = tree
        self._base = base
        self._store = store
        self.names = names
        """All entries of the tree, parents before children."""
        self.by_entry = {name.entry: name for name in self.names}
        self.store_stats = {ino: store.lstat(ino) for ino in tree.staged}
        self.of: dict[Entry, RelPath] = {}
        """The base object that survives under each name."""
        self.name_of: dict[RelPath, Entry] = {}
        """The same the other way round."""
        self.first: dict[Staged, Entry] = {}
        """Of several hard links the one that is made first; the others are linked to it."""
        self.nameless: list[tuple[Staged, RelPath]] = []
        """Staged files of which base has names that nobody has looked at, each with a base path."""
        self.given: dict[Entry, Staged] = {}
        """Names that survive, and get what is staged beside the :attr:`first` one: they are no
        links of it any more, as one of the two moves to another device or mount.
        """
        self.given_unseen: list[tuple[RelPath, RelPath, Staged]] = []
        """Unseen names that get a new version: the path after the commit, the base path now, and
        the version.
        """
        self.cut_off = [name.path for name in self.names if name.is_cut_off]
        """What cannot be committed, as its directory is gone from base."""
        self.without_content: list[RelPath] = []
        """What cannot be committed, as its content was in base alone and is gone."""
        self._moved: dict[RelPath, Entry] = {}
        self._gone: set[RelPath] = set()
        """The base paths at which the view has something else, or nothing."""
        self._versions: dict[tuple[int, int], list[Staged]] = {}
        """What the view makes of each base file: several, if the host made hard links of what was
        staged apart.
        """
        self._giving = GivableOwners()
        self._file_of: dict[Staged, tuple[int, int] | None] = {}
        """What :meth:`_base_file` has found: the host may put something else there between two
        looks."""
        self._keep_redirects()
        self._keep_staged(list(tree.staged.values()))
        if tree.linked and base.mounts:
            self._give_to_copies()

    def st(self, staged: Staged) -> os.stat_result:
        """Return the attributes of a store inode."""
        return self.store_stats[staged.ino]

    def version_of(self, st: os.stat_result) -> Staged | None:
        """Return what the view makes of a file of base, by whichever of its names; None if it stays
        as it is.

        What an earlier commit keeps is one only if there is no other: it comes back at a name of
        the file, and is another file.
        """
        versions = self._versions.get((st.st_dev, st.st_ino), ())
        return min(versions, key=lambda one: kept_of(one.ino) is not None, default=None)

    def sharing(self, staged: Staged) -> Staged:
        """Of the staged files that are hard links of one file in base, return the one that keeps
        its inode: the view may give them different metadata.

        There are several only if the host made the links when one of them was staged already.
        """
        file = self._base_file(staged)
        with_origin = [other for other in self._versions[file] if other.origin is not None] if file else [staged]
        return min(with_origin, key=lambda other: (not other.names, not other.links, other.ino))

    def _keep(self, entry: Entry, rel: RelPath) -> None:
        other = self.name_of.setdefault(rel, entry)
        if other is not entry:
            one, another, there = (display(self._base.path(path)) for path in (other.path(), entry.path(), rel))
            raise YolofsError(
                f"both {one} and {another} show what base has at {there}",
                hint="replace one of them by a copy in the view (cp -p FILE NEW && mv NEW FILE), then commit again",
            )
        self.of[entry] = rel

    def _keep_redirects(self) -> None:
        for name in self.names:
            if name.entry.base is not None and name.source_st is not None and not name.is_cut_off:
                self._keep(name.entry, name.entry.base)

    def _keep_staged(self, all_staged: list[Staged]) -> None:
        for staged in all_staged:
            if staged.origin is None and staged.home is None:  # born in the view, as nearly all of a large state is
                continue
            if (file := self._base_file(staged)) is not None and (staged.names or self._may_show_unseen(staged)):
                self._versions.setdefault(file, []).append(staged)
        others: list[tuple[Entry, RelPath]] = []
        for staged in all_staged:
            names = staged.names
            if len(names) == 1 and staged.origin is None and staged.home is None:
                self.first[staged] = names[0]
                continue
            if not names:
                if staged.home is not None and self._may_show_unseen(staged):
                    self.nameless.append((staged, staged.home))
                continue
            rel = self._base_object(staged)
            at_home = next((entry for entry in names if self.by_entry[entry].natural_path == rel), None)
            first = at_home or next((entry for entry in names if rel and not self._is_far(entry, rel)), names[0])
            self.first[staged] = first
            if rel is not None:
                self._keep(first, rel)
                others += [(entry, rel) for entry in names if entry is not first]
        for entry, rel in others:
            self._keep_hard_link(self.by_entry[entry], rel)

    def _may_show_unseen(self, staged: Staged) -> bool:
        """Tell whether the view may show a staged file at a base name that was never looked at, or
        at a renamed one.
        """
        file, place = self._base_file(staged), staged.origin if staged.origin is not None else staged.home
        st = self._base.look(place) if place is not None else None
        if file is None or st is None:
            return False
        hidden = set[RelPath | None]()
        for name in self.names:
            if name.natural_st is not None and _file(name.natural_st) == file:
                hidden.add(name.natural_path)
            if name.entry.staged is None and name.source_st is not None and _file(name.source_st) == file:
                return True
        return len(hidden) < st.st_nlink

    def _keep_hard_link(self, name: OverriddenName, rel: RelPath) -> None:
        """Let a further name of a file stay what it is if base has the same file there already."""
        survivor = self._base.lstat(rel)
        if name.natural_st is None or name.natural_path is None or name.natural_path in self.name_of:
            return
        if _file(name.natural_st) == _file(survivor):
            self._keep(name.entry, name.natural_path)

    # ---- what moves to another device or mount

    def _give_to_copies(self) -> None:
        """Let each copy get what is staged.  What cannot be renamed is copied, and is then a hard
        link only of what is copied with it.
        """
        self._moved = {rel: entry for entry, rel in self.of.items() if self.by_entry[entry].natural_path != rel}
        if not any(self._is_far(entry, rel) for rel, entry in self._moved.items()):
            return
        has_it = {(self._copy_of(rel), one) for one, e in self.first.items() if (rel := self.of.get(e)) is not None}
        named: set[Staged] = set()
        for entry, rel in self.of.items():
            staged = self._linked(rel)
            if staged is not None and (self._copy_of(rel), staged) not in has_it:
                has_it.add((self._copy_of(rel), staged))
                self.given[entry] = staged
                named.add(staged)
        overridden = {name.natural_path for name in self.names if name.natural_path is not None}
        self._gone = overridden.difference(self.name_of)
        for rel in find_names(self._base, self._tree.linked.values()):
            staged, path = self._linked(rel), self._path_afterwards(rel)
            if staged is None or path is None or rel in overridden or (self._copy_of(rel), staged) in has_it:
                continue
            has_it.add((self._copy_of(rel), staged))
            self.given_unseen.append((path, rel, staged))
            named.add(staged)
        self.nameless = [one for one in self.nameless if one[0] not in named]

    def _linked(self, rel: RelPath) -> Staged | None:
        st = self._base.look(rel)
        return staged_for(self._tree, self._base, st) if st is not None else None

    def _is_far(self, entry: Entry, rel: RelPath) -> bool:
        return self._base.mount_above(self.by_entry[entry].path) != self._base.mount_above(rel)

    def _copy_of(self, rel: RelPath) -> RelPath | None:
        """Return the base path of the thing that a move copies and that is, or holds, the thing at
        ``rel``; None if there is none.
        """
        while rel:
            if (entry := self._moved.get(rel)) is not None:
                return rel if self._is_far(entry, rel) else None
            rel = split(rel)[0]
        return None

    def _path_afterwards(self, rel: RelPath) -> RelPath | None:
        """Return where something that is no entry comes to be; None if it goes with a directory."""
        names: list[bytes] = []
        at = rel
        while at and at not in self.name_of and at not in self._gone:
            at, name = split(at)
            names.append(name)
        if at in self._gone:
            return None
        path = self.by_entry[self.name_of[at]].path if at in self.name_of else at
        for name in reversed(names):
            path = join(path, name)
        return path

    def _base_file(self, staged: Staged) -> tuple[int, int] | None:
        """Return which file of base a staged file is a version of, None for a directory or if it is
        not there.
        """
        if staged not in self._file_of:
            self._file_of[staged] = self._look_at_base_file(staged)
        return self._file_of[staged]

    def _look_at_base_file(self, staged: Staged) -> tuple[int, int] | None:
        kind = stat.S_IFMT(self.st(staged).st_mode)
        rel = staged.origin if staged.origin is not None else staged.home
        if kind == stat.S_IFDIR or rel is None:
            return None
        st = self._base.look(rel)
        if st is None or stat.S_IFMT(st.st_mode) != kind:
            return None
        if staged.origin is None and (staged.base is None or self._base.number(st) != staged.base.ino):
            return None
        return _file(st)

    def _base_object(self, staged: Staged) -> RelPath | None:
        """Return the base object that stays in use for a staged file or directory, None if a new
        one is made.
        """
        file = self._base_file(staged)
        if staged.origin is not None:
            if file is not None:
                return staged.origin if self.sharing(staged) is staged else None
            return self._origin_without_file(staged, staged.origin)
        home = staged.home
        if file is None or home is None or (len(self._versions[file]) > 1 and not staged.links):
            return None
        return home if home not in self.name_of and self._can_stay(home, staged) else None

    def _origin_without_file(self, staged: Staged, origin: RelPath) -> RelPath | None:
        """Return the origin of a directory; note what is lost of a file that base no longer has."""
        if not stat.S_ISDIR(self.st(staged).st_mode):
            self.without_content += [entry.path() for entry in staged.names]
            return None
        st = self._base.look(origin)
        return origin if st is not None and stat.S_ISDIR(st.st_mode) else None

    def _can_stay(self, home: RelPath, staged: Staged) -> bool:
        """Tell whether to change a base file in place: a regular file with hard links, or one that
        holds no data.

        Others are replaced, so that nobody ever sees half of the new content.  There are three
        exceptions: a writable file in a read-only directory; a file whose owner or group a copy
        could not be given; and one that an undo gives its former links back
        (:mod:`yolofs.commit.undo.as_records`).  What an earlier commit keeps takes the place of
        any.
        """
        if kept_of(staged.ino) is not None:
            return False
        old, new = self._base.lstat(home), self.st(staged)
        if stat.S_ISREG(old.st_mode):
            return old.st_nlink > 1 or staged.links == 1 or self._keeps_owner(home, old, new) or self._is_fixed(home)
        if stat.S_ISLNK(old.st_mode):
            return read_link(self._base.path(home)) == os.readlink(self._store.path(staged.ino))
        return old.st_rdev == new.st_rdev

    def _keeps_owner(self, home: RelPath, old: os.stat_result, new: os.stat_result) -> bool:
        """Tell whether a file may be written, and has an owner and group that it is to keep and
        that a copy could not be given.
        """
        if self._giving.may_give(old.st_uid, old.st_gid) or (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            return False
        if old.st_uid == os.geteuid():
            return True
        with DeepPaths() as deep:
            return os.access(deep.near(self._base.path(home)), os.W_OK, effective_ids=True)

    def _is_fixed(self, home: RelPath) -> bool:
        """Tell whether a file may be written, and nothing be put in its place: its directory is
        another user's.
        """
        st, me = self._base.lstat(split(home)[0]), os.geteuid()
        if me in (0, st.st_uid):  # ours is opened for a commit
            return False
        with DeepPaths() as deep:
            path = deep.near(self._base.path(home))
            if not os.access(path, os.W_OK, effective_ids=True):
                return False
            is_sticky = st.st_mode & stat.S_ISVTX and os.lstat(path).st_uid != me
            return bool(is_sticky) or not os.access(os.path.dirname(path), os.W_OK | os.X_OK, effective_ids=True)


def _file(st: os.stat_result) -> tuple[int, int]:
    return st.st_dev, st.st_ino
