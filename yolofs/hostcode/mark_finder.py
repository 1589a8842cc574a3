"""Finds the changes that would give the host new code to run; only a commit that names them makes
them real.

Four kinds.  A regular file that runs with more rights than the caller's, or with those of its owner
or group: file capabilities, setuid, or setgid if its group may execute it.  Without that bit,
setgid once stood for mandatory locks; on a directory it is ordinary, as new files there get its
group.  A device, which may be a disk that anybody reads.  A *command*: what somebody runs by its
name alone, as it lies in a directory of ``PATH``, or a link there leads to it.  And what the table
names.  A directory that was renamed is one change, so it counts for what is in it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence

from yolofs.changes.changes import Aspect, Change, ChangeKind, Side
from yolofs.hostcode.code_files import FileMarkFinder
from yolofs.hostcode.commands import SearchPath
from yolofs.hostcode.mark import Mark, Marks
from yolofs.paths import RelPath, is_below, join
from yolofs.store.copying import at
from yolofs.system.syscalls import open_by_no_link

_RIGHTS = stat.S_ISUID | stat.S_ISGID
_ANY_EXECUTE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_SPECIAL = _RIGHTS | _ANY_EXECUTE
_GONE = (FileNotFoundError, NotADirectoryError)
_DEVICES = frozenset({stat.S_IFBLK, stat.S_IFCHR})


class MarkFinder:
    """Tells what changes make of files."""

    def __init__(self, path: SearchPath, files: Callable[[Sequence[Change]], FileMarkFinder]) -> None:
        """``files`` returns what tells the marks of files by the table, given all changes."""
        self._search = path
        self._directories = _folded(path.directories)
        self._ways = _folded(path.ways)
        self._linked: frozenset[bytes] | None = None
        self._files = files

    def marks(self, changes: Sequence[Change]) -> Marks:
        """Return what becomes of the files at which paths, of all changes from one state to
        another.
        """
        found: dict[RelPath, tuple[Mark, ...]] = {}
        files = self._files(changes)
        gone = {change.paths[0] for change in changes if change.old is not None}
        for change in changes:
            new = change.new
            if new is None or (change.kind is ChangeKind.METADATA and change.metadata == (Aspect.TIME,)):
                continue
            marks = self._of_what_is_there(change.path, new)
            if (mark := files.mark(change)) is not None and mark not in marks:
                marks += (mark,)
            if change.is_subtree:
                marks = _in_order({*marks, *self._in_renamed(change, gone, files)})
            if marks:
                found[change.path] = marks
        return found

    def _of_what_is_there(self, path: RelPath, new: Side) -> tuple[Mark, ...]:
        """Return what a file or link is by its mode, and as a command at a path."""
        if new.type == stat.S_IFREG:
            if not new.mode & _SPECIAL:
                return ()
            marks = _rights(new.mode, new.meta)
            return (*marks, Mark.COMMAND) if new.mode & _ANY_EXECUTE and self._is_on_path(path) else marks
        if new.type in _DEVICES and new.rdev:  # 0, 0 is none, but what overlays take for a removed file
            return (Mark.DEVICE,)
        if new.type == stat.S_IFLNK and self._is_on_a_way(path):
            return (Mark.COMMAND,)
        return ()

    def _is_on_a_way(self, path: RelPath) -> bool:
        return path.lower() in self._ways or self._is_on_path(path)

    def _is_on_path(self, path: RelPath) -> bool:
        folded = path.lower()
        return folded.rpartition(b"/")[0] in self._directories or folded in self._linked_paths()

    def _linked_paths(self) -> frozenset[bytes]:
        if self._linked is None:
            self._linked = _folded(self._search.linked)
        return self._linked

    def _in_renamed(self, change: Change, gone: set[RelPath], files: FileMarkFinder) -> set[Mark]:
        """Return what a renamed directory brings along; ``gone``: the old paths of what has a line
        of its own.
        """
        assert change.new is not None
        top, source = change.path, change.old_path
        if change.new.data is None or source is None:
            return set()
        marks: set[Mark] = set()
        is_near = any(is_below(one, top.lower()) for one in self._directories | self._ways | self._linked_paths())
        todo = [b""]
        while todo:
            inner = todo.pop()
            try:  # somebody may exchange it for a link to where there is nothing of that kind
                directory = open_by_no_link(os.path.join(change.new.data, inner), os.O_RDONLY | os.O_DIRECTORY)
            except _GONE:
                continue
            except OSError:
                marks.add(Mark.UNSEEN)  # a program may close it, rename it, and open it again
                continue
            try:
                entries = list(os.scandir(directory))
                for entry in entries:
                    name = os.fsencode(entry.name)
                    rel = inner + b"/" + name if inner else name
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(rel)
                    elif join(source, rel) not in gone:
                        path = join(top, rel)
                        marks.update(self._in_directory(entry, at(directory, name), path, is_near=is_near))
                        if (mark := files.mark_in(path, is_link=entry.is_symlink())) is not None:
                            marks.add(mark)
            finally:
                os.close(directory)
        return marks

    def _in_directory(self, entry: os.DirEntry[str], place: bytes, path: RelPath, *, is_near: bool) -> tuple[Mark, ...]:
        if entry.is_symlink():
            return (Mark.COMMAND,) if is_near and self._is_on_a_way(path) else ()
        try:
            mode = entry.stat(follow_symlinks=False).st_mode
        except _GONE:
            return ()
        except OSError:
            return (Mark.UNSEEN,)
        if not stat.S_ISREG(mode) or not mode & _SPECIAL:
            return ()
        marks = _rights(mode, place)
        return (*marks, Mark.COMMAND) if is_near and mode & _ANY_EXECUTE and self._is_on_path(path) else marks


def _folded(paths: Iterable[RelPath]) -> frozenset[bytes]:
    """Return paths in lower case: some disks find a file by its name in any case."""
    return frozenset(path.lower() for path in paths)


def _in_order(marks: set[Mark]) -> tuple[Mark, ...]:
    return tuple(mark for mark in Mark if mark in marks)


def _rights(mode: int, path: bytes) -> tuple[Mark, ...]:
    """Return what rights a file with something of :data:`_SPECIAL` gives to whoever runs it."""
    marks: tuple[Mark, ...] = (Mark.SETUID,) if mode & stat.S_ISUID else ()
    if mode & stat.S_ISGID and mode & stat.S_IXGRP:
        marks += (Mark.SETGID,)
    return (*marks, Mark.CAPABILITY) if mode & _ANY_EXECUTE and _has_capability(path) else marks


def _has_capability(path: bytes) -> bool:
    try:
        os.getxattr(path, "security.capability", follow_symlinks=False)
    except OSError:
        return False  # as nearly all
    return True
