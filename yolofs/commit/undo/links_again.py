"""Which names become hard links again of a file that stays in base, or of each other."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from yolofs.commit.apply.commit_directory import PLAN
from yolofs.commit.apply.copy_log import FileNumbers
from yolofs.commit.apply.kept_copies import files_below
from yolofs.commit.plan.kept_objects import KeptObject
from yolofs.commit.plan.plan import (
    MakeDirectory,
    Place,
)
from yolofs.commit.undo.commits_around import LaterCommit
from yolofs.commit.undo.undoable_names import UndoableNames
from yolofs.paths import ROOT, RelPath, join, split
from yolofs.state.link_names import find_name_near
from yolofs.system import syscalls
from yolofs.system.disks import OnDisk


class LinksAgain(UndoableNames):
    """Finds what a name was a link of."""

    def _link_moved(self, index: int, step: Place, slot: RelPath) -> bool:
        """Make a name that the commit copied to another device a hard link again, of a file that
        stays or moved as well; tell whether it is one now.
        """
        came, st = self._applied.came(index), self._base.look(step.path)
        was = self._applied.was_linked(came) if came is not None else None
        if was is None or st is None or not self._is_as_left(index, step.path, st):
            return False
        first = self._moved_links.setdefault(was, step.path)
        if first == step.path:
            name = self._name_of(was, self._applied.parks[step.number].path, st, self._applied.number)
            if name is None:
                return False
            self._moved_links[was] = first = name
        self._place(slot).link = first
        self._found.together[slot] = step.path
        return True

    def _may_move_back(self, index: int, step: Place) -> bool:
        """Tell whether what the commit copied to another device may go back: not if a later commit
        has taken a file out of its place of which it, or something in it, is to be a hard link
        again.
        """
        if not self._later or self._force or not self._applied.has_cut_links:
            return True
        old, came, st = (
            self._applied.parks[step.number].path,
            self._applied.came(index),
            self._base.look(step.path),
        )
        links = []
        if came is not None and st is not None and self._is_as_left(index, step.path, st):
            links.append((self._applied.was_linked(came), old, st))
        for inside, path, one in self._inside(step):
            links.append((self._was_linked(path, one), RelPath(os.path.join(old, inside)), one))
        for was, near, one in links:
            taker = self._taker(was) if was is not None else None
            if was is None or taker is None or self._name_of(was, near, one, self._applied.number) is not None:
                continue
            self._stays_for(taker, step.path)
            return False
        return True

    def _taker(self, was: OnDisk) -> LaterCommit | None:
        """Return the last commit in force that has taken a file out of its place in base, or has
        changed it there.
        """
        known = self._anew.known_by(self._left(was))
        numbers = {one.inode for one in known}
        for one in reversed(self._later):
            if not one.takes_back and (any(map(one.files.has, known)) or one.has_taken(numbers)):
                return one
        return None

    def _stays_for(self, taker: LaterCommit, path: RelPath) -> None:
        self._found.stays.setdefault(
            path,
            f"commit {taker.number} has changed a file since of which it has a hard link;"
            f" first: yolofs undo {taker.number}",
        )

    def _link_inside(self, step: Place, slot: RelPath) -> None:
        """Make names in a directory that the commit copied to another device hard links again, as
        :meth:`_link_moved` does.
        """
        for inside, path, st in self._inside(step) if self._applied.has_cut_links else ():
            was = self._was_linked(path, st)
            if was is None:
                continue
            near = RelPath(os.path.join(self._applied.parks[step.number].path, inside))
            is_same = not self._is_copy_as_left(path, st)
            name = self._name_of(was, near, st, self._applied.number, is_same=is_same)
            if name is None:
                first = self._moved_links.setdefault(was, path)
                other = self._base.look(first)
                is_one = other is not None and (other.st_dev, other.st_ino) == (st.st_dev, st.st_ino)
                name = first if other is not None and not is_one and _look_alike(other, st) else None
            if name is not None:
                self._place(RelPath(os.path.join(slot, inside))).link = name

    def _was_linked(self, path: RelPath, st: os.stat_result) -> OnDisk | None:
        """Return the file with hard links of which the commit made what is at a path, or what that
        was made for since; None if it is no such copy.
        """
        known = map(self._applied.was_linked, self._was_known_by(path, st))
        return next((was for was in known if was is not None), None)

    def _inside(self, step: Place) -> Iterator[tuple[bytes, RelPath, os.stat_result]]:
        """Yield the files in a directory that the commit moved: path in the directory, path in
        base, stat.
        """
        todo = [b""]
        for inside in todo:
            path = RelPath(os.path.join(step.path, inside) if inside else step.path)
            st = self._base.look(path)
            if st is None or (path in self._arrivals and inside):
                continue
            if stat.S_ISDIR(st.st_mode):
                todo += [os.path.join(inside, name) for name in self._base.names(path)]
            elif inside:
                yield inside, path, st

    def _link(self, path: RelPath, file: FileNumbers, kept: KeptObject) -> KeptObject | None:
        """Let a path be a hard link of a file of base again, or return what of the commit's own
        comes back there.
        """
        copy = os.lstat(kept.path(self._commits))
        name = self._name_again(path, file, kept, copy)
        if name is None:
            return self._link_kept(path, file, kept, copy)
        self._place(path).link = name
        return None

    def _name_again(self, path: RelPath, file: FileNumbers, kept: KeptObject, copy: os.stat_result) -> RelPath | None:
        """Return where base has the file of which a path was a hard link; None if it has not."""
        was = self._applied.on_disk(file)
        name = self._moved_name(was, path, copy)
        if name is None:
            name = self._name_of(was, path, copy, kept.commit, may_differ=file[0] == copy.st_dev, is_kept=True)
        return name if name is not None else self._name_inside(was, copy)

    def _was_links(self, slot: int) -> Iterator[tuple[RelPath, FileNumbers]]:
        """Yield each name in a slot that was a hard link, with its file that stayed; the slot's own
        name is empty.
        """
        kept, top = self._applied.kept(slot), b"%d" % slot
        of = self._applied.kept_of_links(kept) if kept is not None else None
        if of is not None and top not in self._applied.files_of_kept_copies:
            yield ROOT, of
        for name, file in self._applied.files_of_kept_copies.items():
            if name == top or name.startswith(top + b"/"):
                yield RelPath(name[len(top) + 1 :]), file

    def _links_of_brought_back(
        self, slot: RelPath, thing: KeptObject, kept: os.stat_result
    ) -> Iterator[tuple[RelPath, RelPath]]:
        """Yield names in what comes back at a slot of files of which an undo of a part has brought
        another name back, for which a copy stands since; each with where base has the copy.
        """
        known = {inode for number in self._back if (inode := self._applied.kept_from(number)) is not None}
        for inside, st in self._files_in(thing, kept) if known else ():
            if st.st_ino not in known or self._is_kept_copy(thing, inside):
                continue
            path, own = join(slot, inside) if inside else slot, thing.below(inside) if inside else thing
            name = self._name_again(path, (st.st_dev, st.st_ino), own, st)
            now = self._base.look(name) if name is not None else None
            if name is not None and now is not None and (now.st_dev, now.st_ino) != (st.st_dev, st.st_ino):
                yield inside, name

    def _files_in(self, thing: KeptObject, kept: os.stat_result) -> Iterator[tuple[RelPath, os.stat_result]]:
        """Yield the path in what is kept, empty for itself, of each file in it."""
        if stat.S_ISREG(kept.st_mode):
            yield ROOT, kept
        elif stat.S_ISDIR(kept.st_mode):
            for path, st in files_below(thing.path(self._commits)):
                yield RelPath(os.path.relpath(path, thing.path(self._commits))), st

    def _is_kept_copy(self, thing: KeptObject, inside: RelPath) -> bool:
        """Tell whether it is noted of which file a name in a slot was one."""
        top = b"%d" % thing.slot
        return (join(RelPath(top), inside) if inside else top) in self._applied.files_of_kept_copies

    def _may_be_links(self, path: RelPath, slot: int) -> bool:
        """Tell whether what is kept in a slot may come back to a path: not if the file of which it,
        or something in it, was a hard link was taken out of base by a later commit.
        """
        if not self._later or self._force:
            return True
        for inside, file in self._was_links(slot):
            own = KeptObject(self._applied.number, slot)
            own = own.below(inside) if inside else own
            name = join(path, inside) if inside else path
            try:
                copy = os.lstat(own.path(self._commits))
            except (FileNotFoundError, NotADirectoryError):  # an undo of a part has brought it back
                continue
            if self._name_again(name, file, own, copy) is not None:
                continue
            taker = self._taker(self._applied.on_disk(file))
            if taker is not None:
                self._stays_for(taker, path)
                return False
        return True

    def _link_to_what_comes_back(self) -> None:
        """Resolve chains: a link of a future link becomes a link of the same file."""
        for place in self._places.values():
            passed: set[RelPath] = set()
            while place.link is not None and place.link not in passed:
                passed.add(place.link)
                other = self._places.get(self._view(place.link))
                if other is not None and other.link is not None and other is not place:
                    place.link = other.link

    def _moved_name(self, was: OnDisk, removed: RelPath, copy: os.stat_result) -> RelPath | None:
        """Return where base has a file of which a name was ``removed``, if the commit copied it to
        another device as another name moved, or the directory did; None if it did not.
        """
        copies = self._applied.copies_of(was)
        if not copies:
            return None
        for step in self._moved():
            if any(self._is_name(one, step.path, copy, None) for one in copies):
                return step.path
        directory, name = split(removed)
        now = self._moves.after(directory)
        if now is None or now == directory:
            return None
        names = (self._name_of(one, join(now, name), copy, None) for one in copies)
        return next((name for name in names if name is not None), None)

    def _name_inside(self, was: OnDisk, copy: os.stat_result) -> RelPath | None:
        """Return where base has a file, or a copy of it, in a directory that moved to another
        device; None if it has none.  All of that file's names that stay were looked for.
        """
        copies = (was, *self._applied.copies_of(was))  # it may be a copy itself, of which a name was replaced there
        inside = ((one, path) for one in copies for path in self._inside_moved.get(one.inode, ()))
        return next((path for one, path in inside if self._is_name(one, path, copy, None)), None)

    def _moved(self) -> Iterator[Place]:
        """Yield what has moved and can be taken back."""
        for path, (_, step) in self._arrivals.items():
            if isinstance(step, Place) and step.number in self._applied.parks and path not in self._blocked:
                yield step

    @cached_property
    def _inside_moved(self) -> Mapping[int, Sequence[RelPath]]:
        """The base paths of files in directories that the commit moved, by inode number."""
        found: dict[int, list[RelPath]] = {}
        for step in self._moved():
            for _, path, st in self._inside(step):
                found.setdefault(st.st_ino, []).append(path)
        return found

    def _name_of(
        self,
        was: OnDisk,
        near: RelPath,
        copy: os.stat_result,
        commit: int | None,
        *,
        may_differ: bool = False,
        is_same: bool = False,
        is_kept: bool = False,
    ) -> RelPath | None:
        """Return a base path of a file from before the commit that stays, or of a copy made for it
        since; None if there is none.  Without a ``commit`` it was made by this one.

        It is as it was when ``copy`` was made of it, or as the commit has left it, unless it
        ``may_differ``; with ``is_same`` it looks as the copy does.  ``is_kept``: base has no copy
        of it, so the very file may differ.
        """

        def is_good(path: RelPath) -> bool:
            return not self._goes(path) and self._is_name(
                was, path, copy, commit, may_differ=may_differ, is_same=is_same, is_kept=is_kept
            )

        return find_name_near(self._base, self._known_of(was), near, is_good=is_good)

    def _known_of(self, was: OnDisk) -> list[OnDisk]:
        """Return all identities of a file: its own, and those of copies made for it since, or for
        its kept copy.
        """
        copies = map(self._left, self._applied.copies_of(was))
        return [*self._anew.known_by(self._left(was)), *(one for copy in copies for one in self._anew.known_by(copy))]

    def _is_name(
        self,
        was: OnDisk,
        path: RelPath,
        copy: os.stat_result,
        commit: int | None,
        *,
        may_differ: bool = False,
        is_same: bool = False,
        is_kept: bool = False,
    ) -> bool:
        """Tell whether base has such a file at a path."""
        st = self._base.look(path)
        if st is None or stat.S_IFMT(st.st_mode) != stat.S_IFMT(copy.st_mode):
            return False
        if not self._was_there(was, path, st, commit):
            return False
        if is_same:
            return _look_alike(st, copy)
        may_differ = may_differ or (is_kept and self._is_older_than(was, path, st, commit) is True)
        return may_differ or self._is_still(was, st, copy)

    def _was_there(self, was: OnDisk, path: RelPath, st: os.stat_result, commit: int | None) -> bool:
        """Tell whether a file of base is older than a commit, or was made since for one that is:
        the host may have given its number to another since.
        """
        if self._is_older_than(was, path, st, commit) is not False:
            return True
        now = self._object_at(path, st)
        return any(self._stands_for(one, now, path, st) for one in (was, *self._applied.copies_of(was)))

    def _is_older_than(self, was: OnDisk, path: RelPath, st: os.stat_result, commit: int | None) -> bool | None:
        """Tell whether a file of base has the number that one had before a commit, and is older
        than that; None if nobody knows when it was born.
        """
        if not was.may_be(self._object_at(path, st).file):
            return False
        birth_ns = syscalls.birth_ns(self._base.path(path))
        latest_ns = self._applied.ended_ns
        if commit is not None:
            latest_ns = os.lstat(os.path.join(self._commits, b"%d" % commit, PLAN)).st_mtime_ns
        return birth_ns <= latest_ns if birth_ns is not None else None

    def _goes(self, path: RelPath) -> bool:
        """Tell whether what the commit brought to a path, or the directory that it made around it,
        is taken away.
        """
        index_and_step = self._arrivals.get(path)
        if index_and_step is not None:
            step = index_and_step[1]
            is_moved = isinstance(step, Place) and step.number in self._applied.parks
            return path not in self._blocked and not is_moved
        while path:
            path = split(path)[0]
            if path in self._arrivals:
                return path not in self._blocked and isinstance(self._arrivals[path][1], MakeDirectory)
        return False

    def _is_still(self, was: OnDisk, st: os.stat_result, copy: os.stat_result) -> bool:
        """Tell whether a file of base is the one of which a copy is kept, as it was or as the
        commit changed it.
        """
        if _look_alike(st, copy) or self._is_from_undo(was, st):
            return True
        index = self._applied.changed_in_place(was)
        if index is None:  # it was copied to another device before
            index = self._applied.changed_in_place(self._base.on_disk(st.st_dev, st.st_ino))
        return index is not None and self._applied.is_as_left(index, st, self._store, self._restored)

    def _is_from_undo(self, was: OnDisk, st: os.stat_result) -> bool:
        """Tell whether a file of base is as the undo of another commit has made it, in place."""
        if (st.st_ino, st.st_ctime_ns) not in self._restored:
            return False
        known = self._anew.known_by(self._left(was))
        last = next((one for one in reversed(self._later) if any(map(one.files.has, known))), None)
        return last is not None and last.undoes is not None

    def _link_kept(self, path: RelPath, file: FileNumbers, kept: KeptObject, copy: os.stat_result) -> KeptObject:
        """Return what comes back at a path if base no longer has the file: all its names become one
        file again.
        """
        known = self._lone.setdefault(file, (path, kept))
        if known == (path, kept):
            self._found.copies.append(path)
            return kept
        first, other = known
        if first in self._found.copies:
            self._found.copies.remove(first)
        st = os.lstat(other.path(self._commits))
        is_one = (st.st_dev, st.st_ino) == (copy.st_dev, copy.st_ino)
        if is_one and copy.st_dev == file[0] and self._is_on_mount(path, kept):
            return kept  # both come back by a rename, as what they are
        self._place(first).kept = other
        return other

    def _is_on_mount(self, path: RelPath, kept: KeptObject) -> bool:
        """Tell whether a rename may bring what is kept to a path."""
        place = self._base.path(self._base.mount_above(path))
        return syscalls.device_and_mount(place) == syscalls.device_and_mount(kept.path(self._commits))


def _look_alike(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)
