"""Finishes a commit that a crash interrupted: finds the steps still to do, from the files at their
places.

The log says which steps are done for certain.  After a killed process only the next one is in
doubt; after a power failure several may be, as the log is not waited for.  So each step that is
left is first looked at: every one of them moves something between places that only this commit
uses, or may simply be done again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from itertools import islice

import msgspec

from yolofs.commit.apply.kept_copies import metadata_of
from yolofs.commit.apply.moving_out import spot_of_half_moved
from yolofs.commit.apply.other_devices import Folder
from yolofs.commit.apply.places import Spot, spot_of_copy
from yolofs.commit.apply.recovery.done_steps import READING, as_file
from yolofs.commit.apply.recovery.found_files import is_mixture, places_of
from yolofs.commit.apply.recovery.hosts_metadata import with_hosts_metadata
from yolofs.commit.apply.recovery.swapped_out import SwappedOut
from yolofs.commit.apply.step_log import LoggedStep
from yolofs.commit.apply.trees import inode_ctimes_below
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
    directories_made,
)
from yolofs.paths import RelPath, split
from yolofs.store import copying
from yolofs.store.copying import PathDescriptor
from yolofs.store.interfaces import StoreFiles
from yolofs.store.restored import InodeCtime


class ResumedSteps(SwappedOut):
    """Does what is left of the steps."""

    def __init__(self, plan: Plan, store: StoreFiles, directory: bytes, *, durable: bool) -> None:
        """Prepare as :class:`~yolofs.commit.apply.steps.Steps` does."""
        super().__init__(plan, store, directory, durable=durable)
        self._with_hosts_metadata: set[RelPath] = set()
        """Where something keeps metadata that the host has given it."""

    @cached_property
    def _new_directories(self) -> frozenset[RelPath]:
        """Those that the commit made: a later commit looks at each name in them by itself."""
        return directories_made(self._plan)

    def do(self, step: Step) -> None:
        """Do one step, or the rest of it, unless it is done.

        Raises:
            OSError: it could not be done; ESTALE if another thing lies at the path from which it
                moves one away.
        """
        if not self._is_done(step):
            self._check_victim(step)
            super().do(step)

    def logged(self, step: Step) -> LoggedStep:
        """Return the same; what has metadata of the host's is not what the step left."""
        said = super().logged(step)
        is_hosts = isinstance(step, Rewrite | SetMetadata | FinishDirectory) and step.path in self._with_hosts_metadata
        return said._replace(came=None) if is_hosts else said

    def _metadata_for(self, step: Rewrite | SetMetadata | FinishDirectory, thing: PathDescriptor) -> copying.Metadata:
        """Return the same, but for what the host has given the thing while the commit was
        interrupted: that stays.
        """
        new, now = super()._metadata_for(step, thing), copying.read_metadata(thing)
        if step.was is not None:
            was = step.was
        elif isinstance(step, FinishDirectory):  # it is new, and may have been made with this mode
            was = MetadataBefore(stat.S_IFDIR | stat.S_ISGID | stat.S_IRWXU, now.st.st_uid, now.st.st_gid, 0, 0)
            now = msgspec.structs.replace(now, xattrs=new.xattrs)
        else:  # a plan of an earlier version
            return new
        if self._is_copied(step.path):  # not everybody may give a copy its owner
            was = msgspec.structs.replace(was, uid=now.st.st_uid, gid=now.st.st_gid)
        old = metadata_of(was)
        wanted, hosts = with_hosts_metadata(now, old, new, new, has_time=isinstance(step, SetMetadata))
        if hosts:
            self._with_hosts_metadata.add(step.path)
            self._note(step.path, hosts)
        return wanted

    def _move_out(self, path: RelPath, folder: Folder, number: int) -> None:
        aside = self._shelter(path, number)
        if self._inode(spot_of_half_moved(aside)) is None:
            super()._move_out(path, folder, number)
            return
        self._directories.forget(path)
        self._move_by_names(Spot(*split(path)), aside, number)
        self._move_on(aside, folder, number, path)

    def _check_victim(self, step: Step) -> None:
        """Check that a step would move away the plan's thing; a newer one of the host's stays."""
        match step:
            case Park() | Remove() if self._half_moved(step) is not None:
                return
            case Park() | Remove():
                number: int | None = step.inode
            case Create() | Place() | Link() | Duplicate():
                number = self._replaced_by(step)
            case _:
                return
        there = self._inode(Spot(*split(step.path)))
        if number is not None and there not in (number, None) and not self._is_copied(step.path):
            raise OSError(errno.ESTALE, "the host has put something else there meanwhile")

    def redo(self, step: Step, said: LoggedStep) -> bool:
        """Do a step again that the log says is done, if a power failure has undone it; return
        whether the log is to say anew what it left.

        The log may have reached the disk before what it tells of.  What the host has done since is
        left alone.  So a step is done again only if what it moves is still where it was, or if
        nobody has touched it since.
        """
        match step:
            case FinishDirectory():
                if self.has_time_given(step) or step.path in self._new_directories:
                    self.do(step)
                    return True
                self.give_time_again(step)
                return False
            case Rewrite() | SetMetadata():
                spot, then = Spot(*split(step.path)), said.came
                now = self._identity_at(spot)
                if now is not None and then is None and not self._is_the_hosts(step.path):
                    self.do(step)
                    return True
                if now is None or then is None or now.inode != then.inode or now.ctime_ns > then.ctime_ns:
                    return False
                super().do(step)  # also where it has the data: only the kernel may have that
            case _:
                if self._was_undone(step, said):
                    self.do(step)
                elif said != LoggedStep():  # else its line was taken out
                    return False
        return True

    @cached_property
    def moves_of_changed(self) -> list[int]:
        """The numbers, from 0, of the steps that move something that is changed in place
        afterwards, or that holds such a thing.
        """
        return sorted(index for number, index in self._places_at.items() if self._changes(number))

    def lost_with(self, step: Step, lines: Sequence[LoggedStep]) -> list[int]:
        """Return the numbers of such a step and of the changes, if a power failure has undone the
        move; else nothing.

        What was given after the move may be lost, too.  The log does not tell: the move gives the
        thing another ctime once it is done again.
        """
        assert isinstance(step, Place)
        index, out = self._places_at[step.number], self._parks_at.get(step.number)
        if out is not None:
            self.recall(self._plan.steps[out])
        is_out_lost = out is not None and self._was_undone(self._plan.steps[out], lines[out])
        is_lost = is_out_lost or self._was_undone(step, lines[index])
        return [index, *self._changes(step.number)] if is_lost else []

    def _changes(self, number: int) -> list[int]:
        """Return the numbers of the steps that change in place, afterwards, what is moved, or
        something in it.
        """
        index = self._places_at[number]
        top, found = self._plan.steps[index].path, list[int]()
        for path, later in islice(self._in_place, bisect_left(self._in_place, (top, 0)), None):
            if path == top or path.startswith(top + b"/"):
                found.append(later)
            elif path > top + b"/":
                break
        return [later for later in found if later > index]

    @cached_property
    def _parks_at(self) -> dict[int, int]:
        """Which steps move something out of its place, by the number of the thing."""
        return {step.number: index for index, step in enumerate(self._plan.steps) if isinstance(step, Park)}

    @cached_property
    def _places_at(self) -> dict[int, int]:
        """Which steps put it in its place, in the same way."""
        return {step.number: index for index, step in enumerate(self._plan.steps) if isinstance(step, Place)}

    @cached_property
    def _in_place(self) -> list[tuple[RelPath, int]]:
        """The steps that change a file in place: path and number, sorted."""
        return sorted(
            (step.path, index) for index, step in enumerate(self._plan.steps) if isinstance(step, Rewrite | SetMetadata)
        )

    def _was_undone(self, step: Step, said: LoggedStep) -> bool:
        """Tell whether a step that moves something, or brings it in, has to be done again."""
        match step:
            case Park():
                return self._is_there_still(step, said)
            case Remove():
                return self._is_there_still(step, said) or self._is_not_kept(
                    step.number, self._shelter(step.path, step.number)
                )
            case Link():
                there, existing = (self._inode(Spot(*split(path))) for path in (step.path, step.existing))
                is_as_before = there is None or (step.replaced is not None and there == self._replaced_by(step))
                return is_as_before and existing is not None
            case Create() if (made := self.linked_from(step)) is not None:
                return self._was_never_named(step, made)
            case MakeDirectory():
                return self._inode(self._comes_from(step)) is not None
            case Create() | Place() | Duplicate():
                source = self._comes_from(step)
                is_copied = self._inode(spot_of_copy(source)) is not None  # the copy may not be in its place yet
                is_beside = is_copied and self._inode(self._beside(step.path, step.number)) is not None
                is_lost = self._is_not_kept(step.number, self._away(step.path, step.number))
                return is_beside or is_lost or self._inode(source) is not None
            case Fetch():
                return self._inode(self._kept_at(step)) == step.inode
            case Rewrite() | SetMetadata() | FinishDirectory():
                return False

    def _is_not_kept(self, number: int, aside: Spot) -> bool:
        """Tell whether what a step took out of base on another device lies aside there, and the
        disk has lost the copy that is kept of it.

        Danger: what lies aside is a leftover then, and would be deleted.
        """
        return self._inode(aside) is not None and self._inode(self._in(self._replaced, number)) is None

    def release_store(self) -> None:
        """Take the names in the store away, except for those of which base has no other: the host
        has removed them.
        """
        for step, made in self._store_names:
            path = self._store.own_path(step.ino)
            with contextlib.suppress(FileNotFoundError):
                st = os.lstat(path)
                if st.st_ino == made.inode and st.st_nlink > 1:
                    os.unlink(path)

    def inode_ctimes_of_copies(self) -> set[InodeCtime]:
        """Return the same of what was copied before the crash: what has changed since the note of
        it is the host's.
        """
        found: set[InodeCtime] = set()
        for step in self._places.values():
            if self.made_by_step(step) is None:
                continue
            noted_ns = os.stat(self._name_of_note(step), dir_fd=self._new.fd, follow_symlinks=False).st_ctime_ns
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                below = inode_ctimes_below(self._at(self._reach(step.path)[0]))
                found.update(inode_ctime for inode_ctime in below if inode_ctime[1] <= noted_ns)
        return found | super().inode_ctimes_of_copies()

    def _back_up(self, thing: PathDescriptor, st: os.stat_result, step: Rewrite) -> None:
        """Also keep content that is neither what the file was nor surely ours: the host may have
        written it meanwhile.
        """
        kept = self._in(self._replaced, step.number)
        if self._inode(kept) is not None:
            was = os.lstat(self._at(kept))
            is_as_before = (st.st_size, st.st_mtime_ns) == (was.st_size, was.st_mtime_ns)
            if not is_as_before and not self._is_half_written(thing, step):
                self._copy_found(thing, step)
        super()._back_up(thing, st, step)

    def _is_half_written(self, thing: PathDescriptor, step: Rewrite) -> bool:
        """Tell whether a file whose old content is kept holds only its old content, its new
        content, or what is found.

        What was found is kept as well: it was so before it was written over once more.
        """
        kept = self._in(self._replaced, step.number)
        found = places_of(self._parking, step)[:-1]
        with contextlib.ExitStack() as opened:
            there = opened.enter_context(as_file(os.open(thing.path, READING & ~os.O_NOFOLLOW)))
            contents = [opened.enter_context(as_file(os.open(kept.name, READING, dir_fd=self._fd(kept))))]
            with contextlib.suppress(FileNotFoundError):  # the store may have lost it
                contents.append(opened.enter_context(as_file(self._store.open(step.ino, os.O_RDONLY))))
            contents += [opened.enter_context(as_file(os.open(path, READING))) for path in found]
            return is_mixture(there, contents)
