"""Copy-up: making a store inode for what so far came from base, or from before the last marker.

A change of metadata copies metadata only (``from=``); the data follows when it is written.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from yolofs.journal.records import Stage
from yolofs.overlay import absent_xattrs
from yolofs.overlay.descriptors import Descriptors
from yolofs.overlay.inodes import MIXED, NO_PAGES, Inode, Version, version_of
from yolofs.overlay.layers import Layers, os_error
from yolofs.overlay.recent_looks import RecentLooks
from yolofs.overlay.recording import Recording, tell_of_entries
from yolofs.overlay.removal import Removal
from yolofs.paths import RelPath, StoreIno
from yolofs.state.hard_links import staged_for
from yolofs.state.kept_bases import MOST_KEPT_BYTES, Extra, known_by, known_by_fingerprint, xattrs_option
from yolofs.state.tree import Staged
from yolofs.store import copying, file_data


class CopyUp:
    """Makes store inodes that may be written."""

    def __init__(
        self,
        layers: Layers,
        recording: Recording,
        descriptors: Descriptors,
        removal: Removal,
        looks: RecentLooks,
    ) -> None:
        self._layers = layers
        self._base = layers.base
        self._store = layers.store
        self._stamp_clock = layers.stamp_clock
        self._kept_bases = layers.kept_bases
        self._recording = recording
        self._descriptors = descriptors
        self._removal = removal
        self._looks = looks

    def own_metadata(self, inode: Inode) -> bytes:
        """Make sure that an inode's metadata is its own in the present; return the path of its
        store inode.
        """
        self._looks.looked_at = None
        staged = inode.staged
        if staged is None or staged.ino < self._layers.fresh_from:
            self.copy_up_metadata(inode)
        elif inode.entry is not None and inode.entry.touched_ns:
            self._settle_times(inode, staged)
        else:
            self._recording.sign(staged)
        assert inode.staged is not None
        return self._store.path(inode.staged.ino)

    def own_data(self, inode: Inode, *, keep: int | None = None) -> None:
        """Make sure that a file's data is its own in the present: its first ``keep`` bytes, or all
        of it.
        """
        staged = inode.staged
        if staged is None or staged.ino < self._layers.fresh_from:
            self._copy_up_data(inode, keep)
        elif staged.origin is not None:
            self._fill(inode, staged, keep)
        else:
            self._recording.sign(staged)

    def copy_up_metadata(self, inode: Inode) -> None:
        """Make a store inode for an inode's metadata; a file's data, or a directory's names, stay
        where they are.

        What has no data that could stay in base is copied whole.
        """
        if inode.staged is None and inode.kind == stat.S_IFREG:
            self._copy_up_metadata_of_base(inode)
            return
        base_st = None
        if inode.staged is None:
            base_st = self.base_stat(inode)
            if base_st is None:
                self._copy_up_lost(inode, None)
                return
        origin = inode.source if inode.kind in (stat.S_IFREG, stat.S_IFDIR) else None
        ino = self._store.copy_up(self._checked_physical(inode), data=origin is None)
        with self._removal.removed_on_error(ino):
            if inode.is_directory and inode.entry is not None and inode.entry.touched_ns:
                path = self._store.path(ino)
                os.utime(path, ns=(os.lstat(path).st_atime_ns, inode.entry.touched_ns))
            self.show(inode, ino, origin, base_st)

    def _copy_up_metadata_of_base(self, inode: Inode) -> None:
        """Do that of a regular file in base: one descriptor tells both which file is there, and all
        about it.
        """
        metadata = self._metadata_in_base(inode)
        if metadata is None:
            self._copy_up_lost(inode, None)
            return
        ino, fd = self._store.copy_file(copying.CopySource(metadata))
        os.close(fd)
        with self._removal.removed_on_error(ino):
            self.show(inode, ino, inode.base, metadata.st, xattrs_option(metadata.xattrs))
        self._note_absent(inode, metadata)

    def _metadata_in_base(self, inode: Inode) -> copying.Metadata | None:
        """Return the metadata of the base file behind an unstaged inode, None if the host has put
        another there, or none.
        """
        if inode.fd >= 0:
            st = self.base_stat(inode)
            return copying.read_metadata(inode.fd, st=st) if st is not None else None
        assert inode.base is not None
        if inode.base in self._base.pseudo:
            raise os_error(errno.EROFS)
        try:
            fd = self._layers.held.hold(inode.base)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            st = os.fstat(fd)
            if stat.S_IFMT(st.st_mode) != inode.kind or not self._layers.is_file_of(inode, st):
                return None
            return copying.read_metadata(copying.PathDescriptor(fd), st=st)
        finally:
            os.close(fd)

    @staticmethod
    def _note_absent(inode: Inode, metadata: copying.Metadata) -> None:
        """Note which extended attributes a copy does not have, as its original has none: the store
        passes none on.
        """
        if not metadata.unread and inode.staged is not None:
            absent_xattrs.note(inode, absent_xattrs.missing(name for name, _ in metadata.xattrs), inode.staged)

    def base_metadata(self, inode: Inode, st: os.stat_result | None) -> copying.Metadata:
        """Return the metadata of the base file behind an unstaged inode, with the attributes ``st``
        if given.
        """
        if inode.fd >= 0:
            return copying.read_metadata(inode.fd, st=st)
        with self._descriptors.hold(inode) as fd:
            return copying.read_metadata(copying.PathDescriptor(fd), st=st)

    def _copy_up_data(self, inode: Inode, keep: int | None) -> None:
        """Make a store inode with a file's metadata and the first ``keep`` bytes of its data (None:
        all).
        """
        base_st = None
        if inode.staged is None:
            base_st = self.base_stat(inode)
            if base_st is None:
                self._copy_up_lost(inode, keep)
                return
        if inode.staged is not None and inode.staged.origin is not None:
            ino = self._store.copy_up(self._checked_physical(inode), data=False)
            with self._removal.removed_on_error(ino):
                self._copy_data(inode, ino, keep)
                self._keep_origin(inode.staged)
                self.show(inode, ino, None, None)
            return
        if base_st is None:
            ino, fd, metadata = self._copy_of_file(inode, None, keep)
            self._show_copy(inode, ino, fd, metadata, None)
            return
        if inode.fd < 0 and base_st.st_size <= MOST_KEPT_BYTES:
            with contextlib.suppress(PermissionError):  # it may be written, and not read
                self._descriptors.of(inode, write=False)
        ino, fd, metadata = self._copy_of_file(inode, base_st, keep)
        if inode.base is not None and base_st.st_size <= MOST_KEPT_BYTES:
            known = known_by_fingerprint(self._base.fingerprint(base_st))
            if inode.fd >= 0:
                self._kept_bases.keep(inode.base, known, metadata, inode.fd)
            elif keep is None:
                self._kept_bases.keep(inode.base, known, metadata, fd, is_copy=True)
        self._show_copy(inode, ino, fd, metadata, base_st, xattrs_option(metadata.xattrs))

    def _keep_origin(self, staged: Staged) -> None:
        """Keep what base has at the path that a staged file's data comes from so far, as it is
        about to be changed.
        """
        st = self._base.look(staged.origin)
        if staged.origin is not None and st is not None:
            self.keep_base(staged.origin, known_by(staged), st, -1)

    def keep_base(self, rel: RelPath, known: bytes, st: os.stat_result, fd: int, *, is_copy: bool = False) -> None:
        """Keep what base has at a path, with the attributes ``st``, for merges, and to know it
        again; ``fd`` is open to read it, or a copy of it (``is_copy``), or -1.

        What cannot be kept is no error: the file is then not merged.
        """
        if not stat.S_ISREG(st.st_mode) or st.st_size > MOST_KEPT_BYTES:
            return
        try:
            own_fd = self._base.open(rel) if fd < 0 else -1
        except OSError:
            return
        try:
            source = own_fd if fd < 0 else fd
            with contextlib.suppress(OSError):
                self._kept_bases.keep(rel, known, copying.read_metadata(source, st=st), source, is_copy=is_copy)
        finally:
            if own_fd >= 0:
                os.close(own_fd)

    def _copy_of_file(
        self, inode: Inode, base_st: os.stat_result | None, keep: int | None
    ) -> tuple[StoreIno, int, copying.Metadata]:
        """Copy a file, whose attributes are ``base_st`` if it is in base.

        Returns the copy's number and descriptor, and the file's metadata.
        """
        if base_st is not None and inode.fd >= 0:
            metadata = copying.read_metadata(inode.fd, st=base_st)
            source = copying.CopySource(metadata, fd=inode.fd if keep != 0 else -1)  # which it does not close
            return *self._store.copy_file(source, keep=keep), metadata
        source = self._store.open_source(self._checked_physical(inode), data=keep != 0)
        try:
            return *self._store.copy_file(source, keep=keep), source.metadata
        finally:
            source.close()

    def _fill(self, inode: Inode, staged: Staged, keep: int | None) -> None:
        """Copy the data of a metadata-only store inode from base."""
        path = self._store.path(staged.ino)
        st = os.lstat(path)
        self._keep_origin(staged)
        self._copy_data(inode, staged.ino, keep)
        os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
        self.show(inode, staged.ino, None, None)

    def _copy_up_lost(self, inode: Inode, keep: int | None) -> None:
        """Copy up a file that the host has put away from its base path, from what is open of it: as
        an orphan.

        Whatever is at the path now is another file, which must not get this one's data.

        Raises:
            OSError: ESTALE; nothing is open of it.
        """
        if inode.fd < 0:
            raise os_error(errno.ESTALE)
        metadata = copying.read_metadata(inode.fd)
        ino, fd = self._store.copy_file(copying.CopySource(metadata, fd=inode.fd), keep=keep)  # which it does not close
        inode.is_orphan = True
        inode.entry = None
        self._show_copy(inode, ino, fd, metadata, None)

    def _copy_data(self, inode: Inode, ino: StoreIno, keep: int | None) -> None:
        """Copy an inode's data, which is in base so far, into a store inode."""
        if keep == 0:
            self._cut(ino, 0)
            return
        source = os.dup(self._descriptors.of(inode, write=False))
        try:
            target = self._store.open(ino, os.O_WRONLY)
            try:
                size = os.fstat(source).st_size
                file_data.copy_data(source, target, size if keep is None else min(size, keep))
            finally:
                os.close(target)
        finally:
            os.close(source)

    def _cut(self, ino: StoreIno, size: int) -> None:
        fd = self._store.open(ino, os.O_WRONLY)
        try:
            if os.fstat(fd).st_size > size:
                os.ftruncate(fd, size)
        finally:
            os.close(fd)

    def _settle_times(self, directory: Inode, staged: Staged) -> None:
        """Give a directory's store inode the mtime that its names gave it so far, and record that
        it has it.
        """
        entry = directory.entry
        assert entry is not None
        path = self._store.path(staged.ino)
        os.utime(path, ns=(os.lstat(path).st_atime_ns, entry.touched_ns))
        record = Stage(self._stamp_clock.now_ns(), self._layers.path(directory), staged.ino, origin=staged.origin)
        self._recording.record(record)

    def _show_copy(
        self,
        inode: Inode,
        ino: StoreIno,
        fd: int,
        metadata: copying.Metadata,
        base_st: os.stat_result | None,
        was: Extra = (),
    ) -> None:
        """Let an inode show a new store inode with its data, of which ``fd`` is open for reading
        and writing, and with the metadata that its file had.
        """
        try:
            with self._removal.removed_on_error(ino):
                self.show(inode, ino, None, base_st, was)
        except BaseException:
            os.close(fd)
            raise
        self._note_absent(inode, metadata)
        self._descriptors.keep(inode, fd, writes=True)

    def show(
        self,
        inode: Inode,
        ino: StoreIno,
        origin: RelPath | None,
        base_st: os.stat_result | None,
        was: Extra = (),
    ) -> None:
        """Record, for every name of an inode, that it shows store inode ``ino``.

        ``base_st`` are the attributes of the base file that it was copied up from, if it was, and
        ``was`` tells more.
        """
        paged = self._paged_after_copy(inode) if origin is None else inode.paged
        if inode.is_orphan:
            self._show_orphan(inode, ino, origin)
        else:
            staged = inode.staged
            if staged is not None and staged.names:
                now = self._stamp_clock.now_ns()
                self._recording.record(*[Stage(now, entry.path(), ino, origin=origin) for entry in staged.names])
            else:
                entry = self._recording.record(self._first_stage(inode, ino, origin, base_st, was))
                if entry is not None:
                    tell_of_entries(inode, entry)
            inode.staged = self._layers.tree.staged[ino]
            inode.base = None
        inode.paged = paged
        if paged == MIXED:
            self._layers.outdated[inode.number] = NO_PAGES
        self._descriptors.close(inode)

    def _paged_after_copy(self, inode: Inode) -> Version:
        """Return what :attr:`Inode.paged` is once the store has the data of an inode.

        The pages that may be cached are those of the base file that has been copied, or not.
        """
        if inode.paged == NO_PAGES or inode.source is None:
            return inode.paged
        st = os.fstat(inode.fd) if inode.fd >= 0 else self._base.lstat(inode.source)
        return NO_PAGES if inode.paged == version_of(st) else MIXED

    def _first_stage(
        self, inode: Inode, ino: StoreIno, origin: RelPath | None, base_st: os.stat_result | None, was: Extra
    ) -> Stage:
        """Return the record that gives a file of base its first entry: the first that it has, or
        has left.
        """
        staged, now = inode.staged, self._stamp_clock.now_ns()
        if staged is None:
            assert base_st is not None
            links = base_st.st_nlink if base_st.st_nlink > 1 and not inode.is_directory else 0
            fingerprint, home = self._base.fingerprint(base_st), inode.base
            is_nameless = not inode.is_placed
        else:  # by hard links that base has
            assert staged.base is not None
            fingerprint, links, home = staged.base, staged.links, staged.home
            is_nameless = not inode.is_placed or not self._shows(self._layers.path(inode), staged)
        path = home if is_nameless else self._layers.path(inode)
        assert path is not None
        if links and origin is not None:
            origin = path if is_nameless else self._base_shown(path)
        return Stage(now, path, ino, base=fingerprint, origin=origin, links=links, is_nameless=is_nameless, extra=was)

    def _base_shown(self, path: RelPath) -> RelPath:
        """Return the base path that a path of the view shows, which no other name of the same file
        has.
        """
        shown = self._layers.tree.resolve(path)
        assert shown is not None
        assert shown.base is not None
        return shown.base

    def _shows(self, path: RelPath, staged: Staged) -> bool:
        """Tell whether a path still leads to a staged file by what base has there."""
        shown = self._layers.tree.resolve(path)
        if shown is None or shown.base is None:
            return False
        try:
            return staged_for(self._layers.tree, self._base, self._base.lstat(shown.base)) is staged
        except OSError:
            return False

    def _show_orphan(self, inode: Inode, ino: StoreIno, origin: RelPath | None) -> None:
        """The same for a file without a name: nothing is recorded, as nobody could find it after a
        remount.
        """
        staged = inode.staged
        if staged is not None and staged.ino == ino:
            staged.origin = origin
            return
        inode.staged = Staged(ino, origin, inode.key if inode.key is not None else ino, None)
        if staged is not None:
            never_named = self._removal.never_named
            if staged in never_named:
                never_named.add(inode.staged)
            self._removal.free(staged)
            never_named.discard(staged)

    def is_lost(self, inode: Inode) -> bool:
        """Tell whether the base path of a file or directory leads elsewhere, or nowhere, by the
        host's doing.
        """
        return self.base_stat(inode) is None

    def base_stat(self, inode: Inode) -> os.stat_result | None:
        """Return the attributes of the base file or directory, None if the host has put another
        there, or none.
        """
        assert inode.base is not None
        try:
            st = self._layers.held.lstat(inode.base)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return st if stat.S_IFMT(st.st_mode) == inode.kind and self._layers.is_file_of(inode, st) else None

    def _checked_physical(self, inode: Inode) -> bytes:
        if inode.staged is None and inode.base in self._base.pseudo:
            raise os_error(errno.EROFS)
        return self._layers.physical(inode)
