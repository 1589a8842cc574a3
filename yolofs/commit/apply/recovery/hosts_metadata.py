"""Which mode, owner, time and extended attributes the host has given to something while a commit
was interrupted: those that it neither had before nor gets from the commit.
"""

from __future__ import annotations

import os
import stat

from yolofs.store.copying import Metadata
from yolofs.system.clock import is_kept_as

_OPENED = (0, 0o600, stat.S_IWUSR, stat.S_IRWXU)
"""What is added to the mode of something to work on it."""
_ACL = "system.posix_acl_access"


def with_hosts_metadata(
    now: Metadata, old: Metadata, new: Metadata, wanted: Metadata, *, has_time: bool
) -> tuple[Metadata, tuple[str, ...]]:
    """Return what to give to something: what is ``wanted``, but for what the host has given it; and
    how that is named to people.

    ``now`` is what it has, ``old`` what it had before the commit, and ``new`` what the commit gives
    it.  With ``has_time`` its time, too, is one of these unless the host has changed it.
    """
    hosts: list[str] = []
    mode, uid, gid = wanted.st.st_mode, wanted.st.st_uid, wanted.st.st_gid
    if now.st.st_gid not in (old.st.st_gid, new.st.st_gid):
        gid = now.st.st_gid
        hosts.append("group")
    if now.st.st_uid not in (old.st.st_uid, new.st.st_uid):
        uid = now.st.st_uid
        hosts.append("owner")
    xattrs, names = _xattrs(now, old, new, wanted)
    hosts += names
    if not _is_on_the_way(now.st.st_mode, old.st.st_mode, new.st.st_mode):
        mode = now.st.st_mode
        hosts.append("mode")
    times = wanted.st
    if has_time and not any(is_kept_as(one.st.st_mtime_ns, now.st.st_mtime_ns) for one in (old, new)):
        times = now.st
        hosts.append("times")
    if not hosts:
        return wanted, ()
    of_times = {"st_atime_ns": times.st_atime_ns, "st_mtime_ns": times.st_mtime_ns}
    st = os.stat_result((mode, 0, 0, 1, uid, gid, 0, 0, 0, 0), of_times)
    return Metadata(st, xattrs, wanted.unread), tuple(hosts)


def _xattrs(
    now: Metadata, old: Metadata, new: Metadata, wanted: Metadata
) -> tuple[tuple[tuple[str, bytes], ...], list[str]]:
    """Return the attributes to give, and the names of those among them that are the host's."""
    there, before, given, found = dict(now.xattrs), dict(old.xattrs), dict(new.xattrs), dict(wanted.xattrs)
    hosts: list[str] = []
    for name in {**before, **given, **there}:
        aspect, value = f"xattr {name}", there.get(name)
        if value in (before.get(name), given.get(name)) or aspect in now.unread:
            continue
        if value is None and name.startswith("security."):  # a change of content or owner clears these
            continue
        if name == _ACL and now.st.st_mode not in (old.st.st_mode, new.st.st_mode):  # it has the mode in it
            continue
        hosts.append(aspect)
        if value is None:
            found.pop(name, None)
        else:
            found[name] = value
    return tuple(found.items()), sorted(hosts)


def _is_on_the_way(mode: int, old: int, new: int) -> bool:
    """Tell whether something has one of two modes, has been opened up, or has what it has between
    the calls that change its owner, its access control list and its mode: a change of owner clears
    setuid and setgid.
    """
    special = {bits & ~cleared & 0o7000 for bits in (old, new) for cleared in (0, stat.S_ISUID | stat.S_ISGID)}
    plain = {(one | opened) & ~0o7000 for one in (old, new) for opened in _OPENED}
    return mode & 0o7000 in special and mode & ~0o7000 in plain
