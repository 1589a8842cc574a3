"""The files of the view that somebody holds, and the numbers by which they are known.

An :class:`Inode` lives as long as the kernel (or a caller of the core) has looked it up more often
than it has forgotten it, has it open, or knows a file below it.  Its number is stable: copy-up,
rename and snapshot keep it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from yolofs.paths import RelPath
from yolofs.rules.judgement import UNJUDGED
from yolofs.state.tree import Entry, Staged

ROOT_NUMBER = 1
UNKNOWN_NUMBER = (1 << 64) - 2
"""The number of no file: stands in listings for files that cannot be looked at."""
_BORN_IN_VIEW = 1 << 63
_ALTERNATE = 3 << 61
Version: TypeAlias = tuple[int, int, int]
"""What tells whether a base file's content is as it was: its ``ctime_ns``, ``mtime_ns`` and
size.
"""
NO_PAGES: Version = (0, 0, 0)
"""For :attr:`Inode.paged`: of no version of the base file."""
MIXED: Version = (-1, -1, -1)
"""For :attr:`Inode.paged`: the file has been copied up, and not all cached pages are of what was
copied.
"""
_SECOND_NS, _CENTISECOND_NS = 1_000_000_000, 10_000_000


class Attr(msgspec.Struct):
    """What stat(2) tells of a file in the view."""

    number: int
    mode: int
    nlink: int
    uid: int
    gid: int
    rdev: int
    size: int
    """In bytes."""
    blocks: int
    """In units of 512 bytes."""
    atime_ns: int
    mtime_ns: int
    ctime_ns: int
    is_stable: bool
    """Whether only an operation of the view can change these attributes (false while they come from
    base).
    """


class Inode:
    """One file, directory or special file of the view.

    Beside what the file is, it carries what the kernel has of it (``seen``, ``paged``, ``ragged``,
    ``changes``) and what the gate found (``judgement``, ``noted``).  Nearly each request needs
    them; an object of their own would take some 64 bytes for each known file, and each open and
    write one more look.
    """

    __slots__ = (
        "also",
        "base",
        "changes",
        "entry",
        "fd",
        "fd_writes",
        "is_left",
        "is_nameless",
        "is_orphan",
        "judgement",
        "kind",
        "lacks",
        "lacks_at",
        "link_key",
        "lookups",
        "name",
        "noted",
        "number",
        "opens",
        "paged",
        "parent",
        "pins",
        "ragged",
        "seen",
        "staged",
        "subdirs",
        "subdirs_at",
        "writers",
    )

    def __init__(self, number: int, kind: int, parent: Inode | None, name: bytes) -> None:
        self.number = number
        self.kind = kind
        """The file type, ``stat.S_IFMT`` of its mode."""
        self.parent = parent
        self.name = name
        """With ``parent``: the name under which it was last seen (a hard link may have others)."""
        self.also: list[tuple[Inode, bytes]] = []
        """Other names under which a file was seen: hard links, or names from before the host
        renamed it.  Some names or their directories may be gone: see
        :meth:`InodeTable.other_names`.
        """
        self.entry: Entry | None = None
        """The entry of that name, None while the name comes from base as it is."""
        self.staged: Staged | None = None
        self.base: RelPath | None = None
        """The base path that shows here while ``staged`` is None; rename does not change it."""
        self.link_key: int | None = None
        """The key of a base file that has several names, which its path is not."""
        self.is_orphan = False
        """Whether no name of the view leads here any more: deleted, replaced, or left behind by a
        travel.
        """
        self.is_left = False
        """Whether it is an orphan only because a travel left it behind: another travel may come
        back to it.
        """
        self.is_nameless = False
        """Whether that name is gone and no other is known, though base has one: of a file with hard
        links there.
        """
        self.lookups = 0
        self.opens = 0
        self.writers = 0
        self.pins = 0
        """How many known inodes have this one as their parent."""
        self.changes = 0
        """Grows whenever what stat(2) tells of it, or the names in it, may have changed: through
        the view, or by the host as far as that was seen.  Changes of the whole view (travel,
        commit, rules) are not counted here.
        """
        self.subdirs: int | None = None
        """How many more subdirectories the view has here than base, None if not counted yet."""
        self.subdirs_at = 0
        """The ctime of the directory in base, in ns, when they were counted."""
        self.fd = -1
        self.fd_writes = False
        self.seen: Version = (0, 0, 0)
        """That of the base file when the kernel was last told."""
        self.paged: Version = NO_PAGES
        """The version of the base file whose pages the kernel may have cached, by
        :func:`settled_version`, or :data:`MIXED`.  Nothing is noted for a file whose data is in the
        store, as the kernel sees all that changes it.
        """
        self.ragged = 0
        """How many writes began or ended within a page since the kernel last dropped the pages.
        After such a write the kernel has only a part of a new page, and reads that page alone.  It
        reads pages that it does not have at all 32 at a time.
        """
        self.lacks = 0
        """Which extended attributes it is known not to have, as bits of
        :mod:`yolofs.overlay.absent_xattrs`.
        """
        self.lacks_at: Staged | int | None = None
        """Of which version that is known: of what is staged, or of the base file at this ctime."""
        self.noted = 0
        """Which accesses by rule the gate has noted, as bits."""
        self.judgement = UNJUDGED
        """What the gate found of the name under which it was last seen."""

    @property
    def source(self) -> RelPath | None:
        """The base path that data or children come from where nothing overrides them, None if none
        do.
        """
        return self.staged.origin if self.staged is not None else self.base

    @property
    def is_directory(self) -> bool:
        """Whether this is a directory."""
        return self.kind == stat.S_IFDIR

    @property
    def key(self) -> bytes | int | None:
        """Which file this is, over all its versions (see :attr:`yolofs.state.tree.Staged.key`)."""
        if self.staged is not None:
            return self.staged.key
        return self.link_key if self.link_key is not None else self.base

    @property
    def has_links_in_base(self) -> bool:
        """Whether base has, or had, more than one name for this file."""
        return bool(self.staged.links) if self.staged is not None else self.link_key is not None

    @property
    def home(self) -> RelPath | None:
        """A base path that this file is known by, None for one born in the view."""
        return self.staged.home if self.staged is not None else self.base

    @property
    def is_placed(self) -> bool:
        """Whether a name of the view is known that leads here."""
        return not (self.is_orphan or self.is_nameless)

    def __repr__(self) -> str:
        return f"Inode({self.number}, {self.name!r}, staged={self.staged!r}, base={self.base!r})"


class InodeTable:
    """All known inodes by number, and which number a file gets.

    A file's *natural* number is that of its base file, which a staged file keeps.  It is not
    enough: the host may have deleted that file and used the number for another, and after a commit
    the file has a new one.  So a number goes to a natural number and a key: None for a base file,
    :attr:`yolofs.state.tree.Staged.key` for a staged one.  At any time at most one base file leads
    to a number.
    """

    def __init__(self, on_drop: Callable[[Inode], None]) -> None:
        """``on_drop`` is called with each inode that is forgotten, to let go of what it holds."""
        self._on_drop = on_drop
        self.by_number: dict[int, Inode] = {}
        self._numbers: dict[tuple[int, bytes | int | None], int] = {}
        self._leads_to: dict[int, int] = {}
        self._alternates = 0
        self._on_directory_moved: Callable[[Inode], None] = lambda _: None

    def watch_directories(self, on_moved: Callable[[Inode], None]) -> None:
        """Have ``on_moved`` called with each directory whose path has changed (that of its parent
        may still do so).
        """
        self._on_directory_moved = on_moved

    def number_of(self, natural: int, key: bytes | int | None = None) -> int:
        """Return the number of a file, its natural number unless that has been given to another.

        A staged file that is not known by its key has the number that its base file had.
        """
        if not self._numbers:
            return natural
        number = self._numbers.get((natural, key))
        if number is None and key is not None:
            number = self._numbers.get((natural, None))
        return natural if number is None else number

    def rename_number(self, natural: int, number: int) -> None:
        """Let the base file whose natural number is ``natural`` be known as ``number``; whatever
        was no longer is.
        """
        before = self._leads_to.get(number, number)
        if before != natural and self.number_of(before) == number:
            self._take_fresh(before, None)
        self._numbers[natural, None] = number
        self._leads_to[number] = natural

    def claim(self, natural: int, key: bytes | int | None, number: int) -> None:
        """Let a file, base or staged, be known as ``number``."""
        if key is None:
            self.rename_number(natural, number)
        else:
            self._numbers[natural, key] = number

    def alternate(self, natural: int, key: bytes | int | None, holder: Inode) -> int:
        """Return, for good, a fresh number for a file whose number ``holder``, another file,
        has.
        """
        if holder.staged is not None:
            place = natural_number(holder.staged), holder.staged.key
            if not holder.is_orphan:  # it is not to follow the base file to its new number
                self._numbers.setdefault(place, holder.number)
            elif self._numbers.get(place) == holder.number:  # nor is the base file, once copied up, to have the old one
                del self._numbers[place]
        return self._take_fresh(natural, key)

    def _take_fresh(self, natural: int, key: bytes | int | None) -> int:
        self._alternates += 1
        fresh = self._numbers[natural, key] = _ALTERNATE | self._alternates
        if key is None:
            self._leads_to[fresh] = natural
        return fresh

    def add(self, inode: Inode) -> Inode:
        """Take in a new inode."""
        self.by_number[inode.number] = inode
        if inode.parent is not None:
            inode.parent.pins += 1
        return inode

    def move(self, inode: Inode, parent: Inode, name: bytes) -> None:
        """Note that ``inode`` was last seen as ``name`` in ``parent``."""
        inode.is_nameless = False
        old = inode.parent
        if old is parent and inode.name == name:
            return
        inode.name = name
        if old is not parent:
            inode.parent = parent
            parent.pins += 1
            if old is not None:
                old.pins -= 1
                self.drop_if_unused(old)
        if inode.is_directory:
            self._on_directory_moved(inode)
        else:
            inode.judgement = UNJUDGED

    def other_names(self, inode: Inode) -> list[tuple[Inode, bytes]]:
        """Return the other names under which a file was seen and may still be reached without
        another look-up.
        """
        return [place for place in inode.also if self.by_number.get(place[0].number) is place[0]]

    def drop_if_unused(self, inode: Inode) -> None:
        """Forget an inode that nobody holds, and its ancestors if they were only kept for it."""
        current: Inode | None = inode
        while current is not None and not (current.lookups or current.opens or current.pins):
            if current.number == ROOT_NUMBER or self.by_number.get(current.number) is not current:
                return
            del self.by_number[current.number]
            self._on_drop(current)
            parent, current.parent = current.parent, None
            if parent is not None:
                parent.pins -= 1
            current = parent


def version_of(st: os.stat_result) -> Version:
    """Return which version of a base file has these attributes.

    A program that changes content can set the mtime back, but not the ctime. Some filesystems have
    no ctime.
    """
    return st.st_ctime_ns, st.st_mtime_ns, st.st_size


def settled_version(st: os.stat_result, now_ns: int) -> Version:
    """Return :func:`version_of`, marked as unsettled if the content can still change without
    becoming another version.

    Disks stamp all that happens within one tick of the clock with the same time; a tick of FAT
    takes two seconds, one of ext4 with small inodes a second, one of exFAT 10 ms.  ``now_ns``: by
    :func:`~yolofs.system.clock.coarse_clock_ns`, after ``st`` was read.
    """
    version = version_of(st)
    ctime_ns = st.st_ctime_ns
    granule_ns = 1 if ctime_ns % _CENTISECOND_NS else _CENTISECOND_NS if ctime_ns % _SECOND_NS else 2 * _SECOND_NS
    return version if now_ns - now_ns % granule_ns > ctime_ns else _unsettled(version)


def is_as_told(paged: Version, version: Version) -> bool:
    """Tell whether pages are of this version as far as attributes tell, be it settled or not."""
    return paged in (version, _unsettled(version))


def _unsettled(version: Version) -> Version:
    ctime_ns, mtime_ns, size = version
    return ctime_ns, mtime_ns, ~size


def natural_number(staged: Staged) -> int:
    """Return the number of a staged file: that of the base file it came from, or one for its first
    store inode.
    """
    if staged.base is not None:
        return staged.base.ino
    return _BORN_IN_VIEW | (staged.key if isinstance(staged.key, int) else staged.ino)
