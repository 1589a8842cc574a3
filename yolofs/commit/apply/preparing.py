"""What comes before the first step: all that the steps put in place is made, and each step is
looked at.

Nothing of base is touched in here.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping

import msgspec

from yolofs.commit.apply import cross_device_copies, other_devices
from yolofs.commit.apply.copy_log import FileNumbers
from yolofs.commit.apply.given_attributes import Digests, digests_of
from yolofs.commit.apply.host_edits import AsSeen
from yolofs.commit.apply.linking import Linking, Spare
from yolofs.commit.apply.lost_writes import make_anew
from yolofs.commit.apply.make_file import is_plain, make_file, open_inode
from yolofs.commit.apply.other_devices import FarFolders, Folder
from yolofs.commit.apply.places import Places, Spot, far_folder_prefix
from yolofs.commit.apply.ready import LINKED, DirectoryBefore, KeptBefore, Looks, MadeObject, Ready, check_steps
from yolofs.commit.plan.kept_objects import KeptObject
from yolofs.commit.plan.moves import Moves
from yolofs.commit.plan.plan import Create, Duplicate, Fetch, MakeDirectory, Plan, Rewrite, Step
from yolofs.paths import ROOT, RelPath, split
from yolofs.store import copying
from yolofs.store.copying import at
from yolofs.store.interfaces import StoreFiles
from yolofs.store.restored import InodeCtime
from yolofs.system import syscalls
from yolofs.system.rename_domains import RenameDomain, rename_domain


class Preparing(Places):
    """Makes what the steps need, and knows what was made."""

    def __init__(self, plan: Plan, store: StoreFiles, directory: bytes, *, durable: bool) -> None:
        """Prepare as :class:`Places` does; without ``durable`` no disk is waited for."""
        super().__init__(plan, directory)
        self._store = store
        self._durable = durable
        self._may_make_files = is_plain(self._new.fd)
        self._moves = Moves(plan)
        self._made: dict[int, MadeObject] = {}
        """What has been made before the first step, whole and durable, by number."""
        self._attributes: dict[int, Digests] = {}
        """By step (its index): the extended attributes that it gives, where there are any."""
        self._before: list[DirectoryBefore] = []
        """The directories that the steps work in, as they were."""
        self._kept_before: list[KeptBefore] = []
        """The directories that earlier commits keep and steps fetch from, as they were, if another
        process has begun.
        """
        self._looks: dict[int, set[Looks]] = {}
        """What base had before the first step that the steps move, replace or change, by inode
        number.
        """
        self._as_seen = AsSeen({})
        self._unseen: frozenset[RelPath] = frozenset()
        self._home = rename_domain(at(self._new.fd, b"."))
        self._domain_of: dict[RelPath, RenameDomain] = {ROOT: rename_domain(plan.root)}
        """By directory of base."""
        self._far = FarFolders(plan.root, directory, far_folder_prefix(directory), self._moves)

    def __exit__(self, kind: type[BaseException] | None, failure: BaseException | None, where: object) -> None:
        try:
            self._far.close()
        finally:
            super().__exit__(kind, failure, where)

    def make(self, done: Callable[[Create], object], is_spare: Spare) -> None:
        """Make all that the steps put in place, and wait until it is durable, before anything of
        base is touched.

        ``done`` is called after each file.  What goes to another device where there is no place to
        make it is left to its step.  Nothing is made of a store inode that itself gets a name in
        base, as ``is_spare`` allows it.

        Raises:
            OSError: something could not be made; its ``filename`` is the path in base that it is
                for.
        """
        linking = Linking(self._plan, self._store, self._new.fd, self._moves, is_spare)
        for index, step in enumerate(self._plan.steps):
            try:
                self._note_attributes(index, step)
                if isinstance(step, Create) and (st := linking.look(step)) is not None:
                    self._made[step.number] = MadeObject.linked(st)
                    is_made = True
                else:
                    is_made = self._make(step)
            except OSError as error:
                if error.errno == errno.EIO:  # where blocks are shared, copying waits for the disk
                    make_anew(self._plan, self._store, self._new.path, is_spare)
                raise OSError(error.errno, error.strerror, step.path) from error
            if is_made and isinstance(step, Create):
                done(step)
        if self._durable and self._made:
            try:
                for folder in (self._new, *self._far.by_number):
                    syscalls.sync_filesystem(folder.fd)
            except OSError:
                make_anew(self._plan, self._store, self._new.path, is_spare)
                raise

    def look(self, seen: Mapping[FileNumbers, Looks]) -> Ready:
        """Look whether the steps can be done, as far as that can be told before; return all that is
        known by then.  ``seen`` as :class:`AsSeen` wants it.

        Raises:
            OSError: one cannot be; its ``filename`` is the path in base.
        """
        commits = os.path.dirname(self._parking)
        self._as_seen = AsSeen(seen)
        ready = check_steps(self._plan, commits, self._moves, self._as_seen.note)
        cross_device_copies.check(self._plan, commits, self._moves, self._store.path)
        self._before = ready.directories
        self._recall_looks(ready)
        births = self._with_made(ready.births)
        return msgspec.structs.replace(ready, made=self._made, births=births, attributes=self._attributes)

    def _recall_looks(self, ready: Ready) -> None:
        """Take note of what base had."""
        self._looks = ready.looks_by_number()
        self._unseen = frozenset(ready.unseen)

    def _is_known(self, path: RelPath) -> bool:
        """Tell whether it is known which thing base had, before the first step, that is at a path
        then.
        """
        return bool(self._looks) and path not in self._unseen and self._moves.before(path) is not None

    def _with_made(self, births: dict[int, int]) -> dict[int, int]:
        """Return ``births``, which are those of things of base by inode number, with those of the
        directories that were made.

        Only its birth tells an empty directory from another one.  A number that two things have, on
        two devices, is left out.
        """
        births = dict(births)
        rewritten = {step.number for step in self._plan.of(Rewrite)}
        directories = {step.number for step in self._plan.of(MakeDirectory)}
        for number, made in self._made.items():
            if made.folder == LINKED or number in rewritten:
                continue
            known = births.pop(made.inode, None)
            if number in directories and known is None:
                birth_ns = syscalls.birth_ns(self._at(self._made_at(number)))
                births.update({made.inode: birth_ns} if birth_ns is not None else {})
        return births

    def _make(self, step: Step) -> bool:
        """Make what a step puts in place, if that can be made here and now; return whether it
        was.
        """
        folder: Folder | None = self._new
        match step:
            case Create() | MakeDirectory() | Duplicate():
                folder = self._folder_of_group(step) or self._folder_near(split(step.path)[0])
            case Rewrite():
                pass
            case _:
                return False
        if folder is None:
            return False
        name = b"%d" % step.number
        st: os.stat_result | None = None
        match step:
            case Create():
                st = self._make_file(step, Spot(folder, name))
            case MakeDirectory():
                self._make_empty(step, folder.fd, name)
            case Duplicate():
                if step.origin is None or not self._may_copy_base(step.origin, at(folder.fd, name)):
                    return False
                self._note(step.path, copying.write_metadata(at(folder.fd, name), self._store.metadata(step.ino)))
            case Rewrite():
                path = step.path if step.is_first else self._moves.before(step.path)
                if path is None or not self._may_copy_base(path, at(folder.fd, name)):
                    return False
        number = self._far.by_number.index(folder) + 1 if folder is not self._new else 0
        st = st if st is not None else os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
        self._made[step.number] = MadeObject.of(st, number)
        return True

    def linked_from(self, step: Create) -> MadeObject | None:
        """Return what the store inode is that itself gets a step's name, None if a copy does."""
        made = self._made.get(step.number)
        return made if made is not None and made.folder == LINKED else None

    @property
    def _store_names(self) -> Iterator[tuple[Create, MadeObject]]:
        made = self._made
        for step in self._plan.of(Create):
            if (one := made.get(step.number)) is not None and one.folder == LINKED:
                yield step, one

    @property
    def has_links(self) -> bool:
        """Whether store inodes themselves get names in base."""
        return any(made.is_link for made in self._made.values())

    def _made_at(self, number: int) -> Spot:
        """Return where something lies that was made before the first step."""
        made = self._made.get(number)
        assert made is None or not made.is_link
        folder = self._far.by_number[made.folder - 1] if made is not None and made.folder else self._new
        return Spot(folder, b"%d" % number)

    def _may_copy_base(self, path: RelPath, target: bytes) -> bool:
        """Copy a file that base has before the first step; return False if it cannot be read as it
        is.
        """
        try:
            source = copying.open_source(os.path.join(self._plan.root, path), is_base=True)
        except PermissionError:  # the step opens up what is the user's
            return False
        try:
            copying.write_copy(source, target)
        finally:
            source.close()
        mode = stat.S_IMODE(source.metadata.st.st_mode)
        if not mode & 0o400 and not stat.S_ISLNK(source.metadata.st.st_mode):
            os.chmod(target, mode | 0o400)
        return True

    def _folder_of_group(self, step: Create | MakeDirectory | Duplicate) -> Folder | None:
        """Return a folder whose new files get the group that a step's thing is to have.

        None if the user can give it that group, or if there is no place for such a folder.
        """
        owner = self._store.shown_owner(step.ino)
        if owner is None:
            return None
        above = split(step.path)[0]
        while (there := self._moves.before(above)) is None:
            above = split(above)[0]
        return self._far.of_group(owner[1], rename_domain(os.path.join(self._plan.root, there)), there)

    def _make_empty(self, step: MakeDirectory, folder: int, name: bytes) -> None:
        """Make a new directory in an open folder, which its owner may work in; a step gives it its
        metadata when all in it is there.

        If the folder gives it a group without the user, it gets its mode at once: the kernel would
        take setgid away with any later one.

        Danger: for that moment no thread may make anything else, as the umask is that of all.
        """
        if self._store.shown_owner(step.ino) is None:
            os.mkdir(name, 0o700, dir_fd=folder)
            return
        mode = stat.S_IMODE(self._store.lstat(step.ino).st_mode) & 0o777 | stat.S_IRWXU
        umask = os.umask(0)
        try:
            os.mkdir(name, mode, dir_fd=folder)
        finally:
            os.umask(umask)

    def _folder_near(self, directory: RelPath) -> Folder | None:
        """Return a folder from which a rename leads to a directory, there or to be made, None if
        there is no place for one.

        A guess will do: what turns out to go to another device is copied.
        """
        missing: list[RelPath] = []
        there = directory
        while there not in self._domain_of:
            with contextlib.suppress(OSError):
                self._domain_of[there] = rename_domain(os.path.join(self._plan.root, there))
                break
            missing.append(there)
            there = split(there)[0]
        domain = self._domain_of[there]
        for path in missing:
            self._domain_of[path] = domain
        return self._new if self._home.leads_to(domain) else self._far.folder_in(domain, there)

    def _note_attributes(self, index: int, step: Step) -> None:
        """Note the extended attributes of what a step (with its index) brings in or changes."""
        if isinstance(step, Fetch):
            path = KeptObject(step.commit, step.slot, step.inside).path(os.path.dirname(self._parking))
        elif (ino := getattr(step, "ino", None)) is not None:
            path = self._store.path(ino)
        else:
            return
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # the step itself will say so
            if digests := digests_of(path):
                self._attributes[index] = digests

    def _make_file(self, step: Create, spot: Spot) -> os.stat_result | None:
        """Make a new file at a spot; return what it is, if that is known already."""
        st: os.stat_result | None = None
        source = open_inode(self._store, step.ino)
        try:
            if source.fd >= 0 and spot.directory is self._new and self._may_make_files:
                left_out, st = make_file(source, self._new.fd, spot.name)
            else:
                self._unlocked(spot)
                left_out = copying.write_copy(source, self._at(spot))
        finally:
            source.close()
        self._note(step.path, left_out)
        return st

    def remove_far(self) -> list[tuple[InodeCtime, InodeCtime]]:
        """Remove the folders on other devices; return what :func:`other_devices.remove` does.

        Raises:
            OSError: one cannot be removed.
        """
        return other_devices.remove(self._parking, far_folder_prefix(self._parking))
