"""Following the symbolic links of a path without the kernel, by a function that tells what a link
holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias

import msgspec

TargetOf: TypeAlias = Callable[[bytes], bytes | None]
"""Returns what the symbolic link at an absolute path holds, None for what is none."""

_MAX_LINKS = 40
"""With more of them the kernel opens nothing either (ELOOP)."""


class FollowedPath(msgspec.Struct, frozen=True):
    """Where a path leads."""

    place: bytes
    """Where it ends, without links; the path itself where links lead round in a circle."""
    links: tuple[bytes, ...] = ()
    """The links that it goes on by, in their order, each without links above it."""
    turns: tuple[bytes, ...] = ()
    """The directories that it leaves again by ``..``."""
    is_circle: bool = False
    """Whether there are too many links."""


def follow(path: bytes, target_of: TargetOf) -> FollowedPath:
    """Follow the links of an absolute path; it may end where nothing is.

    After 40 links it counts as a circle, as for the kernel.
    """
    links: dict[bytes, None] = {}
    turns: dict[bytes, None] = {}
    at, todo, count = b"", path.split(b"/")[::-1], 0
    while todo:
        name = todo.pop()
        if name in (b"", b"."):
            continue
        if name == b"..":
            turns[at or b"/"] = None
            at = at.rpartition(b"/")[0]
            continue
        here = at + b"/" + name
        target = target_of(here)
        if target is None:
            at = here
            continue
        count += 1
        if count > _MAX_LINKS:
            return FollowedPath(path, tuple(links), tuple(turns), is_circle=True)
        links[here] = None
        todo += target.split(b"/")[::-1]
        if target.startswith(b"/"):
            at = b""
    return FollowedPath(at or b"/", tuple(links), tuple(turns))


class Follower:
    """Follows many absolute paths while no link changes; none of them has ``.``, ``..`` or doubled
    slashes.
    """

    def __init__(self, target_of: TargetOf) -> None:
        self._target_of = target_of
        self._plain: set[bytes] = set()
        """Directories whose paths go by no link: there only the last name is looked at."""

    def follow(self, path: bytes) -> FollowedPath:
        """Do what :func:`follow` does."""
        above = path.rpartition(b"/")[0]
        if above in self._plain and self._target_of(path) is None:
            return FollowedPath(path)
        way = follow(path, self._target_of)
        if way.place == path and not way.links:
            self._plain.add(above)
        return way


class HostLinks:
    """What the links of the host hold, each looked at once."""

    def __init__(self) -> None:
        self._targets: dict[bytes, bytes | None] = {}
        self.missing: set[bytes] = set()
        """Paths without anything: nothing is below them either, and most lookups find nothing."""

    def target(self, path: bytes) -> bytes | None:
        """Return what the link at an absolute path holds, None for what is none."""
        if path not in self._targets:
            self._targets[path] = None
            if path.rpartition(b"/")[0] in self.missing:
                self.missing.add(path)
                return None
            try:
                self._targets[path] = os.readlink(path)
            except FileNotFoundError:
                self.missing.add(path)
            except OSError:
                pass  # it is no link
        return self._targets[path]


def follow_parent(path: bytes, target_of: TargetOf) -> FollowedPath:
    """Follow the links of an absolute path except for its last component, as ``lstat`` does.

    One that ends in a slash, ``.`` or ``..`` is followed to its end.
    """
    parent, name = os.path.split(path)
    if name in (b"", b".", b".."):
        return follow(path, target_of)
    way = follow(parent, target_of)
    return msgspec.structs.replace(way, place=path if way.is_circle else os.path.join(way.place, name))
