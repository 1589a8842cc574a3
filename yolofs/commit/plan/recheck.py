"""Looking again at the plan of a commit that was interrupted, before it goes on: is it still one
for this base?

A new plan comes from names that the view shows, so nothing in it is hidden or lies behind a link.
A plan that has lain on the disk promises neither, and base may have changed since.  The steps
themselves open each directory without following links.  This check comes before them, so that
nothing at all is done where one of them would fail.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Container, Iterable, Iterator, Sequence

from yolofs.commit.plan.plan import (
    Create,
    Duplicate,
    Fetch,
    Link,
    MakeDirectory,
    Park,
    Place,
    Plan,
    Remove,
    paths_of_step,
)
from yolofs.paths import ROOT, RelPath, display, split
from yolofs.store.base import Base
from yolofs.store.interfaces import StoreFiles
from yolofs.system import syscalls
from yolofs.system.disks import disk_key
from yolofs.system.mount_table import mounted_paths
from yolofs.system.plain_files import is_there


def find_problem(plan: Plan, base: Base, *, closed: Iterable[bytes] = ()) -> str:
    """Return why nothing of a plan may be done or undone in base, in words; empty if it may.

    ``closed``: absolute paths of directories that nothing may be done in, besides what base hides.
    """
    if plan.root != base.root:
        return f"its plan is for the base {display(plan.root)}, and the session's is {display(base.root)}"
    where = _DirectoriesOnTheWay(plan, base, [rel for path in closed if (rel := base.relative(path)) is not None])
    for step in plan.steps:
        for path in paths_of_step(step):
            if where.is_closed(path):
                return f"its plan has {display(path)}, where no view and no commit may do anything"
    return ""


def find_obstacle(plan: Plan, base: Base, store: StoreFiles, *, done: int, is_settled: bool = False) -> str:
    """Return why the steps of a plan from number ``done`` on cannot be done now, in words; empty if
    they can.

    The steps that were done can still be undone, unless it ``is_settled``: then all steps are done,
    whatever the log says, and nothing is needed from the store any more.
    """
    where = _DirectoriesOnTheWay(plan, base, ())
    for step in plan.steps[done:]:
        for path in paths_of_step(step):
            link = where.link_above(path)
            if link is not None:
                return f"a symbolic link lies at {display(base.path(link))}, on the way to {display(path)}"
        ino = getattr(step, "ino", None)
        if ino is not None and not is_settled and not is_there(store.path(ino)):
            return f"the content of {display(step.path)} is missing from the store"
    return ""


def find_in_way(plan: Plan, base: Base, *, done: int, made: Container[int]) -> str:
    """Return what the steps of a plan from number ``done`` on would fail at, in words; empty if
    none is seen.

    It is a look, for people: the steps themselves stop where they have to.  ``made``: the inode
    numbers of all that the commit has made, which may be in place already.
    """
    steps = plan.steps[done:]
    if steps and syscalls.is_read_only(base.root):
        return f"{display(base.root)} is read-only"
    moving = {step.path for step in steps if isinstance(step, Park | Remove | Place | MakeDirectory)}
    own = {step.inode for step in plan.steps if isinstance(step, Park | Fetch | Remove)}
    looked: set[RelPath] = set()
    for step in steps:
        directory = split(step.path)[0] if step.path else ROOT
        if not moving.isdisjoint(_way_to(directory)):  # what is there now is not what the step finds
            continue
        if directory not in looked:
            looked.add(directory)
            if _cannot_change(base.path(directory)):
                return f"{display(base.path(directory))} is immutable or append-only (chattr)"
        if not isinstance(step, Create | Place | MakeDirectory) or getattr(step, "replaced", None) is not None:
            continue
        st = base.look(step.path)
        if st is not None and st.st_ino not in made and st.st_ino not in own:
            return f"{display(base.path(step.path))} has been made there meanwhile and is in the way"
    return ""


def mounts_of(plan: Plan) -> list[tuple[RelPath, bytes]]:
    """Return where below base those filesystems are mounted that a plan is about, each with its
    :func:`~yolofs.system.disks.disk_key`.
    """
    with open("/proc/self/mountinfo", "rb") as lines:
        mounted = {path for path, _ in mounted_paths(lines)}
    top = plan.root.rstrip(b"/") + b"/"
    points = {RelPath(path[len(top) :]) for path in mounted if path.startswith(top) and path != top}
    found: set[RelPath] = set()
    seen: set[RelPath] = set()
    for step in plan.steps if points else ():
        for path in paths_of_step(step):
            while path and path not in seen:
                seen.add(path)
                if path in points:
                    found.add(path)
                    break
                path = split(path)[0]
    return [(path, disk_key(os.stat(os.path.join(top + path, b".")).st_dev)) for path in sorted(found)]


def find_other_mount(plan: Plan, before: Sequence[tuple[RelPath, bytes]] | None) -> str:
    """Return in words what is mounted otherwise in base than when a plan was ready; empty if
    nothing is.

    ``before`` is what :func:`mounts_of` returned then; earlier versions did not note it.  Danger:
    whoever works on below a mount point without its disk, or on what covers a directory, puts
    things there, and takes the work on the disk for done.
    """
    if before is None:
        return ""
    known, now = dict(before), dict(mounts_of(plan))
    for path in sorted({*known, *now}):
        place = display(os.path.join(plan.root, path))
        if path not in now:
            return f"the filesystem that was mounted at {place} is not there"
        if path not in known:
            return f"another filesystem has been mounted at {place} meanwhile"
        keys = known[path], now[path]
        if keys[0] != keys[1] and all(key.startswith(b"uuid ") for key in keys):
            return f"another filesystem is mounted at {place} than then"
    return ""


def _cannot_change(path: bytes) -> bool:
    try:
        return syscalls.may_never_change(path)
    except OSError:  # it has moved, or is not made yet
        return False


class _DirectoriesOnTheWay:
    """Looks at the directories that paths lie in, at each once."""

    def __init__(self, plan: Plan, base: Base, closed: Iterable[RelPath]) -> None:
        self._base = base
        self._closed = frozenset(closed)
        self._open: set[RelPath] = {ROOT}
        self._links: dict[RelPath, RelPath | None] = {ROOT: None}
        self._changing = {step.path for step in plan.steps if isinstance(step, _MAY_CHANGE_TYPE)}
        """The plan itself takes links away here, or puts them there."""

    def is_closed(self, path: RelPath) -> bool:
        """Tell whether a path is, or lies in, what nobody may see or change in base."""
        if ROOT in self._closed:
            return True
        base = self._base
        for place in (path,) if split(path)[0] in self._open else _way_to(path):
            if place in self._open:
                continue
            if place in self._closed or base.is_hidden(place) or base.is_pseudo(place):
                return True
            if base.is_hidden_name(*split(place)):
                return True
            self._open.add(place)
        return False

    def link_above(self, path: RelPath) -> RelPath | None:
        """Return a symbolic link that lies on the way to a path, None if there is none."""
        link = None
        for place in _way_to(split(path)[0]) if path else ():
            if place not in self._links:
                self._links[place] = place if self._is_link(place) else link
            link = self._links[place]
        return link

    def _is_link(self, place: RelPath) -> bool:
        if place in self._changing:
            return False
        try:
            return stat.S_ISLNK(os.lstat(self._base.path(place)).st_mode)
        except OSError:  # it has moved, or is not made yet
            return False


def _way_to(path: RelPath) -> Iterator[RelPath]:
    """Yield each directory on the way to a path, from the top, and the path."""
    end = path.find(b"/")
    while end >= 0:
        yield RelPath(path[:end])
        end = path.find(b"/", end + 1)
    yield path


_MAY_CHANGE_TYPE = Park | Remove | Create | Place | Link | Duplicate
