"""The view: base, overridden by the tree, its data in the store.  Every filesystem operation, synchronous.

The overlay works on :class:`~yolofs.overlay.inodes.Inode` objects and plain values and raises :class:`OSError`; it
knows nothing of FUSE.  It is not thread-safe: one thread (the device loop, when mounted) owns it.

:class:`Overlay` is built up in storeys, each a module that uses only those below it::

    view        showing another state                      Overlay
    naming      making, removing and renaming names        Naming
    data        reading, writing, setting attributes       Data
    finding     looking names up                           Finding
    big_copies  using copies that a thread has made        BigCopies
    copy_up     making store inodes that may be written    CopyUp
    attributes  what stat tells                            Attributes
    layers      base, store, journal, tree, descriptors    Layers

Beside them: whereabouts (where a tree shows a file), host_changes (what a change of base by the host makes stale), acl
(mode bits that let nobody in whom an access control list keeps out).
"""

from yolofs.overlay.big_copies import CopyJob
from yolofs.overlay.data import ALL_HELD, Held, may_write
from yolofs.overlay.find_by_key import BasePlaces
from yolofs.overlay.host_changes import HostChange, stale_after
from yolofs.overlay.naming import RENAME_EXCHANGE, RENAME_NOREPLACE, Owner
from yolofs.overlay.view import Invalidation, Overlay

__all__ = [
    "ALL_HELD",
    "RENAME_EXCHANGE",
    "RENAME_NOREPLACE",
    "BasePlaces",
    "CopyJob",
    "Held",
    "HostChange",
    "Invalidation",
    "Overlay",
    "Owner",
    "may_write",
    "stale_after",
]
