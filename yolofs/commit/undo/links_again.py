"""Which names become hard links again of a file that stays in base, or of each other."""

from __future__ import annotations

import os
import stat

from yolofs.commit.apply.commit_directory import PLAN
from yolofs.commit.apply.copied import File
from yolofs.commit.plan.kept import Kept
from yolofs.commit.plan.plan import (
    MakeDirectory,
    Place,
)
from yolofs.commit.undo.whose import Whose
from yolofs.paths import RelPath, join, split
from yolofs.state.link_names import find_name_near
from yolofs.system import syscalls
from yolofs.system.disks import FilesOnDisks, OnDisk


class LinksAgain(Whose):
    """Finds what a name was a link of."""

    def _link_moved(self, index: int, step: Place, slot: RelPath) -> bool:
        """Let a name that the commit copied to another device as it moved be a hard link again of a
        file that stays, or of one that moved as well; return whether it is.
        """
        came, st = self._applied.came(index), self._base.look(step.path)
        was = self._applied.was_linked(came) if came is not None else None
        if was is None or st is None or not self._is_as_left(index, step.path, st):
            return False
        first = self._moved_links.setdefault(was, step.path)
        if first == step.path:
            name = find_name_near(
                self._base, self._anew.known_by(was), self._applied.parks[step.number].path, is_good=self._stays
            )
            other = self._base.look(name)
            if name is None or other is None or not self._is_still(was, other, st):
                return False
            if not self._was_there(was, name, other, st, self._applied.number):
                return False
            self._moved_links[was] = first = name
        self._place(slot).link = first
        return True

    def _moved_name(self, was: OnDisk, removed: RelPath) -> RelPath | None:
        """Return where base has a file of which a name was ``removed``, if the commit copied it to
        another device as another name moved, or the directory did; None if it did not.
        """
        copies = [name for one in self._applied.copies_of(was) for name in self._anew.known_by(one)]
        known = FilesOnDisks(copies)
        for path, (_, step) in self._arrivals.items():
            if isinstance(step, Place) and step.number in self._applied.parks and path not in self._blocked:
                st = self._base.look(path)
                if st is not None and known.has(self._base.on_disk(st.st_dev, st.st_ino)):
                    return path
        directory, name = split(removed)
        now = self._moves.after(directory)
        if now is None or now == directory:
            return None
        return find_name_near(self._base, copies, join(now, name), is_good=self._stays)

    def _stays(self, path: RelPath) -> bool:
        return not self._goes(path)

    def _link(self, path: RelPath, file: File, kept: Kept) -> Kept | None:
        """Let a path be a hard link of a file of base again, or return what of the commit's own
        comes back there.
        """
        copy = os.lstat(kept.path(self._commits))
        was = self._applied.on_disk(file)
        name = self._moved_name(was, path)
        if name is None:
            name = find_name_near(self._base, self._anew.known_by(was), path, is_good=self._stays)
        st = self._base.look(name)
        if st is not None and file[0] != copy.st_dev and not self._is_still(was, st, copy):
            name = None  # what was there is copied and gone, and another file may have got its number
        if name is not None and st is not None and not self._was_there(was, name, st, copy, kept.commit):
            name = None
        if name is None:
            return self._link_kept(path, file, kept, copy)
        self._place(path).link = name
        return None

    def _was_there(self, was: OnDisk, name: RelPath, st: os.stat_result, copy: os.stat_result, commit: int) -> bool:
        """Tell whether a file of base is older than a commit, or was made anew since for the one
        that is: the host may have given its number to another since.
        """
        if stat.S_IFMT(st.st_mode) != stat.S_IFMT(copy.st_mode):
            return False
        now, path = self._base.on_disk(st.st_dev, st.st_ino), self._base.path(name)
        copies = self._applied.copies_of(was)
        if any(one.may_be(now) for one in copies) and self._applied.is_older(path, st):
            return True
        if any(self._anew.stands_for(one, now, path, st) for one in (was, *copies)):
            return True
        birth_ns = syscalls.birth_ns(self._base.path(name))
        begun = os.lstat(os.path.join(self._commits, b"%d" % commit, PLAN))
        return birth_ns is None or birth_ns <= begun.st_mtime_ns

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
        if (st.st_size, st.st_mtime_ns) == (copy.st_size, copy.st_mtime_ns):
            return True
        index = self._applied.changed_in_place(was)
        if index is None:  # it was copied to another device before
            index = self._applied.changed_in_place(self._base.on_disk(st.st_dev, st.st_ino))
        return index is not None and self._applied.is_as_left(index, st, self._store, self._restored)

    def _link_kept(self, path: RelPath, file: File, kept: Kept, copy: os.stat_result) -> Kept:
        """Return what comes back at a path of a file that base has no more: all names of it become
        one file again.
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

    def _is_on_mount(self, path: RelPath, kept: Kept) -> bool:
        """Tell whether a rename may bring what is kept to a path."""
        place = self._base.path(self._base.mount_above(path))
        return syscalls.device_and_mount(place) == syscalls.device_and_mount(kept.path(self._commits))
