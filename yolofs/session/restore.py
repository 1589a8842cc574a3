"""Bringing paths back: what another state shows at them is staged anew, and nothing else changes.

Where base shows just that, the change is taken out again (:mod:`yolofs.commit.select.restate`), if nothing else hangs
together with it.  Everything else is made in the view as a program would make it: a copy, with its metadata and times.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from yolofs.audit.runs import find_run, generation_of
from yolofs.changes.changes import Change, compare
from yolofs.changes.matching import Identity
from yolofs.commit.select.units import Units
from yolofs.errors import UsageError
from yolofs.journal.timeline import BASE
from yolofs.overlay import Overlay, Owner
from yolofs.overlay.inodes import Attr, Inode
from yolofs.paths import Generation, RelPath, is_below, join, split
from yolofs.session.archive import commit_numbers
from yolofs.session.merge import drop
from yolofs.session.session import Session
from yolofs.session.state_files import File, StateFiles
from yolofs.state.tree import Tree
from yolofs.store import copying

_NOT_PERMITTED = frozenset([errno.EPERM, errno.EACCES, errno.EOPNOTSUPP])


class Restored(msgspec.Struct, frozen=True):
    """What was brought back."""

    changes: tuple[Change, ...]
    """What that has changed in the view, before it and after; none if all was so already."""
    before: Generation = Generation(0)
    """What the view showed before."""
    left_out: dict[RelPath, tuple[str, ...]] = {}
    """What of a path could not be brought back: ``owner``, ``xattr NAME``, ``mode``, ``times``."""


class Source(msgspec.Struct, frozen=True):
    """The state from which something is brought back."""

    named: str
    files: StateFiles
    tree: Tree | None
    """None of one that stands on another base than the view."""


def restore(session: Session, source: Source, paths: Sequence[RelPath], name: bytes) -> Restored:
    """Stage what a state shows at some paths, with all that is below them; where it shows nothing, nothing is left.

    What was there before is a generation; ``name`` is that of the new one.  If it fails, the view is what it was.  A
    mount of the session must be paused.  Blocks.

    Raises:
        CommitError: a commit was interrupted.
        OSError: something cannot be read, or not be written.
    """
    session.check_no_interrupted_commit()
    if not _differing(session, source, paths):
        return Restored(())
    session.snapshot(if_changed=True)
    before = session.timeline.present
    try:
        if source.tree is not None:
            _drop(session, source.tree, paths, name)
        left_out = _copy(session, source, paths)
        session.snapshot(name, if_changed=True)
        session.store.sync()
        session.journal.sync()
    except BaseException:
        with contextlib.suppress(OSError):
            session.travel(str(before))
        raise
    states = session.states(before, None)
    changes = compare(*states, session.base, session.store, paths=paths, expand_renames=True)
    return Restored(tuple(changes), before, left_out)


def _differing(session: Session, source: Source, paths: Sequence[RelPath]) -> list[RelPath]:
    """Return the paths at or below some others at which the view and another state differ, parents first."""
    if source.tree is None:
        return sorted(_found_differing(StateFiles(session, session.state()), source.files, paths))
    found = compare(session.state(), source.tree, session.base, session.store, paths=paths, expand_renames=True)
    return sorted({path for change in found for path in change.paths if any(is_below(path, top) for top in paths)})


def _found_differing(here: StateFiles, there: StateFiles, paths: Sequence[RelPath]) -> Iterator[RelPath]:
    """Yield the same of two states that need not stand on one base: each path is looked at."""
    todo = list(paths)
    while todo:
        path = todo.pop()
        now, then = here.look(path), there.look(path)
        if (now is None) != (then is None) or (
            now is not None and then is not None and _differ(here, now, there, then)
        ):
            yield path
        for files, file in ((here, now), (there, then)):
            if file is not None and file.is_directory:
                todo += [join(path, name) for name, _ in files.inside(file)]


def _differ(here: StateFiles, now: File, there: StateFiles, then: File) -> bool:
    one, other = now.side, then.side
    if (one.type, one.mode, one.uid, one.gid, one.rdev) != (other.type, other.mode, other.uid, other.gid, other.rdev):
        return True
    if one.type == stat.S_IFLNK:
        return one.target() != other.target()
    if one.type != stat.S_IFREG:
        return False
    if (one.size, one.mtime_ns) != (other.size, other.mtime_ns):
        return True
    return one.data != other.data and b"".join(here.chunks(now)) != b"".join(there.chunks(then))


def _drop(session: Session, source: Tree, paths: Sequence[RelPath], name: bytes) -> None:
    """Take out the changes of those paths at which base shows what is to come back, as far as they stand alone."""
    wanted = [path for path in paths if _is_of_base(source, path)]
    if not wanted:
        return
    units = Units(session.state(), session.base, session.store)
    alone = [unit for unit in units.all if all(any(is_below(path, top) for top in wanted) for path in unit.paths)]
    if alone:
        drop(session, {path for unit in alone for path in unit.paths}, name)


def _is_of_base(source: Tree, path: RelPath) -> bool:
    """Tell whether a state shows at a path, and at all below it, just what base has there."""
    shown = source.resolve(path)
    entry = source.find(path)
    return shown is not None and shown.base == path and (entry is None or (entry.base == path and not entry.children))


def _copy(session: Session, source: Source, paths: Sequence[RelPath]) -> dict[RelPath, tuple[str, ...]]:
    """Make what differs still."""
    differing = _differing(session, source, paths)
    if not differing:
        return {}
    session.skip_named_numbers()
    state = session.present()
    overlay = Overlay(session.base, session.store, session.journal, state.tree, fresh_from=state.fresh_from)
    try:
        bringing = _Copying(overlay, source.files)
        for path in differing:
            bringing.bring(path)
        for directory in sorted(set(_directories_above(differing, paths)), key=len, reverse=True):
            bringing.finish(directory)
        return bringing.left_out
    finally:
        overlay.close()


def _directories_above(found: Sequence[RelPath], paths: Sequence[RelPath]) -> Iterator[RelPath]:
    """Yield the directories whose times have changed as something in them has, those that lie in one of the paths."""
    for path in found:
        while path:
            path = split(path)[0]
            if any(is_below(path, top) for top in paths):
                yield path


class _Copying:
    """Copies paths from one state into the view."""

    def __init__(self, overlay: Overlay, files: StateFiles) -> None:
        self._overlay = overlay
        self._files = files
        self._made: dict[Identity, RelPath] = {}
        """Where each file was made, of which the other state may have more names."""
        self._brought: set[RelPath] = set()
        self.left_out: dict[RelPath, tuple[str, ...]] = {}

    def bring(self, path: RelPath) -> None:
        """Have the view show at a path what the other state shows there; a directory that both have keeps its names."""
        if path in self._brought:
            return
        there, here = self._files.look(path), self._look(path)
        if there is not None and path:
            self._make_above(split(path)[0])
        if there is not None and there.is_directory and here is not None and stat.S_ISDIR(here.mode):
            self.finish(path)
            return
        if here is not None:
            self._remove(path)
        if there is not None:
            self._make(path, there)

    def finish(self, directory: RelPath) -> None:
        """Give a directory that both have its metadata and times, after all in it."""
        there, here = self._files.look(directory), self._look(directory)
        if there is not None and there.is_directory and here is not None and stat.S_ISDIR(here.mode):
            self._finish(directory, there)

    def _look(self, path: RelPath) -> Attr | None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), self._held(path) as (_, attr):
            return attr
        return None

    @contextlib.contextmanager
    def _held(self, path: RelPath) -> Iterator[tuple[Inode, Attr]]:
        """Look each name of a path up, and hold what is there for the time of the block.

        Raises:
            OSError: there is nothing.
        """
        overlay = self._overlay
        inode, attr = overlay.root, overlay.getattr(overlay.root)
        numbers: list[int] = []
        try:
            for name in path.split(b"/") if path else ():
                found = overlay.lookup(inode, name) if inode.is_directory else None
                if found is None:
                    number = errno.ENOENT if inode.is_directory else errno.ENOTDIR
                    raise OSError(number, os.strerror(number), path)
                inode, attr = found
                numbers.append(inode.number)
            yield inode, attr
        finally:
            for number in numbers:
                overlay.forget(number, 1)

    @contextlib.contextmanager
    def _parent(self, path: RelPath) -> Iterator[tuple[Inode, bytes]]:
        directory, name = split(path)
        with self._held(directory) as (inode, _):
            yield inode, name

    def _make_above(self, directory: RelPath) -> None:
        """Make the directories that a path lies in, as the other state has them."""
        here = self._look(directory)
        if here is not None and stat.S_ISDIR(here.mode):
            return
        self._make_above(split(directory)[0])
        if here is not None:
            self._remove(directory)
        there = self._files.look(directory)
        assert there is not None, "something is in it"
        self._make_one(directory, there)
        self._finish(directory, there)

    def _remove(self, path: RelPath) -> None:
        with self._held(path) as (inode, _):
            names = self._overlay.names(inode) if inode.is_directory else None
        for name in names or ():
            self._remove(join(path, name))
        with self._parent(path) as (parent, name):
            (self._overlay.unlink if names is None else self._overlay.rmdir)(parent, name)

    def _make(self, path: RelPath, there: File) -> None:
        self._brought.add(path)
        self._make_one(path, there)
        if there.is_directory:
            for name, below in self._files.inside(there):
                self._make(join(path, name), below)
        self._finish(path, there)

    def _make_one(self, path: RelPath, there: File) -> None:
        """Make what is at a path, with its content, but without its metadata."""
        overlay = self._overlay
        first = self._made.setdefault(there.identity, path) if not there.is_directory else path
        owner = Owner(os.geteuid(), os.getegid())
        with self._parent(path) as (parent, name):
            if first != path:
                with self._held(first) as (inode, _):
                    overlay.link(inode, parent, name)
                    overlay.forget(inode.number, 1)
                return
            match there.side.type:
                case stat.S_IFDIR:
                    inode, _ = overlay.mkdir(parent, name, 0o700, owner)
                case stat.S_IFLNK:
                    inode, _ = overlay.symlink(parent, name, there.side.target(), owner)
                case stat.S_IFREG:
                    inode, _ = overlay.create(parent, name, stat.S_IFREG | 0o600, owner)
                    try:
                        with self._files.open(there) as fd:
                            copying.copy_data(fd, overlay.descriptors.of(inode, write=True), there.side.size)
                    finally:
                        overlay.release(inode, writer=True)
                case _:
                    inode, _ = overlay.mknod(parent, name, there.st.st_mode, there.side.rdev, owner)
            overlay.forget(inode.number, 1)

    def _finish(self, path: RelPath, there: File) -> None:
        """Give what is at a path its metadata and times."""
        with self._held(path) as (inode, here):
            missed = list(_Metadata(self._overlay, inode, here).become(there))
        if missed:
            self.left_out[path] = tuple(missed)


class _Metadata:
    """What a file of the view is, beside its content."""

    def __init__(self, overlay: Overlay, inode: Inode, here: Attr) -> None:
        self._overlay = overlay
        self._inode = inode
        self._here = here

    def become(self, there: File) -> Iterator[str]:
        """Set all that differs; yield what the user may not set."""
        here, side = self._here, there.side
        if (here.uid, here.gid) != (side.uid, side.gid) and not self._may(
            lambda: self._set(uid=side.uid, gid=side.gid)
        ):
            yield "owner"
            self._may(lambda: self._set(gid=side.gid))
        metadata = copying.read_metadata(side.meta, st=there.st)
        yield from metadata.unread
        wanted = dict(metadata.xattrs)
        for name in map(os.fsdecode, self._overlay.listxattr(self._inode)):
            if name not in wanted:
                self._may(partial(self._overlay.removexattr, self._inode, os.fsencode(name)))
        for name, value in wanted.items():
            if not self._may(partial(self._set_xattr, os.fsencode(name), value)):
                yield f"xattr {name}"
        if side.type != stat.S_IFLNK and not self._may(lambda: self._set(mode=side.mode)):
            yield "mode"
        if not self._may(lambda: self._set(atime_ns=there.st.st_atime_ns, mtime_ns=there.mtime_ns)):
            yield "times"

    def _set(self, **what: int) -> None:
        self._overlay.setattr(self._inode, **what)

    def _set_xattr(self, name: bytes, value: bytes) -> None:
        with contextlib.suppress(OSError):
            if self._overlay.getxattr(self._inode, name) == value:
                return
        self._overlay.setxattr(self._inode, name, value)

    @staticmethod
    def _may(act: Callable[[], object]) -> bool:
        """Do something; return whether the user may."""
        try:
            act()
        except OSError as error:
            if error.errno not in _NOT_PERMITTED:
                raise
            return False
        return True


def source_to_restore(session: Session, text: str) -> Source:
    """Return the state that a user means by ``commit N``, which is what base had after it, or as :func:`source_of`.

    Raises:
        UsageError: commit N is not kept, or as for :func:`source_of`.
        GenerationError: as for :func:`source_of`.
    """
    word, _, number = text.replace(":", " ").partition(" ")
    if word != "commit" or not number.isdigit():
        tree, named = source_of(session, text)
        return Source(named, StateFiles(session, tree), tree)
    kept = commit_numbers(session.directory)
    if int(number) not in kept:
        raise UsageError(f"commit {number} is not kept, or there never was one", hint="yolofs commits")
    if int(number) == max(kept):
        tree = session.state(BASE)
        return Source(text, StateFiles(session, tree), tree)
    from yolofs.session.past import past_ground  # it takes all that commits need along

    return Source(f"commit {number}", StateFiles(past_ground(session, int(number) + 1), Tree()), None)


def source_of(session: Session, text: str) -> tuple[Tree, str]:
    """Return the state that a user means by a generation, ``run N`` or ``base``, and how it is called.

    Raises:
        GenerationError: there is none.
        UsageError: the run's generations have been committed or dropped.
    """
    word, _, number = text.replace(":", " ").partition(" ")
    if word == "run" and number.isdigit():
        run = find_run(session.directory, int(number))
        after = generation_of(run.end.after, session.journal) if run.end is not None else session.timeline.present
        if after is None:
            raise UsageError(f"what run {number} did has been committed or dropped since", hint="yolofs runs")
        return session.state(after), f"run {number}"
    generation = session.timeline.resolve(text)
    return session.state(generation), "base" if generation == Generation(0) else f"generation {generation}"
