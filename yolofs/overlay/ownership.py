"""What a new file gets of its user and its directory: owner, group, permission bits, access control
lists.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import NamedTuple

from yolofs.overlay import acl
from yolofs.overlay.attributes import Attributes
from yolofs.overlay.inodes import Inode
from yolofs.overlay.layers import Layers
from yolofs.paths import StoreIno

_NOT_TO_BE_GIVEN = (errno.EPERM, errno.EINVAL)
"""The errnos of chown for a group without the user, or one that the user namespace lacks."""


class Owner(NamedTuple):
    """Whom a new file belongs to, and what comes to it from others."""

    uid: int
    gid: int
    umask: int | None = None
    """What is withheld unless the directory has a default list; None if the kernel has done all of
    that.
    """
    lists: tuple[tuple[str, bytes], ...] = ()
    """The access control lists that it gets, by the names of their attributes; with them
    ``umask`` is None.
    """


class Ownership:
    """Gives new store inodes what is due to them."""

    def __init__(self, layers: Layers, attributes: Attributes) -> None:
        self._store = layers.store
        self._attributes = attributes

    def inherit(self, directory: Inode, mode: int, owner: Owner) -> tuple[int, Owner]:
        """Return the mode that a new file in a directory is made with, and its owner with the
        access control lists that it gets.
        """
        if owner.umask is None:
            return mode, owner
        default = self._attributes.default_acl(directory)
        if default is None:
            return mode & ~owner.umask, owner
        mode, own = acl.inherited(default, mode)
        lists: list[tuple[str, bytes]] = []
        if own is not None:
            lists.append((acl.XATTR, own))
        if stat.S_ISDIR(mode):
            lists.append((acl.DEFAULT_XATTR, default))
        return mode, Owner(owner.uid, owner.gid, None, tuple(lists))

    def set_owner(
        self, parent: Inode, ino: StoreIno, owner: Owner, mode: int, st: os.stat_result | None
    ) -> os.stat_result:
        """Set a new file's owner, group (the directory's, if that is setgid) and permission bits.

        If the user is not in that group, only the view shows it: a commit makes the file where the
        kernel gives it the group.

        Returns the attributes that it has then; ``st`` are those before, if known.
        """
        path = self._store.path(ino)
        uid, gid = owner.uid, owner.gid
        bits = stat.S_IMODE(mode)
        parent_st = self._attributes.stat_lately(parent)
        is_inherited = bool(parent_st.st_mode & stat.S_ISGID)
        if is_inherited:
            gid = self._attributes.owner_of(parent, parent_st)[1]
            if stat.S_ISDIR(mode):
                bits |= stat.S_ISGID
        if st is None:
            st = os.lstat(path)
        has_owner = st.st_uid == uid and st.st_gid == gid
        has_bits = stat.S_ISLNK(mode) or (stat.S_IMODE(st.st_mode) == bits and not bits & (stat.S_ISUID | stat.S_ISGID))
        if has_owner and has_bits and not owner.lists:
            return st
        if not has_owner:
            try:
                os.chown(path, uid, gid, follow_symlinks=False)
            except OSError as error:
                if error.errno not in _NOT_TO_BE_GIVEN or not is_inherited or st.st_uid != uid:
                    raise
                self._store.owners.note(ino, uid, gid)
        if not has_bits:
            os.chmod(path, bits)
        for name, value in owner.lists:
            with contextlib.suppress(OSError):  # the store's disk knows none
                os.setxattr(path, name, value, follow_symlinks=False)
        return os.lstat(path)
