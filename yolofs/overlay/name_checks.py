"""Whether a name may be made, removed or renamed, asked before anything is recorded."""

from __future__ import annotations

import errno
import stat

from yolofs.overlay.attributes import Attributes
from yolofs.overlay.finding import Finding, Found
from yolofs.overlay.inodes import Inode
from yolofs.overlay.layers import Layers, os_error


class NameChecks:
    """Raise the :class:`OSError` that a plain directory would."""

    def __init__(self, layers: Layers, attributes: Attributes, finding: Finding) -> None:
        self._base = layers.base
        self._inodes = layers.inodes
        self._attributes = attributes
        self._finding = finding

    def check_place(self, parent: Inode, name: bytes) -> None:
        """Raise unless a name may be made in ``parent``."""
        if parent.kind != stat.S_IFDIR:
            raise os_error(errno.ENOTDIR)
        if parent.is_orphan:
            raise os_error(errno.ENOENT)
        source = parent.source
        if source is not None:
            if source in self._base.pseudo:
                raise os_error(errno.EROFS)
            if parent.staged is None:
                self._check_there(parent)
            if self._base.is_hidden_name(source, name):
                raise os_error(errno.EACCES)

    def check_new(self, parent: Inode, name: bytes) -> None:
        """Raise unless ``name`` can be created in ``parent``."""
        self.check_place(parent, name)
        if self._finding.find(parent, name, lately=True) is not None:
            raise os_error(errno.EEXIST)

    def _check_there(self, directory: Inode) -> None:
        """Raise if the host has taken a base directory away."""
        try:
            self._attributes.stat_lately(directory)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE):
                raise os_error(errno.ENOENT) from None
            raise

    def check_replaceable(self, parent: Inode, name: bytes, found: Found) -> None:
        """Raise unless a directory that was found may be removed: it is empty and nothing is
        mounted there.
        """
        source = found.staged.origin if found.staged is not None else found.base
        if source is not None and self._base.is_pinned(source):
            raise os_error(errno.EBUSY)
        directory = self._finding.inode_of(parent, name, found)
        is_empty = not self._finding.names(directory)
        self._inodes.drop_if_unused(directory)
        if not is_empty:
            raise os_error(errno.ENOTEMPTY)
        if source is not None and self._base.holds_hidden(source):  # somebody's session, which would go with it
            raise os_error(errno.EBUSY)

    def check_rename(
        self, source: Found, target: Found | None, new_parent: Inode, new_name: bytes, *, exchange: bool
    ) -> None:
        """Check that one name may take the place of another; ``target`` is None if there is none.

        Raises:
            OSError: as rename(2); EBUSY for a directory that holds something of a session.
        """
        for found in (source, target) if exchange else (source,):
            if found is not None and found.is_directory:
                base = found.staged.origin if found.staged is not None else found.base
                if base is not None and self._base.is_pinned(base):
                    raise os_error(errno.EBUSY)
        if target is None or exchange:
            return
        if source.is_directory and not target.is_directory:
            raise os_error(errno.ENOTDIR)
        if target.is_directory:
            if not source.is_directory:
                raise os_error(errno.EISDIR)
            self.check_replaceable(new_parent, new_name, target)
