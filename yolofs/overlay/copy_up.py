"""Copy-up: making a store inode for what so far came from base, or from before the last marker.

A change of metadata copies metadata only (``from=``); the data follows when it is written.
"""

from __future__ import annotations

import errno
import os
import stat

from yolofs import copying
from yolofs.inodes import Inode
from yolofs.overlay.attributes import Attributes
from yolofs.overlay.layers import os_error
from yolofs.paths import RelPath, StoreIno
from yolofs.records import Fingerprint, Stage
from yolofs.tree import Staged


class CopyUp(Attributes):
    """Makes store inodes that may be written."""

    def _own_metadata(self, inode: Inode) -> bytes:
        """Make sure that an inode's metadata is its own in the present; return the path of its store inode."""
        staged = inode.staged
        if staged is None or staged.ino < self.fresh_from:
            self._copy_up_metadata(inode)
        elif inode.entry is not None and inode.entry.touched_ns:
            self._settle_times(inode, staged)
        assert inode.staged is not None
        return self.store.path(inode.staged.ino)

    def _own_data(self, inode: Inode, *, keep: int | None = None) -> None:
        """Make sure that a file's data is its own in the present: its first ``keep`` bytes, or all of it."""
        staged = inode.staged
        if staged is None or staged.ino < self.fresh_from:
            self._copy_up_data(inode, keep)
        elif staged.origin is not None:
            self._fill(inode, staged, keep)

    def _copy_up_metadata(self, inode: Inode) -> None:
        """Make a store inode for an inode's metadata; a file's data, or a directory's names, stay where they are.

        What has no data that could stay in base is copied whole.
        """
        staged = inode.staged
        if staged is None and self._is_lost(inode):
            self._copy_up_lost(inode, None)
            return
        origin = inode.source if inode.kind in (stat.S_IFREG, stat.S_IFDIR) else None
        ino = self.store.copy_up(self._checked_physical(inode), data=origin is None)
        with self._removed_on_error(ino):
            if inode.is_directory and inode.entry is not None and inode.entry.touched_ns:
                path = self.store.path(ino)
                os.utime(path, ns=(os.lstat(path).st_atime_ns, inode.entry.touched_ns))
            self._show(inode, ino, origin, self._fingerprint(inode) if staged is None else None)

    def _copy_up_data(self, inode: Inode, keep: int | None) -> None:
        """Make a store inode with a file's metadata and the first ``keep`` bytes of its data (None: all)."""
        staged = inode.staged
        if staged is None and self._is_lost(inode):
            self._copy_up_lost(inode, keep)
            return
        fingerprint = self._fingerprint(inode) if staged is None else None
        origin = staged.origin if staged is not None else None
        ino = self.store.copy_up(self._checked_physical(inode), data=keep != 0 and origin is None)
        with self._removed_on_error(ino):
            if origin is not None:
                self._copy_data(inode, ino, keep)
            elif keep is not None:
                self._cut(ino, keep)
            self._show(inode, ino, None, fingerprint)

    def _fill(self, inode: Inode, staged: Staged, keep: int | None) -> None:
        """Copy the data of a metadata-only store inode from base."""
        path = self.store.path(staged.ino)
        st = os.lstat(path)
        self._copy_data(inode, staged.ino, keep)
        os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
        self._show(inode, staged.ino, None, None)

    def _copy_up_lost(self, inode: Inode, keep: int | None) -> None:
        """Copy up a file that the host has put away from its base path, from what is open of it: as an orphan.

        Whatever is at the path now is another file, which must not get this one's data.

        Raises:
            OSError: ESTALE; nothing is open of it.
        """
        if inode.fd < 0:
            raise os_error(errno.ESTALE)
        source = copying.Source(copying.read_metadata(inode.fd), fd=os.dup(inode.fd))
        ino = self.store.reserve()
        try:
            copying.write_copy(source, self.store.path(ino))
        finally:
            source.close()
        with self._removed_on_error(ino):
            if keep is not None:
                self._cut(ino, keep)
            inode.is_orphan = True
            inode.entry = None
            self._show(inode, ino, None, None)

    def _copy_data(self, inode: Inode, ino: StoreIno, keep: int | None) -> None:
        """Copy an inode's data, which is in base so far, into a store inode."""
        if keep == 0:
            self._cut(ino, 0)
            return
        source = os.dup(self._fd(inode, write=False))
        try:
            target = self.store.open(ino, os.O_WRONLY)
            try:
                size = os.fstat(source).st_size
                copying.copy_data(source, target, size if keep is None else min(size, keep))
            finally:
                os.close(target)
        finally:
            os.close(source)

    def _cut(self, ino: StoreIno, size: int) -> None:
        fd = self.store.open(ino, os.O_WRONLY)
        try:
            if os.fstat(fd).st_size > size:
                os.ftruncate(fd, size)
        finally:
            os.close(fd)

    def _settle_times(self, directory: Inode, staged: Staged) -> None:
        """Give a directory's store inode the mtime that its names gave it so far, and record that it has it."""
        entry = directory.entry
        assert entry is not None
        path = self.store.path(staged.ino)
        os.utime(path, ns=(os.lstat(path).st_atime_ns, entry.touched_ns))
        record = Stage(self.clock_ns(), self.path(directory), staged.ino, origin=staged.origin)
        self._record(record)

    def _show(self, inode: Inode, ino: StoreIno, origin: RelPath | None, fingerprint: Fingerprint | None) -> None:
        """Record, for every name of an inode, that it shows store inode ``ino``."""
        if inode.is_orphan:
            self._show_orphan(inode, ino, origin)
        else:
            staged = inode.staged
            names = [entry.path() for entry in staged.names] if staged is not None else [self.path(inode)]
            now = self.clock_ns()
            changes = [Stage(now, path, ino, base=fingerprint, origin=origin) for path in names]
            entry = self._record(*changes)
            assert entry is not None
            if staged is None:
                self._adopt(inode, entry)
            inode.staged = entry.staged
            inode.base = None
        self._close_fd(inode)

    def _show_orphan(self, inode: Inode, ino: StoreIno, origin: RelPath | None) -> None:
        """The same for a file without a name: nothing is recorded, as nobody could find it after a remount."""
        staged = inode.staged
        if staged is not None and staged.ino == ino:
            staged.origin = origin
            return
        inode.staged = Staged(ino, origin, inode.key if inode.key is not None else ino, None)
        if staged is not None:
            self._free(staged)

    def _is_lost(self, inode: Inode) -> bool:
        """Tell whether the base path of a file or directory leads elsewhere, or nowhere, by the host's doing."""
        assert inode.base is not None
        try:
            st = self.base.lstat(inode.base)
        except (FileNotFoundError, NotADirectoryError):
            return True
        return stat.S_IFMT(st.st_mode) != inode.kind or not self._is_file_of(inode, st)

    def _fingerprint(self, inode: Inode) -> Fingerprint:
        assert inode.base is not None
        return self.base.fingerprint(self.base.lstat(inode.base))

    def _checked_physical(self, inode: Inode) -> bytes:
        if inode.staged is None and inode.base in self.base.pseudo:
            raise os_error(errno.EROFS)
        return self._physical(inode)
