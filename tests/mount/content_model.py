"""What the files of a view and of base hold, as the documents have it: the model of
:mod:`tests.mount.content_machine`.

Plain values; nothing here touches a disk.  A name leads either to a path of base, and shows the
host's changes there, or to a staged :class:`Inode`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TypeAlias

_versions = itertools.count(1)


@dataclass(eq=False)
class HostFile:
    """A file of base, by one name or several."""

    data: bytearray
    inode: Inode | None = None
    """What the view knows it by, while it is not staged."""


@dataclass(eq=False)
class Inode:
    """A file of the view that may be open: what it shows comes from ``host``, or else is its
    own.
    """

    host: HostFile | None
    own: bytearray = field(default_factory=bytearray)
    version: int = 0
    """Which store inode it is; another one after each marker that it is written after."""
    is_fresh: bool = False

    @property
    def data(self) -> bytearray:
        return self.host.data if self.host is not None else self.own


Place: TypeAlias = "str | Inode"
"""A path of base, or what is staged."""
Kept: TypeAlias = "dict[str, str | tuple[int, bytes]]"
"""A generation: each name with a path of base, or with the version and content of what is
staged.
"""


class Contents:
    """Base, the view of it, and the generations of the view."""

    def __init__(self, base: dict[str, HostFile]) -> None:
        self.base = base
        self.view: dict[str, Place] = {name: name for name in base}
        self.generations: dict[int, Kept] = {0: self._kept()}
        self.is_changed = False
        """Since the last marker."""

    # ---- looking

    def at(self, name: str) -> Inode | None:
        """Return the file that a name of the view leads to."""
        place = self.view.get(name)
        if place is None or isinstance(place, Inode):
            return place
        host = self.base[place]
        if host.inode is None:
            host.inode = Inode(host)
        return host.inode

    def is_placed(self, inode: Inode) -> bool:
        """Tell whether a name of the view leads to a file."""
        return any(self.at(name) is inode for name in self.view)

    def names_in_base(self, host: HostFile) -> list[str]:
        return [name for name, other in self.base.items() if other is host]

    # ---- what programs in the view do

    def create(self, name: str) -> Inode:
        self.view[name] = inode = Inode(None)
        self._mark_written(inode)
        return inode

    def write(self, inode: Inode, offset: int, data: bytes) -> None:
        if not data:
            return
        self._stage(inode)
        inode.own.extend(bytes(max(0, offset - len(inode.own))))
        inode.own[offset : offset + len(data)] = data

    def allocate(self, inode: Inode) -> None:
        self._stage(inode)

    def truncate(self, inode: Inode, size: int) -> None:
        self._stage(inode)
        del inode.own[size:]
        inode.own.extend(bytes(size - len(inode.own)))

    def unlink(self, name: str) -> None:
        self._lose(name)
        self.is_changed = True

    def rename(self, old: str, new: str) -> None:
        if self.at(old) is self.at(new):
            return
        if new in self.view:
            self._lose(new)
        self.view[new] = self.view.pop(old)
        self.is_changed = True

    def link(self, old: str, new: str) -> None:
        self.view[new] = self.view[old]
        self.is_changed = True

    def _lose(self, name: str) -> None:
        inode = self.at(name)
        del self.view[name]
        if inode is not None and not self.is_placed(inode):
            self._leave(inode)

    @staticmethod
    def _leave(inode: Inode) -> None:
        """No name leads to a file any more: whoever has it open keeps it, and it never comes
        back.
        """
        inode.version = 0
        if inode.host is not None:
            inode.host.inode = None

    def _stage(self, inode: Inode) -> None:
        if inode.host is not None:
            host, inode.host, inode.own = inode.host, None, bytearray(inode.data)
            if host.inode is inode:
                for name, place in self.view.items():
                    if isinstance(place, str) and self.base[place] is host:
                        self.view[name] = inode
                host.inode = None
        if self.is_placed(inode):
            self._mark_written(inode)

    def _mark_written(self, inode: Inode) -> None:
        if not inode.is_fresh:
            inode.version, inode.is_fresh = next(_versions), True
            self.is_changed = True

    # ---- what the host does

    def replace(self, path: str, data: bytes) -> None:
        """Put another file in the place of one of base, which has no other name."""
        old = self.base[path]
        old.inode = None
        self.base[path] = HostFile(bytearray(data))

    # ---- time

    def snapshot(self, number: int) -> None:
        self.generations[number] = self._kept()
        self._mark()

    def travel(self, target: int, present: int) -> None:
        """Show generation ``target``, as generation ``present``."""
        if present - 1 not in self.generations:
            self.generations[present - 1] = self._kept()
        kept = self.generations[present] = self.generations[target]
        self._show(kept)

    def abort(self) -> None:
        self._show({name: name for name in self.base})
        self._begin()

    def commit(self) -> None:
        made: dict[Inode, HostFile] = {}
        base = {}
        for name, place in self.view.items():
            if isinstance(place, str):
                base[name] = self.base[place]
            else:
                if place not in made:
                    made[place] = HostFile(place.own, place)
                base[name] = made[place]
        for inode, host in made.items():
            inode.host = host
        self.base = base
        self.view = {name: name for name in base}
        self._begin()

    def _begin(self) -> None:
        self._mark()
        self.generations = {0: self._kept()}

    def _mark(self) -> None:
        self.is_changed = False
        for name in self.view:
            inode = self.at(name)
            assert inode is not None
            inode.is_fresh = False

    def _kept(self) -> Kept:
        return {
            name: place if isinstance(place, str) else (place.version, bytes(place.own))
            for name, place in self.view.items()
        }

    def _show(self, kept: Kept) -> None:
        before = [inode for inode in map(self.at, list(self.view)) if inode is not None]
        staged = {inode.version: inode for inode in before if inode.host is None}
        self.view = {}
        for name, place in kept.items():
            if isinstance(place, str):
                self.view[name] = place
            else:
                version, data = place
                if version not in staged:
                    staged[version] = Inode(None, bytearray(data), version)
                self.view[name] = staged[version]
        for inode in before:
            if not self.is_placed(inode):
                self._leave(inode)
        self._mark()
