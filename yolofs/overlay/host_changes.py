"""What the kernel must forget of the view when the host has changed base."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from yolofs.overlay.inodes import Inode
from yolofs.overlay.paths_by_key import BasePlaces
from yolofs.overlay.reloading import Invalidation
from yolofs.overlay.view import Overlay
from yolofs.paths import RelPath, join, split
from yolofs.system.syscalls import look

JUST_MADE_NS = 2 * 10**9
"""How old a directory may be for its name to be kept when the watch reports it."""


class HostChange(NamedTuple):
    """Something that happened to base."""

    path: RelPath
    is_name: bool
    """Whether the name came, went or leads elsewhere; else content or attributes changed."""


def names_known_in(overlay: Overlay, directory: RelPath) -> set[RelPath]:
    """Return the base paths of the names in a base directory that the kernel may know, be they
    there or not.  Looks at all known inodes.
    """
    path = BasePlaces(overlay.tree).path_of(directory)
    parent = overlay.known_at(path) if path is not None else None
    if parent is None:
        return set()
    places = ((inode.parent, inode.name) for inode in overlay.inodes.by_number.values())
    others = (place for inode in overlay.inodes.by_number.values() for place in overlay.inodes.other_names(inode))
    return {join(directory, name) for above, name in (*places, *others) if above is parent}


def stale_after(overlay: Overlay, changes: Iterable[HostChange]) -> Invalidation:
    """Return the kernel's knowledge that has become wrong, and note it on the inodes.

    What is staged hides base, so a change below it concerns nobody; what was renamed in the view is
    found there.
    """
    stale = Invalidation([], [], [], [], {}, set())
    overlay.held.let_go()  # else the kernel could be told anew of a directory that is gone
    finder = BasePlaces(overlay.tree)
    for change in changes:
        path = finder.path_of(change.path)
        if not path:
            continue
        directory, name = split(path)
        parent = overlay.known_at(directory)
        if parent is None:
            continue
        if change.is_name:
            parent.changes += 1
            stale.entries.append((parent.number, name))
            stale.attributes.append(parent.number)
            stale.inodes.append(parent.number)  # its listing, should the kernel have one
        inode = overlay.known_at(path)
        if inode is not None:
            inode.changes += 1
            stale.inodes.append(inode.number)
            if change.is_name and inode.is_directory:
                overlay.upheavals += 1  # of what is in it nothing was told
                stale.renewed[parent.number, name] = path
                if (inode.parent, inode.name) == (parent, name) and _is_just_made(overlay, inode, change.path):
                    stale.expired.add((parent.number, name))
    return stale


def _is_just_made(overlay: Overlay, inode: Inode, path: RelPath) -> bool:
    """Tell whether the host has made a directory of base so lately that all that was told of names
    in it is trusted briefly (``yolofs.fuse.cache.lifetimes.YOUNG_NS``).

    One that was moved there may be old, and so may what is in it.
    """
    if inode.staged is not None or inode.base != path:
        return False
    try:
        birth_ns = look(overlay.base.path(path)).lasting_birth_ns
    except OSError:
        return False
    return birth_ns is not None and inode.seen[0] >= birth_ns > time.time_ns() - JUST_MADE_NS
