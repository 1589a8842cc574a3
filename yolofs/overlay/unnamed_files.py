"""Files that never had a name (``O_TMPFILE``): only a process that has them open finds them, and
may give them one by linkat(2).

Of such a file nothing is recorded.  So nothing is left of one that gets no name: it goes with its
last handle, or, after a crash, when the session is next opened for writing.
"""

from __future__ import annotations

import os
import stat

from yolofs.overlay import absent_xattrs
from yolofs.overlay.attributes import Attributes
from yolofs.overlay.descriptors import Descriptors
from yolofs.overlay.inodes import Attr, Inode, natural_number
from yolofs.overlay.layers import Layers
from yolofs.overlay.name_checks import NameChecks
from yolofs.overlay.naming import Naming
from yolofs.overlay.ownership import Owner, Ownership
from yolofs.overlay.recording import tell_of_entries
from yolofs.overlay.removal import Removal
from yolofs.state.tree import Staged

UNNAMED = b"#unnamed"
"""Stands for the name that such a file does not have, where rules are looked for and in
questions.
"""


class UnnamedFiles:
    """Makes files without a name, and gives them their first one."""

    def __init__(
        self,
        layers: Layers,
        descriptors: Descriptors,
        removal: Removal,
        attributes: Attributes,
        ownership: Ownership,
        checks: NameChecks,
        naming: Naming,
    ) -> None:
        self._layers = layers
        self._store = layers.store
        self._inodes = layers.inodes
        self._descriptors = descriptors
        self._removal = removal
        self._attributes = attributes
        self._ownership = ownership
        self._checks = checks
        self._naming = naming

    def tmpfile(self, parent: Inode, mode: int, owner: Owner, *, is_writer: bool = True) -> tuple[Inode, Attr]:
        """Create and open a regular file in ``parent`` that has no name.  The caller owes a forget
        and a release.
        """
        self._checks.check_place(parent, UNNAMED)
        ino, fd, st = self._store.create_file(stat.S_IMODE(mode))
        try:
            st = self._ownership.set_owner(parent, ino, owner, mode, st)
        except BaseException:
            os.close(fd)
            self._store.remove(ino)
            raise
        staged = Staged(ino, None, ino, None)
        number = self._inodes.number_of(natural_number(staged), staged.key)
        inode = self._inodes.add(Inode(number, stat.S_IFREG, parent, UNNAMED))
        inode.staged, inode.is_orphan = staged, True
        if not owner.lists:
            absent_xattrs.note(inode, absent_xattrs.ALL, staged)
        self._removal.never_named.add(staged)
        self._descriptors.keep(inode, fd, writes=True)
        inode.lookups += 1
        inode.opens += 1
        if is_writer:
            inode.writers += 1
        return inode, self._attributes.attr_of(inode, st, is_new=True)

    def is_unnamed(self, inode: Inode) -> bool:
        """Tell whether a file has never had a name."""
        return inode.is_orphan and inode.staged in self._removal.never_named

    def give_name(self, inode: Inode, parent: Inode, name: bytes) -> tuple[Inode, Attr]:
        """Give a file that :meth:`is_unnamed` its first name.  The caller owes a forget."""
        self._checks.check_new(parent, name)
        before = inode.staged
        assert before is not None
        self._be_fresh(before)
        entry = self._naming.record_new(parent, name, before.ino)
        assert entry is not None
        staged = entry.staged
        assert staged is not None
        self._removal.never_named.discard(before)
        if (number := natural_number(staged)) != inode.number:  # it was copied, or is older than the last marker
            self._inodes.claim(number, staged.key, inode.number)
        parent.changes += 1
        inode.changes += 1
        tell_of_entries(parent, entry.parent)
        inode.staged, inode.entry, inode.is_orphan = staged, entry, False
        self._inodes.move(inode, parent, name)
        self._naming.touch_ctime(staged)
        inode.lookups += 1
        return inode, self._attributes.getattr(inode)

    def _be_fresh(self, staged: Staged) -> None:
        """Give a file that is older than the last marker a new store inode number.

        Danger: a record after a marker that names an older one would have the next mount write into
        what the marker keeps.
        """
        if staged.ino < self._layers.fresh_from:
            ino = self._store.reserve()
            self._store.rename(staged.ino, ino)
            staged.ino = ino
