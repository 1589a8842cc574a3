"""What the kernel must forget of the view when the host has changed base."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from yolofs.overlay.view import Invalidation, Overlay
from yolofs.overlay.whereabouts import Whereabouts
from yolofs.paths import RelPath, split
from yolofs.tree import Shown


class HostChange(NamedTuple):
    """Something that happened to base."""

    path: RelPath
    is_name: bool
    """Whether the name came, went or leads elsewhere; else content or attributes changed."""


def stale_after(overlay: Overlay, changes: Iterable[HostChange]) -> Invalidation:
    """Return what the kernel may know that is wrong now.

    What is staged hides base, so a change below it concerns nobody; what was renamed in the view is found there.
    """
    stale = Invalidation([], [], [], [])
    finder = _Finder(overlay)
    for change in changes:
        path = finder.path_of(change.path)
        if not path:
            continue
        directory, name = split(path)
        parent = overlay.known_at(directory)
        if parent is None:
            continue
        if change.is_name:
            stale.entries.append((parent.number, name))
            stale.attributes.append(parent.number)
        inode = overlay.known_at(path)
        if inode is not None:
            stale.inodes.append(inode.number)
            if change.is_name and inode.is_directory:
                stale.moved.append(path)
    return stale


class _Finder:
    """Finds the paths of the view that show base paths."""

    def __init__(self, overlay: Overlay) -> None:
        self._tree = overlay.tree
        self._whereabouts: Whereabouts | None = None

    def path_of(self, base: RelPath) -> RelPath | None:
        """Return where a base path is shown (or would be, if it is gone), None if nowhere."""
        if self._shows(self._tree.resolve(base), base):
            return base
        if self._whereabouts is None:
            self._whereabouts = Whereabouts(self._tree)
        path = self._whereabouts.path_of(base)
        return path if path is not None and self._shows(self._tree.resolve(path), base) else None

    @staticmethod
    def _shows(shown: Shown | None, base: RelPath) -> bool:
        return shown is not None and shown.base == base
