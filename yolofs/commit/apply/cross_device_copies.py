"""Checks, before the first step, what the steps have to copy because no rename leads to where it
goes.

If something moves to another device, or is kept from one, its step copies it.  The original is
deleted when all is done and durable: then there is no way back.  So all of it has to be readable
and removable, and there has to be room for it, before anything of base is touched.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple

from yolofs.commit.plan.kept_objects import KeptObject
from yolofs.commit.plan.moves import Moves
from yolofs.commit.plan.plan import Fetch, Park, Place, Plan, Remove, Rewrite
from yolofs.paths import RelPath, display, split
from yolofs.system import syscalls
from yolofs.system.disk_usage import size_text
from yolofs.system.rename_domains import RenameDomain, rename_domain

_BLOCK = 512


class _Copy(NamedTuple):
    """A thing that a step copies."""

    path: RelPath
    """The step's path in base, for people."""
    source: bytes
    target: bytes
    """A directory on the device that it goes to."""


class _ToCopy(NamedTuple):
    """A thing that is copied, or something in it."""

    path: bytes
    st: os.stat_result
    above: os.stat_result | None
    """The directory that it lies in; None for the thing itself, which has a check of its own."""
    has_more: bool
    """Whether it is a directory in which anything is copied, too."""


def check(plan: Plan, commits: bytes, moves: Moves, store_path: Callable[[int], bytes]) -> None:
    """Look whether all that is copied can be read and deleted, and whether there is room for it.

    ``commits``: the directory of all commits; ``store_path`` tells where a store inode is.

    Raises:
        OSError: it cannot be; its ``filename`` is the path in base.
    """
    _CopyCheck(plan, commits, moves).check(store_path)


class _CopyCheck:
    def __init__(self, plan: Plan, commits: bytes, moves: Moves) -> None:
        self._plan = plan
        self._commits = commits
        self._moves = moves
        self._domains: dict[bytes, RenameDomain | None] = {}
        self._out = {self._at(step.path) for step in (*plan.of(Park), *plan.of(Remove))}
        self._needed: dict[int, int] = {}
        """Bytes, by device."""

    def check(self, store_path: Callable[[int], bytes]) -> None:
        for copy in self._copies():
            self._need(
                copy.path, copy.target, sum(self._look(copy, thing) for thing in self._copied_with(copy)), copy.source
            )
        for step in self._plan.of(Rewrite):
            path = step.path if step.is_first else self._moves.before(step.path)
            if path is not None:
                self._check_growth(path, store_path(step.ino))

    def _check_growth(self, path: RelPath, source: bytes) -> None:
        """Check that there is room for as much as a file grows by that is written in place."""
        with contextlib.suppress(FileNotFoundError, PermissionError):  # what cannot be seen its step will tell
            growth = (os.lstat(source).st_blocks - os.lstat(self._at(path)).st_blocks) * _BLOCK
            self._need(path, os.path.dirname(self._at(path)), max(0, growth))

    def _copies(self) -> Iterator[_Copy]:
        parks = {step.number: step for step in self._plan.of(Park)}
        fetches = {step.number: step for step in self._plan.of(Fetch)}
        for removal in self._plan.of(Remove):
            yield from self._if_far(removal.path, self._at(removal.path), self._commits)
        for place in self._plan.of(Place):
            if place.number in parks:
                source = parks[place.number].path
                yield from self._if_far(source, self._at(source), self._ground(place.path))
            else:
                fetch = fetches[place.number]
                kept = KeptObject(fetch.commit, fetch.slot, fetch.inside).path(self._commits)
                yield from self._if_far(place.path, kept, self._ground(place.path))
        for step in self._plan.replacing:
            above = self._moves.before(split(step.path)[0])
            if above is not None:
                replaced = RelPath(os.path.join(above, split(step.path)[1]))
                yield from self._if_far(replaced, self._at(replaced), self._commits)

    def _if_far(self, path: RelPath, source: bytes, target: bytes) -> Iterator[_Copy]:
        here, there = self._domain(os.path.dirname(source)), self._domain(target)
        if here is not None and there is not None and not here.leads_to(there):
            yield _Copy(path, source, target)

    def _copied_with(self, copy: _Copy) -> Iterator[_ToCopy]:
        """Yield all that is copied with a thing; what a step of its own takes out before is not."""
        links: set[int] = set()
        todo: list[tuple[bytes, os.stat_result | None]] = [(copy.source, None)]
        while todo:
            path, above = todo.pop()
            names: list[bytes] = []
            try:
                st = os.lstat(path)
                if stat.S_ISDIR(st.st_mode):
                    names = [one for name in os.listdir(path) if (one := os.path.join(path, name)) not in self._out]
            except FileNotFoundError:
                continue
            except PermissionError as error:
                if above is None:  # its directory has to be opened up first: its step will tell
                    return
                raise self._refused(errno.EACCES, os.strerror(errno.EACCES), copy, path) from error
            todo += [(name, st) for name in names]
            if stat.S_ISDIR(st.st_mode) or st.st_nlink == 1 or st.st_ino not in links:
                links.add(st.st_ino)
                yield _ToCopy(path, st, above, bool(names))

    def _look(self, copy: _Copy, thing: _ToCopy) -> int:
        """Check one thing that is copied; return how many bytes of the disk it takes."""
        path, st, above, uid = thing.path, thing.st, thing.above, os.geteuid()
        if syscalls.may_never_change(path):
            raise self._refused(errno.EPERM, "it is immutable or append-only (chattr)", copy, path)
        if above is not None and above.st_mode & stat.S_ISVTX and uid not in (0, st.st_uid, above.st_uid):
            why = "it is another user's, in a directory where only its owner may remove it"
            raise self._refused(errno.EPERM, why, copy, path)
        ways = os.R_OK
        if stat.S_ISDIR(st.st_mode):
            ways |= os.W_OK | os.X_OK if thing.has_more and st.st_uid != uid else os.X_OK
        elif not stat.S_ISREG(st.st_mode):
            return st.st_blocks * _BLOCK
        if not os.access(path, ways, effective_ids=True):
            raise self._refused(errno.EACCES, os.strerror(errno.EACCES), copy, path)
        return st.st_blocks * _BLOCK

    def _refused(self, number: int, text: str, copy: _Copy, path: bytes) -> OSError:
        root = self._plan.root.rstrip(b"/") + b"/"
        shown = path.removeprefix(root) if path.startswith(root) else copy.path
        moved = display(self._at(copy.path))
        return OSError(number, f"{text}, and {moved} has to be copied to another disk or mount and deleted", shown)

    def _need(self, path: RelPath, target: bytes, count: int, source: bytes | None = None) -> None:
        """Add to what is needed on the disk of ``target``; what comes from the same pool may take
        nothing there.
        """
        if not count:
            return
        disk = os.statvfs(target)
        if source is not None:
            origin = os.statvfs(os.path.dirname(source))
            if (origin.f_blocks, origin.f_bfree) == (disk.f_blocks, disk.f_bfree):
                return
        device = os.lstat(target).st_dev
        self._needed[device] = needed = self._needed.get(device, 0) + count
        free = (disk.f_bavail if os.geteuid() else disk.f_bfree) * disk.f_frsize
        if disk.f_blocks and needed > free:
            where = display(target)
            text = f"{size_text(needed)} are needed on the disk of {where}, and {size_text(free)} are free"
            raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: {text}", path)

    def _ground(self, path: RelPath) -> bytes:
        return self._at(self._moves.ground(split(path)[0]))

    def _domain(self, directory: bytes) -> RenameDomain | None:
        if directory not in self._domains:
            try:
                self._domains[directory] = rename_domain(directory)
            except OSError:  # it is not there before the steps, or cannot be seen: the step will tell
                self._domains[directory] = None
        return self._domains[directory]

    def _at(self, path: RelPath) -> bytes:
        return os.path.join(self._plan.root, path) if path else self._plan.root
