"""The last look at a plan before its first step: base will have the names that the view shows, and
no others.

What the view shows is found by walking the override tree over base, what base will have by doing
the plan's steps on names alone.  Neither uses :mod:`yolofs.commit.plan.survivors`, as this check is
to find errors there.  A difference is a defect of yolofs, now or when the journal was written.
Either way, a commit that would lose a name does not begin.

Only what the tree or the plan mentions is looked at: of all other names base and view are the same.
"""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple, TypeAlias, assert_never

from yolofs.commit.plan.kept_objects import KeptObject
from yolofs.commit.plan.plan import (
    Create,
    Duplicate,
    Fetch,
    FinishDirectory,
    Link,
    MakeDirectory,
    Park,
    Place,
    Plan,
    Remove,
    Rewrite,
    SetMetadata,
    Step,
)
from yolofs.errors import YolofsError
from yolofs.paths import ROOT, RelPath, StoreIno, display, join, split
from yolofs.state.hard_links import staged_for
from yolofs.state.tree import Entry, Staged, Tree
from yolofs.store.base import Base

_NOTHING: Mapping[StoreIno, RelPath | StoreIno] = {}


def check_names(plan: Plan, tree: Tree, base: Base) -> None:
    """Refuse a plan after which base would not have the very names that ``tree`` shows over it,
    links among them.

    Raises:
        YolofsError: it would not; the first path is named.
        OSError: base cannot be read.
    """
    _ViewWithBaseAfter(tree, base, Tree(), _NamesAfter(plan.steps)).check()


def check_rest(
    plan: Plan, tree: Tree, base: Base, rest: Tree, stands_for: Mapping[StoreIno, RelPath | StoreIno] = _NOTHING
) -> None:
    """Refuse a plan if ``rest``, left staged over the new base, would show another view than
    ``tree`` does now.

    ``stands_for``: store inodes made for ``rest``, each with what it shows: what base has at a path
    now, or a staged file.

    Raises:
        YolofsError: as :func:`check_names`.
        OSError: base cannot be read.
    """
    _ViewWithBaseAfter(tree, base, rest, _NamesAfter(plan.steps), stands_for).check()


_NO_NAMES: dict[bytes, _Object | None] = {}
"""The children of each object that was given none; stays empty."""


class _Object:
    """A thing of base after the commit: the present one at ``base``, or a new one."""

    __slots__ = ("base", "children", "ino")

    def __init__(self, base: RelPath | None, ino: StoreIno | None = None) -> None:
        self.base = base
        self.ino = ino
        """The store inode that it is made from."""
        self.children: dict[bytes, _Object | None] = _NO_NAMES
        """The names in it that are other than at ``base``, None where there is nothing any more."""

    def put(self, name: bytes, what: _Object | None) -> None:
        """Let something, or nothing, be at a name."""
        if self.children is _NO_NAMES:
            self.children = {}
        self.children[name] = what

    def child(self, name: bytes) -> _Object | None:
        """Return what it has at a name; whether base has that is not looked at here."""
        if name in self.children:
            return self.children[name]
        return _Object(join(self.base, name)) if self.base is not None else None


class _NamesAfter:
    """What base will have where, found by doing the steps on names."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self.root = _Object(ROOT)
        self._parked: dict[int, _Object | None] = {}
        self._last: tuple[bytes, _Object] = ROOT, self.root
        """The directory in which something changed last."""
        for step in steps:
            self._do(step)

    def find(self, path: bytes) -> _Object | None:
        """Return what is at a path."""
        found: _Object | None = self.root
        for name in path.split(b"/") if path else ():
            if found is None:
                return None
            found = found.child(name)
        return found

    def _do(self, step: Step) -> None:
        match step:
            case Create():
                self._put(step.path, _Object(None, step.ino))
            case Park():
                self._parked[step.number] = self._put(step.path, None)
            case Remove():
                self._put(step.path, None)
            case Fetch():
                self._parked[step.number] = _Object(None, KeptObject(step.commit, step.slot, step.inside).ino)
            case Place():
                self._put(step.path, self._parked.pop(step.number, None))
            case Link():
                self._put(step.path, self.find(step.existing))
            case MakeDirectory() | Duplicate():
                self._put(step.path, _Object(None, step.ino))
            case Rewrite() | SetMetadata() | FinishDirectory():
                pass
            case _:
                assert_never(step)

    def _put(self, path: RelPath, what: _Object | None) -> _Object | None:
        """Let something, or nothing, be at a path, and return what was there."""
        above, name = split(path)
        directory = self._last[1] if self._last[0] == above else self._directory(above)
        if directory is None:
            return None  # which is found when names are compared
        if self._last[0].startswith(path):
            self._last = ROOT, self.root
        before = directory.child(name)
        directory.put(name, what)
        return before

    def _directory(self, path: bytes) -> _Object | None:
        """Return the directory at a path, as one in which names may change."""
        directory = self.root
        for name in path.split(b"/") if path else ():
            below = directory.child(name)
            if below is None:
                return None
            directory.put(name, below)
            directory = below
        self._last = path, directory
        return directory


class _Seen(NamedTuple):
    """The meaning of a name: a staged thing, a thing of base now, or a thing of base after the
    commit.
    """

    entry: Entry | None
    staged: Staged | None
    base: RelPath | None
    """Of what is in base now, its path; of a staged directory the one that its names come from."""
    after: _Object | None = None
    """Of what base will have: the thing itself, or the directory that a staged one's names come
    from.
    """


_File: TypeAlias = Hashable


class _ViewWithBaseAfter:
    """Compares the names of the view with what base and the rest would show after the plan."""

    def __init__(
        self,
        tree: Tree,
        base: Base,
        rest: Tree,
        after: _NamesAfter,
        stands_for: Mapping[StoreIno, RelPath | StoreIno] = _NOTHING,
    ) -> None:
        self._tree = tree
        self._stands_for = stands_for
        self._base = base
        self._rest = rest
        self._after = after
        self._wrong: list[tuple[RelPath, str]] = []
        self._becomes: dict[_File, _File] = {}
        """What each file of the view is in base afterwards."""
        self._was: dict[_File, _File] = {}
        self._compared: Counter[StoreIno] = Counter()
        """How many names of a staged file were compared that have no entry in the view."""

    def check(self) -> None:
        todo = [(ROOT, self._top(self._tree, None), self._top(self._rest, self._after))]
        while todo:
            path, now, then = todo.pop()
            names = set(now.entry.children or ()) if now.entry is not None else set()
            names.update((then.entry.children or ()) if then.entry is not None else ())
            names.update(then.after.children if then.after is not None else ())
            lost = self._lost_directory(now, then)
            names.update(self._base.names(lost) if lost is not None else ())
            if then.entry is None or not then.entry.children:
                names.difference_update(self._plain_names(now, then))
            for name in names:
                below = join(path, name)
                left, right = self._child_now(now, name), self._child_then(then, name)
                if left is None and right is None:
                    continue
                self._compare(below, left, right)
                if left is None or right is None:
                    continue
                if _has_names(left, right) or self._lost_directory(left, right) is not None:
                    todo.append((below, left, right))
        self._check_unseen()
        if self._wrong:
            self._refuse()

    def _plain_names(self, now: _Seen, then: _Seen) -> list[bytes]:
        """Return the names that plainly are what they are to be; nearly all of a
        large plan.
        """
        if now.entry is None or then.after is None or not now.entry.children:
            return []
        entries = now.entry.children
        has_links = bool(self._tree.linked or self._rest.linked)
        plain = []
        for name, after in then.after.children.items():
            entry = entries.get(name)
            if entry is None or entry.children:
                continue
            staged = entry.staged
            if after is None:
                is_plain = staged is None and entry.base is None
            elif after.children:
                is_plain = False
            elif staged is None:
                is_plain = entry.base is not None and entry.base == after.base and not has_links
            else:
                is_alone = staged.origin is None and not staged.links and len(staged.names) == 1
                is_plain = is_alone and after.ino == staged.ino
            if is_plain:
                plain.append(name)
        return plain

    @staticmethod
    def _top(tree: Tree, after: _NamesAfter | None) -> _Seen:
        return _Seen(tree.root, tree.root.staged, ROOT, after.root if after is not None else None)

    # ---- what the names show

    def _child_now(self, directory: _Seen, name: bytes) -> _Seen | None:
        entry = _entry(directory, name)
        if entry is not None:
            return _Seen(entry, entry.staged, entry.source) if not entry.is_tombstone else None
        return _Seen(None, None, join(directory.base, name)) if directory.base is not None else None

    def _child_then(self, directory: _Seen, name: bytes) -> _Seen | None:
        entry = _entry(directory, name)
        if entry is None:
            after = directory.after.child(name) if directory.after is not None else None
            return _Seen(None, None, None, after) if after is not None else None
        if entry.is_tombstone:
            return None
        after = self._after.find(entry.source) if entry.source is not None else None
        if entry.staged is None and after is None:
            return None
        return _Seen(entry, entry.staged, None, after)

    def _compare(self, path: RelPath, now: _Seen | None, then: _Seen | None) -> None:
        """Note what is wrong with a name."""
        if now is None or not self._is_there(now):
            if then is not None and self._will_be_there(then):
                self._wrong.append((path, "would bring back {}, which the view does not show"))
        elif then is None or not self._will_be_there(then):
            self._wrong.append((path, "would remove {}, which the view still shows"))
        elif not self._is_same(now, then):
            self._wrong.append((path, "would put something else at {} than the view shows"))
        elif not self._is_same_file(now, then):
            self._wrong.append((path, "would part or join {} and other names (hard links) of a file"))

    def _is_there(self, seen: _Seen) -> bool:
        return seen.staged is not None or (seen.base is not None and self._base.has(seen.base))

    def _will_be_there(self, seen: _Seen) -> bool:
        if seen.staged is not None:
            return True
        after = seen.after
        return after is not None and (after.base is None or self._base.has(after.base))

    def _is_same(self, now: _Seen, then: _Seen) -> bool:
        """Tell whether a name shows the same thing before and after, with its names if it is a
        directory.
        """
        left = now.staged if now.staged is not None else self._linked(now.base)
        made = then.staged.ino if then.staged is not None else then.after.ino if then.after is not None else None
        shown = self._stands_for.get(made) if made is not None else None
        if isinstance(shown, bytes):
            return left is None and (now.base == shown or self._file(now.base) == self._file(shown) is not None)
        if made is not None:
            is_same = left is not None and left.ino in (made, shown)
            is_whole = now.staged is None or self._lost_directory(now, then) is not None
            return is_same and (is_whole or self._has_same_names(now, then))
        assert then.after is not None
        there = then.after.base
        if left is None or now.staged is None:
            return now.base == there or self._file(now.base) == self._file(there) is not None
        return there in (left.origin, left.home) or self._file(left.home) == self._file(there) is not None

    def _lost_directory(self, now: _Seen, then: _Seen) -> RelPath | None:
        """Return the directory of base from which names in both come, if base will have it no more:
        the rest has to have each of them.
        """
        return self._directory(now.base) if then.staged is not None and then.after is None else None

    def _has_same_names(self, now: _Seen, then: _Seen) -> bool:
        """Tell whether the names in both come from the same directory of base, or in neither from
        any.
        """
        source = then.after.base if then.after is not None else None
        return now.base == source or self._directory(now.base) == self._directory(source)

    def _directory(self, rel: RelPath | None) -> RelPath | None:
        return rel if rel is not None and (st := self._look(rel)) is not None and stat.S_ISDIR(st) else None

    def _look(self, rel: RelPath) -> int | None:
        st = self._base.look(rel)
        return st.st_mode if st is not None else None

    # ---- which names are one file

    def _is_same_file(self, now: _Seen, then: _Seen) -> bool:
        """Note the future base file of a file of the view; tell whether its other names agree."""
        was: _File
        if now.staged is not None:
            was = now.staged.ino
        elif now.base is not None and (now.base != self._place(then) or self._tree.linked or self._rest.linked):
            linked = self._linked(now.base)
            was = linked.ino if linked is not None else self._file(now.base)
            if linked is not None and now.entry is None:
                self._compared[linked.ino] += 1
        else:
            return True
        becomes = self._file_then(then)
        if was is None or becomes is None or self._is_joined_by_the_host(now.staged, becomes):
            return True
        return self._becomes.setdefault(was, becomes) == becomes and self._was.setdefault(becomes, was) == was

    @staticmethod
    def _place(then: _Seen) -> RelPath | None:
        return then.after.base if then.staged is None and then.after is not None else None

    def _file_then(self, then: _Seen) -> _File:
        if then.staged is not None:
            return then.staged.ino
        assert then.after is not None
        if then.after.base is None:
            return id(then.after), "new"
        return self._file_after(self._file(then.after.base))

    def _file_after(self, file: tuple[int, int, int] | None) -> _File:
        """Return which file the rest shows for a file of base."""
        staged = self._rest.linked.get(file[0]) if file is not None else None
        return staged.ino if staged is not None else file

    def _is_joined_by_the_host(self, staged: Staged | None, becomes: _File) -> bool:
        """Tell whether the host has given further names to a staged file that had one name in base:
        what they become is the host's doing.
        """
        return staged is not None and not staged.links and isinstance(becomes, tuple) and len(becomes) == 3

    def _check_unseen(self) -> None:
        """Check that names that nobody has looked at stay links of those in the view."""
        for staged in self._tree.linked.values():
            unseen = self._tree.unseen(staged) - self._compared[staged.ino]
            if unseen <= 0 or staged.ino not in self._becomes:
                continue
            file = self._file(staged.home)
            if file is None or staged.base is None or file[0] != staged.base.ino or not self._has_links(staged.home):
                continue  # the host has put another there, or has removed the other names
            if self._becomes[staged.ino] != self._file_after(file):
                path = staged.names[0].path() if staged.names else staged.home
                assert path is not None
                self._wrong.append((path, "would part {} from other names (hard links) of the file"))

    def _file(self, rel: RelPath | None) -> tuple[int, int, int] | None:
        """Return which file base has at a path; None for a directory, and for nothing."""
        st = self._base.look(rel)
        if st is None or stat.S_ISDIR(st.st_mode):
            return None
        return self._base.number(st), st.st_dev, st.st_ino

    def _has_links(self, rel: RelPath | None) -> bool:
        return rel is not None and self._base.lstat(rel).st_nlink > 1

    def _linked(self, rel: RelPath | None) -> Staged | None:
        """Return the staged file that a name of base shows, as it is a hard link of it."""
        if not self._tree.linked or rel is None:
            return None
        st = self._base.look(rel)
        return staged_for(self._tree, self._base, st) if st is not None else None

    def _refuse(self) -> None:
        path, message = min(self._wrong, key=lambda item: ("remove" not in item[1], item))  # what is lost goes first
        others = len(self._wrong) - 1
        more = f" (and {others} more name{'s' if others > 1 else ''})" if others else ""
        raise YolofsError(
            f"the plan of this commit {message.format(display(path))}{more}, so nothing was done",
            hint="this is a defect of yolofs: copy what you need from the mount, or commit other paths"
            " (yolofs commit PATH...), and report it with .yolofs/journal",
        )


def _entry(directory: _Seen, name: bytes) -> Entry | None:
    entry = directory.entry
    return entry.children.get(name) if entry is not None and entry.children else None


def _has_names(now: _Seen, then: _Seen) -> bool:
    """Tell whether something has names that are not those of one directory of base."""
    if any(seen.entry is not None and seen.entry.children for seen in (now, then)):
        return True
    return then.after is not None and bool(then.after.children)
