"""Copy-up of large files without keeping anybody waiting.

Before an operation that would copy much, the caller runs a :class:`CopyJob` in another thread and
hands it to :meth:`BigCopies.take_copy`.  The operation then finds the data there.  If the file has
become another one meanwhile (written, replaced, travelled away from) the copy is thrown away, and
the operation copies by itself.
"""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass

from yolofs.overlay.copy_up import CopyUp
from yolofs.overlay.descriptors import Descriptors
from yolofs.overlay.inodes import Inode, Version, version_of
from yolofs.overlay.layers import Layers
from yolofs.overlay.removal import Removal
from yolofs.paths import RelPath, StoreIno
from yolofs.state.tree import Staged
from yolofs.store import file_data

BIG = 1 << 20
"""From this size on, a copy is made in another thread."""


@dataclass(slots=True)
class CopyJob:
    """The copying of one file's data into a store inode that nothing shows yet."""

    inode: Inode
    staged: Staged | None
    base: RelPath | None
    ino: StoreIno
    path: bytes
    source_fd: int
    """A descriptor of its own, closed by :meth:`run`."""
    target_fd: int
    """The same of the store inode."""
    known_fd: int
    """Another one of that, until the copy is used or thrown away: so what lies at ``path`` by then
    is known.
    """
    seen: Version
    """That of the source at the beginning."""
    size: int
    """How many bytes are copied."""

    def run(self) -> None:
        """Copy; blocks.  In any thread."""
        try:
            file_data.copy_data(self.source_fd, self.target_fd, self.size)
        finally:
            os.close(self.source_fd)
            os.close(self.target_fd)

    @property
    def is_there(self) -> bool:
        """Whether the copy lies where it was made.

        While the session is lent, somebody may collect what no journal names, and give the number
        again.
        """
        try:
            return os.path.samestat(os.lstat(self.path), os.fstat(self.known_fd))
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Say that nothing more is to be done with it; :meth:`run` may be at work still."""
        os.close(self.known_fd)

    def discard(self) -> None:
        """Throw the copy away, and nothing else that may lie in its place.

        Raises:
            OSError: it cannot be removed.
        """
        try:
            if self.is_there:
                os.unlink(self.path)
        finally:
            self.close()


class BigCopies:
    """Copies that were made beforehand; what has none is copied up on the spot
    (:class:`CopyUp`).
    """

    def __init__(self, layers: Layers, descriptors: Descriptors, removal: Removal, copy_up: CopyUp) -> None:
        self._layers = layers
        self._store = layers.store
        self._descriptors = descriptors
        self._removal = removal
        self._copy_up = copy_up
        self._copied: dict[Inode, CopyJob] = {}

    def will_copy(self, inode: Inode, *, size: int | None = None, metadata_only: bool = False) -> bool:
        """Tell whether changing a file would copy so much that it should wait for a
        :meth:`copy_job`.

        ``size``: how many bytes will be kept (None: all).  ``metadata_only``: the data will not be
        changed.
        """
        staged = inode.staged
        if staged is not None and self._is_own(staged, metadata_only=metadata_only):
            return False
        if inode.kind != stat.S_IFREG or (metadata_only and (staged is None or staged.origin is not None)):
            return False  # its data stays where it is
        job = self._copied.get(inode)
        if job is not None and self._fits(job):
            return False
        return self._bytes_to_copy(os.fstat(self._descriptors.of(inode, write=False)), size) >= BIG

    def copy_job(self, inode: Inode, *, size: int | None = None) -> CopyJob:
        """Return the copying of a file's data, of ``size`` bytes at most, for :meth:`CopyJob.run`.

        The store inode is made at once: else whoever borrows the session meanwhile would give its
        number again.

        Raises:
            OSError: it cannot be made.
        """
        fd = self._descriptors.of(inode, write=False)
        st = os.fstat(fd)
        wanted = self._bytes_to_copy(st, size)
        ino = self._store.reserve()
        path = self._store.path(ino)
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        fds = os.dup(fd), target, os.dup(target)
        return CopyJob(inode, inode.staged, inode.base, ino, path, *fds, version_of(st), wanted)

    def take_copy(self, job: CopyJob) -> None:
        """Take over what a job has copied, for the operation that follows."""
        self.drop_copy(job.inode)
        self._copied[job.inode] = job

    def drop_copy(self, inode: Inode) -> None:
        """Throw a copy away that no operation has used."""
        job = self._copied.pop(inode, None)
        if job is None:
            return
        try:
            if job.is_there:
                with contextlib.suppress(FileNotFoundError):
                    self._removal.discard(job.ino)
        finally:
            job.close()

    def own_data(self, inode: Inode, *, keep: int | None = None) -> None:
        """Make sure that a file's data is its own in the present: its first ``keep`` bytes, or all
        of it.
        """
        if not (self._copied and self._use_copy(inode, metadata_only=False)):
            self._copy_up.own_data(inode, keep=keep)

    def own_metadata(self, inode: Inode) -> bytes:
        """Make sure that an inode's metadata is its own in the present; return the path of its
        store inode.
        """
        if self._copied:
            self._use_copy(inode, metadata_only=True)
        return self._copy_up.own_metadata(inode)

    @staticmethod
    def _bytes_to_copy(st: os.stat_result, size: int | None) -> int:
        return st.st_size if size is None else min(size, st.st_size)

    def _is_own(self, staged: Staged, *, metadata_only: bool) -> bool:
        """Tell whether a store inode may be written in place."""
        return staged.ino >= self._layers.fresh_from and (metadata_only or staged.origin is None)

    def _fits(self, job: CopyJob) -> bool:
        """Tell whether a copy still is what the inode's data is, and is there: an abort collects
        what nothing names.
        """
        inode = job.inode
        if inode.staged is not job.staged or inode.base != job.base or not job.is_there:
            return False
        if inode.staged is None and self._copy_up.is_lost(inode):
            return False
        st = os.fstat(self._descriptors.of(inode, write=False))
        return version_of(st) == job.seen

    def _use_copy(self, inode: Inode, *, metadata_only: bool) -> bool:
        """Let an inode show the copy that was made of its data, with the metadata that it has
        now.
        """
        job = self._copied.get(inode)
        if job is None or (inode.staged is not None and self._is_own(inode.staged, metadata_only=metadata_only)):
            return False
        base_st = self._copy_up.base_stat(inode) if inode.staged is None else None
        if (base_st is None and inode.staged is None) or not self._fits(job):
            self.drop_copy(inode)
            return False
        del self._copied[inode]
        job.close()
        ino = self._placed_now(job)
        with self._removal.removed_on_error(ino):
            self._copy_metadata_to(ino, inode)
            staged = inode.staged
            if staged is not None and staged.ino >= self._layers.fresh_from:  # its metadata is its own already
                os.rename(self._store.path(ino), self._store.path(staged.ino))
                self._copy_up.show(inode, staged.ino, None, None)
            else:
                self._copy_up.show(inode, ino, None, base_st)
        return True

    def _copy_metadata_to(self, ino: StoreIno, inode: Inode) -> None:
        if inode.staged is not None:
            self._store.give(ino, self._store.metadata(inode.staged.ino))
        else:
            self._store.give(ino, self._copy_up.base_metadata(inode, None))

    def _placed_now(self, job: CopyJob) -> StoreIno:
        """Return the number of a copy, a new one if there was a marker meanwhile: numbers tell what
        is older.
        """
        if job.ino >= self._layers.fresh_from:
            return job.ino
        ino = self._store.reserve()
        self._store.rename(job.ino, ino)
        return ino
