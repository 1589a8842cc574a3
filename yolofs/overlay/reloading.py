"""What becomes of the inodes when the view shows another state: after a travel, a commit or an
abort.
"""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from yolofs.overlay.descriptors import Descriptors
from yolofs.overlay.finding import Finding
from yolofs.overlay.inodes import NO_PAGES, Inode, natural_number, settled_version, version_of
from yolofs.overlay.layers import Layers
from yolofs.overlay.paths_by_key import PathsByKey
from yolofs.paths import ROOT, RelPath, join, split
from yolofs.state.hard_links import staged_for
from yolofs.state.link_names import find_name_near
from yolofs.state.tree import Entry, Staged, link_key, number_of_link


class Invalidation(NamedTuple):
    """What the kernel must forget after the state was exchanged."""

    inodes: list[int]
    """Numbers of inodes whose attributes and pages changed."""
    attributes: list[int]
    """Numbers of inodes of which only the attributes changed; what is open of them keeps its
    pages.
    """
    entries: list[tuple[int, bytes]]
    """Names (directory number, name) that lead elsewhere now."""
    moved: list[RelPath]
    """Paths of directories that lost their names above and have one: a look-up has the kernel find
    them there.
    """
    renewed: dict[tuple[int, bytes], RelPath]
    """Some of the names above, each with its path: of directories that may be the same.  Until one
    is looked up again, whoever works in it has no path.
    """
    expired: set[tuple[int, bytes]]
    """Those of the renewed names whose directory, and all that the kernel knows below, is surely
    the same.  They need not be dropped.
    """


class Reloading:
    """Lets inodes follow an exchange of the state."""

    def __init__(self, layers: Layers, descriptors: Descriptors, finding: Finding) -> None:
        self._layers = layers
        self._base = layers.base
        self._store = layers.store
        self._inodes = layers.inodes
        self._clock_ns = layers.clock_ns
        self._descriptors = descriptors
        self._finding = finding
        self._is_rewritten = False
        """Whether the state that is being taken in has other content in files that are still the
        same.
        """

    def follow(self, *, committed: bool, rewritten: bool) -> Invalidation:
        """Let all inodes follow what the layers show by now, and tell what the kernel must forget.

        ``committed`` and ``rewritten`` are those of :meth:`~yolofs.overlay.view.Overlay.reload`.
        """
        self._is_rewritten = rewritten
        stale = Invalidation([], [], [], [], {}, set())
        directories = [inode for inode in self._inodes.by_number.values() if inode.is_directory]
        before = {inode: (_keys(inode), inode.source) for inode in directories}
        known_as = {inode.entry: inode for inode in directories if inode.entry is not None}
        self._layers.place_root()
        kept: set[tuple[Inode, bytes]] = set()
        doubtful: set[tuple[Inode, bytes]] = set()
        for inode in self._by_depth():
            names = self._names_of(inode, known_as)
            was_left = inode.is_left  # the kernel may know since then that these names lead nowhere
            if self._revisit(inode, names, stale, committed=committed) and not was_left:
                kept.update(names)
            else:
                doubtful.update(names)
        kept -= doubtful  # a file may have been seen by a name that another has taken since, and the kernel knows by it
        if committed:
            self._follow_nameless(stale)
        else:
            self._follow_left(stale)
        for inode, (old, old_source) in before.items():
            inode.subdirs = None
            if not inode.is_orphan:
                changed = _changed_names(old, old_source, _keys(inode), inode.source)
                if changed:
                    stale.inodes.append(inode.number)
                    stale.entries.extend((inode.number, name) for name in changed if (inode, name) not in kept)
        return stale

    def _names_of(self, inode: Inode, known_as: dict[Entry, Inode]) -> list[tuple[Inode, bytes]]:
        """Return the names by which the kernel may know an inode: the last one seen, and its other
        hard links.

        ``known_as`` tells the inodes of directories by their entries in the old tree.
        """
        names = [(inode.parent, inode.name)] if inode.parent is not None and not inode.is_nameless else []
        names += [place for place in self._inodes.other_names(inode) if place not in names]
        if inode.staged is not None and (len(inode.staged.names) > 1 or inode.staged.links):
            for entry in inode.staged.names:
                parent = known_as.get(entry.parent) if entry.parent is not None else None
                if parent is not None and (parent, entry.name) not in names:
                    names.append((parent, entry.name))
        return names

    def _by_depth(self) -> list[Inode]:
        """Return all inodes but the root: parents before children, and files left behind after
        those that are not.

        Files come after all directories: a file with several names may lie in any of them.
        """
        depths: dict[Inode, int] = {self._layers.root: 0}
        for start in self._inodes.by_number.values():
            chain = []
            current: Inode | None = start
            while current is not None and current not in depths:
                chain.append(current)
                current = current.parent
            depth = depths[current] if current is not None else 0
            for inode in reversed(chain):
                depth += 1
                depths[inode] = depth
        del depths[self._layers.root]
        return sorted(depths, key=lambda inode: (0 if inode.is_directory else 1 + inode.is_orphan, depths[inode]))

    def _revisit(self, inode: Inode, names: list[tuple[Inode, bytes]], stale: Invalidation, *, committed: bool) -> bool:
        """Make one inode show what one of its names shows in the new state, or leave it behind as
        an orphan.

        Returns whether all of its names still lead to it.
        """
        if inode.is_orphan and not (inode.is_left and (inode.is_directory or not inode.opens)):
            return False
        places = [place for place in names if self._still_leads(place, inode, committed=committed)]
        if places and self._settle(inode, places[0], stale, committed=committed):
            return len(places) == len(names)
        inode.is_orphan = inode.is_left = True
        inode.entry = None
        stale.entries.extend((parent.number, name) for parent, name in names)
        (stale.attributes if inode.opens else stale.inodes).append(inode.number)
        return False

    def _settle(self, inode: Inode, place: tuple[Inode, bytes], stale: Invalidation, *, committed: bool) -> bool:
        """Let an inode show what a name shows; False if it is open and what is there has other
        content.
        """
        parent, name = place
        entry, staged, base = self._shown(parent, name)
        is_moved = inode.source != (staged.origin if staged is not None else base) or (
            (inode.staged.ino if inode.staged is not None else None) != (staged.ino if staged is not None else None)
        )
        link_key = inode.key if inode.has_links_in_base and isinstance(inode.key, int) else None
        if staged is None and inode.staged is None and link_key is not None:
            is_moved = False  # the same file of base, perhaps by another of its names
        keeps_open = committed or (self._is_rewritten and staged is not None)
        if is_moved and inode.opens and inode.kind == stat.S_IFREG and not keeps_open:
            return False
        inode.is_orphan = inode.is_left = False
        self._inodes.move(inode, parent, name)
        inode.entry, inode.staged, inode.base, inode.link_key = entry, staged, base, link_key
        if is_moved:
            self._descriptors.close(inode)
            stale.inodes.append(inode.number)
            if not committed:
                inode.paged = NO_PAGES
        return True

    def _follow_left(self, stale: Invalidation) -> None:
        """Find the files that were left behind, and are still held, under the names that they have
        in the new state.

        A program may work in a directory that was renamed between the two states.
        """
        left = [inode for inode in self._inodes.by_number.values() if inode.is_left]
        if not left:
            return
        paths_by_key = PathsByKey(self._layers.tree)
        found = [(path, inode) for inode in left if (path := _path_in(paths_by_key, inode)) is not None]
        for path, inode in sorted(found, key=lambda item: item[0].count(b"/")):  # directories before what is in them
            directory, name = split(path)
            try:
                parent = self._finding.inode_at(directory)
            except OSError:  # base has it no more, or does not let us in
                continue
            place = parent, name
            if self._still_leads(place, inode, committed=False):
                is_settled = self._settle(inode, place, stale, committed=False)
                if is_settled and inode.is_directory:
                    stale.moved.append(path)
            self._inodes.drop_if_unused(parent)

    def _follow_nameless(self, stale: Invalidation) -> None:
        """Find another name of the open files whose only known name went by a commit: it may be
        written by that.

        Until then the name that had gone from the view alone led to the file in base.
        """
        for inode in [inode for inode in self._inodes.by_number.values() if inode.is_left and inode.is_nameless]:
            home, key = inode.home, inode.key
            if not inode.opens or home is None or not isinstance(key, int):
                continue
            file = self._base.file_of(number_of_link(key))
            try:
                path = find_name_near(self._base, [self._base.on_disk(*file)], home) if file is not None else None
            except OSError:  # the disk does not answer: the file is shown by no name, and its handles keep it
                continue
            if path is None:
                continue
            directory, name = split(path)
            try:
                parent = self._finding.inode_at(directory)
            except OSError:  # something that was not committed is in the way
                continue
            if self._still_leads((parent, name), inode, committed=True):
                self._settle(inode, (parent, name), stale, committed=True)
            self._inodes.drop_if_unused(parent)

    def _still_leads(self, place: tuple[Inode, bytes], inode: Inode, *, committed: bool) -> bool:
        """Tell whether a name leads to the same file in the new state."""
        parent, name = place
        if parent.is_orphan:
            return False
        _, staged, base = self._shown(parent, name)
        if staged is None and base is None:
            return False
        if committed and staged is not None and inode.staged is not None and staged.ino == inode.staged.ino:
            self._inodes.claim(natural_number(staged), staged.key, inode.number)
            return True  # left staged; the base path that it is known by may be another one now
        if committed and staged is not None and inode.staged is None and place == (inode.parent, inode.name):
            self._inodes.claim(natural_number(staged), staged.key, inode.number)
            return True  # a commit was undone: what base had is staged again
        if committed and base is not None and (inode.staged is not None or inode.base != base):
            return self._take_over(inode, base, may_be_new=place == (inode.parent, inode.name))
        return self._is_still(inode, staged, base, place)

    def _is_still(self, inode: Inode, staged: Staged | None, base: RelPath | None, place: tuple[Inode, bytes]) -> bool:
        """Tell whether an inode is what a name shows now, and see that it is known by the inode's
        number.

        A directory may be another one than before: programs that work in it mean its path.  So an
        inode left behind cannot come to a name where another one stands for the directory by now: a
        file in it would be known by either, and only one of them follows a rename.
        """
        is_same = inode.key == (staged.key if staged is not None else self._key_of(inode, base))
        if is_same and not inode.is_orphan:
            was = natural_number(inode.staged) if inode.staged is not None else inode.number
            if staged is not None and natural_number(staged) != was:  # it was merged with another file of base
                self._inodes.claim(natural_number(staged), staged.key, inode.number)
            return True
        if not (is_same or inode.is_directory):
            return False
        try:
            st = os.lstat(self._store.path(staged.ino)) if staged is not None else self._base.lstat(base or ROOT)
        except OSError:
            return False
        if stat.S_IFMT(st.st_mode) != inode.kind:
            return False
        natural, key = (natural_number(staged), staged.key) if staged is not None else (self._base.number(st), None)
        other = self._inodes.by_number.get(self._inodes.number_of(natural, key))
        is_another = other is not None and other is not inode and self._finding.is_known_as(other, inode.kind, staged)
        if is_another and not inode.is_directory:
            return False  # it was looked up while this one was left behind
        if is_another and other is not None and (other.parent, other.name) == place:
            return False
        self._inodes.claim(natural, key, inode.number)
        return True

    def _key_of(self, inode: Inode, base: RelPath | None) -> bytes | int | None:
        """Return the key of what base has at a path, as far as ``inode`` may have it.

        A file that had several names keeps that key when it has a single one left.
        """
        if isinstance(inode.key, int) and base is not None:
            try:
                return link_key(self._base.number(self._base.lstat(base)))
            except OSError:
                return base
        return base

    def _shown(self, parent: Inode, name: bytes) -> tuple[Entry | None, Staged | None, RelPath | None]:
        """Return what a directory shows under a name; base is looked at only if hard links of base
        are staged.
        """
        entry, staged, base = _shown(parent, name)
        if base is not None and self._layers.tree.linked:
            try:
                staged = staged_for(self._layers.tree, self._base, self._base.lstat(base))
            except OSError:
                return entry, None, base
        return entry, staged, None if staged is not None else base

    def _take_over(self, inode: Inode, base: RelPath, *, may_be_new: bool) -> bool:
        """After a commit: let the base file at ``base`` be known by the inode that was staged or
        renamed to there.

        Danger: another file may have taken the place of a name under which it was seen earlier.
        Without ``may_be_new``, it must be the file that the inode stands for now.
        """
        try:
            st = self._base.lstat(base)
        except OSError:
            return False
        if stat.S_IFMT(st.st_mode) != inode.kind:
            return False
        if not may_be_new and self._inodes.number_of(self._base.number(st)) != inode.number:
            return False
        self._inodes.rename_number(self._base.number(st), inode.number)
        if inode.staged is not None:  # of any other, the host may have changed the content since the kernel saw it
            inode.seen, inode.paged = version_of(st), settled_version(st, self._clock_ns())
        return True


def _shown(parent: Inode, name: bytes) -> tuple[Entry | None, Staged | None, RelPath | None]:
    """Return what the entries of a tree show under a name of a directory."""
    entry = parent.entry.children.get(name) if parent.entry is not None and parent.entry.children else None
    if entry is not None:
        return entry, entry.staged, entry.base
    source = parent.source
    return None, None, join(source, name) if source is not None else None


def _path_in(paths_by_key: PathsByKey, inode: Inode) -> RelPath | None:
    path = paths_by_key.path_of(inode.key)
    return path if path is not None else paths_by_key.path_of(inode.home)


def _keys(directory: Inode) -> dict[bytes, bytes | int | None]:
    """Return which file each entry of a directory shows, None for a tombstone."""
    entry = directory.entry
    if entry is None or not entry.children:
        return {}
    return {
        name: below.staged.key if below.staged is not None else below.base for name, below in entry.children.items()
    }


def _changed_names(
    old: dict[bytes, bytes | int | None],
    old_source: RelPath | None,
    new: dict[bytes, bytes | int | None],
    new_source: RelPath | None,
) -> list[bytes]:
    """Return the names that show another file now (a name in neither comes from the source, as
    before).
    """

    def key(keys: dict[bytes, bytes | int | None], source: RelPath | None, name: bytes) -> bytes | int | None:
        return keys[name] if name in keys else join(source, name) if source is not None else None

    return [name for name in old.keys() | new.keys() if key(old, old_source, name) != key(new, new_source, name)]
