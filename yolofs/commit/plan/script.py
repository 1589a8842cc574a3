"""A plan as a shell script that does the same to base with the usual tools: to be read, or to be
run by hand.

It stops at the first command that fails.  It keeps everything that it replaces in a directory of
its own, and prints its name at the end.  A file with other names (hard links) is kept as a copy, so
that it stays what it was.  A directory that forbids its owner to write is opened up while names in
it change.  What it cannot do as a commit does: it makes nothing before it begins, exchanges nothing
in one step, and is finished or taken back by nobody.  Names are quoted, whatever they are made of.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from typing import assert_never

from yolofs.commit.plan.kept import Kept
from yolofs.commit.plan.plan import (
    Create,
    Duplicate,
    Fetch,
    FinishDirectory,
    Link,
    MakeDirectory,
    Park,
    Place,
    Plan,
    Remove,
    Rewrite,
    SetMetadata,
    Step,
    describe,
)
from yolofs.paths import RelPath, display, split
from yolofs.store.store import StorePaths

_HEAD = (
    b"#!/bin/sh",
    b"# What a commit would do to %(root)s, as a script.  It needs the files of the session, and GNU coreutils.",
    b"set -eu",
    b"kept=$(mktemp -d %(template)s)",
    b"""trap 'echo "what was replaced lies in $kept" >&2' EXIT""",
    b'mkdir "$kept/parked" "$kept/replaced"',
    b"keep() {  # what is at a path goes to $kept, under a number; as a copy, if it has other names",
    b"""  if [ -f "$1" ] && [ ! -L "$1" ] && [ "$(stat --format=%%h -- "$1")" -gt 1 ]; then""",
    b"""    cp --archive --no-target-directory --reflink=auto -- "$1" "$kept/replaced/$2"; rm --force -- "$1\"""",
    b"""  else mv --no-clobber --no-target-directory -- "$1" "$kept/replaced/$2"; fi""",
    b"""  [ ! -e "$1" ] && [ ! -L "$1" ]""",
    b"}",
)
_COPY = b"cp --archive --no-target-directory --reflink=auto --"
_MOVE = b"mv --no-clobber --no-target-directory --"
_OPEN_UP = b"chmod u+wx -- "
_WORKING = stat.S_IWUSR | stat.S_IXUSR


def script(plan: Plan, store: StorePaths, *, place: bytes) -> Iterator[bytes]:
    """Yield the lines of the script.

    ``place``: the directory (absolute) in which one is made for what is replaced.

    Raises:
        OSError: the store cannot be read.
    """
    template = _quoted(os.path.join(place, b".yolofs-script-XXXXXX"))  # mktemp(1) puts other letters in the X's place
    yield from (line % {b"root": os.fsencode(display(plan.root)), b"template": template} for line in _HEAD)
    writer = _Script(plan, store)
    for step in plan.steps:
        yield b"# " + os.fsencode(describe(step, plan.root))
        yield from writer.lines(step)


class _Script:
    def __init__(self, plan: Plan, store: StorePaths) -> None:
        self._root = plan.root
        self._store = store
        self._opened: set[RelPath] = set()
        """Directories that are opened up, by the paths at which that was done."""
        self._closed = {
            step.path: stat.S_IMODE(step.was.mode)
            for step in plan.steps
            if isinstance(step, FinishDirectory) and step.was is not None and _is_closed(step.was.mode)
        }
        """Directories that forbid their owner to write, by the paths that they will have, and their
        modes.
        """

    def lines(self, step: Step) -> Iterator[bytes]:
        path = self._at(step.path)
        match step:
            case Park() | Remove():
                yield from self._open_up(split(step.path)[0])
                yield from self._open_up(step.path)
            case Create() | Place() | Link() | Duplicate() | MakeDirectory():
                above = split(step.path)[0]
                if above in self._closed and above not in self._opened:
                    self._opened.add(above)
                    yield _OPEN_UP + self._at(above)
            case _:
                pass
        match step:
            case Park():
                yield b"%s %s %s" % (_MOVE, path, _slot(b"parked", step.number))
                yield _is_gone(path)
            case Remove():
                yield b"keep %s %d" % (path, step.number)
                if step.path in self._opened:
                    yield b"chmod %04o -- %s" % (self._mode(step.path), _slot(b"replaced", step.number))
            case Fetch():
                kept = self._store.path(Kept(step.commit, step.slot, step.inside).ino)
                yield b"%s %s %s" % (_COPY, _quoted(kept), _slot(b"parked", step.number))
            case MakeDirectory():
                yield b"mkdir --mode=700 -- %s" % path
            case Create():
                yield from self._out_of_the_way(step, path)
                yield b"%s %s %s" % (_COPY, _quoted(self._store.path(step.ino)), path)
            case Place():
                yield from self._out_of_the_way(step, path)
                yield b"%s %s %s" % (_MOVE, _slot(b"parked", step.number), path)
            case Link():
                yield from self._out_of_the_way(step, path)
                yield b"ln --no-target-directory --physical -- %s %s" % (self._at(step.existing), path)
            case Duplicate():
                yield from self._out_of_the_way(step, path)
                yield b"%s %s %s" % (_COPY, self._at(step.existing), path)
                yield from self._metadata(step.ino, path)
            case Rewrite():
                yield b"%s %s %s" % (_COPY, path, _slot(b"replaced", step.number))
                if not self._mode(step.path) & stat.S_IWUSR:  # it gets its mode below
                    yield b"chmod u+w -- %s" % path
                yield b"cat < %s > %s" % (_quoted(self._store.path(step.ino)), path)
                yield from self._metadata(step.ino, path)
            case SetMetadata():
                yield from self._metadata(step.ino, path)
            case FinishDirectory():
                if step.ino is not None:
                    yield from self._metadata(step.ino, path)
                seconds, ns = divmod(step.mtime_ns, 1_000_000_000)
                yield b"touch --no-create --date=@%d.%09d -- %s" % (seconds, ns, path)
                if step.ino is None and step.path in self._closed:
                    yield b"chmod %04o -- %s" % (self._closed[step.path], path)
            case _:
                assert_never(step)

    def _out_of_the_way(self, step: Create | Place | Link | Duplicate, path: bytes) -> Iterator[bytes]:
        yield b"keep %s %d" % (path, step.number) if step.replaced is not None else _is_gone(path)

    def _open_up(self, path: RelPath) -> Iterator[bytes]:
        """Yield what lets the owner of a directory work in it that is where base has it, and move
        it.
        """
        if path not in self._opened and _is_closed(self._mode(path, stat.S_IFDIR)):
            self._opened.add(path)
            yield _OPEN_UP + self._at(path)

    def _mode(self, path: RelPath, kind: int = 0) -> int:
        """Return the mode of what base has at a path; as of what is open if it is not there, or of
        another type.
        """
        try:
            mode = os.lstat(os.path.join(self._root, path) if path else self._root).st_mode
        except OSError:
            return stat.S_IRWXU
        return stat.S_IRWXU if kind and stat.S_IFMT(mode) != kind else stat.S_IMODE(mode)

    def _metadata(self, ino: int, path: bytes) -> Iterator[bytes]:
        source = self._store.path(ino)
        st = os.lstat(source)
        yield b"chown --no-dereference %d:%d -- %s" % (st.st_uid, st.st_gid, path)
        if not stat.S_ISLNK(st.st_mode):
            yield b"chmod %04o -- %s" % (stat.S_IMODE(st.st_mode), path)
        if not stat.S_ISDIR(st.st_mode):
            yield b"touch --no-create --no-dereference --reference=%s -- %s" % (_quoted(source), path)

    def _at(self, path: RelPath) -> bytes:
        return _quoted(os.path.join(self._root, path) if path else self._root)


def _is_closed(mode: int) -> bool:
    return mode & _WORKING != _WORKING


def _is_gone(path: bytes) -> bytes:
    """Return the line that sees that there is nothing: mv --no-clobber says nothing where there was
    something.
    """
    return b"[ ! -e %s ] && [ ! -L %s ]" % (path, path)


def _slot(folder: bytes, number: int) -> bytes:
    return b'"$kept/%b/%d"' % (folder, number)


def _quoted(raw: bytes) -> bytes:
    """Return a word for the shell; what a terminal would obey is spelled, as a script is read
    before it is run.
    """
    quoted = shlex.quote(os.fsdecode(raw))
    return b"".join(os.fsencode(char) if char.isprintable() or char == "\n" else _spelled(char) for char in quoted)


def _spelled(char: str) -> bytes:
    """Return what ends a word in single quotes for a character, and goes on with it."""
    return b"'\"$(printf '%b')\"'" % b"".join(b"\\%03o" % byte for byte in os.fsencode(char))
