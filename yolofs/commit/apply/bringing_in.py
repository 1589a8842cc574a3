"""The steps of a commit that put something in place: new, moved, or another name of a file."""

from __future__ import annotations

import contextlib
import errno
import os
from collections import Counter
from functools import cached_property

from yolofs.commit.apply.copy_log import FileNumbers
from yolofs.commit.apply.directories import rename_with
from yolofs.commit.apply.keeping import NO_LINK, Arrival, Keeping
from yolofs.commit.apply.kept_copies import names_of_several
from yolofs.commit.apply.places import COPIED, Spot, spot_of_copy
from yolofs.commit.apply.ready import LINKED
from yolofs.commit.apply.trees import inode_ctimes_below, names_elsewhere
from yolofs.commit.plan.plan import (
    Create,
    Duplicate,
    Link,
    MakeDirectory,
    Place,
)
from yolofs.paths import RelPath, split
from yolofs.store import copying
from yolofs.store.restored import InodeCtime
from yolofs.system import syscalls


class BringingIn(Keeping):
    """Carries out the steps that put something in its place: made, moved, linked or duplicated."""

    def _make_directory(self, step: MakeDirectory) -> None:
        parent, name = split(step.path)
        if step.number in self._made:
            made = self._made_at(step.number)
            rename_with(self._directories, (self._fd(made), made.name), (parent, name), syscalls.rename_noreplace)
        elif not step.number:
            self._directories.within(parent, lambda fd: os.mkdir(name, 0o700, dir_fd=fd))
        else:
            beside = self._beside(step.path, step.number)
            self._directories.within(parent, lambda fd: self._make_empty(step, fd, beside.name))
            self._mark_made(beside, step)
            source = self._unlocked(beside), beside.name
            rename_with(self._directories, source, (parent, name), syscalls.rename_noreplace)

    def _create(self, step: Create) -> None:
        made = self._made.get(step.number)
        if made is not None and made.folder == LINKED:
            self._name_store_inode(step)
            return
        if made is not None:
            spot = self._made_at(step.number)
        else:
            spot = self._workplace(step.path, step.number, step.ino)
            self._make_file(step, self._new_part(spot))
            self._end_part(spot)
            self._mark_made(spot, step)
        self._bring_in(spot, step)

    def _name_store_inode(self, step: Create) -> None:
        source = self._store.own_path(step.ino)
        parent, _, name = step.path.rpartition(b"/")
        try:
            try:
                os.link(source, name, dst_dir_fd=self._directories.open(RelPath(parent)), follow_symlinks=False)
            except PermissionError:
                if not self._directories.unlock(RelPath(parent)):
                    raise
                os.link(source, name, dst_dir_fd=self._directories.open(RelPath(parent)), follow_symlinks=False)
        except OSError as error:
            self.may_not_link = error.errno in NO_LINK
            raise

    def _link(self, step: Link) -> None:
        source, st = self._reach(step.existing)
        is_at_once = step.replaced is None and not self._may_number_names(source)
        target = Spot(*split(step.path)) if is_at_once else self._beside(step.path, step.number)
        try:
            self._unlocked(target)
            os.link(
                source.name,
                target.name,
                src_dir_fd=self._fd(source),
                dst_dir_fd=self._fd(target),
                follow_symlinks=False,
            )
        except OSError as error:
            if error.errno not in NO_LINK:
                raise
            self._copy_instead(source, step)
            return
        if not is_at_once:
            if os.stat(self._at(target), follow_symlinks=False).st_ino != st.st_ino:
                self._mark_made(target, step)  # by the file's number nobody would know it again
            self._bring_in(target, step)

    def _may_number_names(self, spot: Spot) -> bool:
        """Tell whether the disk of a spot may show a file under another inode number by each of its
        names.
        """
        fd = self._fd(spot)
        device = os.fstat(fd).st_dev
        if device not in self._numbers_names:
            self._numbers_names[device] = syscalls.is_in_user_space(fd)
        return self._numbers_names[device]

    def _copy_instead(self, source: Spot, step: Link) -> None:
        spot = self._workplace(step.path, step.number)
        part = self._new_part(spot)
        self._note(step.path, ("hard link", *copying.copy_node(self._at(source), self._at(part))))
        self._end_part(spot)
        self._mark_made(spot, step)
        self._bring_in(spot, step)

    def _duplicate(self, step: Duplicate) -> None:
        if step.number in self._made:
            self._bring_in(self._made_at(step.number), step)
            return
        spot = self._workplace(step.path, step.number, step.ino)
        part = self._new_part(spot)
        source, _ = self._reach(step.existing)
        copying.copy_node(self._at(source), self._at(part))
        self._note(step.path, copying.write_metadata(self._at(part), self._store.metadata(step.ino)))
        self._end_part(spot)
        self._mark_made(spot, step)
        self._bring_in(spot, step)

    def _bring_in(self, source: Spot, step: Arrival) -> None:
        """Put what is at ``source`` at the step's path, across devices if need be."""
        try:
            self._swap_in(source, step)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
        else:
            return
        beside = self._beside(step.path, step.number)
        self._unlocked(source)
        if isinstance(step, Place) and self._loses_links(step, source):
            self._note(step.path, ("hard link",))
        self._copy_tree(source, beside, step.path)
        self._copied.update(inode_ctimes_below(self._at(beside)))
        self._mark_made(beside, step)
        copied = spot_of_copy(source)
        syscalls.rename_noreplace(self._unlocked(source), source.name, self._fd(copied), copied.name)
        self._sync_directory(copied)
        self._leave_over(copied)
        self._swap_in(beside, step)

    def _loses_links(self, step: Place, source: Spot) -> bool:
        """Tell whether a copy would part a file from its other names, which stay where they are, or
        are copied by themselves.
        """
        left = names_elsewhere(self._at(source), lambda inside: bool(inside) and step.path + inside in self._taken)
        return bool(left) and not left <= self._names_gone

    @cached_property
    def _taken(self) -> frozenset[bytes]:
        """Where something is replaced."""
        return frozenset(step.path for step in self._plan.replacing)

    @cached_property
    def _names_gone(self) -> Counter[FileNumbers]:
        """How many names of each file with hard links the commit takes out of base; it has come to
        what it moves and puts in place.
        """
        kept = Spot(self._replaced, b".")
        aside = [spot for spot in self._leftovers if not spot.name.endswith(COPIED)]
        there = [Spot(*split(step.path)) for step in self._plan.replacing if not self._is_kept(step)]
        found = Counter[FileNumbers]()
        for spot in (kept, *aside, *there):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                found.update(names_of_several(self._at(spot), b"").values())
        return found

    def _is_kept(self, step: Arrival) -> bool:
        """Tell whether what a step replaces has been taken out of its place."""
        try:
            os.stat(b"%d" % step.number, dir_fd=self._replaced.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def _swap_in(self, source: Spot, step: Arrival) -> None:
        """Rename ``source`` to the step's path and keep what it replaces, if it is to replace
        anything.
        """
        src, dst = (self._unlocked(source), source.name), split(step.path)
        if step.replaced is None:
            rename_with(self._directories, src, dst, syscalls.rename_noreplace)
            return
        self._mark_replaced(step)
        if rename_with(self._directories, src, dst, syscalls.rename_exchange):
            self._keep(source, step)
            return
        if not self._may_rename(src[0], self._fd(Spot(*dst))):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))  # before anything is kept for nothing
        old = self._keep_before(Spot(*dst), step)
        rename_with(self._directories, src, dst, _rename)
        if old.directory is not self._replaced:
            self._keep(old, step)

    def release_store(self) -> None:
        """Take the name in the store away of each store inode that has a durable name in base by
        now.

        Raises:
            OSError: one cannot be taken away.
        """
        self._store.remove_links(step.ino for step, _ in self._store_names)

    def inode_ctimes_of_links(self) -> set[InodeCtime]:
        """Return the inode ctimes of what had a name in the store, as far as it still is where it
        was put.
        """
        found: set[InodeCtime] = set()
        for step, made in self._store_names:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                _, st = self._reach(step.path)
                if st.st_ino == made.inode:
                    found.add((st.st_ino, st.st_ctime_ns))
        return found

    def inode_ctimes_of_copies(self) -> set[InodeCtime]:
        """Return the inode ctimes of what lies in directories that were copied: no step is about
        it.
        """
        return self._copied


def _rename(src_fd: int, src: bytes, dst_fd: int, dst: bytes) -> None:
    os.rename(src, dst, src_dir_fd=src_fd, dst_dir_fd=dst_fd)
