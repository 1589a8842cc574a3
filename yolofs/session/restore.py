"""Bringing paths back: what another state shows at them is staged anew, and nothing else changes.

If base shows exactly that, the change is taken out again (:mod:`yolofs.commit.select.restate`),
unless another change depends on it.  Everything else is made in the view as a program would make
it: a copy, with its metadata and times.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from yolofs.changes.changes import Change, compare
from yolofs.changes.state_reader import FileIdentity
from yolofs.commit.select.units import Unit, Units
from yolofs.errors import YolofsError
from yolofs.overlay import Overlay
from yolofs.paths import Generation, RelPath, is_below_any, join, split
from yolofs.session.history.named_states import NamedState
from yolofs.session.merge import let_base_win
from yolofs.session.session import Session
from yolofs.session.state_files import StateFile, StateFiles
from yolofs.session.view_writer import ViewWriter
from yolofs.state.link_names import find_all_names_at
from yolofs.state.tree import Entry, Staged, Tree, natural_path

LINKS = "links"
"""Stands among what was left out for a file that came back without its other names."""


class Restored(msgspec.Struct, frozen=True):
    """What was brought back."""

    changes: tuple[Change, ...]
    """What that has changed in the view, before it and after; none if all was so already."""
    before: Generation = Generation(0)
    """What the view showed before."""
    left_out: dict[RelPath, tuple[str, ...]] = {}
    """What of a path could not be brought back: ``owner``, ``xattr NAME``, ``mode``, ``times``."""


def restore(session: Session, source: NamedState, paths: Sequence[RelPath], name: bytes) -> Restored:
    """Stage what a state shows at some paths, with everything below them; where it shows nothing,
    the view has nothing then.

    A file that has several names in base (hard links), and was edited in place, comes back from
    there by all of them.  What was there before is a generation; ``name`` is that of the new one.
    If it fails, the view is what it was.  A mount of the session must be paused.  Blocks.

    Raises:
        CommitError: a commit was interrupted.
        OSError: something cannot be read, or not be written.
        YolofsError: then the way back failed, too.
    """
    session.check_no_interrupted_commit()
    if not _differing(session, source, paths):
        return Restored(())
    paths = _with_other_names(session, source, paths)
    session.snapshot(if_changed=True)
    before = session.timeline.present
    try:
        is_dropped = source.tree is not None and _drop(session, source.tree, paths)
        left_out = _copy(session, source, paths)
        session.snapshot(name, if_changed=not is_dropped)
        session.store.sync()
        session.journal.sync()
    except BaseException as error:
        try:
            session.travel(str(before))
        except OSError as failed:
            why = failed.strerror or repr(failed)
            raise YolofsError(
                f"a part of it may have been brought back, as taking it back failed: {why}",
                hint=f"yolofs travel {before}",
            ) from error
        raise
    states = session.states(before, None)
    changes = compare(*states, session.base, session.store, paths=paths, expand_renames=True)
    return Restored(tuple(changes), before, left_out)


def _differing(session: Session, source: NamedState, paths: Sequence[RelPath]) -> list[RelPath]:
    """Return the paths at or below some others at which the view and another state differ, parents
    first.
    """
    if source.tree is None:
        return sorted(_found_differing(StateFiles(session, session.state()), source.files, paths))
    found = compare(session.state(), source.tree, session.base, session.store, paths=paths, expand_renames=True)
    tops = frozenset(paths)
    return sorted({path for change in found for path in change.paths if is_below_any(path, tops)})


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


def _differ(here: StateFiles, now: StateFile, there: StateFiles, then: StateFile) -> bool:
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


def _with_other_names(session: Session, source: NamedState, paths: Sequence[RelPath]) -> Sequence[RelPath]:
    """Return the paths, and the other names of edited files at them (hard links), where the file
    that comes back has all of these.

    Whether the view has looked at a name that base has yet does not matter.
    """
    if source.tree is None:
        return paths
    tree, wanted = session.state(), frozenset(paths)
    more = _other_names_in_base(session, source.tree, tree, wanted) if tree.linked else []
    for staged in tree.staged.values():
        if len(staged.names) < 2 and not staged.links:
            continue
        names = _names_of(session, tree, staged)
        if not any(is_below_any(name, wanted) for name in names):
            continue
        then = [source.files.look(name) for name in names]
        if all(file is not None and file.identity == staged.key for file in then):
            more += names
    return [*paths, *more]


def _names_of(session: Session, tree: Tree, staged: Staged) -> list[RelPath]:
    """Return all names of a staged file."""
    names = {entry.path(): None for entry in staged.names}
    if staged.links and staged.home is not None:
        for found in find_all_names_at(session.base, [staged.home]).values():
            names.update((name, None) for name in found if _shows(tree.find(name), staged))
    return list(names)


def _other_names_in_base(session: Session, source: Tree, tree: Tree, wanted: frozenset[RelPath]) -> list[RelPath]:
    """Return all base names of edited files at some paths, if base's version comes back."""
    files = {staged.home: staged for staged in tree.linked.values() if staged.home is not None}
    more: list[RelPath] = []
    for found in find_all_names_at(session.base, files).values():
        staged = next(files[name] for name in found if name in files)
        shown = [name for name in found if _shows(tree.find(name), staged)]
        is_asked = any(is_below_any(name, wanted) for name in shown)
        if is_asked and all(_is_of_base(source, name) for name in shown):
            more += shown
    return more


def _shows(entry: Entry | None, staged: Staged) -> bool:
    """Tell whether a name that base has for a file shows it, edited; ``entry`` is there, if any."""
    if entry is None or entry.staged is not None:
        return entry is None or entry.staged is staged
    return entry.base is not None and entry.base == natural_path(entry)


def _drop(session: Session, source: Tree, paths: Sequence[RelPath]) -> bool:
    """Take out the changes of those paths at which base shows what is to come back, as far as they
    stand alone; return whether there were any.
    """
    wanted = frozenset(path for path in paths if _is_of_base(source, path))
    if not wanted:
        return False
    alone: list[Unit] = []
    stays: set[RelPath] = set()
    units = Units(session.state(), session.base, session.store)
    for unit in units.all:
        if all(is_below_any(path, wanted) for path in (*unit.paths, *(units.slots[entry] for entry in unit.slots))):
            alone.append(unit)
        else:
            stays.update(unit.paths)
    if stays:
        # What base shows at a path of the view may show elsewhere in the view, edited: that stays.
        alone = [unit for unit in alone if stays.isdisjoint(unit.paths)]
    if alone:
        let_base_win(session, {path for unit in alone for path in unit.paths})
    return bool(alone)


def _is_of_base(source: Tree, path: RelPath) -> bool:
    """Tell whether a state shows at a path, and at all below it, just what base has there."""
    shown = source.resolve(path)
    entry = source.find(path)
    return shown is not None and shown.base == path and (entry is None or (entry.base == path and not entry.children))


def _copy(session: Session, source: NamedState, paths: Sequence[RelPath]) -> dict[RelPath, tuple[str, ...]]:
    """Copy what still differs."""
    differing = _differing(session, source, paths)
    if not differing:
        return {}
    session.skip_named_numbers()
    state = session.present()
    here = StateFiles(session, state.tree)
    links = dict(_links_that_stay(here, source.files, differing)) if source.tree is not None else {}
    overlay = Overlay(session.base, session.store, session.journal, state.tree, fresh_from=state.fresh_from)
    try:
        bringing = _Copying(overlay, source.files, links)
        for path in differing:
            bringing.bring(path)
        for directory in sorted(_directories_above(differing, paths), key=len, reverse=True):
            bringing.finish(directory)
        for path in bringing.apart() if source.tree is not None else ():
            bringing.left_out[path] = (*bringing.left_out.get(path, ()), LINKS)
        return bringing.left_out
    finally:
        overlay.close()


def _links_that_stay(
    here: StateFiles, there: StateFiles, differing: Sequence[RelPath]
) -> Iterator[tuple[FileIdentity, RelPath]]:
    """Yield the returning files with another name that already shows them as then: a hard link of
    it brings them back.
    """
    gone = frozenset(differing)
    for path in differing:
        then = there.look(path)
        if then is None or then.is_directory:
            continue
        for other in there.reader.places(then.identity):
            now = here.look(other.path) if other.path not in gone else None
            if now is not None and now.identity == then.identity and not _differ(here, now, there, then):
                yield then.identity, other.path
                break


def _directories_above(found: Sequence[RelPath], paths: Sequence[RelPath]) -> set[RelPath]:
    """Return the directories whose times have changed as something in them has, those that lie in
    one of the paths.
    """
    tops, above = frozenset(paths), set[RelPath]()
    for path in found:
        while path:
            path = split(path)[0]
            if path in above or not is_below_any(path, tops):
                break
            above.add(path)
    return above


def _names_then(file: StateFile) -> int:
    """Return how many names a file has in its state, at least."""
    entry = file.node.entry
    staged = entry.staged if entry is not None else None
    return max(len(staged.names), staged.links) if staged is not None else file.st.st_nlink


class _Copying(ViewWriter):
    """Copies paths from one state into the view."""

    def __init__(self, overlay: Overlay, files: StateFiles, links: Mapping[FileIdentity, RelPath]) -> None:
        """``links``: what has a name already that stays, and is only linked."""
        super().__init__(overlay, files, made=links)
        self._brought: set[RelPath] = set()
        self._linked = frozenset(links)
        self._names: dict[FileIdentity, list[StateFile]] = {}
        """The names that were brought back of each file."""

    def apart(self) -> Iterator[RelPath]:
        """Yield what came back as a file of its own, though the state has more names of it."""
        for identity, names in self._names.items():
            if identity not in self._linked and len(names) < _names_then(names[0]):
                yield names[0].path

    def bring(self, path: RelPath) -> None:
        """Have the view show at a path what the other state shows there; a directory that both have
        keeps its names.
        """
        if path in self._brought:
            return
        there, here = self.files.look(path), self.look(path)
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
        there, here = self.files.look(directory), self.look(directory)
        if there is not None and there.is_directory and here is not None and stat.S_ISDIR(here.mode):
            self.finish_one(directory, there)

    def _make_above(self, directory: RelPath) -> None:
        """Make the directories that a path lies in, as the other state has them."""
        here = self.look(directory)
        if here is not None and stat.S_ISDIR(here.mode):
            return
        self._make_above(split(directory)[0])
        if here is not None:
            self._remove(directory)
        there = self.files.look(directory)
        assert there is not None, "something is in it"
        self.make_one(directory, there)
        self.finish_one(directory, there)

    def _remove(self, path: RelPath) -> None:
        with self.inode_at(path) as inode:
            names = self.overlay.names(inode) if inode.is_directory else None
        for name in names or ():
            self._remove(join(path, name))
        with self.parent(path) as (parent, name):
            (self.overlay.unlink if names is None else self.overlay.rmdir)(parent, name)

    def _make(self, path: RelPath, there: StateFile) -> None:
        self._brought.add(path)
        self.make_one(path, there)
        if not there.is_directory:
            self._names.setdefault(there.identity, []).append(there)
        if there.is_directory:
            for name, below in self.files.inside(there):
                self._make(join(path, name), below)
        self.finish_one(path, there)
