"""The view as one object: its layers, and all parts that work on them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from yolofs.journal.journal import Journal
from yolofs.overlay.attributes import Attributes
from yolofs.overlay.big_copies import BigCopies
from yolofs.overlay.copy_up import CopyUp
from yolofs.overlay.data import Data
from yolofs.overlay.descriptors import Descriptors
from yolofs.overlay.finding import Finding
from yolofs.overlay.held_directories import CallLater
from yolofs.overlay.inodes import NO_PAGES, Inode, Version
from yolofs.overlay.layers import Layers
from yolofs.overlay.name_checks import NameChecks
from yolofs.overlay.naming import Naming
from yolofs.overlay.ownership import Ownership
from yolofs.overlay.recent_looks import RecentLooks
from yolofs.overlay.recording import Recording
from yolofs.overlay.reloading import Invalidation, Reloading
from yolofs.overlay.removal import Removal
from yolofs.overlay.unnamed_files import UnnamedFiles
from yolofs.paths import StoreIno
from yolofs.state.tree import Tree
from yolofs.store.base import Base
from yolofs.store.store import Store
from yolofs.system.clock import coarse_clock_ns


class Overlay(Layers):
    """The view of a tree over base; see the package's docstring.

    The operations are those of its parts, by the same names: what they do is said there.  They are
    attributes and not methods that pass a call on, as each further call costs a request half a
    percent.
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
        """``max_fds`` bounds the descriptors kept open between operations."""
        super().__init__(base, store, journal, tree, fresh_from=fresh_from, clock_ns=clock_ns, on_drop=self._let_go_of)
        self.recording = Recording(self)
        self.descriptors = Descriptors(self, most=max_fds)
        self.removal = Removal(self, self.descriptors)
        self.looks = RecentLooks()
        self.attributes = Attributes(self, self.descriptors, self.looks)
        copy_up = CopyUp(self, self.recording, self.descriptors, self.removal, self.looks)
        big_copies = self._big_copies = BigCopies(self, self.descriptors, self.removal, copy_up)
        finding = Finding(self, self.descriptors, self.looks, self.attributes)
        data = Data(self, self.recording, self.descriptors, self.attributes, big_copies)
        ownership = Ownership(self, self.attributes)
        checks = NameChecks(self, self.attributes, finding)
        naming = Naming(
            self,
            self.recording,
            self.descriptors,
            self.removal,
            self.looks,
            self.attributes,
            copy_up,
            finding,
            ownership,
            checks,
        )
        unnamed = UnnamedFiles(self, self.descriptors, self.removal, self.attributes, ownership, checks, naming)
        self._reloading = Reloading(self, self.descriptors, finding)

        self.lookup = finding.lookup
        self.lookup_inode = finding.lookup_inode
        self.forget = finding.forget
        self.is_stable_name = finding.is_stable_name
        self.names = finding.names
        self.stat_name = finding.stat_name
        self.still_leads = finding.still_leads
        self.known_at = finding.known_at

        self.getattr = self.attributes.getattr
        self.readlink = self.attributes.readlink
        self.statvfs = self.attributes.statvfs
        self.getxattr = self.attributes.getxattr
        self.lacks_xattr = self.attributes.lacks_xattr
        self.listxattr = self.attributes.listxattr
        self.check_has_xattr = self.attributes.check_has_xattr
        self.birth_ns = self.attributes.birth_ns

        self._data = data
        self.open = data.open
        self.release = data.release
        self.outdated_by = data.outdated_by
        self.read = data.read
        self.read_fd = data.read_fd
        self.write = data.write
        self.fallocate = data.fallocate
        self.copy_range = data.copy_range
        self.sync_fd = data.sync_fd
        self.writers = data.writers
        self.setattr = data.setattr
        self.setxattr = data.setxattr
        self.removexattr = data.removexattr
        self.drop_setuid = data.drop_setuid
        self.lends_rights = data.lends_rights
        self.drop_setgid = data.drop_setgid

        self.will_copy = big_copies.will_copy
        self.copy_job = big_copies.copy_job
        self.take_copy = big_copies.take_copy
        self.drop_copy = big_copies.drop_copy

        self.inherit = ownership.inherit
        self.create = naming.create
        self.mknod = naming.mknod
        self.mkdir = naming.mkdir
        self.symlink = naming.symlink
        self.link = naming.link
        self.unlink = naming.unlink
        self.rmdir = naming.rmdir
        self.rename = naming.rename

        self.tmpfile = unnamed.tmpfile
        self.is_unnamed = unnamed.is_unnamed
        self.give_name = unnamed.give_name

    def serve(
        self,
        *,
        is_shared: bool,
        lately_ns: int,
        hold_ns: int,
        later: CallLater,
        run_of_request: Callable[[], int],
        close_removed: Callable[[int], object] = os.close,
    ) -> None:
        """Work for a mount; the arguments are what the parts have under these names."""
        self.attributes.is_shared = is_shared
        self.looks.lately_ns = lately_ns
        self.held.hold_for(hold_ns, later)
        self.recording.run_of_request = run_of_request
        self.removal.close_removed = close_removed
        self._data.hands_over = True

    def look_anew(self) -> None:
        """Forget all that was seen of base a moment ago."""
        self.looks.look_anew()
        self.held.let_go()

    def close(self) -> None:
        """Let go of every inode; the overlay must not be used afterwards."""
        self.held.let_go()
        for inode in self.inodes.by_number.values():
            self._let_go_of(inode)
        self.inodes.by_number.clear()
        self.kept_bases.close()
        self.removal.close()
        self.stamp_clock.close()

    def _let_go_of(self, inode: Inode) -> None:
        self._big_copies.drop_copy(inode)
        self.removal.let_go(inode)

    # ---- the kernel's pages, open files

    def dropped_pages(self, numbers: Mapping[int, Version]) -> None:
        """Note that the kernel has dropped the pages of files, with the version of each that it
        reads now.
        """
        for number, version in numbers.items():
            inode = self.inodes.by_number.get(number)
            if inode is not None:
                inode.paged = NO_PAGES if inode.source is None else version

    def shown_numbers(self) -> set[int]:
        """Return the store inodes of open files and of directories, also where their names are
        gone.
        """
        known = self.inodes.by_number.values()
        return {inode.staged.ino for inode in known if inode.staged and (inode.opens or inode.is_directory)}

    def let_go(self) -> set[int]:
        """Close all that nobody has open, and return the store inodes that somebody has open.

        This includes files that nobody has open and to which no known name leads any more, such as
        those that a travel left behind: a process that still refers to one may open it.
        """
        self.descriptors.close_unused()
        known = self.inodes.by_number.values()
        return {inode.staged.ino for inode in known if inode.staged and (inode.opens or not inode.is_placed)}

    # ---- another state

    def mark(self, fresh_from: StoreIno) -> None:
        """A marker was written: what is in the store by now must not be written in place any
        more.
        """
        self.fresh_from = fresh_from

    def freeze(self) -> None:
        """Refuse all that would change anything, with EROFS, until the next :meth:`reload`."""
        self.recording.is_frozen = self.store.is_closed = True
        self.fresh_from = self.store.next_ino  # else files made since the last marker were written in place
        self.look_anew()

    def reload(
        self,
        journal: Journal,
        tree: Tree,
        *,
        fresh_from: StoreIno,
        committed: bool = False,
        rewritten: bool = False,
    ) -> Invalidation:
        """Show another state, and tell what the kernel must forget.

        Files that are still the same keep their inodes.  One that is open and has other content now
        is left behind as an orphan: its handles keep what they were opened with, and the path gets
        another inode.  With ``committed`` base has become what the view was: every path keeps its
        inode, also where it is open.  ``rewritten``: so do files that are staged and still the
        same, and have other content, as after a write.
        """
        self.recording.is_frozen = self.store.is_closed = False
        self.journal, self.tree, self.fresh_from = journal, tree, fresh_from
        self.kept_bases.close()  # it may be another file now
        self.look_anew()
        self.upheavals += 1
        return self._reloading.follow(committed=committed, rewritten=rewritten)
