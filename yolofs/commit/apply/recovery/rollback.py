"""Taking back a commit that cannot or shall not go on: base becomes again what it was before.

The steps are undone from the last to the first.  As with a commit that goes on after a crash, each
step is looked at first: inode numbers tell whether it was done, half done or not begun.  What the
host has changed or put there meanwhile is never thrown away: it is moved to the folder ``found`` of
the commit's directory, and told.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from yolofs.commit.apply import by_names, step_log
from yolofs.commit.apply.directories import rename_out, rename_with
from yolofs.commit.apply.keeping import UNMADE
from yolofs.commit.apply.kept_copies import metadata_of
from yolofs.commit.apply.moving_out import listing_at
from yolofs.commit.apply.other_devices import Folder
from yolofs.commit.apply.places import Spot, spot_of_copy
from yolofs.commit.apply.ready import MadeObject, looks_of
from yolofs.commit.apply.recovery.back_in_place import BackInPlace
from yolofs.commit.apply.recovery.hosts_metadata import with_hosts_metadata
from yolofs.commit.apply.recovery.restored_things import restored_things
from yolofs.commit.apply.recovery.swapped_out import inode_at, sync_path
from yolofs.commit.apply.trees import are_alike, held_pairs
from yolofs.commit.apply.unset_metadata import UNSET_BACK
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
from yolofs.paths import RelPath, split
from yolofs.store import copying
from yolofs.store.copying import PathDescriptor
from yolofs.store.interfaces import StoreFiles
from yolofs.system import syscalls

_Arrival: TypeAlias = Create | Place | Link | Duplicate


class RollbackSteps(BackInPlace):
    """Undoes steps."""

    def __init__(self, plan: Plan, store: StoreFiles, directory: bytes, *, durable: bool) -> None:
        """Prepare as :class:`~yolofs.commit.apply.steps.Steps` does."""
        super().__init__(plan, store, directory, durable=durable)
        self._unset = UNSET_BACK
        self._times: dict[RelPath, tuple[int, int]] = {}

    def recall_parked(self) -> None:
        """Take note of what was set aside on other devices."""
        for step in self._parks.values():
            self.recall(step)

    def undo(self, step: Step, said: step_log.LoggedStep | None, *, is_next: bool) -> None:
        """Undo one step, as far as it was done.

        ``said`` is what the log says of it, None if nothing; ``is_next``: it is the first of which
        it says nothing.

        Raises:
            OSError: it could not be undone.
        """
        try:
            self._undo(
                step, said if said is not None else step_log.LoggedStep(), is_certain=said is not None or is_next
            )
        except (FileNotFoundError, NotADirectoryError):
            if self._has_directory(step.path):
                raise
            self.meanwhile.left_in_commit.append(step.path)

    def _has_directory(self, path: RelPath) -> bool:
        """Tell whether the directory is there that a path lies in."""
        try:
            self._directories.open(split(path)[0])
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def _undo(self, step: Step, said: step_log.LoggedStep, *, is_certain: bool) -> None:
        match step:
            case Park() | Remove() if (half := self._half_moved(step)) is not None:
                self._move_back_by_names(step, half)
            case Park():
                self.recall(step)
                source = self._set_aside.get(step.number) or self._parked_at(step.number)
                if said.went is not None and self._inode(source) is None:
                    if self._inode(Spot(*split(step.path))) not in (step.inode, said.went.inode):
                        self.meanwhile.gone_with_directory.append(step.path)
                    return
                self._put_back(step, source)
            case Remove():
                self._put_removed_back(step, said)
            case Fetch():
                self._put_kept_back(step)
            case MakeDirectory():
                self._take_directory_away(step, said)
            case Create() | Place() | Link() | Duplicate():
                self._take_away(step, said)
            case Rewrite():
                if self._is_elsewhere(step):
                    self._late.append(step)
                else:
                    self._write_back(step, said)
            case SetMetadata():
                if self._is_elsewhere(step):
                    self._late.append(step)
                elif self._is_bases(step.path) and (is_certain or self._is_given_at(step.path, step.ino)):
                    self._set_back(step, said)
            case FinishDirectory():
                self._directories.forget(step.path)
                if step.was is None:
                    return
                if self._is_elsewhere(step):
                    self._late.append(step)
                elif not self._is_bases(step.path):
                    return
                elif (
                    step.ino is not None
                    and self._has_come(step.path)
                    and (is_certain or self._is_given_at(step.path, step.ino))
                ):
                    self._give(step.path, step.was, step.ino, said)
                old = self._moves.before(step.path)
                if old is not None:
                    self._times.setdefault(old, (step.was.atime_ns, step.was.mtime_ns))

    def _is_bases(self, path: RelPath) -> bool:
        """Tell whether a step's own thing lies at its path: neither the host's, nor the one to be
        replaced.
        """
        return not self._is_the_hosts(path) and not self._lies_there_still(path)

    def restored(self) -> tuple[set[step_log.ObjectIdentity], set[step_log.ObjectIdentity]]:
        """Return :func:`.restored_things` of these steps."""
        return restored_things(self._plan, self._moves, self._before, self._looks, self._untimed)

    def clear_backups(self) -> None:
        """Remove the kept contents of files that have these contents again, durably."""
        for spot in self._written:
            self._clear(spot)

    def finish(self) -> None:
        """Give the directories the modes and times that they had.

        Raises:
            OSError: one could not be given them.
        """
        self._undo_late()
        self._directories.release()
        self.close_again(lambda path: path)
        self.give_kept_back()
        for before in self._before:
            self._times[before.path] = before.atime_ns, before.mtime_ns
        for path in sorted(self._times, key=len, reverse=True):
            is_the_hosts = contextlib.suppress(FileNotFoundError, NotADirectoryError)
            with is_the_hosts, self._thing_at(path) as (thing, st):
                is_right = not stat.S_ISDIR(st.st_mode) or st.st_mtime_ns == self._times[path][1]
                is_given = is_right or copying.may_set_ns(thing, *self._times[path])  # else it is another user's
                others = tuple(one for one in self.left_out.pop(path, ()) if one != "times")
                self._note(path, others if is_given else (*others, "times"))
        self._directories.release()

    # ---- out

    def _put_back(self, step: Park | Remove, source: Spot) -> None:
        """Put what was moved out of base back; it may not have been."""
        if self._inode(source) is None:
            return
        target = split(step.path)
        self._directories.forget(step.path)
        self._make_way(step)
        rename_with(self._directories, (self._unlocked(source), source.name), target, syscalls.rename_noreplace)

    def _move_back_by_names(self, step: Park | Remove, half: Spot) -> None:
        """Move back what had been moved of a directory, name by name."""
        note, target = self._at(listing_at(self._new, step.number)), Spot(*split(step.path))
        listing = by_names.read(note)
        if listing is None:
            raise OSError(errno.ENOENT, "the note about a directory is gone", step.path)
        self._directories.forget(step.path)
        if self._inode(target) not in (step.inode, None):
            self._make_way(step)
        by_names.move((self._unlocked(half), half.name), (self._unlocked(target), target.name), listing)
        self._forget_notes(step.number)
        os.unlink(note)

    def _put_removed_back(self, step: Remove, said: step_log.LoggedStep) -> None:
        kept, aside = self._in(self._replaced, step.number), self._shelter(step.path, step.number)
        self._clear(self._part_of(kept))
        if self._inode(aside) is None:
            if self._is_still_there(step):
                self._clear(kept)  # a copy
            if said.went is not None and self._inode(kept) is None and self._inode(Spot(*split(step.path))) is None:
                self.meanwhile.lost.append(step.path)
            self._put_back(step, kept)
            return
        self._put_back(step, aside)
        self._clear(kept)  # a copy

    def _put_kept_back(self, step: Fetch) -> None:
        """Put what was fetched back among what the earlier commit keeps."""
        parked, kept = self._in(self._parked, step.number), self._kept_at(step)
        if self._inode(parked) is not None:
            self._move_kept(parked, kept)

    def _make_way(self, step: Park | Remove) -> None:
        """Move what the host has put at a path to ``found``."""
        target = Spot(*split(step.path))
        if self._inode(target) is not None:
            self._keep_found(target, step)

    # ---- in

    def _take_away(self, step: _Arrival, said: step_log.LoggedStep) -> None:
        """Undo a step that brought a thing in: put it back to its source, and the replaced one back
        in its place.
        """
        self._directories.forget(step.path)
        if isinstance(step, Create) and (linked := self.linked_from(step)) is not None:
            self._take_name_away(step, linked)
            return
        target, source = Spot(*split(step.path)), self._comes_from(step)
        beside, kept = self._beside(step.path, step.number), self._in(self._replaced, step.number)
        copied = spot_of_copy(source)
        made = self._made.get(step.number)
        if made is not None and self._inode(source) != made.inode:
            self._leave_note(b"%d%b" % (step.number, UNMADE))
        ours, away = self._ours(step, said), self._away(step.path, step.number)
        there = self._inode(target)
        is_ours = there is not None and there in ours and not self._is_parked_still(step, source)
        old = self._where_old_is(step, [away, beside, source, kept])
        is_copy = self._inode(copied) is not None  # what came is a copy; the thing itself lies here
        if step.replaced is not None and there == self._replaced_by(step):
            self._clear(kept)  # another name or a copy of what is still in its place
        elif old is not None:
            near = self._within_reach(step, old, away)
            self._swap_back(step, target, near, is_ours=is_ours, said=said, source=None if is_copy else source)
            if near != kept:
                self._clear(kept)  # a copy
        elif step.replaced is not None and said.went is not None:
            self.meanwhile.lost.append(step.path)  # and what came stays: better than nothing there
        elif old is None and is_ours and step.replaced is None:
            self._move_off(step, target, is_ours=True, said=said, source=None if is_copy else source)
        if is_copy:
            self._clear(source)
            syscalls.rename_noreplace(self._unlocked(copied), copied.name, self._fd(source), source.name)
        parts = map(self._part_of, (beside, source, away, kept))
        for spot in (away, *parts, *([beside] if beside != source else [])):
            self._clear(spot)

    def _is_parked_still(self, step: _Arrival, source: Spot) -> bool:
        """Tell whether what a step was to bring in was not: a hard link of it may lie where it was
        to come.
        """
        park = self._parks.get(step.number) if isinstance(step, Place) else None
        return park is not None and self._inode(source) == park.inode

    def _take_name_away(self, step: Create, made: MadeObject) -> None:
        """Take the name in base away that a store inode has got; what the host has changed of it is
        kept, too.
        """
        spot, path = Spot(*split(step.path)), self._store.own_path(step.ino)
        if self._inode(spot) == made.inode:
            st = os.stat(self._at(spot), follow_symlinks=False)
            if (st.st_size, st.st_mtime_ns) != (made.size, made.mtime_ns):  # there is no other copy to compare with
                with self._thing_at(step.path) as (thing, _):
                    self._copy_found(thing, step)
            folder = self._unlocked(spot)
            if inode_at(path) is None:
                os.link(spot.name, path, src_dir_fd=folder, follow_symlinks=False)
            if inode_at(path) != made.inode:
                raise OSError(errno.ESTALE, "something else lies in the store for it", path)
            os.unlink(spot.name, dir_fd=folder)
        if inode_at(path) != made.inode:
            return
        st = os.lstat(path)
        if not made.has_looks_of(st):
            self.meanwhile.written_by_host.append(step.path)
        if st.st_nlink > 1:  # the host has given it a name, or keeps it: that is not to change with what is staged
            self._part_from_host(path, step.number)

    def _part_from_host(self, path: bytes, number: int) -> None:
        """Let a copy take the place of a store inode."""
        copy = self._in(self._new, number)
        self._clear(copy)
        copying.copy_node(path, self._at(copy))
        if self._durable:
            sync_path(self._at(copy))
        os.rename(self._at(copy), path)

    def _ours(self, step: _Arrival | MakeDirectory, said: step_log.LoggedStep) -> set[int]:
        """Return the inode numbers by which what the step brought in is known."""
        numbers = {self.made_by_step(step), said.came.inode if said.came is not None else None}
        if isinstance(step, Link):
            numbers.add(self._linked(step))
        made = self._made.get(step.number)
        if made is not None:
            numbers.add(made.inode)
        if isinstance(step, Place):
            numbers.add(self._moved(step))
        if isinstance(step, Place | MakeDirectory) and said.came is None:
            numbers.add(self._renumbered(step))
        return {number for number in numbers if number is not None}

    def _renumbered(self, step: Place | MakeDirectory) -> int | None:
        """Return the inode number of a directory that a step has put in place, if its disk in user
        space numbers paths: its number is another by then, and only the log would know it.

        It is taken for that if it has the right owner, and what the step was to bring in has left
        its old place.  None if the disk is none of these, or the step was not done.
        """
        target = Spot(*split(step.path))
        if self._inode(self._comes_from(step)) is not None:
            return None
        try:
            st = os.stat(target.name, dir_fd=self._fd(target), follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not stat.S_ISDIR(st.st_mode) or not self._may_number_names(target):
            return None
        if isinstance(step, MakeDirectory):
            return st.st_ino if step.number in self._made and st.st_uid == os.geteuid() else None
        park = self._parks.get(step.number)
        known = self._looks.get(park.inode, ()) if park is not None else ()
        return st.st_ino if looks_of(st)[2:] in [looks[2:] for looks in known] else None

    def _where_old_is(self, step: _Arrival, spots: Sequence[Spot]) -> Spot | None:
        """Return which of the ``spots`` has what a step replaced; None if none has.  Nothing else
        comes to the first and the last of them.
        """
        if step.replaced is None:
            return None
        replaced = self._replaced_by(step)
        for spot in spots:
            inode = self._inode(spot)
            if inode is not None and (inode == replaced or spot in (spots[0], spots[-1])):
                return spot
        return None

    def _within_reach(self, step: _Arrival, old: Spot, away: Spot) -> Spot:
        """Return a spot from which what a step has replaced can be renamed.

        It is copied to ``away`` if only the session's device has it, because the host has moved or
        removed the directory on its own device that had it.
        """
        if not isinstance(old.directory, Folder):
            return old
        if self._may_rename(self._fd(old), self._directories.open(split(step.path)[0])):
            return old
        self._copy_tree(old, away, step.path)
        return away

    def _swap_back(
        self, step: _Arrival, target: Spot, old: Spot, *, is_ours: bool, said: step_log.LoggedStep, source: Spot | None
    ) -> None:
        """Put ``old`` back at ``target``; the thing there goes back to its source, or among those
        of the host.
        """
        where = split(step.path)
        src = (self._unlocked(old), old.name)
        if self._inode(target) is None:
            rename_with(self._directories, src, where, syscalls.rename_noreplace)
            return
        if not rename_with(self._directories, src, where, syscalls.rename_exchange):
            self._move_off(step, target, is_ours=is_ours, said=said, source=source)
            rename_with(self._directories, src, where, syscalls.rename_noreplace)
            return
        self._move_off(step, old, is_ours=is_ours, said=said, source=source)

    def _move_off(
        self, step: _Arrival, spot: Spot, *, is_ours: bool, said: step_log.LoggedStep, source: Spot | None
    ) -> None:
        """Take away what a step had brought in and what lies at ``spot`` now."""
        if not is_ours or (not isinstance(step, Place) and self._was_changed(spot, step, said)):
            self._keep_found(spot, step)
        elif isinstance(step, Place) and source is not None:
            if spot != source:
                self._rename(spot, source)
        elif isinstance(step, Place):
            self._keep_or_clear_copy(spot, step)
        else:
            self._clear(spot)

    def _keep_or_clear_copy(self, spot: Spot, step: Place) -> None:
        """Remove a copy of what lies on another device, unless the host has changed it.

        The original gets what the host has given the copy.
        """
        self._unlocked(spot)
        original = spot_of_copy(self._comes_from(step))
        if not are_alike(self._at(spot), self._at(original)):
            self._keep_found(spot, step)
            return
        for rel, copy, thing in held_pairs(self._at(spot), self._at(original)):
            self._give_as_copy(copy, thing, RelPath(step.path + rel))
        self._clear(spot)

    def _give_as_copy(self, copy: PathDescriptor, thing: PathDescriptor, path: RelPath) -> None:
        """Give an original the mode, owner and attributes that the host has given its copy."""
        now, was = copying.read_metadata(copy), copying.read_metadata(thing)
        now = msgspec.structs.replace(now, xattrs=tuple({**dict(was.xattrs), **dict(now.xattrs)}.items()))
        of_owner = (was if os.geteuid() == 0 else now).st  # others may not have been able to give the copy its owner
        made = MetadataBefore(was.st.st_mode, of_owner.st_uid, of_owner.st_gid, 0, 0)
        wanted, hosts = with_hosts_metadata(now, was, metadata_of(made), was, has_time=False)
        if hosts:
            self._note(path, copying.write_metadata(thing, wanted))
            if path not in self.meanwhile.given_metadata:
                self.meanwhile.given_metadata.append(path)

    def _rename(self, source: Spot, target: Spot) -> None:
        dst = self._unlocked(target), target.name
        if isinstance(source.directory, Folder):
            syscalls.rename_noreplace(self._fd(source), source.name, *dst)
            return
        self._directories.forget(RelPath(self._spelled(source)))
        try:
            rename_out(self._directories, (source.directory, source.name), dst, syscalls.rename_noreplace)
        except OSError as error:
            if error.errno != errno.EXDEV or not isinstance(target.directory, Folder):
                raise
            self._copy_back(source, target)

    def _copy_back(self, source: Spot, target: Spot) -> None:
        """Move something to the session's device: the directory on its own from which it had come
        is gone.
        """
        if self._inode(target) is None:  # else all of it has been copied
            self._copy_tree(source, target, RelPath(self._spelled(source)))
        self._clear(source)

    def _take_directory_away(self, step: MakeDirectory, said: step_log.LoggedStep) -> None:
        """Remove a directory that was made; what the host has put in it goes to ``found`` with
        it.
        """
        target = Spot(*split(step.path))
        ours = self._ours(step, said)
        beside = self._beside(step.path, step.number)
        if step.number and self._inode(beside) is not None:
            self._clear(beside)
        if self._inode(target) not in ours:
            return
        self._leave_note(b"%d%b" % (step.number, UNMADE))
        self._directories.forget(step.path)
        self._unlocked(target)
        is_directory = stat.S_ISDIR(os.stat(self._at(target), follow_symlinks=False).st_mode)
        if is_directory and self._has_others_attributes(target, step):
            self._keep_found(target, step)
            return
        try:
            os.rmdir(target.name, dir_fd=self._fd(target))
        except NotADirectoryError:  # the host's, which has got the number
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            self._keep_found(target, step)
