"""Which directories can be bound straight from base, by the mounts that this process sees."""

from __future__ import annotations

from collections.abc import Sequence

from yolofs.daemon.mounts import MountEntry
from yolofs.daemon.parts import parts
from yolofs.paths import is_below

DISK_TYPES = frozenset(
    b"9p bcachefs btrfs erofs ext2 ext3 ext4 f2fs jfs nfs nfs4 overlay ramfs reiserfs squashfs tmpfs virtiofs xfs "
    b"zfs".split()
)
"""Filesystem types on which files lie, and which mount nothing by themselves."""


def bindable(paths: Sequence[bytes], mounts: Sequence[MountEntry]) -> list[bytes]:
    """Return what can be bound of some paths: what lies on a disk and has nothing mounted below it, or its parts.

    ``mounts``: what this process sees, in the order in which it was mounted.
    """
    found = []
    for path in paths:
        below = [entry.mountpoint for entry in mounts if entry.mountpoint != path and is_below(entry.mountpoint, path)]
        found += [part for part in (parts(path, below) if below else [path]) if _is_on_disk(part, mounts)]
    return found


def _is_on_disk(path: bytes, mounts: Sequence[MountEntry]) -> bool:
    around = [entry for entry in mounts if is_below(path, entry.mountpoint.rstrip(b"/"))]
    deepest = max((len(entry.mountpoint) for entry in around), default=0)
    on_top = [entry for entry in around if len(entry.mountpoint) == deepest]
    return bool(on_top) and on_top[-1].type in DISK_TYPES
