"""States for tests, made by hand: operations on a view as the records and store inodes that they
leave.

Nothing here uses the overlay, so that what reads states can be tested without it.
"""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from yolofs.journal.records import NOTHING, ChangeRecord, Delete, Fingerprint, Rename, Stage
from yolofs.paths import RelPath, StoreIno, join, parse_relpath, split
from yolofs.state.hard_links import staged_for
from yolofs.state.tree import Shown, Tree
from yolofs.store.base import Base
from yolofs.store.store import Store


class Scribe:
    """A base directory, a store beside it and the records of what was done to the view."""

    def __init__(self, base: bytes, store: bytes) -> None:
        self.base = Base(base)
        self.store = Store(store)
        self.records: list[ChangeRecord] = []
        self.tree = Tree()
        self._fresh_from = 1
        self._clock = 0

    def freeze(self) -> Tree:
        """Return the present state as one that later operations leave alone, as a snapshot does."""
        self._fresh_from = self.store.next_ino
        return Tree(self.records)

    def travel_to_base(self) -> None:
        """Have the view show base again, as a travel to generation 0 does."""
        self.freeze()
        self.records, self.tree = [], Tree()

    # ---- looking

    def shown(self, path: bytes) -> Shown | None:
        """Return what the view shows, None if nothing."""
        shown = self.tree.resolve(path)
        if shown is not None and shown.staged is None:
            assert shown.base is not None
            try:
                st = self.base.lstat(shown.base)
            except OSError:
                return None
            staged = staged_for(self.tree, self.base, st)
            if staged is not None:
                return Shown(shown.entry, staged, staged.origin)
        return shown

    def meta(self, path: bytes) -> bytes:
        """Return the absolute path of what has the metadata."""
        shown = self.shown(path)
        assert shown is not None, path
        if shown.staged is not None:
            return self.store.path(shown.staged.ino)
        assert shown.base is not None
        return self.base.path(shown.base)

    def kind(self, path: bytes) -> int:
        """Return the type at a path, 0 for nothing."""
        return stat.S_IFMT(os.lstat(self.meta(path)).st_mode) if self.shown(path) is not None else 0

    def names(self, path: bytes) -> list[bytes]:
        """Return the names in a directory of the view."""
        shown = self.shown(path)
        assert shown is not None
        names = set(self.base.names(shown.base)) if shown.base is not None else set()
        if shown.entry is not None and shown.entry.children:
            names |= shown.entry.children.keys()
        return sorted(name for name in names if self.shown(join(path, name)) is not None)

    # ---- doing

    def write(self, path: bytes, data: bytes, mode: int = 0o644) -> None:
        """Write a regular file, new or not; it gets a time of its own."""
        if self.shown(path) is None:
            ino, fd, _ = self.store.create_file(mode)
            self._stage(path, ino)
        else:
            fd = self.store.open(self.copy_up(path), os.O_RDWR | os.O_TRUNC)
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.utime(fd, ns=(0, self._now()))

    def copy_up(self, path: bytes, *, data: bool = True) -> StoreIno:
        """Make the path one that may be changed in place, with all its names, and return its store
        inode.
        """
        shown = self.shown(path)
        assert shown is not None
        staged = shown.staged
        if staged is not None and staged.ino >= self._fresh_from and not (data and staged.origin is not None):
            return staged.ino
        kind = self.kind(path)
        keeps_origin = kind == stat.S_IFDIR or (kind == stat.S_IFREG and not data)
        source = shown.base if keeps_origin else None
        fingerprint, links = None, 0
        if staged is None:
            assert shown.base is not None
            st = self.base.lstat(shown.base)
            fingerprint, links = self.base.fingerprint(st), st.st_nlink if kind != stat.S_IFDIR else 0
        elif not staged.names:
            fingerprint, links = staged.base, staged.links
        ino = self.store.copy_up(self.meta(path), data=source is None)
        if kind == stat.S_IFREG and source is None and staged is not None and staged.origin is not None:
            with (
                open(self.base.path(staged.origin), "rb") as origin,
                open(self.store.open(ino, os.O_RDWR | os.O_TRUNC), "wb") as copy,
            ):
                copy.write(origin.read())
        paths = [entry.path() for entry in staged.names] if staged is not None and staged.names else [path]
        for name in paths:
            stage = Stage(
                self._now(), RelPath(name), ino, base=fingerprint, origin=source, links=links if links > 1 else 0
            )
            self._apply(stage)
        return ino

    def chmod(self, path: bytes, mode: int) -> None:
        """Change the mode and nothing else: a file from base keeps its data there."""
        ino = self.copy_up(path, data=False)
        os.chmod(self.store.path(ino), mode)

    def utime(self, path: bytes, mtime_ns: int) -> None:
        """Change the time and nothing else."""
        ino = self.copy_up(path, data=False)
        os.utime(self.store.path(ino), ns=(0, mtime_ns))

    def mkdir(self, path: bytes, mode: int = 0o755) -> None:
        """Make an empty directory."""
        self._stage(path, self.store.create_dir(mode)[0])

    def symlink(self, path: bytes, target: bytes) -> None:
        """Make a symlink."""
        self._stage(path, self.store.create_symlink(target))

    def mkfifo(self, path: bytes) -> None:
        """Make a fifo."""
        self._stage(path, self.store.create_special(stat.S_IFIFO | 0o644))

    def link(self, path: bytes, new: bytes) -> None:
        """Give a file a second name."""
        ino = self.copy_up(path)
        self._stage(new, ino)

    def remove(self, path: bytes) -> None:
        """Remove a file, or a directory with all below it, as rm -r does."""
        if self.kind(path) == stat.S_IFDIR:
            for name in self.names(path):
                self.remove(join(path, name))
        was = self._was(path)
        absent = not self._base_has(path)
        base = None if absent else was
        self._apply(Delete(self._now(), parse_relpath(path), absent=absent, base=base, unlinks=self._unlinks(path)))

    def rename(self, src: bytes, dst: bytes) -> None:
        """Rename, replacing what is at ``dst`` (the caller sees to it that rename(2) would)."""
        absent, unlinks = not self._base_has(src), self._unlinks(dst)
        if self._is_same_file(src, dst):
            return
        there = self.shown(dst)
        record = Rename(
            self._now(),
            parse_relpath(src),
            parse_relpath(dst),
            absent=absent,
            unlinks=unlinks,
            replaces=there is not None and there.entry is None,
            src_was=None if absent else self._was(src),
            dst_was=self._was(dst),
        )
        self._apply(record)

    def exchange(self, src: bytes, dst: bytes) -> None:
        """Swap two names."""
        if self._is_same_file(src, dst):
            return
        src_was, dst_was = self._was(src), self._was(dst)
        paths = parse_relpath(src), parse_relpath(dst)
        self._apply(Rename(self._now(), *paths, exchange=True, src_was=src_was, dst_was=dst_was))

    def _was(self, path: bytes) -> Fingerprint | None:
        """Return what base had at a name, if the name still shows it; else None."""
        directory, name = split(path)
        parent, shown, entry = self.shown(directory), self.shown(path), self.tree.find(path)
        assert parent is not None
        if parent.base is None:
            return None
        if shown is None:
            return NOTHING if entry is None else None
        if entry is not None and entry.base != join(parent.base, name):
            return None
        if shown.staged is not None:
            return shown.staged.base
        assert shown.base is not None
        return self.base.fingerprint(self.base.lstat(shown.base))

    def _is_same_file(self, one: bytes, other: bytes) -> bool:
        """Tell whether two paths are hard links of each other, which no rename tells apart."""
        if not self.kind(one) or not self.kind(other):
            return False
        left, right = os.lstat(self.meta(one)), os.lstat(self.meta(other))
        return (left.st_dev, left.st_ino) == (right.st_dev, right.st_ino)

    def _unlinks(self, path: bytes) -> int | None:
        """Return the base file that loses one of its several names if this one goes."""
        shown = self.shown(path)
        if shown is None or (shown.entry is not None and shown.entry.staged is not None):
            return None
        if shown.staged is not None:
            assert shown.staged.base is not None
            return shown.staged.base.ino
        assert shown.base is not None
        st = self.base.lstat(shown.base)
        return self.base.number(st) if st.st_nlink > 1 and not stat.S_ISDIR(st.st_mode) else None

    def _base_has(self, path: bytes) -> bool:
        directory, name = split(path)
        parent = self.shown(directory)
        assert parent is not None
        if parent.base is None:
            return False
        return os.path.lexists(self.base.path(join(parent.base, name)))

    def _stage(self, path: bytes, ino: StoreIno) -> None:
        self._apply(Stage(self._now(), parse_relpath(path), ino))

    def _apply(self, record: ChangeRecord) -> None:
        self.records.append(record)
        self.tree.apply(record)

    def _now(self) -> int:
        self._clock += 1
        return 1_500_000_000_000_000_000 + self._clock


class Shot(NamedTuple):
    """What a state shows at one path."""

    kind: int
    mode: int
    content: bytes
    """A regular file's data, a symlink's target; nothing of a directory or another type."""
    mtime_ns: int
    """Of a regular file, else 0."""
    owner: tuple[int, int]
    """User and group."""
    xattrs: tuple[tuple[str, bytes], ...]


def develop(tree: Tree, base: Base, store: Store) -> dict[bytes, Shot]:
    """Return all that a state shows, path by path, found in the simplest way (for small states)."""
    scribe = Scribe.__new__(Scribe)
    scribe.tree, scribe.base, scribe.store = tree, base, store
    shots: dict[bytes, Shot] = {}
    todo = [b""]
    while todo:
        path = todo.pop()
        shots[path] = _shoot(scribe, path)
        if shots[path].kind == stat.S_IFDIR:
            todo.extend(join(path, name) for name in scribe.names(path))
    return shots


def _shoot(scribe: Scribe, path: bytes) -> Shot:
    meta = scribe.meta(path)
    st = os.lstat(meta)
    shown = scribe.shown(path)
    assert shown is not None
    content = b""
    data = scribe.base.path(shown.base) if shown.base is not None else meta
    if stat.S_ISREG(st.st_mode):
        with open(data, "rb") as file:
            content = file.read()
    elif stat.S_ISLNK(st.st_mode):
        content = os.readlink(data)
    mtime_ns = st.st_mtime_ns if stat.S_ISREG(st.st_mode) else 0
    names = sorted(os.listxattr(meta, follow_symlinks=False))
    xattrs = tuple((name, os.getxattr(meta, name, follow_symlinks=False)) for name in names)
    return Shot(stat.S_IFMT(st.st_mode), stat.S_IMODE(st.st_mode), content, mtime_ns, (st.st_uid, st.st_gid), xattrs)
