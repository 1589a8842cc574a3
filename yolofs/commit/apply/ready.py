"""What is known of a commit when all is made and nothing of base is touched yet:
``commits/N/made``, durable by then.

It has the identity of each thing that was made.  So it is known wherever it lies, and nothing that
the host puts in its place is taken for it.  It also has what the directories were in which names
will come and go, so that this can be restored.  :func:`check_steps` looks, before that is written,
whether anything is plain that would stop a step.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from yolofs.commit.plan.kept_objects import KeptObject
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
from yolofs.commit.plan.recheck import mounts_of
from yolofs.paths import ROOT, RelPath, is_below_any, split
from yolofs.system import syscalls
from yolofs.system.deep_paths import DeepPaths
from yolofs.system.disks import disk_key
from yolofs.system.plain_files import is_there

LINKED = -1
"""In the place of a folder's number: nothing is made, the store inode itself gets a name in
base.
"""


class MadeObject(msgspec.Struct, frozen=True, array_like=True):
    """A thing that was made, or a store inode that is to get a name in base."""

    inode: int
    size: int
    mtime_ns: int
    folder: int = 0
    """Where it was made: 0 for ``new``, else a folder on another device
    (:mod:`yolofs.commit.apply.other_devices`), counted from 1; :data:`LINKED` for a store inode."""
    ctime_ns: int = 0
    """Of a store inode, as are those below: what it was before the first step."""
    mode: int = 0
    uid: int = 0
    gid: int = 0

    @property
    def is_link(self) -> bool:
        """Whether it is a store inode, which gets a name in base."""
        return self.folder == LINKED

    @classmethod
    def of(cls, st: os.stat_result, folder: int) -> MadeObject:
        """Return what tells this thing from all others."""
        return cls(st.st_ino, st.st_size, st.st_mtime_ns, folder)

    @classmethod
    def linked(cls, st: os.stat_result) -> MadeObject:
        """Return what tells this store inode from all others, and what it is."""
        return cls(st.st_ino, st.st_size, st.st_mtime_ns, LINKED, st.st_ctime_ns, st.st_mode, st.st_uid, st.st_gid)

    def has_looks_of(self, st: os.stat_result) -> bool:
        """Tell whether something has the size, time, mode and owner that this store inode had."""
        looks = (st.st_size, st.st_mtime_ns, st.st_mode, st.st_uid, st.st_gid)
        return looks == (self.size, self.mtime_ns, self.mode, self.uid, self.gid)


class DirectoryBefore(msgspec.Struct, frozen=True, array_like=True):
    """A directory of base, as it was."""

    path: RelPath
    """Before the first step."""
    inode: int
    mode: int
    atime_ns: int
    mtime_ns: int


class KeptBefore(msgspec.Struct, frozen=True, array_like=True):
    """A directory that an earlier commit keeps, out of which something is fetched, as it was."""

    path: bytes
    """Relative to the directory of all commits."""
    mode: int
    atime_ns: int
    mtime_ns: int


Looks: TypeAlias = tuple[int, int, int, int, int]


def looks_of(st: os.stat_result) -> Looks:
    """Return those attributes that are the same again when a commit is taken back: if one differs,
    that is the host's doing.
    """
    return 0 if stat.S_ISDIR(st.st_mode) else st.st_size, st.st_mtime_ns, st.st_mode, st.st_uid, st.st_gid


class Ready(msgspec.Struct, frozen=True, array_like=True):
    """What was made and what was there."""

    made: dict[int, MadeObject] = {}
    """By number of the slot."""
    directories: list[DirectoryBefore] = []
    looks: list[tuple[int, Looks]] | dict[int, Looks] = []
    """Inode numbers, and what all that is moved, linked or changed looked like before
    (:func:`looks_of`): two devices may have given the same number.  A dictionary in notes of
    earlier versions.
    """
    births: dict[int, int] = {}
    """By inode number: when that, and each directory that was made, was born, in ns; a number may
    be given again.

    Not of what the filesystem says nothing lasting of, nor of a number that two devices have given.
    """
    disks: dict[int, bytes] = {}
    """By device number: which disk that was, as :attr:`yolofs.system.disks.OnDisk.disk` says it."""
    kept: list[KeptBefore] = []
    unseen: list[RelPath] = []
    """The paths of steps at which nobody could look, as directories above forbid it: what was there
    is not among the looks.
    """
    mounts: list[tuple[RelPath, bytes]] | None = None
    """What was mounted where (:func:`yolofs.commit.plan.recheck.mounts_of`); earlier versions did
    not note it.
    """
    attributes: dict[int, list[tuple[bytes, bytes]]] | None = None
    """By step (its index), where there are any: the extended attributes of what it brings in or
    changes, as :func:`yolofs.commit.apply.given_attributes.digests_of` returns them; earlier
    versions did not note them.
    """

    def looks_by_number(self) -> dict[int, set[Looks]]:
        """Return all that had an inode number, by that."""
        found: dict[int, set[Looks]] = {}
        for inode, looks in self.looks.items() if isinstance(self.looks, dict) else self.looks:
            found.setdefault(inode, set()).add(looks)
        return found

    def encode(self) -> bytes:
        """Return it as JSON."""
        return msgspec.json.encode(self)


def decode_ready(text: bytes) -> Ready | None:
    """Return what :meth:`Ready.encode` made ``text`` from, None if it did not."""
    try:
        return msgspec.json.decode(text, type=Ready)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def check_steps(
    plan: Plan, commits: bytes, moves: Moves, note: Callable[[RelPath, os.stat_result], None] = lambda *_: None
) -> Ready:
    """Look whether the steps of a plan can be done, as far as can be told before; return what base
    is there.

    ``commits``: the directory of all commits; ``moves``: those of the plan.  ``note`` is told of
    all that steps replace, remove or change, and may raise.

    Raises:
        OSError: one cannot; its ``filename`` is the path in base.
    """
    with DeepPaths() as deep:
        return _ReadyCheck(plan, commits, moves, deep, note).check()


class _HiddenError(Exception):
    """A path lies below a directory that nobody may enter as it is."""


class _ReadyCheck:
    def __init__(
        self,
        plan: Plan,
        commits: bytes,
        moves: Moves,
        deep: DeepPaths,
        note: Callable[[RelPath, os.stat_result], None],
    ) -> None:
        self._plan = plan
        self._note = note
        self._deep = deep
        self._commits = commits
        self._root = plan.root
        self._moves = moves
        self._directories: dict[RelPath, os.stat_result] = {}
        self._closed: dict[RelPath, os.stat_result] = {}
        """Directories that move or go, and have to be opened up for that."""
        self._looks: set[tuple[int, Looks]] = set()
        self._unseen: list[RelPath] = []
        self._births: dict[int, int] = {}
        self._kept: dict[bytes, KeptBefore] = {}
        self._disks = {os.lstat(plan.root).st_dev: b""}
        self._overlays: dict[bytes, bool] = {}
        self._last: tuple[RelPath, RelPath | None] = ROOT, ROOT
        """The directory of the plan that was asked for last, and where base has it."""
        self._out = frozenset(step.path for step in (*plan.of(Park), *plan.of(Remove)))
        self._places = {step.number: step.path for step in plan.of(Place)}

    def check(self) -> Ready:
        for step in self._plan.steps:
            try:
                self._check(step)
            except _HiddenError:  # below a directory that has to be opened up first: its step will tell
                self._unseen.append(step.path)
                continue
            except OSError as error:
                raise OSError(error.errno, error.strerror, self._named(error, step)) from error
        directories = [
            DirectoryBefore(path, st.st_ino, stat.S_IMODE(st.st_mode), st.st_atime_ns, st.st_mtime_ns)
            for path, st in {**self._closed, **self._directories}.items()
        ]
        self._note_disk(os.lstat(self._commits))
        births = {number: birth for number, birth in self._births.items() if birth}
        kept = list(self._kept.values())
        looks, mounts = sorted(self._looks), mounts_of(self._plan)
        return Ready({}, directories, looks, births, self._disks, kept, self._unseen, mounts)

    def _named(self, error: OSError, step: Step) -> bytes:
        """Return the path in base that an error is about."""
        name = os.fsencode(error.filename) if error.filename is not None else step.path
        top = self._root.rstrip(b"/") + b"/"
        return name[len(top) :] if name.startswith(top) else name

    def _check(self, step: Step) -> None:
        match step:
            case Create():
                self._check_arrival(step.path, step.replaced)
            case Park() | Remove():
                self._check_victim(step.path, step.inode, self._enter(split(step.path)[0]), step)
            case Fetch():
                self._check_kept(step)
            case Place() | Link() | Duplicate() | MakeDirectory():
                self._check_arrival(step.path, getattr(step, "replaced", None))
                if isinstance(step, Link):
                    self._note_linked(self._moves.before(step.existing))
            case Rewrite() | SetMetadata():
                path = step.path if step.inode is not None and _is_first(step) else self._moves.before(step.path)
                if path is not None:
                    self._check_in_place(path, getattr(step, "inode", None))
            case FinishDirectory():
                path = self._moves.before(step.path)
                if path is not None and step.was is not None:
                    self._check_finish(path, step)

    def _check_kept(self, step: Fetch) -> None:
        """Check that an earlier commit still keeps what is to come back."""
        path = KeptObject(step.commit, step.slot, step.inside).path(self._commits)
        try:
            st = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            st = None
        if st is None or st.st_ino != step.inode:
            raise OSError(errno.ESTALE, f"commit {step.commit} does not keep it any more", step.path)
        if syscalls.may_never_change(path):
            raise PermissionError(errno.EPERM, "it is immutable or append-only (chattr)", step.path)
        self._looks.add((st.st_ino, looks_of(st)))
        if step.inside:
            self._note_kept(os.path.dirname(path))

    def _note_kept(self, directory: bytes) -> None:
        """Note what a directory is that an earlier commit keeps, before names are taken out of
        it.
        """
        path = os.path.relpath(directory, self._commits)
        if path not in self._kept:
            st = os.lstat(directory)
            self._kept[path] = KeptBefore(path, stat.S_IMODE(st.st_mode), st.st_atime_ns, st.st_mtime_ns)

    def _check_arrival(self, path: RelPath, replaced: int | None) -> None:
        directory = split(path)[0]
        if self._last[0] != directory:  # of many new files one after the other
            self._last = directory, self._moves.before(directory)
        above = self._last[1]
        if above is None:
            return
        parent = self._enter(above)
        old = RelPath(above + b"/" + split(path)[1]) if above else split(path)[1]
        if replaced is not None:
            self._check_victim(RelPath(old), replaced, parent)
        elif old not in self._out and self._is_there(RelPath(old)):
            raise FileExistsError(errno.EEXIST, "the host has put something there meanwhile")

    def _check_finish(self, path: RelPath, step: FinishDirectory) -> None:
        """Check a directory that gets its metadata or time at last, or only moves along."""
        st = self._lstat(path)
        if step.ino is None and not syscalls.may_leave_its_directory(
            self._at(path), st
        ):  # nothing in it changes: that was checked before
            self._look(path, None)
        else:
            self._enter(path)

    def _check_victim(
        self, path: RelPath, inode: int, parent: os.stat_result, step: Park | Remove | None = None
    ) -> None:
        """Check what is to be moved away, by ``step`` or to make room."""
        st = self._look(path, inode)
        if not isinstance(step, Park):  # what moves takes along what the host has written to it
            self._note(path, st)
        self._check_may_change(path, st)
        uid = os.geteuid()
        if stat.S_ISDIR(st.st_mode) and not st.st_mode & stat.S_IWUSR:
            self._closed[path] = st
        if parent.st_mode & stat.S_ISVTX and uid not in (0, st.st_uid, parent.st_uid):
            raise PermissionError(
                errno.EPERM, "it is another user's, in a directory where only its owner may move it", path
            )
        if not syscalls.may_leave_its_directory(self._at(path), st) and not self._stays_in_its_directory(path, step):
            raise PermissionError(
                errno.EACCES, "it is another user's directory, and only a user who may write to it may move it", path
            )

    def _stays_in_its_directory(self, path: RelPath, step: Park | Remove | None) -> bool:
        """Tell whether a directory gets no other directory above it: it is renamed there, or is
        removed and empty.
        """
        if is_below_any(split(path)[0], self._out):  # it would be set aside beside that
            return False
        if isinstance(step, Park):
            place = self._places.get(step.number)
            return place is not None and self._moves.before(split(place)[0]) == split(path)[0]
        return step is not None and not os.listdir(self._at(path))

    def _check_in_place(self, path: RelPath, inode: int | None) -> None:
        st = self._look(path, inode)
        self._note(path, st)
        self._check_may_change(path, st)
        if not stat.S_ISLNK(st.st_mode) and syscalls.is_read_only(self._at(path)):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    def _check_may_change(self, path: RelPath, st: os.stat_result) -> None:
        """Check that a thing is not immutable, and note when it was born."""
        facts = syscalls.look(self._at(path), self._overlays)
        if facts.is_fixed:
            raise PermissionError(errno.EPERM, "it is immutable or append-only (chattr)", path)
        self._note_birth(st.st_ino, facts)

    def _note_birth(self, inode: int, facts: syscalls.Facts) -> None:
        birth_ns = facts.lasting_birth_ns or 0
        if self._births.setdefault(inode, birth_ns) != birth_ns:  # of two devices
            self._births[inode] = 0

    def _look(self, path: RelPath, inode: int | None) -> os.stat_result:
        st = self._lstat(path)
        if inode is not None and st.st_ino != inode:
            raise OSError(errno.ESTALE, "the host has put something else there meanwhile", path)
        self._looks.add((st.st_ino, looks_of(st)))
        return st

    def _note_linked(self, path: RelPath | None) -> None:
        """Note what a file of base looks like that gets another name, if it is there before the
        commit.
        """
        if path is not None and self._is_there(path):
            st = self._lstat(path)
            self._looks.add((st.st_ino, looks_of(st)))
            self._note_birth(st.st_ino, syscalls.look(self._at(path), self._overlays))

    def _enter(self, directory: RelPath) -> os.stat_result:
        """Return what a directory is in which names come or go, if they may."""
        st = self._directories.get(directory)
        if st is not None:
            return st
        path = self._at(directory)
        st = self._lstat(directory)
        if not stat.S_ISDIR(st.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
        if syscalls.is_read_only(path):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), directory)
        self._check_may_change(directory, st)
        is_mine = st.st_uid == os.geteuid()
        if not is_mine and not os.access(path, os.W_OK | os.X_OK, effective_ids=True):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), directory)
        self._directories[directory] = st
        self._looks.add((st.st_ino, looks_of(st)))
        return st

    def _lstat(self, path: RelPath) -> os.stat_result:
        try:
            st = os.lstat(self._at(path))
        except PermissionError:
            raise _HiddenError from None
        self._note_disk(st)
        return st

    def _note_disk(self, st: os.stat_result) -> None:
        if st.st_dev not in self._disks:
            self._disks[st.st_dev] = disk_key(st.st_dev)

    def _is_there(self, path: RelPath) -> bool:
        try:
            return is_there(self._at(path))
        except PermissionError:
            raise _HiddenError from None

    def _at(self, path: RelPath) -> bytes:
        return self._deep.near(os.path.join(self._root, path)) if path else self._root


def _is_first(step: Rewrite | SetMetadata) -> bool:
    return step.is_first if isinstance(step, Rewrite) else True
