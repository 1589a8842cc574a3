"""Following the symbolic links on a path by what a state shows, where base has nothing."""

from __future__ import annotations

import errno
import os
import stat

from yolofs.base import Base
from yolofs.paths import ROOT, RelPath, join, parse_relpath, split
from yolofs.store import Store
from yolofs.tree import Tree

_MOST_LINKS = 40
"""As many as the kernel follows."""


def follow_links(tree: Tree, base: Base, store: Store, path: RelPath) -> RelPath:
    """Return a path without the links on it; its last component is not followed.

    ``path`` leads through no link that base has.  Where base has something, that counts: it may be what the view has
    deleted.

    Raises:
        OSError: there are too many links (ELOOP).
        ValueError: a link leads out of base.
    """
    todo = path.split(b"/")
    place, links = ROOT, 0
    while len(todo) > 1:
        name = todo.pop(0)
        if name in (b"", b"."):
            continue
        if name == b"..":
            place = split(place)[0] if place else place
            continue
        target = _target(tree, base, store, join(place, name))
        if target is None:
            place = join(place, name)
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith(b"/"):
            relative = base.relative(target)
            if relative is None:
                raise ValueError(target)
            place, target = ROOT, relative
        todo = [*target.split(b"/"), *todo]
    return parse_relpath(b"/".join((place, todo[0])) if place else todo[0])


def _target(tree: Tree, base: Base, store: Store, path: RelPath) -> bytes | None:
    """Return where a link leads, None if there is none."""
    try:
        return os.readlink(base.path(path)) if stat.S_ISLNK(base.lstat(path).st_mode) else None
    except OSError:
        shown = tree.resolve(path)
    if shown is None or shown.staged is None:
        return None
    try:
        return os.readlink(store.path(shown.staged.ino))
    except OSError:  # it is no link
        return None
