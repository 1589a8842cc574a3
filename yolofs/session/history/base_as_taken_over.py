"""Base as the view took it over, for what a run changed: the host may have changed the same files
since, or removed them.

The journal has size, time, mode and owner of each base file that was copied up, and of most texts
their content is kept (:mod:`yolofs.state.kept_bases`).  For deleted or replaced files it has size,
time and mode, too, or else the time of the change, which tells whether base has something new there
since.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from yolofs.changes.changes import Aspect, Change, ChangeKind
from yolofs.changes.state_reader import entries_below
from yolofs.journal.records import Fingerprint, owner_of
from yolofs.paths import RelPath, split
from yolofs.session.forced_files import read_forced
from yolofs.session.history.chapters import Chapter
from yolofs.session.session import Session
from yolofs.state.drift import CLOCK_SLACK_NS
from yolofs.state.kept_bases import KeptBase, digest_of_xattrs, find_kept, known_by
from yolofs.state.link_names import find_names_at
from yolofs.state.tree import Entry, Staged, Tree, natural_path
from yolofs.store import restored
from yolofs.store.base import Base
from yolofs.store.base_stand_in import BaseStandIn
from yolofs.store.interfaces import StoreFiles
from yolofs.system.disks import FilesOnDisks

DirectoryMaker = Callable[[], bytes]
"""Gives a directory that the caller removes when the changes have been read."""
_NOT_KEPT = b"not-kept"
"""In that directory, where nothing is."""
_FILE = (stat.S_IFREG | 0o644, os.geteuid(), os.getegid())
"""Mode and owner of what nobody knows more of; so is :data:`_FOLDER`, of a directory."""
_FOLDER = (stat.S_IFDIR | 0o755, os.geteuid(), os.getegid())


class KnownBefore(NamedTuple):
    """What base had at a path."""

    st: os.stat_result
    path: bytes
    """Where its content is; nothing is there if it is not known."""
    kept: KeptBase | None = None


class UnknownBefore(NamedTuple):
    """A change of which it is not known what was there before."""

    change: Change
    is_gone: bool
    """Whether base has nothing there any more."""
    size: int | None
    """How many bytes it had, None if not even that is known."""


class TakenOverBase:
    """Base as it is; where the view took something over that is gone since, base as it was then
    (:class:`~yolofs.store.base_stand_in.KnownBase`).
    """

    def __init__(self, now: Base, known: Mapping[RelPath, KnownBefore]) -> None:
        """``now``: base as it is, or as it was before a commit."""
        self._now = now
        self._known = known
        self._more: dict[RelPath, set[bytes]] = {}
        for path in known:
            directory, name = split(path)
            self._more.setdefault(directory, set()).add(name)

    def path(self, rel: bytes) -> bytes:
        """Return the absolute path of what base had at a path; if that is unknown, a path with
        nothing at it.
        """
        known = self._known.get(RelPath(rel))
        return known.path if known is not None else self._now.path(rel)

    def lstat(self, rel: bytes) -> os.stat_result:
        """Return the attributes of what base had at a path.

        Raises:
            OSError: as :meth:`Base.lstat`.
        """
        known = self._known.get(RelPath(rel))
        return known.st if known is not None else self._now.lstat(rel)

    def has(self, rel: bytes) -> bool:
        """Tell whether base had something at a path.

        Raises:
            OSError: it cannot be looked at.
        """
        try:
            self.lstat(rel)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def names(self, rel: bytes) -> list[bytes]:
        """Return the names that base had in a directory.

        Raises:
            OSError: it cannot be read.
        """
        more = self._more.get(RelPath(rel), set())
        try:
            names = self._now.names(rel)
        except OSError:
            if not more:
                raise
            names = []
        return sorted({*names, *more})


class TakenOver:
    """What base had under a state's changes, and the paths at which it is unknown."""

    def __init__(
        self, session: Session, chapter: Chapter, base: Base, store: StoreFiles, place: DirectoryMaker
    ) -> None:
        """``base`` and ``store``: as they are if the chapter goes on, else as before its commit.

        Raises:
            OSError: what is known of base cannot be read.
        """
        self._now = base
        self._store = store
        self._place = place
        self._is_past = chapter.commit is not None
        self._directories = (session.store.directory, *([chapter.directory] if self._is_past else ()))
        self._forced = (read_forced(chapter.directory) if self._is_past else None) or FilesOnDisks()
        self._restored = frozenset() if self._is_past else restored.read(session.directory)
        self._unset = frozenset() if self._is_past else restored.read_unset(session.directory)
        self._known: dict[RelPath, KnownBefore] = {}
        self._gone: set[RelPath] = set()
        self._was: Mapping[RelPath, Fingerprint | None] = {}

    def base(self, old: Tree, new: Tree) -> Base:
        """Return base as the view took it over, for what ``new`` has staged and ``old`` had not.

        Blocks while each base file of that is looked at.

        Raises:
            OSError: base, or what was kept, cannot be read.
        """
        self._was = new.was
        staged = [
            entry
            for entry in entries_below(new.root)
            if entry.staged is not None and entry.staged.ino not in old.staged
        ]
        wanted = {place: entry for entry in staged if (place := _place_of(entry)) is not None}
        touched = {place for place, entry in wanted.items() if self._is_touched(place[0], entry)}
        drifted = {
            place: entry
            for place, entry in wanted.items()
            if place in touched or self._may_have_drifted(place[0], entry)
        }
        kept: dict[tuple[RelPath, bytes], KeptBase] = {}
        for directory in self._directories if drifted else ():  # after a crash the first one has all still
            kept |= find_kept(directory, lambda *place: place in drifted)
        for place, entry in drifted.items():
            if place in touched and place not in kept:
                continue  # its content may well be what it was
            self._take(place[0], entry, kept.get(place))
        for entry in entries_below(new.root):
            if entry.staged is None and entry.parent is not None:
                self._take_moved_or_deleted(entry)
        if not self._known:
            return self._now
        return BaseStandIn(self._now.root, TakenOverBase(self._now, self._known))

    # ---- what is staged

    def _may_have_drifted(self, path: RelPath, entry: Entry) -> bool:
        staged = entry.staged
        assert staged is not None
        st = self._now.look(path)
        if st is None:
            return True
        was = staged.base
        if was is None:
            return self._is_later(path, st, entry)
        if was.owner is not None and was.owner != owner_of(st):
            return True
        if stat.S_ISDIR(st.st_mode):
            return was.owner is None and staged.origin is None
        if st.st_size == was.size and (st.st_ino, st.st_ctime_ns) in self._unset:
            return False
        is_same_file = self._is_past or self._now.number(st) == was.ino
        return not is_same_file or (st.st_mtime_ns, st.st_size) != (was.mtime_ns, was.size)

    def _is_touched(self, path: RelPath, entry: Entry) -> bool:
        """Tell whether the ctime alone says that base's file has changed."""
        staged = entry.staged
        assert staged is not None
        st = self._now.look(path)
        if self._is_past or staged.base is None or st is None or stat.S_ISDIR(st.st_mode):
            return False
        now = self._now.fingerprint(st)
        is_ours = (st.st_ino, st.st_ctime_ns) in self._restored
        return now.fits(staged.base) and staged.base.is_touched(now) and not is_ours

    def _take(self, path: RelPath, entry: Entry, kept: KeptBase | None) -> None:
        staged = entry.staged
        assert staged is not None
        now = self._now.look(path)
        if staged.base is None and kept is None:
            if now is None:
                self._add(path, self._stat(_FILE), None)
            return  # a look at the change tells the rest
        content = kept.content if kept is not None else None
        st = self._attributes(staged, kept, now)
        if staged.base is not None and now is not None and stat.S_ISDIR(st.st_mode):
            self._known[path] = KnownBefore(st, self._now.path(path))
            return
        self._add(path, st, content, kept=kept, same=self._path_of_same(staged))
        if now is None:
            self._gone.add(path)
        elif staged.links:
            for name in find_names_at(self._now, path)[0]:
                self._known.setdefault(name, self._known[path])

    def _path_of_same(self, staged: Staged) -> bytes | None:
        """Return where the content of a staged file is if the view has not changed that."""
        if staged.origin is not None or staged.base is None:
            return None
        try:
            st = self._store.lstat(staged.ino)
        except OSError:
            return None
        is_same = (st.st_mtime_ns, st.st_size) == (staged.base.mtime_ns, staged.base.size)
        return self._store.path(staged.ino) if is_same else None

    # ---- what is not

    def _take_moved_or_deleted(self, entry: Entry) -> None:
        """Note what base had where the view has moved or deleted it, if base has lost it since."""
        paths = [entry.base] if entry.base is not None else []
        natural = natural_path(entry)
        if natural is not None and entry.had_base:
            paths.append(natural)
        for path in paths:
            if path not in self._known and self._now.look(path) is None:
                self._add(
                    path,
                    self._stat(_FOLDER) if entry.children else self._stat(_FILE),
                    None,
                )
                self._gone.add(path)

    def _add(
        self,
        path: RelPath,
        st: os.stat_result,
        content: bytes | None,
        *,
        kept: KeptBase | None = None,
        same: bytes | None = None,
    ) -> None:
        number = b"%d" % len(self._known)
        if content is not None:
            place = os.path.join(self._place(), number)
            with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(content)
        else:
            place = same if same is not None else os.path.join(self._place(), _NOT_KEPT, number)
        self._known[path] = KnownBefore(st, place, kept)
        directory, _ = split(path)
        while directory and directory not in self._known and self._now.look(directory) is None:
            self._known[directory] = KnownBefore(self._stat(_FOLDER), os.path.join(self._place(), _NOT_KEPT))
            directory, _ = split(directory)

    def _attributes(self, staged: Staged, kept: KeptBase | None, now: os.stat_result | None) -> os.stat_result:
        """Return the attributes of what the view took over."""
        was = staged.base
        owner = _FILE if now is None else owner_of(now)
        if was is not None and was.owner is not None:
            owner = was.owner
        elif kept is not None:
            owner = kept.owned.mode, kept.owned.uid, kept.owned.gid
        if was is None:
            size = len(kept.content) if kept is not None else 0
            return self._stat(owner, size, now.st_mtime_ns if now is not None else 0)
        file = None
        if staged.links:
            is_there = now is not None and self._now.number(now) == was.ino
            file = (now.st_dev, now.st_ino) if now is not None and is_there else self._now.file_of(was.ino)
        return self._stat(owner, was.size, was.mtime_ns, links=staged.links if file is not None else 1, file=file)

    def _stat(
        self,
        owner: tuple[int, int, int],
        size: int = 0,
        mtime_ns: int = 0,
        *,
        links: int = 1,
        file: tuple[int, int] | None = None,
    ) -> os.stat_result:
        mode, uid, gid = owner
        device, number = file or ((self._now.file_of(1) or (0, 0))[0], 0)
        fields = (mode, number, device, links, uid, gid, size, 0, mtime_ns // 10**9, 0)
        return os.stat_result(fields, {"st_atime_ns": 0, "st_mtime_ns": mtime_ns, "st_ctime_ns": 0})

    def _is_later(self, path: RelPath, st: os.stat_result, entry: Entry) -> bool:
        """Tell whether what base has at a path is not what it had when the view put something else
        there, or nothing.
        """
        if not entry.since_ns or stat.S_ISDIR(st.st_mode):
            return False
        was = self._was.get(path)
        if was is not None:
            is_same = (st.st_mtime_ns, st.st_size) == (was.mtime_ns, was.size)
            is_same = is_same and (self._is_past or self._now.number(st) == was.ino)
            return not is_same and (self._is_past or (st.st_ino, st.st_ctime_ns) not in self._restored)
        last_ns = entry.since_ns + CLOCK_SLACK_NS
        if self._is_past:  # a commit has moved it, which sets its ctime
            return self._forced.has(self._now.on_disk(st.st_dev, st.st_ino)) or st.st_mtime_ns > last_ns
        return st.st_ctime_ns > last_ns and (st.st_ino, st.st_ctime_ns) not in self._restored

    # ---- what is not known

    def check(self, changes: Iterable[Change], old: Tree, new: Tree) -> tuple[list[Change], list[UnknownBefore]]:
        """Return the changes from ``old`` to ``new`` over :meth:`base`, without extended attributes
        that only the host changed; and those changes whose old version is not known.

        Raises:
            OSError: base cannot be read.
        """
        found = [change for one in changes if (change := self._corrected(one, old)) is not None]
        return found, [unknown for change in found if (unknown := self._unknown(change, old, new)) is not None]

    def _corrected(self, change: Change, old: Tree) -> Change | None:
        """Leave extended attributes out that are those which a kept file had: its copy has none."""
        if Aspect.XATTRS not in change.metadata or change.new is None:
            return change
        source = _source(change, old)
        known = self._known.get(source) if source is not None else None
        if known is None or known.kept is None:
            return change
        try:
            xattrs = change.new.metadata().xattrs
        except OSError:
            return change
        if digest_of_xattrs(xattrs) != known.kept.owned.xattrs:
            return change
        metadata = tuple(aspect for aspect in change.metadata if aspect is not Aspect.XATTRS)
        if change.kind is ChangeKind.METADATA and not metadata:
            return None
        return msgspec.structs.replace(change, metadata=metadata)

    def _unknown(self, change: Change, old: Tree, new: Tree) -> UnknownBefore | None:
        side, source = change.old, _source(change, old)
        is_read = change.content or change.new is None
        if side is None or source is None or side.type == stat.S_IFDIR or not is_read or side.ino is not None:
            return None
        known = self._known.get(source)
        if known is not None:
            if os.path.lexists(known.path):
                return None
            return UnknownBefore(change, source in self._gone, known.st.st_size if known.st.st_mtime_ns else None)
        path = change.old_path if change.old_path is not None else change.path
        entry = _nearest(new, path)
        st = self._now.look(source)
        if entry is None or st is None or (entry.staged is not None and entry.staged.home == source):
            return None
        return UnknownBefore(change, False, None) if self._is_later(source, st, entry) else None


def _place_of(entry: Entry) -> tuple[RelPath, bytes] | None:
    """Return the key of the kept base under an entry, None if base had nothing there."""
    staged = entry.staged
    if staged is None:
        return None
    if staged.home is not None:
        return (staged.home, known_by(staged)) if staged.base is not None else None
    natural = natural_path(entry)
    return (natural, known_by(staged)) if natural is not None and entry.had_base else None


def _source(change: Change, old: Tree) -> RelPath | None:
    """Return the base path that the older state shows where something changed, None if none."""
    shown = old.resolve(change.old_path if change.old_path is not None else change.path)
    return shown.base if shown is not None and shown.staged is None else None


def _nearest(tree: Tree, path: RelPath) -> Entry | None:
    """Return the entry at a path or above it that has taken the place of what base has there."""
    rest = path
    while rest:
        entry = tree.find(rest)
        if entry is not None and entry.since_ns:
            return entry
        rest, _ = split(rest)
    return None
