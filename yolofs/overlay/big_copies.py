"""Copy-up of large files without keeping anybody waiting.

Before an operation that would copy much, whoever carries it out has a :class:`CopyJob` run in another thread and hands
it to :meth:`BigCopies.take_copy`.  The operation then finds the data there.  If the file has become another one
meanwhile (written, replaced, travelled away from) the copy is thrown away, and the operation copies by itself.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass

from yolofs.journal.journal import Journal
from yolofs.overlay.copy_up import CopyUp
from yolofs.overlay.inodes import Inode, Version, version_of
from yolofs.paths import RelPath, StoreIno
from yolofs.state.tree import Staged, Tree
from yolofs.store import copying
from yolofs.store.base import Base
from yolofs.store.store import Store
from yolofs.system.clock import coarse_clock_ns

BIG = 1 << 20
"""From so many bytes on copying is worth another thread."""


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
    seen: Version
    """That of the source at the beginning."""
    size: int
    """How many bytes are copied."""

    def run(self) -> None:
        """Copy; blocks.  In any thread."""
        try:
            fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                copying.copy_data(self.source_fd, fd, self.size)
            finally:
                os.close(fd)
        finally:
            os.close(self.source_fd)


class BigCopies(CopyUp):
    """Uses copies that were made beforehand."""

    def __init__(
        self,
        base: Base,
        store: Store,
        journal: Journal,
        tree: Tree,
        *,
        fresh_from: StoreIno,
        clock_ns: Callable[[], int] = coarse_clock_ns,
        max_fds: int = 512,
    ) -> None:
        self._copied: dict[Inode, CopyJob] = {}
        # Spelt out, as `*args` to super() is what mypyc compiles wrongly.
        super().__init__(base, store, journal, tree, fresh_from=fresh_from, clock_ns=clock_ns, max_fds=max_fds)

    def will_copy(self, inode: Inode, *, size: int | None = None, metadata_only: bool = False) -> bool:
        """Tell whether changing a file would copy so much that it should wait for a :meth:`copy_job`.

        ``size``: how many bytes will be kept (None: all).  ``metadata_only``: the data will not be changed.
        """
        staged = inode.staged
        if staged is not None and self._is_own(staged, metadata_only=metadata_only):
            return False
        if inode.kind != stat.S_IFREG or (metadata_only and (staged is None or staged.origin is not None)):
            return False  # its data stays where it is
        job = self._copied.get(inode)
        if job is not None and self._fits(job):
            return False
        return self._bytes_to_copy(os.fstat(self._fd(inode, write=False)), size) >= BIG

    def copy_job(self, inode: Inode, *, size: int | None = None) -> CopyJob:
        """Return the copying of a file's data, of ``size`` bytes at most, for :meth:`CopyJob.run`."""
        fd = self._fd(inode, write=False)
        st = os.fstat(fd)
        wanted = self._bytes_to_copy(st, size)
        ino = self.store.reserve()
        path = self.store.path(ino)
        return CopyJob(inode, inode.staged, inode.base, ino, path, os.dup(fd), version_of(st), wanted)

    def take_copy(self, job: CopyJob) -> None:
        """Take over what a job has copied, for the operation that follows."""
        self.drop_copy(job.inode)
        self._copied[job.inode] = job

    def drop_copy(self, inode: Inode) -> None:
        """Throw a copy away that no operation has used."""
        job = self._copied.pop(inode, None)
        if job is not None:
            with contextlib.suppress(FileNotFoundError):
                self._discard(job.ino)

    def _on_drop(self, inode: Inode) -> None:
        self.drop_copy(inode)
        super()._on_drop(inode)

    def _own_data(self, inode: Inode, *, keep: int | None = None) -> None:
        if not (self._copied and self._use_copy(inode, metadata_only=False)):
            super()._own_data(inode, keep=keep)

    def _own_metadata(self, inode: Inode) -> bytes:
        if self._copied:
            self._use_copy(inode, metadata_only=True)
        return super()._own_metadata(inode)

    @staticmethod
    def _bytes_to_copy(st: os.stat_result, size: int | None) -> int:
        return st.st_size if size is None else min(size, st.st_size)

    def _is_own(self, staged: Staged, *, metadata_only: bool) -> bool:
        """Tell whether a store inode may be written in place."""
        return staged.ino >= self.fresh_from and (metadata_only or staged.origin is None)

    def _fits(self, job: CopyJob) -> bool:
        """Tell whether a copy still is what the inode's data is, and is there: an abort collects what nothing names."""
        inode = job.inode
        if inode.staged is not job.staged or inode.base != job.base or not os.path.lexists(job.path):
            return False
        if inode.staged is None and self._is_lost(inode):
            return False
        st = os.fstat(self._fd(inode, write=False))
        return version_of(st) == job.seen

    def _use_copy(self, inode: Inode, *, metadata_only: bool) -> bool:
        """Let an inode show the copy that was made of its data, with the metadata that it has now."""
        job = self._copied.get(inode)
        if job is None or (inode.staged is not None and self._is_own(inode.staged, metadata_only=metadata_only)):
            return False
        base_st = self._base_stat(inode) if inode.staged is None else None
        if (base_st is None and inode.staged is None) or not self._fits(job):
            self.drop_copy(inode)
            return False
        del self._copied[inode]
        ino = self._placed_now(job)
        with self._removed_on_error(ino):
            self._copy_metadata_to(ino, inode)
            staged = inode.staged
            if staged is not None and staged.ino >= self.fresh_from:  # its metadata is its own already
                os.rename(self.store.path(ino), self.store.path(staged.ino))
                self._show(inode, staged.ino, None, None)
            else:
                self._show(inode, ino, None, base_st)
        return True

    def _copy_metadata_to(self, ino: StoreIno, inode: Inode) -> None:
        if inode.staged is not None:
            copying.copy_metadata(self._physical(inode), self.store.path(ino))
        else:
            copying.write_metadata(self.store.path(ino), self._base_metadata(inode, None))

    def _placed_now(self, job: CopyJob) -> StoreIno:
        """Return the number of a copy, a new one if there was a marker meanwhile: numbers tell what is older."""
        if job.ino >= self.fresh_from:
            return job.ino
        ino = self.store.reserve()
        os.rename(job.path, self.store.path(ino))
        return ino
