"""Which changes give the host something to run that it did not have: what only a commit that names it makes real.

Two kinds.  A regular file that runs with the rights of its owner or group, not of who runs it (setuid, or setgid where
its group may execute it; without that bit setgid once stood for mandatory locks, and on a directory it is ordinary:
what is made there gets its group).  And a *command*: what somebody runs by its name alone, as it lies in a directory of
``PATH``, or a link there leads to it.  A directory that was renamed is one change, so it counts for what is in it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import TypeAlias

from yolofs.base import Base
from yolofs.changes import Aspect, Change, Kind
from yolofs.paths import RelPath, is_below, join

_RIGHTS = stat.S_ISUID | stat.S_ISGID
_ANY_EXECUTE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_SPECIAL = _RIGHTS | _ANY_EXECUTE
_MOST_LINKS = 40


class Mark(Enum):
    """What a file becomes by a change; the value is the word that JSON has for it."""

    SETUID = "setuid"
    SETGID = "setgid"
    COMMAND = "command"

    @property
    def text(self) -> str:
        """What a person reads."""
        return "command on PATH" if self is Mark.COMMAND else self.value


Marks: TypeAlias = Mapping[RelPath, tuple[Mark, ...]]
"""What becomes of the files at which paths."""


class SearchPath:
    """Where the shell of whoever commits finds commands: directories, the links that lead there, and those in them."""

    def __init__(self, base: Base, directories: Iterable[bytes], mountpoint: bytes | None = None) -> None:
        """Resolve absolute paths by base; what is not there yet counts, too.  A path in the mount stands for base's."""
        self._base = base
        self._mountpoint = mountpoint
        self.directories: set[RelPath] = set()
        """Relative to base: where the paths lead, and where they would if a link on the way became a directory."""
        self.ways: set[RelPath] = set()
        """What is on the way to one: a link put there leads to other commands."""
        self._places: list[bytes] = []
        """Where the paths lead, absolute, also out of base."""
        for directory in directories:
            place = self._resolve(directory, self.directories, self.ways)
            if place is not None:
                self._places.append(place)

    @cached_property
    def linked(self) -> frozenset[RelPath]:
        """Where the links in these directories lead, and all that is on the way there.

        A file there is a command, and a link there leads to another one.
        """
        places: set[RelPath] = set()
        for directory in dict.fromkeys(self._places):
            with contextlib.suppress(OSError), os.scandir(directory) as entries:
                for link in [entry.path for entry in entries if entry.is_symlink()]:
                    self._resolve(link, places, places)
        return frozenset(places)

    @classmethod
    def of_environment(cls, base: Base, mountpoint: bytes | None) -> SearchPath:
        """Return that of this process; an empty or relative entry is meant from the current directory."""
        words = os.fsencode(os.environ.get("PATH", os.defpath)).split(b":")
        try:
            current = os.getcwdb()
        except OSError:  # it has been removed
            current = b""
        absolute = (os.path.join(current, word) for word in dict.fromkeys(words))
        return cls(base, [path for path in absolute if path.startswith(b"/")], mountpoint)

    def _resolve(self, path: bytes, leads: set[RelPath], ways: set[RelPath]) -> bytes | None:
        """Return where an absolute path leads, None if nowhere; add that and where it may lead to ``leads``.

        What it comes by is added to ``ways``.  Danger: the mount itself must not be touched here, as it may wait for
        this very process.
        """
        todo = _reversed_names(path)
        place = b""
        links = 0
        while True:
            if self._mountpoint is not None and place == self._mountpoint:
                place = self._base.root.rstrip(b"/")
            if not todo:
                break
            name = todo.pop()
            if name == b"..":
                place = place.rpartition(b"/")[0]
                continue
            above, place = place, place + b"/" + name
            if place == self._mountpoint:
                continue
            self._add(ways, place)
            try:
                target = os.readlink(place)
            except OSError:
                continue
            links += 1
            if links > _MOST_LINKS:
                return None
            self._add(leads, b"/".join((place, *reversed(todo))))
            place = b"" if target.startswith(b"/") else above
            todo += _reversed_names(target)
        self._add(leads, place or b"/")
        return place or b"/"

    def _add(self, paths: set[RelPath], path: bytes) -> None:
        try:
            rel = self._base.relative(path)
        except ValueError:  # a name that is too long to be one
            return
        if rel is not None:
            paths.add(rel)


def _reversed_names(path: bytes) -> list[bytes]:
    return [name for name in reversed(path.split(b"/")) if name not in (b"", b".")]


class Marker:
    """Tells what changes make of files."""

    def __init__(self, path: SearchPath) -> None:
        self._search = path
        self._directories = path.directories
        self._ways = path.ways

    def marks(self, changes: Sequence[Change]) -> Marks:
        """Return what becomes of the files at which paths, of all changes from one state to another."""
        found: dict[RelPath, tuple[Mark, ...]] = {}
        renamed: list[Change] = []
        for change in changes:
            new = change.new
            if new is None:
                continue
            kind = new.type
            if kind == stat.S_IFREG:
                if new.mode & _SPECIAL and (marks := self._of_file(change, new.mode)):
                    found[change.path] = marks
            elif kind == stat.S_IFLNK:
                if change.path in self._ways or self._is_on_path(change.path):
                    found[change.path] = (Mark.COMMAND,)
            elif change.is_subtree:
                renamed.append(change)
        if renamed:
            gone = {change.paths[0] for change in changes if change.old is not None}
            for change in renamed:
                if marks := self._of_directory(change, gone):
                    found[change.path] = marks
        return found

    def _of_file(self, change: Change, mode: int) -> tuple[Mark, ...]:
        if change.kind is Kind.METADATA and change.metadata == (Aspect.TIME,):
            return ()
        marks = _rights(mode)
        if mode & _ANY_EXECUTE and self._is_on_path(change.path):
            marks += (Mark.COMMAND,)
        return marks

    def _is_on_path(self, path: RelPath) -> bool:
        return path.rpartition(b"/")[0] in self._directories or path in self._search.linked

    def _of_directory(self, change: Change, gone: set[RelPath]) -> tuple[Mark, ...]:
        """Return what a renamed directory brings along; ``gone``: the old paths of what has a line of its own."""
        assert change.new is not None
        top, source = change.path, change.old_path
        if change.new.data is None or source is None:
            return ()
        marks: set[Mark] = set()
        is_near = any(is_below(one, top) for one in self._directories | self._ways | self._search.linked)
        todo = [b""]
        while todo:
            inner = todo.pop()
            try:
                entries = os.scandir(os.path.join(change.new.data, inner))
            except OSError:
                continue
            with entries:
                for entry in entries:
                    rel = inner + b"/" + entry.name if inner else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(rel)
                    elif join(source, rel) not in gone:
                        marks.update(self._in_directory(entry, join(top, rel), is_near=is_near))
        return tuple(mark for mark in Mark if mark in marks)

    def _in_directory(self, entry: os.DirEntry[bytes], path: RelPath, *, is_near: bool) -> tuple[Mark, ...]:
        if entry.is_symlink():
            return (Mark.COMMAND,) if is_near and (path in self._ways or self._is_on_path(path)) else ()
        try:
            mode = entry.stat(follow_symlinks=False).st_mode
        except OSError:
            return ()
        if not stat.S_ISREG(mode) or not mode & _SPECIAL:
            return ()
        marks = _rights(mode)
        return (*marks, Mark.COMMAND) if is_near and mode & _ANY_EXECUTE and self._is_on_path(path) else marks


def _rights(mode: int) -> tuple[Mark, ...]:
    if not mode & _RIGHTS:
        return ()
    marks: tuple[Mark, ...] = (Mark.SETUID,) if mode & stat.S_ISUID else ()
    return (*marks, Mark.SETGID) if mode & stat.S_ISGID and mode & stat.S_IXGRP else marks
