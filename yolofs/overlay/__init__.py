"""The view: base, overridden by the tree, its data in the store.  Every filesystem operation,
synchronous.

The overlay works on :class:`~yolofs.overlay.inodes.Inode` objects and plain values and raises
:class:`OSError`; it knows nothing of FUSE.  It is not thread-safe: one thread (the device loop,
when mounted) owns it.

:class:`Overlay` puts its parts together; each is given those above it that it uses::

    layers        base, store, journal, tree, and the inodes that somebody holds
    recording     changes: into the journal, then into the tree
    descriptors   the files kept open
    removal       store inodes that nothing can show any more
    recent_looks  what base was seen to be a moment ago
    attributes    what stat tells
    copy_up       making store inodes that may be written
    big_copies    using copies that a thread has made
    long_changes  changes of a file's room that a thread is to make
    finding       looking names up
    data          reading, writing, setting attributes
    ownership     what a new file gets of its user and its directory
    name_checks   whether a name may be made, removed or renamed
    naming        making, removing and renaming names
    unnamed_files files without a name, and their first one
    reloading     what becomes of the inodes when another state is shown

Beside them: paths_by_key (where a tree shows a file), host_changes (what a change of base by the
host makes stale), acl (mode bits that let nobody in whom an access control list keeps out),
absent_xattrs (which extended attributes files are known not to have), held_directories (base
directories held for a moment while their names are looked up).
"""

from yolofs.overlay.big_copies import CopyJob
from yolofs.overlay.data import ALL_STILL_KNOWN, NOW, StillKnown, may_write
from yolofs.overlay.host_changes import HostChange, names_known_in, stale_after
from yolofs.overlay.long_changes import LongChangeError
from yolofs.overlay.naming import RENAME_EXCHANGE, RENAME_NOREPLACE
from yolofs.overlay.ownership import Owner
from yolofs.overlay.paths_by_key import BasePlaces
from yolofs.overlay.reloading import Invalidation
from yolofs.overlay.unnamed_files import UNNAMED
from yolofs.overlay.view import Overlay

__all__ = [
    "ALL_STILL_KNOWN",
    "NOW",
    "RENAME_EXCHANGE",
    "RENAME_NOREPLACE",
    "UNNAMED",
    "BasePlaces",
    "CopyJob",
    "HostChange",
    "Invalidation",
    "LongChangeError",
    "Overlay",
    "Owner",
    "StillKnown",
    "may_write",
    "names_known_in",
    "stale_after",
]
