"""What all parts of the overlay stand on: base, store, journal and tree, the inodes and their descriptors.

Every change goes the same way: the store inode first, then the record into the journal, then the record into the
tree.  So what is in memory is always what a replay would give, and a crash in between leaves at most a store
inode that nothing refers to.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping

import msgspec

from yolofs.journal.journal import Journal
from yolofs.journal.records import Change, Stage
from yolofs.overlay.inodes import NO_PAGES, ROOT_NUMBER, Inode, InodeTable, Version
from yolofs.paths import RelPath, StoreIno
from yolofs.state.kept_bases import KeptBases
from yolofs.state.tree import Entry, Staged, Tree
from yolofs.store import copying
from yolofs.store.base import Base, held
from yolofs.store.store import Store
from yolofs.system.clock import coarse_clock_ns

_NO_FILE = frozenset([errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENODEV])
"""With these an open(2) fails where there is no regular file."""


class Layers:
    """The layers of a view.

    ``fresh_from``: store inodes from this number on were created after the last marker and may be written in place.
    ``max_fds`` bounds the descriptors kept open between operations.
    """

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
        self.base = base
        self.store = store
        self.journal = journal
        self.tree = tree
        self.fresh_from = fresh_from
        self.clock_ns = clock_ns
        self.run_of_request: Callable[[], int] | None = None
        """Gives the run that the change is made by, 0 for none; records are marked with it."""
        self.recorded_runs: set[int] = set()
        """The runs that have made records."""
        self._max_fds = max_fds
        self.is_frozen = False
        """Whether nothing may be changed for now."""
        self.kept_bases = KeptBases(store)
        """Takes what base files are when the view takes them over."""
        self.is_shared = False
        """Whether other users may enter the view, whom the kernel then judges by mode bits."""
        self.lately_ns = 0
        """For so long a look at base counts as one at the same time as a change that follows: a lookup and a getattr
        come right before each create."""
        self._missed: tuple[bytes, int] = (b"", 0)
        """The base path that was last found to lead nowhere, and when."""
        self._looked_at: tuple[Inode, Staged | None, os.stat_result, int] | None = None
        """The directory that was looked at last, its store inode, what it was like, and when."""
        self._at_hand: tuple[Inode, int] | None = None
        """The directory whose names are being looked up one after another, and a descriptor of what it has in base."""
        self.close_removed: Callable[[int], object] = os.close
        """Takes the last descriptor of a store inode that was removed, to close it now or later, in any thread: this is
        what frees its blocks, and takes as long as the disk does."""
        self.outdated: dict[int, Version] = {}
        """The numbers of files of which the kernel has pages cached that are not true any more, as the host has changed
        base, with what :attr:`~yolofs.overlay.inodes.Inode.paged` is once it has dropped them."""
        self._is_rewritten = False
        """Whether the state that is being taken in has other content in files that are still the same."""
        self.upheavals = 0
        """Counts what may have changed more of the view than :attr:`~yolofs.overlay.inodes.Inode.changes` tell."""
        self._with_fd: dict[Inode, None] = {}
        self.inodes = InodeTable(self._on_drop)
        self.root = Inode(ROOT_NUMBER, stat.S_IFDIR, None, b"")
        self.root.lookups = 1
        self._place_root()
        self.inodes.add(self.root)

    def look_anew(self) -> None:
        """Take nothing for true any more that base was seen to be a moment ago."""
        self._missed, self._looked_at = (b"", 0), None

    def dropped_pages(self, numbers: Mapping[int, Version]) -> None:
        """Note that the kernel has dropped the pages of files, and of which versions those are that it reads now."""
        for number, version in numbers.items():
            inode = self.inodes.by_number.get(number)
            if inode is not None:
                inode.paged = NO_PAGES if inode.source is None else version

    def close(self) -> None:
        """Let go of every inode; the overlay must not be used afterwards."""
        for inode in self.inodes.by_number.values():
            self._on_drop(inode)
        self.inodes.by_number.clear()
        self.kept_bases.close()

    def path(self, inode: Inode) -> RelPath:
        """Return the path of an inode in the view (one of them, if it has several).

        Raises:
            FileNotFoundError: no name leads to it any more.
        """
        parts = []
        current = inode
        while current is not self.root:
            if not current.is_placed or current.parent is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            parts.append(current.name)
            current = current.parent
        parts.reverse()
        return RelPath(b"/".join(parts))

    def _place_root(self) -> None:
        self.root.entry = self.tree.root
        self.root.staged = self.tree.root.staged
        self.root.base = self.tree.root.base

    # ---- recording

    def _record(self, *changes: Change) -> Entry | None:
        """Write records to the journal, apply them, and return the entry of the last one's path, if it has one.

        Raises:
            OSError: the journal could not be written; nothing has changed then.
        """
        if self.is_frozen:
            raise os_error(errno.EROFS)
        run = self.run_of_request() if self.run_of_request is not None else 0
        if run:
            extra = (("run", b"%d" % run),)
            changes = tuple(msgspec.structs.replace(change, extra=(*change.extra, *extra)) for change in changes)
            self.recorded_runs.add(run)
        self.journal.append(*changes)
        entry = None
        for change in changes:
            entry = self.tree.apply(change)
            if run and isinstance(change, Stage):
                staged = self.tree.staged[change.ino]
                if len(staged.names) <= len(changes):  # else it has names that no record of this run tells
                    self._note_run(staged, run)
        return entry

    def _sign(self, staged: Staged) -> None:
        """Record that this request changes a store inode that is written in place, if another run is known for it.

        So the records of each run name all that it has changed; each run needs one for each store inode.
        """
        run = self.run_of_request() if self.run_of_request is not None else 0
        if run in staged.runs or not (run or staged.runs):
            return
        if staged.names:
            now = self.clock_ns()
            self._record(*[Stage(now, entry.path(), staged.ino, origin=staged.origin) for entry in staged.names])
        self._note_run(staged, run)

    @staticmethod
    def _note_run(staged: Staged, run: int) -> None:
        if run not in staged.runs:
            staged.runs = (*staged.runs, run)

    def _adopt(self, directory: Inode, entry: Entry | None) -> None:
        """Tell a directory's inode, and those above it, of the entries that a record made for them.

        ``entry`` is the directory's own.  To be called after each record that gives a name its first entry.
        """
        inode: Inode | None = directory
        while inode is not None and entry is not None and inode.entry is not entry:
            inode.entry = entry
            inode, entry = inode.parent, entry.parent

    # ---- descriptors and store inodes held

    def _physical(self, inode: Inode) -> bytes:
        if inode.staged is not None:
            return self.store.path(inode.staged.ino)
        assert inode.base is not None
        return self.base.place(inode.base)

    @contextlib.contextmanager
    def _held(self, inode: Inode) -> Iterator[int]:
        """Give what :func:`yolofs.store.base.hold` returns of the base file or directory that an unstaged inode
        stands for.

        Raises:
            OSError: it is gone; ESTALE if the host has put another there; EOPNOTSUPP for a pseudo directory.
        """
        assert inode.base is not None
        if inode.base in self.base.pseudo:
            raise os_error(errno.EOPNOTSUPP)
        with held(self.base.place(inode.base)) as fd:
            st = os.fstat(fd)
            if stat.S_IFMT(st.st_mode) != inode.kind or not self._is_file_of(inode, st):
                raise os_error(errno.ESTALE)
            yield fd

    def _at_hand_name(self, inode: Inode) -> bytes | None:
        """Return a path of an unstaged inode by the directory whose names are being looked up, None if it is elsewhere.

        As for that directory's other names, what matters is what has the name.
        """
        if self._at_hand is None or inode.base is None:
            return None
        directory, fd = self._at_hand
        above, _, name = inode.base.rpartition(b"/")
        return copying.at(fd, name) if above == directory.source else None

    def _fd(self, inode: Inode, *, write: bool) -> int:
        """Return a descriptor of a regular file's data; one that writes only if its store inode may be written."""
        if inode.fd >= 0 and (inode.fd_writes or not write):
            return inode.fd
        self._close_fd(inode)
        staged = inode.staged
        if staged is None or staged.origin is not None:
            source = inode.source
            assert source is not None
            self._keep_fd(inode, self._open_base(inode, source)[0], writes=False)
        else:
            writes = write or staged.ino >= self.fresh_from
            fd = self.store.open(staged.ino, os.O_RDWR if writes else os.O_RDONLY)
            self._keep_fd(inode, fd, writes=writes)
        return inode.fd

    def _open_base(self, inode: Inode, source: RelPath) -> tuple[int, os.stat_result]:
        """Open the base file behind an inode; return the descriptor and the file's attributes.

        Raises:
            OSError: as open(2); ESTALE if the host has put another file there, or none.
        """
        try:
            fd = self.base.open(source)
        except OSError as error:
            raise os_error(errno.ESTALE) if error.errno in _NO_FILE else error from None
        st = os.fstat(fd)
        if not self._is_source_of(inode, st):
            os.close(fd)
            raise os_error(errno.ESTALE)
        return fd, st

    def _is_other_file(self, inode: Inode, st: os.stat_result) -> bool:
        """Tell whether what is open of the base file that has a staged file's data is not what base has there now.

        Whoever has it open keeps it; ``st`` are the attributes of what the host has put in its place.
        """
        return inode.staged is not None and inode.fd >= 0 and not os.path.samestat(os.fstat(inode.fd), st)

    def _is_source_of(self, inode: Inode, st: os.stat_result) -> bool:
        """Tell whether a regular file's data comes from what base has, with these attributes, at its path."""
        return stat.S_ISREG(st.st_mode) and (inode.staged is not None or self._is_file_of(inode, st))

    def _is_file_of(self, inode: Inode, st: os.stat_result) -> bool:
        """Tell whether a base file with these attributes is the one that an unstaged inode stands for.

        A directory may be known by a number of its path, so of two directories this cannot tell them apart.
        """
        return inode.is_directory or self.inodes.number_of(self.base.number(st)) == inode.number

    def _keep_fd(self, inode: Inode, fd: int, *, writes: bool) -> None:
        while len(self._with_fd) >= self._max_fds:
            spare = next((held for held in self._with_fd if held.is_placed or held.source is None), None)
            if spare is None:  # what has no path in the view, and its data in base, could not be opened again
                break
            self._close_fd(spare)
        inode.fd, inode.fd_writes = fd, writes
        self._with_fd[inode] = None

    def _close_fd(self, inode: Inode) -> None:
        if inode.fd >= 0:
            os.close(inode.fd)
            inode.fd, inode.fd_writes = -1, False
            del self._with_fd[inode]

    @contextlib.contextmanager
    def _removed_on_error(self, ino: StoreIno) -> Iterator[None]:
        """Take a new store inode back if what is in here fails."""
        try:
            yield
        except BaseException:
            self.store.remove(ino)
            raise

    def _on_drop(self, inode: Inode) -> None:
        staged = inode.staged
        if inode.is_orphan and staged is not None and self._is_unseen(staged):
            fd = -1
            if inode.fd >= 0 and staged.origin is None:
                fd, inode.fd = inode.fd, -1
                del self._with_fd[inode]
            self._close_fd(inode)  # base's
            self._discard(staged.ino, fd)
        else:
            self._close_fd(inode)

    def _free(self, staged: Staged) -> None:
        """Remove a store inode that no handle shows any more, if no name and no generation can show it either."""
        if self._is_unseen(staged):
            self._discard(staged.ino)

    def _is_unseen(self, staged: Staged) -> bool:
        """Tell whether neither a name nor a generation can show a store inode."""
        return staged.ino >= self.fresh_from and not self.tree.nlink(staged)

    def _discard(self, ino: StoreIno, fd: int = -1) -> None:
        """Remove a store inode: on return it has no name, and no blocks either as soon as its descriptor is closed.

        ``fd`` is a descriptor of it, if there is one; it goes in any case, by :attr:`close_removed`.

        Raises:
            OSError: it cannot be removed.
        """
        if fd < 0:
            fd = self.store.hold(ino)
        try:
            self.store.remove(ino)
        finally:
            if fd >= 0:
                self.close_removed(fd)


def os_error(number: int) -> OSError:
    """Return the exception for an errno."""
    return OSError(number, os.strerror(number))
