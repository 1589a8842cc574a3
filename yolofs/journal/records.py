"""The records of the journal: what can be said about a change, as frozen values.

The union :data:`Record` is closed: match on it with ``assert_never`` so that the type checker lists
the arm that a new record lacks.  The text form is in :mod:`yolofs.journal.codec`, their effect
in :mod:`yolofs.state.tree`.
"""

from __future__ import annotations

import os
from typing import TypeAlias

import msgspec

from yolofs.paths import Generation, RelPath, StoreIno


class Fingerprint(msgspec.Struct, frozen=True):
    """What a base file looked like when it was copied up, or when the view put something else in
    its place; a later difference is a conflict at commit.
    """

    mtime_ns: int
    size: int
    """In bytes."""
    ino: int
    owner: tuple[int, int, int] | None = None
    """Mode (as ``st_mode``), user and group; None if they are not known, as in journals of earlier
    versions.
    """
    ctime_ns: int = 0
    """0 if it is not known, as in journals of earlier versions; :data:`NOTED_CTIME_NS` if a commit
    gives it another.
    """
    nlink: int = 0
    """How many names the file had; some filesystems tell 0.  0, too, if the ctime is not known."""

    def fits(self, other: Fingerprint) -> bool:
        """Tell whether the other is of the same file with the same content, as far as its mtime
        tells.
        """
        return (self.mtime_ns, self.size, self.ino) == (other.mtime_ns, other.size, other.ino)

    def is_touched(self, now: Fingerprint) -> bool:
        """Tell whether somebody has changed a file that still fits: written to it in place and set
        its time back, or set extended attributes.

        The ctime tells, which no program can set.  Another mode, owner or number of names explains
        that it differs.
        """
        if not self.ctime_ns or not now.ctime_ns:
            return False
        return now.ctime_ns != self.ctime_ns and (now.owner, now.nlink) == (self.owner, self.nlink)


NOTED_CTIME_NS = 1
"""Stands for a ctime that a commit gives and notes (:mod:`yolofs.store.restored`): no file has it,
so any ctime that is not noted is the host's.
"""
NOTHING = Fingerprint(0, 0, 0)
"""Stands for a name at which base had nothing; no file has the number 0."""


def owner_of(st: os.stat_result) -> tuple[int, int, int]:
    """Return what :attr:`Fingerprint.owner` is of a file with these attributes."""
    return st.st_mode, st.st_uid, st.st_gid


class Stage(msgspec.Struct, frozen=True):
    """S: ``path`` is shown by store inode ``ino``.

    Where the view already shows a file at ``path``, it is a new version of the same file (a
    copy-up); otherwise the file is new.  ``base`` is given when it was copied up from base.
    ``origin`` (``from=``) says that the store inode holds metadata only: the data (or, for a
    directory, the children) still come from that base path.

    ``links`` is given with ``base`` where the base file had more than one name: it is how many, and
    all of them show the store inode from now on.  If the view knows no name (the file is open, and
    its name is gone), ``is_nameless`` says that ``path`` is not the view's but one of base's paths
    of the file.
    """

    time_ns: int
    path: RelPath
    ino: StoreIno
    base: Fingerprint | None = None
    origin: RelPath | None = None
    links: int = 0
    is_nameless: bool = False
    extra: tuple[tuple[str, bytes], ...] = ()
    """Unknown ``key=value`` fields, kept as they are (percent-encoding undone)."""


class Delete(msgspec.Struct, frozen=True):
    """D: ``path`` is gone.

    ``absent`` (``base=none``) says that base had nothing at this name, so that no tombstone is
    needed; otherwise ``base`` tells what base had, unless a record has told it before. ``unlinks``
    is the inode number of the base file that lost one of its several names by this.
    """

    time_ns: int
    path: RelPath
    absent: bool = False
    base: Fingerprint | None = None
    unlinks: int | None = None
    extra: tuple[tuple[str, bytes], ...] = ()


class Rename(msgspec.Struct, frozen=True):
    """R: what was at ``src`` is at ``dst``; with ``exchange`` the two have swapped places.

    ``absent`` (``base=none``) says that base had nothing at ``src``, so that no tombstone is needed
    there.  ``unlinks`` is the inode number of the base file that was at ``dst``, if that was one of
    several names of it.  ``replaces`` (``over=base``) says that the view showed base's own thing at
    ``dst``, and no record had named it so far.

    ``src_was`` and ``dst_was`` tell what base had at the two names (:data:`NOTHING`, too, at
    ``dst``), each unless a record has told it before; journals of earlier versions have neither.
    """

    time_ns: int
    src: RelPath
    dst: RelPath
    exchange: bool = False
    absent: bool = False
    unlinks: int | None = None
    replaces: bool = False
    src_was: Fingerprint | None = None
    dst_was: Fingerprint | None = None
    extra: tuple[tuple[str, bytes], ...] = ()


class Keep(msgspec.Struct, frozen=True):
    """K: ``path`` has this entry, whatever led to it: what a commit of some changes left staged.

    Such records stand at the beginning of a journal, parents before children.  With ``ino`` the
    entry is staged, with ``source`` it shows that base path, with neither it is a tombstone.  One
    that shows the base path ``path`` may also stand later: the change of a file there was dropped.

    With ``had`` it is about no entry: base had ``was`` at that base path when the view put
    something else there, or took it away.  ``path`` and ``source`` are the root then.
    """

    time_ns: int
    """When the change was made."""
    path: RelPath
    ino: StoreIno | None = None
    source: RelPath | None = None
    origin: RelPath | None = None
    """As of :class:`Stage`."""
    home: RelPath | None = None
    """The base path that it was copied up from; with ``base``."""
    base: Fingerprint | None = None
    key: int = 0
    """The number of its first store inode, if that is another; or what stands for a base file with
    several names.
    """
    links: int = 0
    """How many names its base file has, if all of them show it."""
    unlinked: tuple[int, int] | None = None
    """The inode number of a base file with several names, and how many of them the whole state has
    taken from it.
    """
    touched_ns: int = 0
    """When a name in this directory last came or went in the view; 0 if its own mtime is right."""
    since_ns: int = 0
    """As :attr:`yolofs.state.tree.Entry.since_ns`; 0 if it is ``time_ns``."""
    is_nameless: bool = False
    """As of :class:`Stage`: ``path`` is no path of the view."""
    replaces: bool = False
    """Whether base had something at this name when the view put something else there; of a
    tombstone it is known.
    """
    had: RelPath | None = None
    """A base path; ``was`` goes with it."""
    was: Fingerprint | None = None
    """What base had at ``had``, :data:`NOTHING` if it had nothing; None if that is not known."""
    extra: tuple[tuple[str, bytes], ...] = ()


class Snapshot(msgspec.Struct, frozen=True):
    """P: a marker; the state so far is a generation.  ``name`` may be empty."""

    time_ns: int
    name: bytes = b""
    extra: tuple[tuple[str, bytes], ...] = ()


class Travel(msgspec.Struct, frozen=True):
    """T: a marker; the state from here on is that of ``generation``.  ``name`` is what the user
    typed.
    """

    time_ns: int
    generation: Generation
    name: bytes = b""
    extra: tuple[tuple[str, bytes], ...] = ()

    @property
    def is_anew(self) -> bool:
        """Whether nobody went anywhere: the state before it is written anew, with less or with
        other contents.
        """
        return _ANEW in self.extra


def marker_of_whole_state(time_ns: int) -> Travel:
    """Return the marker before records that give the whole state anew."""
    return Travel(time_ns, Generation(0), extra=(_ANEW,))


_ANEW = "anew", b"1"


ChangeRecord: TypeAlias = Stage | Delete | Rename | Keep
"""A record that changes the override tree."""
Marker: TypeAlias = Snapshot | Travel
"""A record that starts a generation."""
Record: TypeAlias = ChangeRecord | Marker
