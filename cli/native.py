"""Which directories can be bound straight from base, by the mounts that this process sees."""

from __future__ import annotations

from collections.abc import Sequence

from yolofs.daemon.mounts import MountEntry
from yolofs.paths import is_below

DISK_TYPES = frozenset(
    b"9p bcachefs btrfs erofs ext2 ext3 ext4 f2fs jfs nfs nfs4 overlay ramfs reiserfs squashfs tmpfs virtiofs xfs "
    b"zfs".split()
)
"""Filesystem types on which files lie, and which mount nothing by themselves."""


def bindable(paths: Sequence[bytes], mounts: Sequence[MountEntry]) -> list[bytes]:
    """Return those of some directories that lie on a disk as a whole: nothing is mounted below them.

    ``mounts``: what this process sees, in the order in which it was mounted.
    """
    return [path for path in paths if _is_of_one_piece(path, mounts)]


def _is_of_one_piece(path: bytes, mounts: Sequence[MountEntry]) -> bool:
    if any(entry.mountpoint != path and is_below(entry.mountpoint, path) for entry in mounts):
        return False
    around = [entry for entry in mounts if is_below(path, entry.mountpoint.rstrip(b"/"))]
    deepest = max((len(entry.mountpoint) for entry in around), default=0)
    on_top = [entry for entry in around if len(entry.mountpoint) == deepest]
    return bool(on_top) and on_top[-1].type in DISK_TYPES
