"""Making, removing and renaming names.  All three change the same records and inodes, so they stand
together.
"""

from __future__ import annotations

import errno
import os
import stat

from yolofs.journal.records import NOTHING, Delete, Fingerprint, Rename, Stage
from yolofs.overlay import absent_xattrs
from yolofs.overlay.attributes import Attributes, count_subdir
from yolofs.overlay.copy_up import CopyUp
from yolofs.overlay.descriptors import Descriptors
from yolofs.overlay.finding import Finding, Found
from yolofs.overlay.inodes import NO_PAGES, Attr, Inode
from yolofs.overlay.layers import Layers, os_error
from yolofs.overlay.name_checks import NameChecks
from yolofs.overlay.ownership import Owner, Ownership
from yolofs.overlay.recent_looks import RecentLooks
from yolofs.overlay.recording import Recording, tell_of_entries
from yolofs.overlay.removal import Removal
from yolofs.paths import RelPath, StoreIno, join
from yolofs.state.drift import is_as_it_was
from yolofs.state.kept_bases import known_by
from yolofs.state.tree import Entry, Staged

RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2


class Naming:
    """Everything that changes which names a directory shows."""

    def __init__(
        self,
        layers: Layers,
        recording: Recording,
        descriptors: Descriptors,
        removal: Removal,
        looks: RecentLooks,
        attributes: Attributes,
        copy_up: CopyUp,
        finding: Finding,
        ownership: Ownership,
        checks: NameChecks,
    ) -> None:
        self._layers = layers
        self._base = layers.base
        self._store = layers.store
        self._inodes = layers.inodes
        self._stamp_clock = layers.stamp_clock
        self._kept_bases = layers.kept_bases
        self._recording = recording
        self._descriptors = descriptors
        self._removal = removal
        self._looks = looks
        self._attributes = attributes
        self._copy_up = copy_up
        self._finding = finding
        self._ownership = ownership
        self._checks = checks

    def create(
        self, parent: Inode, name: bytes, mode: int, owner: Owner, *, is_writer: bool = True
    ) -> tuple[Inode, Attr]:
        """Create and open a regular file, for writing or not.  The caller owes a forget and a
        release.

        Raises:
            FileExistsError: the view shows something at this name.
        """
        self._checks.check_new(parent, name)
        ino, fd, st = self._store.create_file(stat.S_IMODE(mode))
        try:
            inode, attr = self._new(parent, name, ino, owner, mode, st)
        except BaseException:
            os.close(fd)
            raise
        self._descriptors.keep(inode, fd, writes=True)
        inode.opens += 1
        if is_writer:
            inode.writers += 1
        return inode, attr

    def mknod(self, parent: Inode, name: bytes, mode: int, rdev: int, owner: Owner) -> tuple[Inode, Attr]:
        """Create a regular file, fifo, socket or device; ``mode`` tells which.  The caller owes a
        forget.
        """
        self._checks.check_new(parent, name)
        if stat.S_ISREG(mode):
            ino, fd, _ = self._store.create_file(stat.S_IMODE(mode))
            os.close(fd)
        else:
            ino = self._store.create_special(mode, rdev)
        return self._new(parent, name, ino, owner, mode)

    def mkdir(self, parent: Inode, name: bytes, mode: int, owner: Owner) -> tuple[Inode, Attr]:
        """Create a directory.  The caller owes a forget."""
        self._checks.check_new(parent, name)
        ino, st = self._store.create_dir(stat.S_IMODE(mode))
        inode, attr = self._new(parent, name, ino, owner, mode | stat.S_IFDIR, st)
        count_subdir(parent, 1)
        return inode, attr

    def symlink(self, parent: Inode, name: bytes, target: bytes, owner: Owner) -> tuple[Inode, Attr]:
        """Create a symbolic link.  The caller owes a forget."""
        self._checks.check_new(parent, name)
        return self._new(parent, name, self._store.create_symlink(target), owner, stat.S_IFLNK | 0o777)

    def link(self, inode: Inode, parent: Inode, name: bytes) -> tuple[Inode, Attr]:
        """Give a file one more name.  The caller owes a forget."""
        self._checks.check_new(parent, name)
        if inode.is_directory:
            raise os_error(errno.EPERM)
        if inode.is_orphan:
            raise os_error(errno.ENOENT)
        if inode.staged is None:
            self._copy_up.copy_up_metadata(inode)
        staged = inode.staged
        assert staged is not None
        entry = self.record_new(parent, name, staged.ino, origin=staged.origin)
        assert entry is not None
        parent.changes += 1
        inode.changes += 1
        tell_of_entries(parent, entry.parent)
        self.touch_ctime(staged)
        inode.lookups += 1
        self._finding.note_name_seen(inode, parent, name)
        inode.entry = entry
        return inode, self._attributes.getattr(inode)

    def unlink(self, parent: Inode, name: bytes) -> Inode | None:
        """Remove a name that is no directory; return the file if it is known and has others."""
        found = self._finding.find(parent, name)
        if found is None:
            raise os_error(errno.ENOENT)
        if found.is_directory:
            raise os_error(errno.EISDIR)
        return self._remove(parent, name, found)

    def rmdir(self, parent: Inode, name: bytes) -> None:
        """Remove an empty directory."""
        found = self._finding.find(parent, name)
        if found is None:
            raise os_error(errno.ENOENT)
        if not found.is_directory:
            raise os_error(errno.ENOTDIR)
        self._checks.check_replaceable(parent, name, found)
        self._remove(parent, name, found)
        count_subdir(parent, -1)

    def rename(self, parent: Inode, name: bytes, new_parent: Inode, new_name: bytes, flags: int = 0) -> Inode | None:
        """Rename, as renameat2(2) does; ``flags`` are RENAME_NOREPLACE and RENAME_EXCHANGE.

        Returns the file that was at the new name if it is known and has other names.

        One record, whatever lies below a directory that is renamed.
        """
        if flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE):
            raise os_error(errno.EINVAL)
        source = self._finding.find(parent, name)
        target = self._finding.find(new_parent, new_name, lately=True)
        if source is None or (target is None and flags & RENAME_EXCHANGE):
            raise os_error(errno.ENOENT)
        if target is not None and flags & RENAME_NOREPLACE:
            raise os_error(errno.EEXIST)
        if parent is new_parent and name == new_name:
            return None
        if target is not None and _is_same_file(source, target):
            return None
        old_path, new_path = join(self._layers.path(parent), name), join(self._layers.path(new_parent), new_name)
        exchange = bool(flags & RENAME_EXCHANGE)
        if new_path.startswith(old_path + b"/"):
            raise os_error(errno.EINVAL)
        if old_path.startswith(new_path + b"/"):
            raise os_error(errno.EINVAL if exchange else errno.ENOTEMPTY)
        if target is None:
            self._checks.check_place(new_parent, new_name)
        self._checks.check_rename(source, target, new_parent, new_name, exchange=exchange)
        is_at_home = source.base is not None and parent.source is not None and source.base == join(parent.source, name)
        absent = not exchange and not is_at_home and not self._finding.base_has(parent, name)
        unlinks = self._unlinks(target) if target is not None and not exchange else None
        record = Rename(
            self._stamp_clock.now_ns(),
            old_path,
            new_path,
            exchange=exchange,
            absent=absent,
            unlinks=unlinks,
            replaces=target is not None and target.entry is None and not exchange,
            src_was=self._base.fingerprint(source.st) if is_at_home else self._shown_of_base(parent, name, source),
            dst_was=self._shown_of_base(new_parent, new_name, target),
        )
        moved, other = self._finding.known(source), self._finding.known(target) if target is not None else None
        has_unseen = _has_more_than_tombstones(_entry_at(new_parent, new_name)) and not exchange
        if target is not None and not exchange and source.staged is not None and stat.S_ISREG(source.st.st_mode):
            self._keep_replaced(new_parent, new_name, source.staged, target)
        entry = self._recording.record(record)
        parent.changes += 1
        new_parent.changes += 1
        for inode in (moved, other):
            if inode is not None:
                inode.changes += 1
        for renamed in (source, target) if exchange else (source,):
            if renamed is not None and renamed.staged is not None:
                self.touch_ctime(renamed.staged, renamed.st)
        tell_of_entries(parent, self._layers.tree.find(self._layers.path(parent)))
        tell_of_entries(new_parent, self._layers.tree.find(self._layers.path(new_parent)))
        self._after_rename(parent, name, new_parent, new_name, source, target, moved, other, entry, exchange=exchange)
        if has_unseen:
            self._orphan_dropped()
        return other if other is not None and not exchange and not other.is_orphan else None

    # ---- new files

    def _new(
        self, parent: Inode, name: bytes, ino: StoreIno, owner: Owner, mode: int, st: os.stat_result | None = None
    ) -> tuple[Inode, Attr]:
        """Give a store inode that was just made, with the attributes ``st``, its owner and its
        name.
        """
        try:
            st = self._ownership.set_owner(parent, ino, owner, mode, st)
            entry = self.record_new(parent, name, ino)
        except BaseException:
            self._store.remove(ino)
            raise
        assert entry is not None
        parent.changes += 1
        tell_of_entries(parent, entry.parent)
        inode = self._finding.inode_of(parent, name, Found(entry, entry.staged, None, st))
        inode.lookups += 1
        if not owner.lists and entry.staged is not None:
            absent_xattrs.note(inode, absent_xattrs.ALL, entry.staged)  # the store passes none on
        return inode, self._attributes.attr_of(inode, st, is_new=True)

    def record_new(self, parent: Inode, name: bytes, ino: StoreIno, origin: RelPath | None = None) -> Entry | None:
        """Record that a name that showed nothing shows a store inode.

        An entry may be there all the same, which the host has pulled base away from under; it goes,
        with all below.
        """
        path = join(self._layers.path(parent), name)
        stage = Stage(self._stamp_clock.now_ns(), path, ino, origin=origin)
        left = _entry_at(parent, name)
        if left is None or left.is_tombstone:
            if left is not None and parent.source is not None and origin is None:
                self._keep_removed(join(parent.source, name), ino)
            return self._recording.record(stage)
        entry = self._recording.record(
            Delete(stage.time_ns, path, absent=not self._finding.base_has(parent, name)), stage
        )
        self._orphan_dropped()
        return entry

    def _keep_removed(self, rel: RelPath, ino: StoreIno) -> None:
        """Keep what base has at a name that the view had removed and gives to a new file, if base
        has not changed it since.
        """
        st, was = self._base.look(rel), self._layers.tree.was.get(rel)
        if st is not None and was is not None and is_as_it_was(st, was, self._base):
            self._copy_up.keep_base(rel, b"#%d" % ino, st, -1)

    # ---- names that go

    def _keep_replaced(self, parent: Inode, name: bytes, by: Staged, found: Found) -> None:
        """Keep what base has at a name, or what is kept of it, as a staged file takes its place."""
        if parent.source is None:
            return
        rel = join(parent.source, name)
        if found.staged is not None and found.staged.origin == rel:  # only metadata is staged: nothing is kept so far
            st = self._base.look(rel)
            if st is not None:
                self._copy_up.keep_base(rel, known_by(by), st, -1)
        elif found.staged is not None:
            self._kept_bases.also_known(rel, known_by(by), known_by(found.staged))
        elif found.base == rel:
            self._copy_up.keep_base(rel, known_by(by), found.st, -1)

    def _remove(self, parent: Inode, name: bytes, found: Found) -> Inode | None:
        """Record that a name is gone; orphan its inode if that was its last, else return it."""
        base = self._shown_of_base(parent, name, found)
        absent = base is None and not self._finding.base_has(parent, name)
        path = join(self._layers.path(parent), name)
        inode = self._finding.known(found)
        has_unseen = found.is_directory and _has_more_than_tombstones(found.entry)
        self._recording.record(
            Delete(self._stamp_clock.now_ns(), path, absent=absent, base=base, unlinks=self._unlinks(found))
        )
        parent.changes += 1
        if inode is not None:
            inode.changes += 1
        tell_of_entries(parent, self._layers.tree.find(self._layers.path(parent)))
        self._lost_name(parent, name, found, inode)
        if has_unseen:
            self._orphan_dropped()
        return inode if inode is not None and not inode.is_orphan else None

    def _shown_of_base(self, parent: Inode, name: bytes, found: Found | None) -> Fingerprint | None:
        """Return the fingerprint of base's thing at a name that still shows it: of ``found``, or of
        nothing.

        None if the name shows something else, so that records have told it.
        """
        source = parent.source
        if source is None:
            return None
        if found is None:
            return NOTHING if _entry_at(parent, name) is None else None
        entry = found.entry
        if entry is not None and entry.base != join(source, name):
            return None
        return found.staged.base if found.staged is not None else self._base.fingerprint(found.st)

    def _unlinks(self, found: Found) -> int | None:
        """Return the number of the base file that loses one of its several names if this name goes,
        if one does.
        """
        if found.is_directory or (found.entry is not None and found.entry.staged is not None):
            return None
        if found.staged is not None:
            return found.staged.base.ino if found.staged.base is not None else None
        return self._base.number(found.st) if found.st.st_nlink > 1 else None

    def _lost_name(self, parent: Inode, name: bytes, found: Found, inode: Inode | None) -> None:
        """A name of a file is gone: orphan the file's inode unless it has others, free what nobody
        can see.

        ``inode`` is what was known of it before.
        """
        staged = found.staged
        has_others = self._has_others(found)
        if staged is not None and has_others:
            self.touch_ctime(staged, found.st)
        if inode is not None and has_others:
            if inode.parent is parent and inode.name == name:
                self._place_elsewhere(inode)
        elif inode is not None:
            inode.is_orphan = True
            inode.entry = None
            self._inodes.drop_if_unused(inode)
        elif staged is not None:
            self._removal.free(staged)

    def _has_others(self, found: Found) -> bool:
        """Tell whether a file that just lost a name has others."""
        if found.staged is not None:
            return self._layers.tree.nlink(found.staged) > 0
        if found.is_directory or found.st.st_nlink < 2:
            return False
        return found.st.st_nlink > self._layers.tree.unlinked.get(self._base.number(found.st), 0)

    def _place_elsewhere(self, inode: Inode) -> None:
        """Know an inode by another of its names, or by none if none has been seen."""
        for entry in inode.staged.names if inode.staged is not None else ():
            assert entry.parent is not None
            self._inodes.move(inode, self._finding.inode_at(entry.parent.path()), entry.name)
            inode.entry = entry
            return
        for parent, name in self._inodes.other_names(inode):
            if not parent.is_orphan:
                found = self._finding.find(parent, name)
                if found is not None and self._finding.known(found) is inode:
                    self._inodes.move(inode, parent, name)
                    inode.entry, inode.base = found.entry, found.base
                    return
        inode.entry = None
        inode.is_nameless = True
        self._inodes.drop_if_unused(inode)

    def _orphan_dropped(self) -> None:
        """Orphan what was known below an entry that went, though nothing was seen there: the host
        had removed it.
        """
        for inode in self._inodes.by_number.values():
            if inode.entry is not None and inode.entry.is_dropped:
                inode.is_orphan = True
                inode.entry = None
                inode.changes += 1
                if inode.is_directory and inode.opens:  # the kernel may have a listing
                    self._layers.outdated[inode.number] = NO_PAGES

    def touch_ctime(self, staged: Staged, st: os.stat_result | None = None) -> None:
        """Note on a file that one of its names came, went or changed, as the system does.

        ``st`` are the attributes of its store inode, if known.
        """
        self._looks.looked_at = None
        path = self._store.path(staged.ino)
        if st is None:
            st = os.lstat(path)
        os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns), follow_symlinks=False)

    def _after_rename(
        self,
        parent: Inode,
        name: bytes,
        new_parent: Inode,
        new_name: bytes,
        source: Found,
        target: Found | None,
        moved: Inode | None,
        other: Inode | None,
        entry: Entry | None,
        *,
        exchange: bool,
    ) -> None:
        """Bring the inodes in line with a rename that has been recorded.

        ``moved`` and ``other`` are what was known of the source and the target before.
        """
        if target is not None and not exchange:
            self._lost_name(new_parent, new_name, target, other)
        swapped = other if exchange else None
        if moved is not None:
            self._renamed(moved, source, (parent, name), (new_parent, new_name))
            moved.entry = entry
        if swapped is not None:
            assert target is not None
            self._renamed(swapped, target, (new_parent, new_name), (parent, name))
            swapped.entry = self._layers.tree.find(join(self._layers.path(parent), name))
        if source.is_directory:
            count_subdir(parent, -1)
            count_subdir(new_parent, 1)
        if target is not None and target.is_directory:
            count_subdir(new_parent, -1)
            if exchange:
                count_subdir(parent, 1)

    def _renamed(self, inode: Inode, found: Found, old: tuple[Inode, bytes], new: tuple[Inode, bytes]) -> None:
        """Note that one of an inode's names, not necessarily the one that it was last seen by, is
        another now.

        ``found`` is what was at the old one, with the base path that moved along.  Danger: with the
        path of another name, a file with hard links would be copied up as if that name had moved,
        and a commit would take that name out of base.
        """
        if inode.staged is None:
            inode.base = found.base
        if (inode.parent, inode.name) == old:
            self._inodes.move(inode, *new)
        else:
            self._finding.note_name_seen(inode, *new)


def _entry_at(parent: Inode, name: bytes) -> Entry | None:
    return parent.entry.children.get(name) if parent.entry is not None and parent.entry.children else None


def _has_more_than_tombstones(directory: Entry | None) -> bool:
    """Tell whether an entry leads to others that could show something."""
    if directory is None or not directory.children:
        return False
    return any(not entry.is_tombstone for entry in directory.children.values())


def _is_same_file(one: Found, other: Found) -> bool:
    """Tell whether two names are hard links of the same file."""
    if one.staged is not None or other.staged is not None:
        return one.staged is other.staged
    return one.st.st_ino == other.st.st_ino and one.st.st_dev == other.st.st_dev
