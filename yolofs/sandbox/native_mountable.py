"""Which directories can be bound straight from base, by the mounts that this process sees."""

from __future__ import annotations

import os
from collections.abc import Sequence

from yolofs.paths import is_below, is_in
from yolofs.sandbox.partial_binds import directories_beside
from yolofs.system.mounts import MountEntry

DISK_TYPES = frozenset(
    b"9p bcachefs btrfs erofs ext2 ext3 ext4 f2fs jfs nfs nfs4 overlay ramfs reiserfs squashfs tmpfs virtiofs xfs "
    b"zfs".split()
)
"""Filesystem types on which files lie, and which mount nothing by themselves."""


def bindable(paths: Sequence[bytes], mounts: Sequence[MountEntry]) -> list[bytes]:
    """Return what can be bound of some paths: what lies on a disk and has nothing mounted below it,
    or its parts.

    ``mounts``: what this process sees, in the order in which it was mounted.
    """
    found = []
    for path in paths:
        below = [entry.mountpoint for entry in mounts if entry.mountpoint != path and is_below(entry.mountpoint, path)]
        found += [part for part in (directories_beside(path, below) if below else [path]) if _is_on_disk(part, mounts)]
    return found


def by_directory(paths: Sequence[bytes], mounts: Sequence[MountEntry]) -> dict[bytes, list[bytes]]:
    """Return the highest directories in which nothing is mounted, and which of the paths lie there.

    Of these an overlay can be made by an ordinary user, too: nobody else's mount hides anything in
    them.  What lies in no such directory is told as lying in the root, if it does: of that only
    root can make an overlay; links need none.
    """
    points = {entry.mountpoint for entry in mounts}
    around = {above for point in points for above in _above(point)}
    found: dict[bytes, list[bytes]] = {}
    for path in paths:
        highest = next((above for above in _above(path) if above not in around), path)
        is_link = os.path.islink(path)
        if highest == path and (is_link or not os.path.isdir(path)):
            if not is_link and points.intersection(_above(path)) - {b"/"}:
                continue  # what an overlay of the root has at this path is what a mount hides
            highest = b"/"
        found.setdefault(highest, []).append(path)
    return found


def _above(path: bytes) -> list[bytes]:
    """Return the directories above a path, the highest first."""
    words = path.split(b"/")[1:]
    return [b"/" + b"/".join(words[:count]) for count in range(len(words) if words[0] else 0)]


def _is_on_disk(path: bytes, mounts: Sequence[MountEntry]) -> bool:
    around = [entry for entry in mounts if is_in(path, entry.mountpoint)]
    deepest = max((len(entry.mountpoint) for entry in around), default=0)
    on_top = [entry for entry in around if len(entry.mountpoint) == deepest]
    return bool(on_top) and on_top[-1].type in DISK_TYPES
