"""The result of a commit in base: its plan, with the identities of new things, and whether they are
still there.

Identity decides.  What lies at a path is a commit's only if it has the inode number that came
there.  It is unchanged if its time of change is the one noted, or its size and time of modification
are those that the commit gave it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Set as AbstractSet
from functools import cached_property

from yolofs.commit.apply import copy_log, step_log, unset_metadata
from yolofs.commit.apply.commit_directory import DONE, PLAN, read_ready
from yolofs.commit.apply.copy_log import FileNumbers
from yolofs.commit.apply.given_attributes import has_others
from yolofs.commit.apply.kept_copies import files_of_kept_copies
from yolofs.commit.apply.ready import Looks, Ready, looks_of
from yolofs.commit.plan.moves import Moves
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
from yolofs.paths import RelPath
from yolofs.store import copying
from yolofs.store.interfaces import StoreFiles
from yolofs.store.restored import InodeCtime
from yolofs.system import syscalls
from yolofs.system.clock import is_kept_as
from yolofs.system.disks import OnDisk
from yolofs.system.plain_files import read_plain

_MOST_BYTES = 1 << 32


class Applied:
    """One commit that is done."""

    def __init__(self, number: int, directory: bytes, plan: Plan) -> None:
        """``directory``: the commit's own."""
        self.number = number
        self.directory = directory
        self.plan = plan
        self.moves = Moves(plan)
        self.ready = read_ready(directory) or Ready()
        self._looks = self.ready.looks_by_number()
        self.lines = step_log.read(directory)
        self.parks = {step.number: step for step in plan.steps if isinstance(step, Park)}
        self._fetches = {step.number: index for index, step in enumerate(plan.steps) if isinstance(step, Fetch)}
        """By slot: the index of the step that takes out what an earlier commit keeps."""
        self._kept_from = _kept_from(plan)
        """By slot: the inode number that base had for what is kept there."""
        self.files_of_kept_copies = files_of_kept_copies(directory)
        """By path in ``replaced``: of which file of base there is a copy."""
        copies = copy_log.read(directory)
        self._copied = [(self.on_disk(one.was.file), self.on_disk(one.now.file)) for one in copies if one.links > 1]
        """The files with hard links that were copied to another device, each with its copy."""
        self._looks_copied: dict[int, list[tuple[OnDisk, Looks]]] = {}
        """What copies of such files were when they were made, by their inode numbers."""
        for one in copies:
            if one.looks is not None:
                made = self.on_disk(one.now.file), one.looks
                self._looks_copied.setdefault(one.now.file[1], []).append(made)
        self._copied_from = {one.now.file: one for one in copies}
        """By its numbers, what each copy is one of."""
        self._steps_of: dict[int, list[int]] = {}
        """What gave base each thing, or changed it: the indexes of the steps, by inode number."""
        for index, step in enumerate(plan.steps):
            if not isinstance(step, Park | Remove | Fetch) and (came := self.came(index)) is not None:
                self._steps_of.setdefault(came.inode, []).append(index)
        self.ended_ns = _mtime_ns(os.path.join(directory, DONE))
        self._ctimes = {
            (line.came.device, line.came.inode): line.came.ctime_ns for line in self.lines if line.came is not None
        }
        self._changed_ns = {made.inode: made.ctime_ns for made in self.ready.made.values() if made.is_link}
        """By inode number: when each store inode that got a name in base was last changed.  It was
        born by then, whatever the clock said when the commit ended.
        """

    @classmethod
    def read(cls, number: int, directory: bytes) -> Applied:
        """Read what the commit in ``directory`` did.

        Raises:
            YolofsError: its plan is damaged.
            OSError: it cannot be read.
        """
        return cls(number, directory, read_plan(directory))

    def on_disk(self, file: FileNumbers) -> OnDisk:
        """Return which file on which disk had these numbers then."""
        return OnDisk(self.ready.disks.get(file[0]), file[1])

    def came(self, index: int) -> OnDisk | None:
        """Return what a step (by its index) put at its path, None if that is not known."""
        line = self.lines[index] if index < len(self.lines) else None
        if line is not None and line.came is not None:
            return self.on_disk((line.came.device, line.came.inode))
        step = self.plan.steps[index]
        if isinstance(step, Place) and step.number in self.parks:
            return OnDisk(None, self.parks[step.number].inode)
        if isinstance(step, Rewrite | SetMetadata):  # what was made for it is a copy of what the file was
            return OnDisk(None, step.inode) if step.inode is not None else None
        made = self.ready.made.get(getattr(step, "number", -1))
        return OnDisk(None, made.inode) if made is not None else None

    @property
    def has_cut_links(self) -> bool:
        """Whether anything was copied of files with hard links."""
        return bool(self._copied)

    def was_linked(self, now: OnDisk) -> OnDisk | None:
        """Return the file with hard links on another device that something is a copy of; None if it
        is no such copy.
        """
        return next((was for was, copy in self._copied if copy.may_be(now)), None)

    def kept_of_links(self, kept: os.stat_result) -> FileNumbers | None:
        """Return the file with hard links of which a kept thing is a copy: moves to other devices
        made it, one or two.
        """
        one = self._copied_from.get((kept.st_dev, kept.st_ino))
        if one is not None and one.links == 1:
            one = self._copied_from.get(one.was.file)
        return one.was.file if one is not None and one.links > 1 else None

    def copies_of(self, was: OnDisk) -> list[OnDisk]:
        """Return the copies of a file with hard links that were made as it moved to another device,
        or is kept from one.
        """
        return [copy for one, copy in self._copied if one.may_be(was)]

    def _device(self, index: int) -> int | None:
        """Return the number that a device had then: the one of what a step (by its index) put at
        its path.  None if that is not known.
        """
        line = self.lines[index] if index < len(self.lines) else None
        return line.came.device if line is not None and line.came is not None else None

    def _steps_at(self, file: OnDisk) -> list[int]:
        """Return the indexes of the steps about one file."""
        indexes = self._steps_of.get(file.inode, [])
        return [index for index in indexes if (came := self.came(index)) is not None and came.may_be(file)]

    def kept(self, number: int) -> os.stat_result | None:
        """Return what it keeps in a slot, None if it does not (any more): nothing is there, or
        something of another type.
        """
        try:
            kept = os.lstat(os.path.join(self.directory, b"replaced/%d" % number))
        except (FileNotFoundError, NotADirectoryError):
            return None
        types = {stat.S_IFMT(looks[2]) for looks in self._looks_kept(number)}
        return kept if not types or stat.S_IFMT(kept.st_mode) in types else None

    def kept_from(self, number: int) -> int | None:
        """Return the inode number that base had for what a slot keeps, or has kept."""
        return self._kept_from.get(number)

    def _looks_kept(self, number: int) -> AbstractSet[Looks]:
        """Return how the thing that a slot keeps looked in base, as far as that is known; several
        looks if two devices have used the same inode number.
        """
        inode = self._kept_from.get(number)
        return self._looks.get(inode, set()) if inode is not None else set()

    def is_kept_as_it_was(self, number: int, kept: os.stat_result) -> bool:
        """Tell whether what it keeps in a slot has the size and time that base's file had.  Only
        regular files are compared, and only if that is known; else it is taken for unchanged.
        """
        was = {looks[:2] for looks in self._looks_kept(number)}
        return not was or not stat.S_ISREG(kept.st_mode) or (kept.st_size, kept.st_mtime_ns) in was

    def is_mode_kept(self, number: int, kept: os.stat_result) -> bool:
        """Tell whether a slot's thing still has its mode from base; True if that is not known.

        A setgid directory that is opened up to be kept loses setgid if its owner is not in its
        group.
        """
        modes = {looks[2] for looks in self._looks_kept(number)}
        return not modes or kept.st_mode in modes

    def changed_in_place(self, file: OnDisk) -> int | None:
        """Return the index of the last step that has changed content or metadata of a file of base
        that keeps its inode number; None if there is none.
        """
        indexes = self._steps_at(file)
        changes = [index for index in indexes if isinstance(self.plan.steps[index], Rewrite | SetMetadata)]
        return changes[-1] if changes else None

    def is_older(self, path: bytes, st: os.stat_result) -> bool:
        """Tell whether what is at an absolute path was there when the commit ended.

        If not, the host has made it since, and it was given the inode number of what was there.
        Where a filesystem does not tell when a thing was born, all counts as older.  What was there
        with that number is older too, though the clock was set back before the commit ended.
        """
        birth_ns = syscalls.birth_ns(path)
        if birth_ns is None or birth_ns == self.ready.births.get(st.st_ino):
            return True
        return birth_ns <= max(self.ended_ns, self._changed_ns.get(st.st_ino, 0))

    def was_changed_since(self, path: bytes, st: os.stat_result) -> bool:
        """Tell whether something at an absolute path was made, moved there, written to or given
        other metadata since the commit ended, as far as its times tell.

        Each name that comes or goes changes both times of a directory; each hard link changes the
        ctime of a file, so of one with several names only its content counts.
        """
        if st.st_ctime_ns <= self.ended_ns:
            return False
        if stat.S_ISDIR(st.st_mode):
            is_told = st.st_mtime_ns != st.st_ctime_ns
        else:
            is_written = stat.S_ISREG(st.st_mode) and self.ended_ns < st.st_mtime_ns <= st.st_ctime_ns
            is_told = is_written or st.st_nlink == 1
        return is_told or not self.is_older(path, st)

    def is_unchanged(self, index: int, st: os.stat_result) -> bool:
        """Tell whether something is what a step (by its index) and those after it have left, its
        time of change included.
        """
        device = self._device(index)
        return device is not None and self._ctimes.get((device, st.st_ino)) == st.st_ctime_ns

    def is_as_left(self, index: int, st: os.stat_result, store: StoreFiles, restored: AbstractSet[InodeCtime]) -> bool:
        """Tell whether nobody has changed the content or metadata of what a step (by its index) and
        those after it gave base; ``st`` is it now, or what an undo has made anew for it.
        """
        file = self.came(index) or OnDisk(None, st.st_ino)
        return self.is_unchanged(index, st) or self.is_file_as_left(file, st, store, restored)

    def is_file_as_left(
        self, file: OnDisk, st: os.stat_result, store: StoreFiles, restored: AbstractSet[InodeCtime]
    ) -> bool:
        """Tell whether nobody has changed a file that the commit has put in place or changed, or
        has copied with the directory that it lies in; ``st`` is it now, or what an undo has made
        anew for it.

        A ctime that an undo has set tells that only if nothing else does: the undo may have brought
        back what the host had changed before.
        """
        is_by_undo = (st.st_ino, st.st_ctime_ns) in restored
        last = self._last_change(file)
        if last is None:
            copied = self._copied_from.get((st.st_dev, st.st_ino))
            looks = self._looks.get(file.inode, set()) | self._looks.get(
                copied.was.file[1] if copied is not None else 0, set()
            )
            looks |= {looks for copy, looks in self._looks_copied.get(file.inode, ()) if copy.may_be(file)}
            return looks_of(st) in looks if looks else is_by_undo
        changed = self.plan.steps[last]
        made = self.ready.made.get(getattr(changed, "number", -1))
        if made is not None and made.is_link:
            return made.has_looks_of(st)
        is_as_given = _has_looks_of(changed, st, store)
        is_unsure = is_as_given is None or changed.path in self._unset
        return bool(is_as_given) or (is_unsure and is_by_undo)

    def _last_change(self, file: OnDisk) -> int | None:
        """Return the index of the last step that has given something content or metadata, but for
        the time of a directory; None if none has.
        """
        for index in reversed(self._steps_at(file)):
            step = self.plan.steps[index]
            if not (isinstance(step, Place | Link) or is_time_alone(step)):
                return index
        return None

    def has_others_attributes(self, index: int, now: copying.Metadata, mode: int | None = None) -> bool:
        """Tell whether something has extended attributes that no step has given it, of what a step
        (by its index) and those after it gave base; False if nobody knows.

        ``mode`` is what it was given, if it may have another.
        """
        giving = self._last_change(self.came(index) or OnDisk(None, now.st.st_ino))
        if giving is None:
            step = self.plan.steps[index]
            giving = self._fetches.get(step.number) if isinstance(step, Place) else index
        if giving is None or self.ready.attributes is None or isinstance(self.plan.steps[giving], Link):
            return False
        return has_others(now, self.ready.attributes.get(giving, ()), mode)

    def has_access_left(self, index: int, st: os.stat_result, store: StoreFiles) -> bool:
        """Tell whether a directory that a step (by its index) has made or brought back has the mode
        and owner that this gave it, as far as it could, or was only opened since to get in; True if
        nobody knows any more.
        """
        step = self.plan.steps[index]
        fetched = self._fetches.get(step.number) if isinstance(step, Place) else None
        given = {looks[2:] for looks in self._looks.get(self._inode_fetched(fetched), ())}
        if isinstance(step, MakeDirectory):
            with contextlib.suppress(FileNotFoundError):
                made = store.lstat(step.ino)
                given = {(made.st_mode, made.st_uid, made.st_gid)}
        unset = self._unset.get(step.path, ())

        def is_left(mode: int, uid: int, gid: int) -> bool:
            has_mode = "mode" in unset or st.st_mode in (mode, mode | stat.S_IRWXU)
            return has_mode and ("owner" in unset or uid == st.st_uid) and ("group" in unset or gid == st.st_gid)

        return not given or any(is_left(*one) for one in given)

    def _inode_fetched(self, index: int | None) -> int:
        """Return the inode number of what a step (by its index) has fetched, 0 for None."""
        step = self.plan.steps[index] if index is not None else None
        return step.inode if isinstance(step, Fetch) else 0

    @cached_property
    def _unset(self) -> dict[RelPath, tuple[str, ...]]:
        """What could not be set, by path."""
        return unset_metadata.read(self.directory, unset_metadata.UNSET)

    def has_metadata_left(
        self, index: int, step: FinishDirectory, st: os.stat_result, store: StoreFiles
    ) -> bool | None:
        """Tell whether a directory has the mode and owner that a step (with its index) has given
        it, or all of these that it could give; None if nobody knows any more.

        So has one that its owner has opened since, to get into it, and one that is as it was before
        the commit.
        """
        if self.is_unchanged(index, st):
            return True
        try:
            wanted = store.lstat(step.ino) if step.ino is not None else None
        except FileNotFoundError:
            wanted = None
        if wanted is None:
            return None
        modes = {wanted.st_mode, wanted.st_mode | stat.S_IRWXU}
        owners = {(wanted.st_uid, wanted.st_gid)}
        if step.was is not None:
            modes.add(step.was.mode)
            owners.add((step.was.uid, step.was.gid))
        return st.st_mode in modes and (st.st_uid, st.st_gid) in owners


def _has_looks_of(step: Step, st: os.stat_result, store: StoreFiles) -> bool | None:
    """Tell whether something has the size, time, mode and owner that a step has given it; None if
    nobody knows any more.
    """
    if isinstance(step, Create) and (st.st_size != step.size or not is_kept_as(step.mtime_ns, st.st_mtime_ns)):
        return False
    ino = getattr(step, "ino", None)
    try:
        wanted = store.lstat(ino) if ino is not None else None
    except FileNotFoundError:
        wanted = None
    if wanted is None:
        return True if isinstance(step, Create) else None
    if isinstance(step, Rewrite) and st.st_size != wanted.st_size:
        return False
    looks = (st.st_mode, st.st_uid, st.st_gid)
    return looks == (wanted.st_mode, wanted.st_uid, wanted.st_gid) and is_kept_as(wanted.st_mtime_ns, st.st_mtime_ns)


def _kept_from(plan: Plan) -> dict[int, int]:
    """Return the inode numbers of what the steps have kept of base, by slot."""
    found: dict[int, int] = {}
    for step in plan.steps:
        match step:
            case Remove(number=number, inode=inode) | Rewrite(number=number, inode=int(inode)):
                found[number] = inode
            case Create() | Place() | Link() | Duplicate() if step.replaced is not None:
                found[step.number] = step.replaced
    return found


def is_time_alone(step: Step) -> bool:
    """Tell whether a step does no more than set a directory's time."""
    return isinstance(step, FinishDirectory) and step.ino is None


def _mtime_ns(path: bytes) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except FileNotFoundError:
        return 0


def read_plan(directory: bytes) -> Plan:
    """Return the plan of the commit in ``directory``.

    Raises:
        YolofsError: it is damaged.
        OSError: it cannot be read.
    """
    return Plan.decode(read_plain(os.path.join(directory, PLAN), _MOST_BYTES))
