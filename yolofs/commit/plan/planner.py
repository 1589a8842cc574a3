"""Planning a commit: from an override tree to the steps that make base equal to the view.

This module looks at base and the store and changes neither.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from yolofs.commit.plan.kept_objects import kept_of
from yolofs.commit.plan.last_check import check_names
from yolofs.commit.plan.moves import topmost
from yolofs.commit.plan.overridden_names import OverriddenName, survey
from yolofs.commit.plan.plan import (
    Create,
    Duplicate,
    Fetch,
    FinishDirectory,
    Link,
    MakeDirectory,
    MetadataBefore,
    Park,
    Place,
    Plan,
    Remove,
    Rewrite,
    SetMetadata,
    Step,
)
from yolofs.commit.plan.seen_twice import check_once
from yolofs.commit.plan.spellings import check_spellings
from yolofs.commit.plan.survivors import Survivors
from yolofs.errors import ConflictError, NotPreparedError, YolofsError
from yolofs.paths import ROOT, RelPath, display, is_below, split
from yolofs.state.tree import Entry, Staged, Tree
from yolofs.store import copying
from yolofs.store.base import Base
from yolofs.store.interfaces import StorePaths


def plan_commit(tree: Tree, base: Base, store: StorePaths, *, names: Sequence[OverriddenName] | None = None) -> Plan:
    """Return the steps that make ``base`` equal to the view that ``tree`` and ``store`` describe.

    What host processes did to base meanwhile is taken as it is: call
    :func:`yolofs.commit.merge.conflicts.find_conflicts` first.  ``names`` is the survey that it
    looked at, if the caller has it already.

    Raises:
        ConflictError: something staged has no place any more, or its data was in base and is gone.
        YolofsError: one name of base would be changed at two places
            (:mod:`yolofs.commit.plan.seen_twice`), or under two spellings
            (:mod:`yolofs.commit.plan.spellings`); a directory would have to move, and cannot, as it
            holds the session itself or a mount, or a subvolume something of which is to go, too; or
            the plan is wrong, and base would lose a name (:mod:`yolofs.commit.plan.last_check`).
        NotPreparedError: the plan is wrong as base has changed since ``names`` were looked at.
        OSError: base or the store cannot be read.
    """
    names = names if names is not None else list(survey(tree, base))
    check_once(names, base)
    check_spellings(names, base)
    plan = _Planner(tree, base, store, names).plan()
    try:
        check_names(plan, tree, base)
    except YolofsError:
        check_names(_Planner(tree, base, store, list(survey(tree, base))).plan(), tree, base)
        raise NotPreparedError(
            "the commit was not begun: somebody has changed base while it was planned; base is left as they made it,"
            " and all stays staged",
            hint="yolofs commit",
        ) from None
    return plan


class _Planner:
    """One planning; to be used once."""

    def __init__(self, tree: Tree, base: Base, store: StorePaths, names: Sequence[OverriddenName]) -> None:
        self._tree = tree
        self._base = base
        self._store = store
        self._survivors = Survivors(tree, base, store, names)
        self._changed: set[Entry] = set()
        """The directories on whose names the steps work."""
        self._slots = 0
        self._first: list[Step] = []
        self._out: list[Park | Remove] = []
        self._fetched: list[Fetch] = []
        self._in: list[Step] = []
        self._duplicates: list[Step] = []
        self._links: list[Step] = []
        self._in_place: list[Step] = []

    def plan(self) -> Plan:
        self._check_root()
        self._check_lost()
        for staged, rel in self._survivors.nameless:
            self._set_first(staged, rel)
        for name in self._survivors.names:
            self._plan_name(name)
        for path, rel, staged in self._survivors.given_unseen:
            self._set(path, rel, staged)
        self._out.sort(key=lambda step: step.path.split(b"/"), reverse=True)
        self._check_subvolumes()
        finish = [step for name in reversed(self._survivors.names) if (step := self._finish(name)) is not None]
        there = (*self._fetched, *self._in, *self._duplicates, *self._in_place, *self._links)
        return Plan(self._base.root, (*self._first, *self._out, *there, *finish))

    def _check_root(self) -> None:
        staged = self._tree.root.staged
        if staged is not None and staged.origin != ROOT:
            raise YolofsError("the base directory itself cannot be replaced by a commit")

    def _check_lost(self) -> None:
        without_content, cut_off = self._survivors.without_content, self._survivors.cut_off
        lost = without_content or cut_off
        if not lost:
            return
        if without_content:
            why = "its content was in base alone, and is gone from there"
            hint = "bring that back, or drop what is staged there: yolofs commit --theirs PATH"
        else:
            why = "its directory is gone from base"
            hint = (
                "yolofs commit --ours PATH makes the directory again (alone, or with --dry-run);"
                " --theirs PATH drops what is staged there"
            )
        error = ConflictError(
            f"what is staged at {display(self._base.path(lost[0]))}{' and other paths' if lost[1:] else ''} cannot"
            f" be committed, as {why}",
            paths=lost,
            hint=hint,
        )
        error.root = self._base.root
        raise error

    # ---- steps out and in

    def _plan_name(self, name: OverriddenName) -> None:
        entry = name.entry
        survivor = self._survivors.of.get(entry)
        if survivor is not None and survivor == name.natural_path:
            self._set_in_place(name)
            return
        is_free = name.natural_st is None or name.natural_path in self._survivors.name_of
        staged = entry.staged
        if survivor is None and staged is None:
            if not is_free:
                self._remove(name)
            elif name.natural_st is not None:
                self._touch(entry)
            return
        self._touch(entry)
        replaced = None
        if not is_free:
            replaced = self._replaced_at_once(name)
            if replaced is None:
                self._remove(name)
        if survivor is not None:
            self._move(name, survivor, replaced)
            self._set_in_place(name)
        elif staged is not None:
            self._make(name, staged, replaced)

    def _touch(self, entry: Entry) -> None:
        if entry.parent is not None:
            self._changed.add(entry.parent)

    def _slot(self) -> int:
        self._slots += 1
        return self._slots

    def _remove(self, name: OverriddenName) -> None:
        assert name.natural_path is not None
        assert name.natural_st is not None
        self._check_movable(name.natural_path, name.natural_st)
        self._touch(name.entry)
        self._out.append(Remove(name.natural_path, self._slot(), name.natural_st.st_ino))

    def _replaced_at_once(self, name: OverriddenName) -> int | None:
        """Return the inode to replace by one rename, so that the name is never missing; None if it
        has to go first.
        """
        here = name.natural_st
        assert here is not None
        assert name.natural_path is not None
        if stat.S_ISDIR(here.st_mode):
            return None
        self._check_movable(name.natural_path, here)
        survivor = self._survivors.of.get(name.entry)
        if survivor is not None:
            # Renaming a file over another hard link of it would do nothing.
            is_directory = stat.S_ISDIR(self._base.lstat(survivor).st_mode)
            return here.st_ino if not is_directory and here.st_nlink == 1 else None
        staged = name.entry.staged
        if staged is not None and stat.S_ISDIR(self._survivors.st(staged).st_mode):
            return None
        return here.st_ino

    def _move(self, name: OverriddenName, survivor: RelPath, replaced: int | None) -> None:
        number = self._slot()
        st = self._base.lstat(survivor)
        self._check_movable(survivor, st)
        self._out.append(Park(survivor, number, st.st_ino))
        self._in.append(Place(name.path, number, replaced))

    def _check_movable(self, rel: RelPath, st: os.stat_result) -> None:
        """Refuse to move or remove what is a mount or holds one: the kernel would refuse that, too,
        or it could only be copied.
        """
        is_mount = rel in self._base.mounts
        if stat.S_ISDIR(st.st_mode) and not is_mount:
            is_mount = self._base.is_pinned(rel) or any(is_below(mount, rel) for mount in self._base.mounts)
        if is_mount:
            place = display(self._base.path(rel))
            raise YolofsError(
                f"{place} in base can be neither moved nor removed: it holds this session or a mount",
                hint="bring it back in the view, or commit the rest by name: yolofs commit PATH...",
            )

    def _check_subvolumes(self) -> None:
        """Refuse to take anything out of a subvolume (of btrfs) that moves or goes, or lies in a
        directory that does: it would be set aside beside that one, which is on another disk.
        """
        moved = {step.path for step in self._out}
        seen: set[RelPath] = set()
        for step in self._out:
            directory = split(step.path)[0]
            if directory in seen:
                continue
            seen.add(directory)
            above = topmost(directory, moved)
            if above is None or self._device(directory) == self._device(split(above)[0]):
                continue
            raise YolofsError(
                f"{display(self._base.path(step.path))} cannot be moved or removed in the same commit as"
                f" {display(self._base.path(above))} above it, as it is on another disk (in a subvolume)",
                hint="name what lies in there first: yolofs commit PATH..., or yolofs undo N PATH...; then the rest",
            )

    def _device(self, directory: RelPath) -> int:
        return self._base.lstat(directory).st_dev

    def _make(self, name: OverriddenName, staged: Staged, replaced: int | None) -> None:
        st = self._survivors.st(staged)
        first = self._survivors.first[staged]
        kept = kept_of(staged.ino)
        if kept is not None and first is name.entry:
            number = self._slot()
            home = _other_home(name, staged)
            self._fetched.append(Fetch(name.path, number, kept.commit, kept.slot, st.st_ino, kept.inside, home))
            self._in.append(Place(name.path, number, replaced))
        elif stat.S_ISDIR(st.st_mode):
            self._in.append(MakeDirectory(name.path, staged.ino, self._slot()))
        elif first is not name.entry:
            self._links.append(Link(name.path, self._survivors.by_entry[first].path, self._slot(), replaced))
        elif staged.origin is not None:
            existing = self._survivors.by_entry[self._survivors.first[self._survivors.sharing(staged)]].path
            self._duplicates.append(Duplicate(name.path, existing, staged.ino, self._slot(), replaced, staged.origin))
        else:
            home = _other_home(name, staged)
            self._in.append(Create(name.path, staged.ino, self._slot(), st.st_size, st.st_mtime_ns, replaced, home))

    # ---- metadata

    def _set_in_place(self, name: OverriddenName) -> None:
        """Add what a file that keeps its base inode needs: new content or new metadata."""
        given = self._survivors.given.get(name.entry)
        staged = name.entry.staged or given
        if staged is None or (given is None and self._survivors.first[staged] is not name.entry):
            return
        st = self._survivors.st(staged)
        if stat.S_ISDIR(st.st_mode):
            return
        self._set(name.path, self._survivors.of[name.entry], staged)

    def _set(self, path: RelPath, rel: RelPath, staged: Staged) -> None:
        """Add the step that brings a staged version into base's own file; base has it at ``rel``
        now, and at ``path`` by then.
        """
        if staged.ino in self._tree.left_times:
            return
        was = self._attributes(rel, xattrs=True)
        if stat.S_ISREG(self._survivors.st(staged).st_mode) and staged.origin is None:
            inode = self._base.lstat(rel).st_ino
            self._in_place.append(Rewrite(path, staged.ino, self._slot(), inode, was=was))
        elif not self._has_metadata_of(was, staged):
            self._in_place.append(SetMetadata(path, staged.ino, was))

    def _set_first(self, staged: Staged, rel: RelPath) -> None:
        """Add what a file needs if none of its names in the view is known; this is done while the
        file is still where it was.
        """
        inode = self._base.lstat(rel).st_ino
        if stat.S_ISREG(self._survivors.st(staged).st_mode) and staged.origin is None:
            was = self._attributes(rel, xattrs=True)
            self._first.append(Rewrite(rel, staged.ino, self._slot(), inode, is_first=True, was=was))
        else:
            was = self._attributes(rel, xattrs=True)
            if not self._has_metadata_of(was, staged):
                self._first.append(SetMetadata(rel, staged.ino, was, inode))

    def _attributes(self, rel: RelPath, *, xattrs: bool) -> MetadataBefore:
        st = self._base.lstat(rel)
        return _attributes(st, copying.read_base_metadata(self._base.path(rel), st=st) if xattrs else None)

    def _has_metadata_of(self, was: MetadataBefore, staged: Staged) -> bool:
        """Tell whether nothing needs to be set; access times do not count."""
        st = self._survivors.st(staged)
        new = _attributes(st, copying.read_metadata(self._store.path(staged.ino), st=st))
        return (was.mode, was.uid, was.gid, was.mtime_ns, sorted(was.xattrs)) == (
            (new.mode, new.uid, new.gid, new.mtime_ns, sorted(new.xattrs))
        )

    def _finish(self, name: OverriddenName) -> FinishDirectory | None:
        """Return the step that gives a directory its metadata and times; None if it needs none."""
        entry, staged = name.entry, name.entry.staged
        survivor = self._survivors.of.get(entry)
        shown = self._survivors.st(staged) if staged is not None else name.source_st if survivor is not None else None
        if shown is None or not stat.S_ISDIR(shown.st_mode):
            return None
        mtime_ns = entry.touched_ns or shown.st_mtime_ns
        ino = staged.ino if staged is not None and kept_of(staged.ino) is None else None
        if survivor is None:
            return FinishDirectory(name.path, ino, mtime_ns)
        was = self._attributes(survivor, xattrs=staged is not None)
        if staged is None and not entry.touched_ns:  # the host may have changed it since the survey
            mtime_ns = was.mtime_ns
        if staged is not None and self._has_metadata_of(was, staged):
            ino = None
        is_right = ino is None and mtime_ns == was.mtime_ns
        if is_right and entry not in self._changed and survivor == name.natural_path:
            return None
        return FinishDirectory(name.path, ino, mtime_ns, was)


def _other_home(name: OverriddenName, staged: Staged) -> RelPath | None:
    """Return the base path of a staged file's original; None if it is this name's own."""
    return staged.home if staged.home != name.natural_path else None


def _attributes(st: os.stat_result, metadata: copying.Metadata | None) -> MetadataBefore:
    xattrs = metadata.xattrs if metadata is not None else ()
    found = tuple((os.fsencode(name), value) for name, value in xattrs)
    return MetadataBefore(st.st_mode, st.st_uid, st.st_gid, st.st_atime_ns, st.st_mtime_ns, found)
