"""Doing the steps of a commit, one at a time.

Everything that a step replaces or removes ends up in the folder ``replaced`` of the commit's
directory.  What is on the same filesystem gets there by a rename.  What is not is first moved aside
in base, under a name that starts with ``.yolofs-``, then copied, and deleted by
:meth:`Steps.discard_leftovers` once the copy is durable.  What goes to another place on another
device is copied, too; its name tells when the copy is whole.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from typing import TypeAlias, assert_never

from yolofs.commit.apply import by_names, part_links
from yolofs.commit.apply.directories import rename_between, rename_out, rename_with
from yolofs.commit.apply.other_devices import Folder
from yolofs.commit.apply.places import Spot, copied_from
from yolofs.commit.apply.preparing import Preparing
from yolofs.commit.apply.ready import LINKED, Made
from yolofs.commit.apply.step_log import UNKNOWN_NS, Identity, Line
from yolofs.commit.apply.trees import copy_tree, ctimes_below, has_names_elsewhere, remove_tree
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
from yolofs.paths import ROOT, RelPath, split
from yolofs.store import copying
from yolofs.store.copying import at
from yolofs.store.store import StoreFiles
from yolofs.system import syscalls

UNMADE = b"-unmade"
"""How notes end of what was made and is not any more, as the commit was being taken back."""
MADE_BY_STEP = b"-is"
"""How notes end, before an inode number, of what a step has made itself on another device."""
_ARRIVALS = (Create, Place, Link, Duplicate)
_NO_LINK = frozenset({errno.EXDEV, errno.EMLINK, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS})
"""What link(2) answers where another hard link cannot be: other device, too many, filesystem or
kernel forbids it.
"""


class Steps(Preparing):
    """Does steps; holds what later ones need to know of earlier ones.  Close it, or use it in a
    ``with``.
    """

    def __init__(self, plan: Plan, store: StoreFiles, directory: bytes, *, durable: bool) -> None:
        """Prepare the folders in ``directory``, the commit's own (an absolute path).

        Raises:
            OSError: it cannot be prepared, or base cannot be opened.
        """
        super().__init__(plan, store, directory, durable=durable)
        self._given_modes = {
            step.path for step in plan.steps if isinstance(step, FinishDirectory) and step.ino is not None
        }
        """Of these directories the plan says which mode they are to have."""
        self._out_paths = {step.path for step in plan.steps if isinstance(step, Park | Remove)}
        self._set_aside: dict[int, Spot] = {}
        """Where things are that could not be moved to ``parked``, by number."""
        self._leftovers: list[Spot] = []
        self._copied: dict[int, int] = {}
        """The ctimes, by inode number, of what lies in directories that were copied to where they
        are to be.
        """
        self.may_not_link = False
        """Whether a step failed as a store inode may not get a name where it is to be."""

    def do(self, step: Step) -> None:
        """Do one step.

        Raises:
            OSError: it could not be done.
        """
        match step:
            case Create():  # which most are
                self._create(step)
            case Park():
                self._move_out(step.path, self._parked, step.number)
            case Remove():
                self._move_out(step.path, self._replaced, step.number)
            case Fetch():
                self._move_kept(self._kept_at(step), Spot(self._parked, b"%d" % step.number))
            case MakeDirectory():
                self._make_directory(step)
            case Place():
                parked = Spot(self._parked, b"%d" % step.number)
                self._bring_in(self._set_aside.get(step.number, parked), step)
            case Link():
                self._link(step)
            case Duplicate():
                self._duplicate(step)
            case Rewrite():
                self._rewrite(step)
            case SetMetadata():
                self._set_metadata(step)
            case FinishDirectory():
                self._finish_directory(step)
            case _:
                assert_never(step)

    def seen(self, step: Step) -> Line:
        """Return what the log is to say of a step that was done just now."""
        match step:
            case Fetch():
                return Line(None, self._seen(Spot(self._parked, b"%d" % step.number)))
            case Park():
                return Line(None, self._seen(self._set_aside.get(step.number, Spot(self._parked, b"%d" % step.number))))
            case Remove():
                return Line(None, self._seen(Spot(self._replaced, b"%d" % step.number)))
            case Create() if (made := self.linked_from(step)) is not None:
                return Line(self.seen_linked(made))
            case _:
                came = self._seen(Spot(*split(step.path)) if step.path else Spot(ROOT, b"."))
                went = None
                if isinstance(step, Rewrite) or (isinstance(step, _ARRIVALS) and step.replaced is not None):
                    went = self._seen(Spot(self._replaced, b"%d" % step.number))
                return Line(came, went)

    def seen_linked(self, made: Made) -> Identity:
        """Return what the log is to say of a store inode that has got a name in base just now."""
        return Identity(self._device, made.inode, UNKNOWN_NS, made.size)

    def _seen(self, spot: Spot) -> Identity | None:
        try:
            return Identity.of(os.stat(spot.name, dir_fd=self._fd(spot), follow_symlinks=False))
        except OSError:
            return None

    def release(self) -> None:
        """Close the directories of base, and give those the modes back that had to be opened up."""
        self._directories.release()
        self.close_again(lambda path: None if (now := self._moves.after(path)) in self._given_modes else now)
        self._close_kept()

    def close_again(self, place: Callable[[RelPath], RelPath | None]) -> None:
        """Give directories their modes back that another process has opened up, which was killed.

        ``place`` tells where a directory is by now.
        """
        for before in self._before:
            path = place(before.path)
            if path is None or before.mode & stat.S_IRWXU == stat.S_IRWXU:
                continue
            try:
                spot, st = self._reach(path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            if st.st_ino == before.inode and _is_opened_up(st, before.mode):
                os.chmod(self._at(spot), before.mode)

    def _close_kept(self) -> None:
        """Do the same with directories that are in ``replaced`` now."""
        modes = {before.inode: before.mode for before in self._before}
        for step in self._plan.steps:
            inode = step.inode if isinstance(step, Remove) else getattr(step, "replaced", None)
            if inode not in modes:
                continue
            kept = Spot(self._replaced, b"%d" % getattr(step, "number", 0))
            with contextlib.suppress(FileNotFoundError):
                st = os.stat(kept.name, dir_fd=self._replaced.fd, follow_symlinks=False)
                if st.st_ino == inode and _is_opened_up(st, modes[inode]):
                    os.chmod(self._at(kept), modes[inode])

    def sync(self) -> None:
        """Make all that the steps wrote durable."""
        if self._directories.devices <= {self._device}:
            syscalls.sync_filesystem(self._new.fd)
        else:
            os.sync()

    def copy_apart(self) -> list[part_links.Apart]:
        """Copy what is kept and has names in base, or beside it, that are still there.  Before
        :meth:`release`.

        Raises:
            OSError: the folders of the commit cannot be worked in.
        """
        return part_links.copy_apart(self._replaced.path, self._new.path, self._originals)

    def _originals(self) -> dict[part_links.File, part_links.Original]:
        """Return what those files were that were changed in place."""
        originals: dict[part_links.File, part_links.Original] = {}
        for step in self._plan.steps:
            match step:
                case Rewrite():
                    original: part_links.Original = os.path.join(self._replaced.path, b"%d" % step.number)
                case SetMetadata():
                    original = step.was
                case _:
                    continue
            file = self._file_at(step.path)
            if step.inode is not None and (file is None or file[1] != step.inode):  # its name has gone since
                file = self._device, step.inode
                if not self._directories.devices <= {self._device}:  # which of them it was on is not known
                    original = None
            if file is not None:
                originals[file] = original
        return originals

    def _file_at(self, path: RelPath) -> part_links.File | None:
        try:
            _, st = self._reach(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return st.st_dev, st.st_ino

    @property
    def has_leftovers(self) -> bool:
        """Whether anything has been copied and is now twice there."""
        return bool(self._leftovers)

    def discard_leftovers(self) -> None:
        """Delete what has been copied and is now twice there.

        Raises:
            OSError: something cannot be deleted; its ``filename`` tells which.
        """
        self._leftovers = list(dict.fromkeys(self._leftovers))  # what was recalled and is done again is there twice
        while self._leftovers:
            spot = self._leftovers[-1]
            try:
                self._discard(spot)
            except OSError as error:
                raise OSError(error.errno, error.strerror, self._named_below(spot, error)) from error
            self._leftovers.pop()

    def discard_notes(self) -> None:
        """Delete the notes of what was made and replaced: nothing is left to be told by them.

        Raises:
            OSError: one cannot be deleted.
        """
        for name in os.listdir(self._new.fd):
            if _is_note(os.fsencode(name)):
                os.unlink(name, dir_fd=self._new.fd)

    def _named_below(self, spot: Spot, error: OSError) -> bytes:
        """Return the absolute path of what an error is about: something at or below a spot."""
        path = os.path.join(self._plan.root, self._spelled(spot))
        name = os.fsencode(error.filename) if error.filename is not None else b""
        top = self._at(spot)
        return path + name[len(top) :] if name.startswith(top) else path

    def _discard(self, spot: Spot) -> None:
        """Remove a leftover, and give its directory, which is finished already, its mtime back."""
        directory = self._unlocked(spot)
        st = os.stat(b".", dir_fd=directory)
        with contextlib.suppress(FileNotFoundError):  # one of two spots that lead to the same, or the host removed it
            remove_tree(at(directory, spot.name))
        with contextlib.suppress(PermissionError):  # another user's directory, such as /tmp
            os.utime(b".", ns=(st.st_atime_ns, st.st_mtime_ns), dir_fd=directory)

    # ---- places

    def _workplace(self, path: RelPath, number: int) -> Spot:
        """Return a spot, on the device of ``path``, to make something in before it is put there."""
        if self._directories.device(split(path)[0]) == self._device:
            return Spot(self._new, b"%d" % number)
        return self._beside(path, number)

    # ---- out

    def _move_out(self, path: RelPath, folder: Folder, number: int) -> None:
        self._directories.forget(path)
        source, target = split(path), Spot(folder, b"%d" % number)
        try:
            rename_out(self._directories, source, (folder.fd, target.name), syscalls.rename_noreplace)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
        else:
            return
        aside = self._shelter(path, number)
        aside_fd = self._unlocked(aside)
        try:
            rename_out(self._directories, source, (aside_fd, aside.name), syscalls.rename_noreplace)
        except OSError as error:
            if error.errno != errno.EXDEV or not stat.S_ISDIR(self._reach(path)[1].st_mode):
                raise
            self._move_by_names(Spot(*source), aside, number)
        self._move_on(aside, folder, number, path)

    def _move_on(self, aside: Spot, folder: Folder, number: int, path: RelPath) -> None:
        """Go on with what was moved aside, beside its path."""
        target = Spot(folder, b"%d" % number)
        try:
            syscalls.rename_noreplace(self._unlocked(aside), aside.name, folder.fd, target.name)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
        else:  # it is a directory of our own making
            return
        if folder is self._parked:
            self._set_aside[number] = aside
        else:
            self._copy_to_kept(aside, target, path)
            self._leftovers.append(aside)

    def _move_by_names(self, source: Spot, target: Spot, number: int) -> None:
        """Move a directory that no rename can move, or what is left of it to be moved."""
        note = self._at(listing_at(self._new, number))
        listing = by_names.read(note)
        if listing is None:
            listing = by_names.listing_of((self._unlocked(source), source.name))
            by_names.write(listing, note, durable=self._durable)
        half = half_of(target)
        by_names.move((self._unlocked(source), source.name), (self._unlocked(half), half.name), listing)
        self._mark_number(half, number)
        syscalls.rename_noreplace(self._unlocked(half), half.name, self._fd(target), target.name)
        os.unlink(note)

    def _copy_to_kept(self, source: Spot, target: Spot, path: RelPath) -> None:
        """Copy what is kept of another device, and note which of its names are hard links: the
        copies are not.
        """
        self._unlocked(source)
        part_links.note_parted(self._parking, part_links.names_of_several(self._at(source), target.name))
        self._copy_tree(source, target, path)

    def _shelter(self, path: RelPath, number: int) -> Spot:
        """Return a spot on the device of ``path`` that stays where it is: beside its topmost
        ancestor that moves.
        """
        top = path
        above = split(path)[0]
        while above:
            if above in self._out_paths:
                top = above
            above = split(above)[0]
        return self._beside(top, number)

    def _move_kept(self, source: Spot, target: Spot) -> None:
        """Move something between what an earlier commit keeps and what is on its way; directories
        keep their times.
        """
        times = [(self._fd(spot), os.stat(self._fd(spot))) for spot in (source, target)]
        src, dst = (self._fd(source), source.name), (self._fd(target), target.name)
        rename_between(src, dst, syscalls.rename_noreplace)
        for fd, st in times:
            os.utime(fd, ns=(st.st_atime_ns, st.st_mtime_ns))

    # ---- in

    def _make_directory(self, step: MakeDirectory) -> None:
        parent, name = split(step.path)
        if step.number in self._made:
            made = self._made_at(step.number)
            rename_with(self._directories, (self._fd(made), made.name), (parent, name), syscalls.rename_noreplace)
        elif not step.number:
            self._directories.within(parent, lambda fd: os.mkdir(name, 0o700, dir_fd=fd))
        else:
            beside = self._beside(step.path, step.number)
            self._directories.within(parent, lambda fd: os.mkdir(beside.name, 0o700, dir_fd=fd))
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
            spot = self._workplace(step.path, step.number)
            self._make_file(step, spot)
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
            self.may_not_link = error.errno in _NO_LINK
            raise

    def release_store(self) -> None:
        """Take the names in the store away of what has one in base by now, which is durable.

        Raises:
            OSError: one cannot be taken away.
        """
        self._store.remove_links(step.ino for step, _ in self._store_names)

    def ctimes_of_links(self) -> dict[int, int]:
        """Return the ctimes, by inode number, of what had a name in the store, as far as it is
        where it was put.
        """
        found: dict[int, int] = {}
        for step, made in self._store_names:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                _, st = self._reach(step.path)
                if st.st_ino == made.inode:
                    found[st.st_ino] = st.st_ctime_ns
        return found

    def ctimes_of_copies(self) -> dict[int, int]:
        """Return the ctimes, by inode number, of what lies in directories that were copied: no step
        is about it.
        """
        return self._copied

    def _link(self, step: Link) -> None:
        target = Spot(*split(step.path)) if step.replaced is None else self._beside(step.path, step.number)
        source, _ = self._reach(step.existing)
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
            if error.errno not in _NO_LINK:
                raise
            self._copy_instead(source, step)
        else:
            if step.replaced is not None:
                self._bring_in(target, step)

    def _copy_instead(self, source: Spot, step: Link) -> None:
        spot = self._workplace(step.path, step.number)
        self._unlocked(spot)
        self._note(step.path, ("hard link", *copying.copy_node(self._at(source), self._at(spot))))
        self._mark_made(spot, step)
        self._bring_in(spot, step)

    def _duplicate(self, step: Duplicate) -> None:
        if step.number in self._made:
            self._bring_in(self._made_at(step.number), step)
            return
        spot = self._workplace(step.path, step.number)
        self._unlocked(spot)
        source, _ = self._reach(step.existing)
        copying.copy_node(self._at(source), self._at(spot))
        self._note(step.path, copying.copy_metadata(self._store.path(step.ino), self._at(spot)))
        self._mark_made(spot, step)
        self._bring_in(spot, step)

    def _bring_in(self, source: Spot, step: _Arrival) -> None:
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
        self._copied.update(ctimes_below(self._at(beside)))
        self._mark_made(beside, step)
        copied = copied_from(source)
        syscalls.rename_noreplace(self._unlocked(source), source.name, self._fd(copied), copied.name)
        self._sync_directory(copied)
        self._leftovers.append(copied)
        self._swap_in(beside, step)

    def _loses_links(self, step: Place, source: Spot) -> bool:
        """Tell whether what is about to be copied is, or holds, a file of which other names stay
        where they are.
        """
        is_linked_again = any(isinstance(other, Link) and other.existing == step.path for other in self._plan.steps)
        return not is_linked_again and has_names_elsewhere(self._at(source))

    def _swap_in(self, source: Spot, step: _Arrival) -> None:
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
        else:
            self._keep_by_link(Spot(*dst), step.number)
            rename_with(self._directories, src, dst, _rename)

    def _mark_made(self, spot: Spot, step: _Arrival | MakeDirectory) -> None:
        """Leave a note of which object was made for a step just now: what is at its path may be the
        host's.

        It is made durable before, as who finds the note takes it for whole.
        """
        self._mark_number(spot, step.number)

    def _mark_number(self, spot: Spot, number: int) -> None:
        self._sync_beside(spot)
        inode = os.stat(self._at(spot), follow_symlinks=False).st_ino
        self._leave_note(b"%d%b-%d" % (number, MADE_BY_STEP, inode))
        self._sync_directory(Spot(self._new, b""))

    def _leave_note(self, note: bytes) -> None:
        with contextlib.suppress(FileExistsError):
            os.symlink(b"-", note, dir_fd=self._new.fd)

    def _mark_replaced(self, step: _Arrival) -> None:
        """Leave a note of which object is replaced, if it is not the plan's: its directory came
        from another device.
        """
        inode = self._reach(step.path)[1].st_ino
        if inode != step.replaced:
            self._leave_note(b"%d-replaces-%d" % (step.number, inode))
            self._sync_directory(Spot(self._new, b""))

    def _keep(self, old: Spot, step: _Arrival) -> None:
        name = b"%d" % step.number
        try:
            syscalls.rename_noreplace(self._fd(old), old.name, self._replaced.fd, name)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._copy_to_kept(old, Spot(self._replaced, name), step.path)
            self._leftovers.append(old)

    def _keep_by_link(self, old: Spot, number: int) -> None:
        name = b"%d" % number
        try:
            os.link(old.name, name, src_dir_fd=self._fd(old), dst_dir_fd=self._replaced.fd, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
            copying.copy_node(self._at(old), at(self._replaced.fd, name))

    def _copy_tree(self, source: Spot, target: Spot, path: RelPath) -> None:
        """Copy across devices, durably: the original is a leftover then, to be deleted at the
        end.
        """
        self._unlocked(target)
        self._note(path, copy_tree(self._at(source), self._at(target)))
        self._sync_beside(target)

    # ---- in place

    def _rewrite(self, step: Rewrite) -> None:
        spot, st = self._reach(step.path)
        if not stat.S_ISREG(st.st_mode):  # another inode is right if it came from another device, or from the host
            raise OSError(errno.ESTALE, "it was replaced while the commit ran")
        if st.st_uid == os.geteuid() and st.st_mode & 0o600 != 0o600:
            os.chmod(self._at(spot), stat.S_IMODE(st.st_mode) | 0o600)
        self._back_up(spot, st, step)
        target = os.open(spot.name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._fd(spot))
        try:
            source = self._store.open(step.ino, os.O_RDONLY)
            try:
                copying.copy_data(source, target, os.fstat(source).st_size)
            finally:
                os.close(source)
        finally:
            os.close(target)
        self._note(step.path, copying.copy_metadata(self._store.path(step.ino), self._at(spot)))
        if step.is_first:
            self._sync_beside(spot)

    def _sync_beside(self, spot: Spot) -> None:
        """Make durable what was done to a thing: it may not be found again after a crash, or be
        taken for whole.
        """
        if not self._durable:
            return
        fd = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._fd(spot))
        try:
            syscalls.sync_filesystem(fd)
        finally:
            os.close(fd)

    def _sync_directory(self, spot: Spot) -> None:
        """Make the names in a spot's directory durable: another device may have before what follows
        from them.
        """
        if not self._durable:
            return
        fd = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._fd(spot))
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def _back_up(self, spot: Spot, st: os.stat_result, step: Rewrite) -> None:
        """Keep a copy of what is about to be overwritten; one that is there is whole, from before a
        crash.
        """
        name = b"%d" % step.number
        if _exists(self._replaced.fd, name):
            return
        made = self._made.get(step.number)
        if made is not None and (made.size, made.mtime_ns) != (
            st.st_size,
            st.st_mtime_ns,
        ):  # the host wrote it
            made = None
        if made is None or not _exists(self._new.fd, name):
            self._clear_new(name)
            copying.copy_node(self._at(spot), at(self._new.fd, name))
            os.chmod(at(self._new.fd, name), stat.S_IMODE(st.st_mode) | 0o400)
            if self._durable:  # now, as the only other copy is about to be overwritten
                _sync_file(self._new.fd, name)
        os.rename(name, name, src_dir_fd=self._new.fd, dst_dir_fd=self._replaced.fd)
        if self._durable:
            os.fsync(self._replaced.fd)

    def _clear_new(self, name: bytes) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._new.fd)

    def _set_metadata(self, step: SetMetadata) -> None:
        spot, st = self._reach(step.path)
        self._copy_metadata(step.ino, spot, st, step.path)
        if step.inode is not None:
            self._sync_beside(spot)

    def _finish_directory(self, step: FinishDirectory) -> None:
        self._directories.forget(step.path)
        spot, st = self._reach(step.path)
        if not stat.S_ISDIR(st.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), step.path)
        if step.ino is not None:
            self._copy_metadata(step.ino, spot, st, step.path)
            st = os.lstat(self._at(spot))
        if st.st_mtime_ns == step.mtime_ns:
            return
        try:
            os.utime(self._at(spot), ns=(st.st_atime_ns, step.mtime_ns), follow_symlinks=False)
        except PermissionError:  # another user's directory, such as /tmp
            self._note(step.path, ("times",))

    def _copy_metadata(self, ino: int, spot: Spot, st: os.stat_result, path: RelPath) -> None:
        metadata = copying.read_metadata(self._store.path(ino))
        if stat.S_IFMT(st.st_mode) != stat.S_IFMT(metadata.st.st_mode):
            raise OSError(errno.ESTALE, "it was replaced while the commit ran")
        self._note(path, copying.write_metadata(self._at(spot), metadata))


def half_of(spot: Spot) -> Spot:
    """Return where a directory is made into which another is moved name by name, on its way to a
    spot.
    """
    return Spot(spot.directory, spot.name + by_names.HALF)


def listing_at(folder: Folder, number: int) -> Spot:
    """Return where it is written what the directories were that are moved name by name."""
    return Spot(folder, b"%d-names" % number)


def _is_note(name: bytes) -> bool:
    return b"-replaces-" in name or MADE_BY_STEP + b"-" in name or name.endswith(UNMADE)


_Arrival: TypeAlias = Create | Place | Link | Duplicate
"""A step that puts something at its path, over something else if ``replaced`` says so."""


def _rename(src_fd: int, src: bytes, dst_fd: int, dst: bytes) -> None:
    os.rename(src, dst, src_dir_fd=src_fd, dst_dir_fd=dst_fd)


def _exists(directory_fd: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _sync_file(directory_fd: int, name: bytes) -> None:
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory_fd)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _is_opened_up(st: os.stat_result, mode: int) -> bool:
    """Tell whether a directory of a mode has been opened up to work in it, or to be moved."""
    return stat.S_IMODE(st.st_mode) in (mode | stat.S_IRWXU, mode | stat.S_IWUSR) and stat.S_IMODE(st.st_mode) != mode
