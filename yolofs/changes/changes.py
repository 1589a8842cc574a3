"""The net difference between two states, one :class:`Change` for each line of it.

Net means that the way there does not matter.  What was made and removed again is nothing, a chain
of renames is one R from the first place to the last, and a file that is back in its place is
nothing.  A renamed directory is one R, however much is below it; what differs below has lines of
its own, with its path in either state.

Two states are symmetrical: the older one may be either of them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from enum import Enum

import msgspec

from yolofs.changes.matching import Match, match
from yolofs.changes.state_reader import GONE_OR_CLOSED, Again, ShownNode, StateReader
from yolofs.paths import RelPath, StoreIno, is_below_any
from yolofs.progress import Progress
from yolofs.state.tree import Tree
from yolofs.store import copying
from yolofs.store.base import Base
from yolofs.store.base_opening import open_noatime, read_link
from yolofs.store.interfaces import StoreFiles

_PROGRESS_STEP = 256


class ChangeKind(Enum):
    """What happened to a file or directory; the value is the letter that users see."""

    ADDED = "A"
    MODIFIED = "M"
    DELETED = "D"
    RENAMED = "R"
    TYPE = "T"
    """It is of another type, for example a symlink instead of a file."""
    METADATA = "X"
    """Its content is the same, something of its metadata is not."""


class Aspect(Enum):
    """A part of the metadata that differs."""

    MODE = "mode"
    OWNER = "owner"
    """User or group."""
    TIME = "time"
    """The mtime of a regular file whose content is the same."""
    XATTRS = "xattrs"
    """Extended attributes, ACLs among them; not the labels that the system gives by itself."""


class Side(msgspec.Struct, frozen=True):
    """One of the two states of a changed file: its attributes, and where to read it."""

    type: int
    """As ``stat.S_IFMT`` gives it."""
    mode: int
    """The permission bits, setuid, setgid and sticky among them."""
    uid: int
    gid: int
    mtime_ns: int
    size: int
    """In bytes; of a regular file or symlink, else 0."""
    rdev: int
    """The device number of a device, else 0."""
    meta: bytes
    """The absolute path of what has the metadata."""
    data: bytes | None
    """The absolute path of a regular file's data or of a symlink; of a directory the base directory
    that its children come from where nothing overrides them.  None if there is nothing to read."""
    ino: StoreIno | None
    """The store inode that ``data`` is; None if it is in base."""
    meta_ino: StoreIno | None = None
    """The same of ``meta``."""

    def open(self, store: StoreFiles | None = None) -> int:
        """Open a regular file's data for reading and return the descriptor, which the caller owns.

        With ``store`` a store inode can be read even where its own mode forbids it.

        Raises:
            OSError: as open(2).
        """
        assert self.data is not None
        if store is not None and self.ino is not None:
            return store.open(self.ino, os.O_RDONLY)
        if self.ino is not None:
            return os.open(self.data, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        return open_noatime(self.data, os.O_RDONLY | os.O_NONBLOCK)  # should the host have put a fifo there

    def metadata(self, *, st: os.stat_result | None = None) -> copying.Metadata:
        """Return the metadata; ``st`` is used instead of looking it up.

        Raises:
            OSError: it cannot be read.
        """
        read = copying.read_base_metadata if self.meta_ino is None else copying.read_metadata
        return read(self.meta, st=st)

    def target(self) -> bytes:
        """Return a symlink's target.

        Raises:
            OSError: as readlink(2).
        """
        assert self.data is not None
        return read_link(self.data) if self.ino is None else os.readlink(self.data)


def side_of(node: ShownNode, base: Base) -> Side:
    """Return the attributes of what a state shows, and where to read it."""
    st = node.st
    kind = stat.S_IFMT(st.st_mode)
    data, ino, size = None, None, 0
    if kind == stat.S_IFDIR:
        data = base.path(node.source) if node.source is not None else None
    elif kind in (stat.S_IFREG, stat.S_IFLNK):
        data, size = node.meta, st.st_size
        if node.staged is not None and node.source is not None:
            data, size = _data_in_base(node.source, base)
        elif node.staged is not None:
            ino = node.staged.ino
    rdev = st.st_rdev if kind in (stat.S_IFBLK, stat.S_IFCHR) else 0
    mode = stat.S_IMODE(st.st_mode)
    meta_ino = node.staged.ino if node.staged is not None else None
    return Side(kind, mode, st.st_uid, st.st_gid, st.st_mtime_ns, size, rdev, node.meta, data, ino, meta_ino)


def _data_in_base(source: RelPath, base: Base) -> tuple[bytes, int]:
    """Return where in base a file's data is and how much; no byte if the host has removed it."""
    try:
        return base.path(source), base.lstat(source).st_size
    except GONE_OR_CLOSED:
        return base.path(source), 0


class Change(msgspec.Struct, frozen=True):
    """One line of difference between two states."""

    kind: ChangeKind
    path: RelPath
    """In the new state; of D in the old one."""
    old_path: RelPath | None = None
    """In the old state, if that is another one than ``path``: of R, and of M, T or X below a
    renamed directory.
    """
    old: Side | None = None
    new: Side | None = None
    content: bool = False
    """Whether the content differs (of M always; of R perhaps)."""
    metadata: tuple[Aspect, ...] = ()
    """What of the metadata differs, where both sides are of the same type."""
    unseen_names: int = 0
    """How many more names base has for this file, which change with it, and which were not
    found.
    """
    is_subtree: bool = False
    """Of an R of a directory: all below it that has no line of its own has come along.  False where
    the comparison was told to list each of them."""

    @property
    def is_emptied(self) -> bool:
        """Whether a regular file that had content has none any more."""
        if self.old is None or self.new is None or not stat.S_ISREG(self.old.type):
            return False
        return stat.S_ISREG(self.new.type) and self.old.size > 0 and self.new.size == 0

    @property
    def renames_directory(self) -> bool:
        """Whether a directory was renamed."""
        return self.kind is ChangeKind.RENAMED and self.old is not None and stat.S_ISDIR(self.old.type)

    @property
    def paths(self) -> tuple[RelPath, ...]:
        """Its paths in both states, once where they are the same."""
        return (self.path,) if self.old_path is None else (self.old_path, self.path)


def compare(
    old: Tree,
    new: Tree,
    base: Base,
    store: StoreFiles,
    *,
    paths: Sequence[RelPath] = (),
    progress: Progress | None = None,
    expand_renames: bool = False,
    again: Again | None = None,
) -> list[Change]:
    """Return the net changes that lead from ``old`` to ``new``, sorted by path.

    With ``paths`` only those with their path (or old path) at or below one of these.  With
    ``expand_renames`` a renamed directory is followed by an R for each thing below it, as a patch
    needs it.

    Blocks while it reads files of which both states have their own copy of the same size.  A file
    that cannot be read counts as different.  Files that the host removes meanwhile count as gone.
    If ``new`` is the present and a program may go on in it, ``again`` looks anew at a path whose
    file the program has removed.

    Raises:
        YolofsError: a tree names a store inode that is not there.
    """
    old_reader, new_reader = StateReader(old, base, store), StateReader(new, base, store, again)
    matches = match(old_reader, new_reader, expand_renames=expand_renames)
    if paths:
        wanted = frozenset(paths)
        matches = [found for found in matches if _is_wanted(found, wanted)]
    judge = _Judge(old_reader, new_reader, expand_renames)
    changes = []
    for done, found in enumerate(matches):
        if progress is not None and done % _PROGRESS_STEP == 0:
            progress(done, len(matches))
        change = judge.change(found)
        if change is not None:
            changes.append(change)
    if progress is not None:
        progress(len(matches), len(matches))
    changes.sort(key=_order)
    return changes


def _order(change: Change) -> tuple[bytes, bool]:
    """Sort by path; where something was deleted and another thing is in its place, the deletion
    goes first.
    """
    return change.path, change.kind is not ChangeKind.DELETED


def _is_wanted(found: Match, tops: frozenset[RelPath]) -> bool:
    return any(node is not None and is_below_any(node.path, tops) for node in (found.old, found.new))


def compare_two(
    old: ShownNode | None, new: ShownNode | None, old_state: StateReader, new_state: StateReader
) -> Change | None:
    """Return what differs between two things, each of its own state, wherever they are; None if
    nothing does.  Either may be nothing.
    """
    return _Judge(old_state, new_state, expand_renames=True).change(Match(old, new))


class _Judge:
    """Says what, if anything, differs between two nodes that belong together."""

    def __init__(self, old: StateReader, new: StateReader, expand_renames: bool) -> None:
        self._old = old
        self._new = new
        self._base = new.base
        self._store = new.store
        self._expand = expand_renames

    def change(self, found: Match) -> Change | None:
        """Return the line for a match, None if nothing differs."""
        old, new = found.old, found.new
        if old is None:
            return Change(ChangeKind.ADDED, new.path, new=side_of(new, self._base)) if new is not None else None
        if new is None:
            return Change(ChangeKind.DELETED, old.path, old=side_of(old, self._base))
        return self._change_of_both(old, new, found.is_move)

    def _change_of_both(self, old: ShownNode, new: ShownNode, is_move: bool) -> Change | None:
        if not is_move and old.meta == new.meta and old.source == new.source and old.kind == new.kind:
            return None
        left, right = side_of(old, self._base), side_of(new, self._base)
        is_same_type = left.type == right.type
        content = not is_same_type or self._has_other_content(left, right)
        metadata = _differing_metadata(old, new, content) if is_same_type else ()
        kind = _kind(left, right, is_move, content, metadata)
        if kind is None or (
            kind is ChangeKind.METADATA and metadata == (Aspect.TIME,) and self._new.leaves_time_of(new)
        ):
            return None
        return Change(
            kind,
            new.path,
            old.path if old.path != new.path else None,
            left,
            right,
            content,
            metadata,
            unseen_names=self._unseen_names(old, new),
            is_subtree=is_move and new.is_directory and not self._expand,
        )

    def _unseen_names(self, old: ShownNode, new: ShownNode) -> int:
        if new.staged is not None and new.staged.links:
            return self._new.unseen(new.staged)
        return self._old.unseen(old.staged) if old.staged is not None and old.staged.links else 0

    def _has_other_content(self, left: Side, right: Side) -> bool:
        if left.data == right.data or left.type == stat.S_IFDIR:
            return left.rdev != right.rdev
        if left.size != right.size:
            return True
        try:
            if left.type == stat.S_IFLNK:
                return left.target() != right.target()
            return not is_same_data(left, right, self._store)
        except OSError:
            return True  # cannot be read, so it cannot be shown to be the same


def _kind(left: Side, right: Side, is_move: bool, content: bool, metadata: tuple[Aspect, ...]) -> ChangeKind | None:
    if left.type != right.type:
        return ChangeKind.TYPE
    if is_move:
        return ChangeKind.RENAMED
    if content:
        return ChangeKind.MODIFIED
    return ChangeKind.METADATA if metadata else None


def _differing_metadata(old: ShownNode, new: ShownNode, content: bool) -> tuple[Aspect, ...]:
    if old.meta == new.meta:
        return ()
    left, right = old.st, new.st
    aspects = []
    if left.st_mode != right.st_mode and old.kind != stat.S_IFLNK:
        aspects.append(Aspect.MODE)
    if (left.st_uid, left.st_gid) != (right.st_uid, right.st_gid):
        aspects.append(Aspect.OWNER)
    if left.st_mtime_ns != right.st_mtime_ns and old.kind == stat.S_IFREG and not content:
        aspects.append(Aspect.TIME)
    if _has_other_xattrs(old, new):
        aspects.append(Aspect.XATTRS)
    return tuple(aspects)


def _has_other_xattrs(old: ShownNode, new: ShownNode) -> bool:
    left, right = _read_xattrs(old), _read_xattrs(new)
    if left == right or left is None or right is None:
        return False
    unread = {name.removeprefix("xattr ") for name in (*left.unread, *right.unread)}
    came, went = set(right.xattrs) - set(left.xattrs), set(left.xattrs) - set(right.xattrs)
    if any(name not in unread and not copying.is_label(name) for name, _ in came):
        return True
    # What was lost by copy-up is no change, and only root's carries all of it along.
    return any(name not in unread and _is_carried(name) for name, _ in went)


def _read_xattrs(node: ShownNode) -> copying.Metadata | None:
    try:
        metadata = copying.read_metadata(node.meta, st=_ANY_STAT)
    except OSError:
        return None
    return metadata


def _is_carried(name: str) -> bool:
    """Tell whether copy-up carries an xattr along; labels of the system it does not."""
    may_all = os.geteuid() == 0 and not copying.is_label(name)
    return may_all or name.startswith(("user.", "system.posix_acl_"))


_ANY_STAT = os.stat_result((0,) * 10)  # so that read_metadata does not look up what is not asked for here


def is_same_data(left: Side, right: Side, store: StoreFiles) -> bool:
    """Tell whether two regular files of the same size hold the same bytes.

    Raises:
        OSError: one of them cannot be read.
    """
    if not left.size:
        return True
    from yolofs.changes.contents import is_same_content  # imported late: hardly a change has to be read

    left_fd = left.open(store)
    try:
        right_fd = right.open(store)
        try:
            return is_same_content(left_fd, right_fd)
        finally:
            os.close(right_fd)
    finally:
        os.close(left_fd)
