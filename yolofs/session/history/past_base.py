"""Base as it was before a kept commit, and the states that a journal shows over it; read-only.

What a commit's plan moved, removed, replaced or changed in place is looked for where the plan and
the commits after it put it.  Everything else has not moved.  What the host has changed since is not
known.  A file in base that no commit has replaced is shown as it is now.  A file that is known to
be another one cannot be read.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple

from yolofs.commit.apply.copy_log import FileNumbers
from yolofs.commit.plan.plan import (
    Create,
    Duplicate,
    FinishDirectory,
    Link,
    MakeDirectory,
    MetadataBefore,
    Park,
    Place,
    Remove,
    Rewrite,
    SetMetadata,
)
from yolofs.commit.undo.applied import Applied
from yolofs.errors import UsageError
from yolofs.paths import ROOT, RelPath, join, split
from yolofs.session.archive import commit_directory, commit_numbers
from yolofs.session.generations import States
from yolofs.session.history.chapters import Chapter
from yolofs.session.history.fetched import Fetched
from yolofs.session.history.past_store import PastStore
from yolofs.session.session import Session
from yolofs.store.base import Base
from yolofs.store.base_opening import hold
from yolofs.store.base_stand_in import BaseStandIn, KnownBase
from yolofs.system.plain_files import is_there

_ARRIVALS = (Create, Duplicate, Link, MakeDirectory, Place)


class _FoundBefore(NamedTuple):
    """Where something is that base had before a commit."""

    kept: bytes | None = None
    """The absolute path of what the commit keeps."""
    copy_of: FileNumbers | None = None
    """Of which file, if that is a copy, as base has kept other names of it."""
    slot: int = 0
    """The slot in which the commit keeps it, or kept it."""
    inside: RelPath = ROOT
    """Its path in what lies there."""
    back: tuple[KnownBase, RelPath] | None = None
    """The base that an undo has put it back into, and where it is there."""
    after: RelPath | None = None
    """Else its path in base after the commit."""

    @property
    def is_nothing(self) -> bool:
        """Whether base had nothing there."""
        return self.kept is None and self.back is None and self.after is None


class PastBase:
    """What base had before one commit (:class:`~yolofs.store.base_stand_in.KnownBase`)."""

    def __init__(self, after: KnownBase, applied: Applied, fetched: Fetched) -> None:
        """``after``: base as it was after that commit."""
        self._after = after
        self._fetched = fetched
        self._number = applied.number
        self._directory = applied.directory
        self._files_of_kept_copies = applied.files_of_kept_copies
        self._of_several = frozenset(applied.files_of_kept_copies.values())
        self._moved: dict[RelPath, RelPath] = {}
        """By old path, where the commit put it."""
        self._kept: dict[RelPath, int] = {}
        """By old path, the slot of what it removed or replaced."""
        self._old_names: dict[RelPath, set[bytes]] = {}
        """By directory, what it took out of it."""
        self._arrivals: set[RelPath] = set()
        self._contents: dict[RelPath | int, int] = {}
        """The slot that keeps the old content of a file that was changed in place: by its path
        after the commit, and by its inode number, as it may have other names.
        """
        self._was: dict[RelPath | int, MetadataBefore] = {}
        """Likewise the metadata of what was changed in place."""
        self._was_of_several: dict[int, MetadataBefore] = {}
        """The same by the inode number that the step has noted: it counts for files with several
        names alone, as others may have the number of a file that is gone.
        """
        self._read(applied)

    def _read(self, applied: Applied) -> None:
        places = {step.number: step.path for step in applied.plan.steps if isinstance(step, Place)}
        for index, step in enumerate(applied.plan.steps):
            match step:
                case Park():
                    self._moved[step.path] = places[step.number]
                case Remove():
                    self._kept[step.path] = step.number
                case FinishDirectory() | SetMetadata() | Rewrite():
                    is_first = isinstance(step, SetMetadata) and step.inode is not None
                    is_first = is_first or (isinstance(step, Rewrite) and step.is_first)
                    now = applied.moves.after(step.path) if is_first else step.path
                    inode = getattr(step, "inode", None)
                    keys = [key for key in (now, inode) if key is not None]  # a name that goes may get another file
                    if isinstance(step, Rewrite):
                        self._contents |= dict.fromkeys(keys, step.number)
                    if step.was is not None:
                        self._was |= dict.fromkeys(keys, step.was)
                        if isinstance(step, SetMetadata) and (came := applied.came(index)) is not None:
                            self._was_of_several[came.inode] = step.was
                case _:
                    pass
        for step in applied.plan.steps:
            if isinstance(step, _ARRIVALS):
                self._arrivals.add(step.path)
                if getattr(step, "replaced", None) is not None and not isinstance(step, MakeDirectory):
                    above, name = split(step.path)
                    before = applied.moves.before(above) if above else above
                    if before is not None:
                        self._kept[join(before, name)] = step.number
        for path in (*self._moved, *self._kept):
            above, name = split(path)
            self._old_names.setdefault(above, set()).add(name)
        self._names_changed = self._arrivals.union(self._moved, self._kept)
        self._changed_in_place = {*self._contents, *self._was, *self._was_of_several}

    # ---- as base

    def path(self, rel: bytes) -> bytes:
        """Return the absolute path of what base had at a path; if it had nothing, a path with
        nothing at it.
        """
        return self._look_up(rel)[0]

    def lstat(self, rel: bytes) -> os.stat_result:
        """Return the attributes of what base had at a path.

        Raises:
            OSError: it had nothing there, or that is not kept.
        """
        found = self._look_up(rel)[1]
        if isinstance(found, OSError):
            raise found
        return found

    def names(self, rel: bytes) -> list[bytes]:
        """Return the names that base had in a directory.

        Raises:
            OSError: it had no such directory, or it cannot be read.
        """
        directory = RelPath(rel)
        way, (base, place) = self._way(directory)
        last, _, where = way[-1]
        if where.kept is not None:
            names = set(os.listdir(where.kept)) | self._fetched.names(last._number, where.slot, where.inside)
        elif where.is_nothing:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), rel)
        else:
            names = set(base.names(place))
        for commit, path, _ in way:
            names |= commit._old_names.get(path, set())
        return [name for name in sorted(names) if self.has(join(directory, name))]

    def has(self, rel: bytes) -> bool:
        """Tell whether base had something at a path."""
        return not isinstance(self._look_up(rel)[1], OSError)

    def _way(self, path: RelPath) -> tuple[list[tuple[PastBase, RelPath, _FoundBefore]], tuple[KnownBase, RelPath]]:
        """Return over which commits what base had at a path is found, each with the path before it
        and where that leads; and the base that this ends in, with the path there.

        A loop, as there may be more commits than calls can be nested.
        """
        way: list[tuple[PastBase, RelPath, _FoundBefore]] = []
        base: KnownBase = self
        same, on_the_way = _FoundBefore(after=path), _with_all_above(path)
        while isinstance(base, PastBase):
            if base._names_changed.isdisjoint(on_the_way):  # so it is for most of many commits
                way.append((base, path, same))
                base = base._after
                continue
            where = base._find(path)
            way.append((base, path, where))
            if where.back is not None:
                base, path = where.back
            elif where.after is not None:
                base, path = base._after, where.after
            else:
                break
            same, on_the_way = _FoundBefore(after=path), _with_all_above(path)
        return way, (base, path)

    def _look_up(self, rel: bytes) -> tuple[bytes, os.stat_result | OSError]:
        """Return the absolute path of what base had at a path, and its attributes, or why it has
        none.

        From the last commit on, each tells what was before it of what was after it, so that base is
        asked once.
        """
        way, (base, place) = self._way(RelPath(rel))
        last, _, where = way[-1]
        if where.is_nothing:
            none = os.path.join(last._directory, b"replaced", b"none")
            return none, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), rel)
        if where.kept is not None:
            path, st = where.kept, _told(_lstat, where.kept)
        else:
            path, st = base.path(place), _told(base.lstat, place)
        for commit, _, where in reversed(way):
            if where.after is not None:
                path, st = commit._before(where.after, path, st)
            elif not isinstance(st, OSError):
                st = _as_file(st, where.copy_of)
        return path, st

    def _before(
        self, after: RelPath, path: bytes, now: os.stat_result | OSError
    ) -> tuple[bytes, os.stat_result | OSError]:
        """Return where the content of a thing is that base had at the path ``after`` after the
        commit, and its attributes, as they were before it; given these as they were after it.
        """
        keys = (after,) if isinstance(now, OSError) else (after, now.st_ino)
        if not self._of_several and self._changed_in_place.isdisjoint(keys):
            return path, now
        slot = self._contents.get(after)
        if slot is None and not isinstance(now, OSError):
            slot = self._contents.get(now.st_ino)
        if slot is not None:
            path = self._fetched.path(self._number, slot)
        if isinstance(now, OSError):
            return path, now
        was = self._was.get(after)
        if was is None and not stat.S_ISDIR(now.st_mode):
            was = self._was.get(now.st_ino) or (self._was_of_several.get(now.st_ino) if now.st_nlink > 1 else None)
        st = now if slot is None else _told(_lstat, path)
        if isinstance(st, OSError):
            return path, st
        st = _with_metadata(st, was, file=now) if slot is not None or was is not None else st
        numbers = now.st_dev, now.st_ino
        return path, _as_file(st, numbers) if numbers in self._of_several else st

    def _find(self, path: RelPath) -> _FoundBefore:
        rest: list[bytes] = []
        above = path
        while above:
            if above in self._moved:
                return self._inside(self._moved[above], rest)
            if above in self._kept:
                slot, inside = self._kept[above], RelPath(b"/".join(reversed(rest)))
                copy_of = self._files_of_kept_copies.get(b"/".join([b"%d" % slot, *reversed(rest)]))
                back = self._fetched.find(self._number, slot, inside)
                kept = self._fetched.path(self._number, slot, inside) if back is None else None
                return _FoundBefore(kept, copy_of, slot, inside, back)
            above, name = split(above)
            rest.append(name)
        return self._inside(RelPath(b""), rest)

    def _inside(self, now: RelPath, rest: list[bytes]) -> _FoundBefore:
        """Go down names that no step has taken out: what the commit brought in was not there
        before.
        """
        for name in reversed(rest):
            now = join(now, name)
            if now in self._arrivals:
                return _FoundBefore()
        return _FoundBefore(after=now)


class PastGround(NamedTuple):
    """The base and store that an earlier state refers to."""

    base: Base
    store: PastStore


def past_ground(session: Session, before: int) -> PastGround:
    """Return base as it was before commit ``before``, and a store that knows what commits have put
    into base.

    Raises:
        UsageError, YolofsError, OSError: as :func:`states_of`.
    """
    return PastGround(*past_base(session, before))


def states_of(session: Session, chapter: Chapter) -> States:
    """Return the states that a chapter's journal shows, over base as it was before its commit.

    Blocks while plans are read.

    Raises:
        UsageError: a commit since was given up, so that nobody knows what base had.
        YolofsError: a plan is damaged.
        OSError: one cannot be read.
    """
    assert chapter.commit is not None
    base, store = past_base(session, chapter.commit)
    # read-only stand-ins for base, store and journal: reading a state takes no more of them
    return States(session.directory, base, store, chapter.journal)  # type: ignore[arg-type]


def past_base(session: Session, before: int) -> tuple[Base, PastStore]:
    """Return base as it was before commit ``before``, and a store that knows what commits have put
    into base.

    Raises:
        UsageError, YolofsError, OSError: as :func:`states_of`.
    """
    base: KnownBase = session.base
    store = PastStore(session.store)
    fetched = Fetched(os.path.dirname(commit_directory(session.directory, 1)))
    for applied in _from_the_last(session, before):
        store.add_commit(applied, base)
        fetched.add_commit(applied, base)
        base = PastBase(base, applied, fetched)
    return BaseStandIn(session.base.root, base), store


def _from_the_last(session: Session, before: int) -> Iterator[Applied]:
    for number in sorted(commit_numbers(session.directory), reverse=True):
        if number < before:
            return
        directory = commit_directory(session.directory, number)
        if not is_there(os.path.join(directory, b"done")):
            raise UsageError(
                f"commit {number} has no end, so it is not known what base had before it", hint="yolofs commits"
            )
        yield Applied.read(number, directory)


def _with_all_above(path: RelPath) -> list[RelPath]:
    """Return a path, and those of all directories above it."""
    found = []
    while path:
        found.append(path)
        path = split(path)[0]
    return found


def _lstat(path: bytes) -> os.stat_result:
    """Return the attributes of what is at a path.  No symbolic link is followed, not even on the
    way there.

    Raises:
        OSError: as lstat(2); ENOTDIR where a link is on the way.
    """
    fd = hold(path)
    try:
        return os.fstat(fd)
    finally:
        os.close(fd)


def _told(look: Callable[[bytes], os.stat_result], path: bytes) -> os.stat_result | OSError:
    """Return the attributes that are told of a path, or why none are."""
    try:
        return look(path)
    except OSError as error:
        return error


def _as_file(st: os.stat_result, numbers: FileNumbers | None) -> os.stat_result:
    """Return the attributes of a copy, or of a name that base has kept, as of one of several names
    of the very file that it is.
    """
    if numbers is None:
        return st
    fields = list(st)
    fields[stat.ST_DEV], fields[stat.ST_INO] = numbers
    fields[stat.ST_NLINK] = max(st.st_nlink, 2)
    return _rebuilt(fields, st, st.st_atime_ns, st.st_mtime_ns)


def _with_metadata(
    st: os.stat_result, was: MetadataBefore | None, *, file: os.stat_result | None = None
) -> os.stat_result:
    """Return attributes with the metadata that something had, and as of the very ``file`` whose
    content they are of.
    """
    fields = list(st)
    if file is not None:
        fields[stat.ST_INO], fields[stat.ST_DEV], fields[stat.ST_NLINK] = file.st_ino, file.st_dev, file.st_nlink
    if was is not None:
        fields[stat.ST_MODE], fields[stat.ST_UID], fields[stat.ST_GID] = was.mode, was.uid, was.gid
        fields[stat.ST_ATIME], fields[stat.ST_MTIME] = was.atime_ns // 10**9, was.mtime_ns // 10**9
    times = (was.atime_ns, was.mtime_ns) if was is not None else (st.st_atime_ns, st.st_mtime_ns)
    return _rebuilt(fields, st, *times)


def _rebuilt(fields: list[float], st: os.stat_result, atime_ns: int, mtime_ns: int) -> os.stat_result:
    """Return other fields with all that ``st`` has besides, and with these times."""
    return os.stat_result(
        fields,
        {
            "st_atime_ns": atime_ns,
            "st_mtime_ns": mtime_ns,
            "st_ctime_ns": st.st_ctime_ns,
            "st_rdev": st.st_rdev,
            "st_blocks": st.st_blocks,
            "st_blksize": st.st_blksize,
        },
    )
