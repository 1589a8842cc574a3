"""Which extended attributes a commit gives, and whether something has others: the host's.

The time of change tells that something has changed, and not what: each hard link that a backup
makes changes it, too.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable

from yolofs.state.kept_bases import digest_of_xattrs
from yolofs.store.copying import Metadata, has_only_labels, is_label, read_metadata
from yolofs.system.syscalls import PATH_MAX

Digests = list[tuple[bytes, bytes]]
_ACL = "system.posix_acl_access"


def digests_of(path: bytes) -> Digests:
    """Return the names of what something has of attributes, each with a digest of it, without those
    that the system gives by itself.

    Raises:
        OSError: they cannot be read.
    """
    is_short = len(path) < PATH_MAX  # and so may be asked directly, which is fast
    return [] if is_short and has_only_labels(path) else _digests(read_metadata(path).xattrs)


def _digests(xattrs: Iterable[tuple[str, bytes]]) -> Digests:
    return [(os.fsencode(name), digest_of_xattrs([(name, value)])) for name, value in xattrs if not is_label(name)]


def has_others(now: Metadata, given: Collection[tuple[bytes, bytes]], mode: int | None) -> bool:
    """Tell whether something has an attribute that it was not given, or has with another value.

    One that it lacks could not be set, or is gone, and nothing can be lost of it.  An access
    control list has the mode in it, so it counts only where the ``mode`` is still the one given.
    """
    is_opened = mode is not None and stat.S_IMODE(now.st.st_mode) != stat.S_IMODE(mode)
    found = _digests((name, value) for name, value in now.xattrs if not (is_opened and name == _ACL))
    return not set(found) <= set(given)
