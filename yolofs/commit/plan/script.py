"""A plan as a shell script that does the same to base with the usual tools: to be read, or to be
run by hand.

It stops at the first command that fails.  It keeps everything that it replaces in a directory of
its own, and prints its name at the end.  A file with other names (hard links) is kept as a copy, so
that it stays what it was.  A directory that forbids its owner to write is opened up while names in
it change, and a file that forbids its owner to read while it is copied.  It does less than a
commit: it makes nothing before it begins, exchanges nothing in one step, and nobody finishes it or
takes it back.  It does nothing that lies too deep for a path.  Names are quoted, whatever they are
made of.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator, Mapping
from typing import TypeAlias, assert_never

from yolofs.commit.plan.kept_objects import KeptObject
from yolofs.commit.plan.plan import (
    Create,
    Duplicate,
    Fetch,
    FinishDirectory,
    Link,
    MakeDirectory,
    MetadataBefore,
    Park,
    Place,
    Plan,
    Remove,
    Rewrite,
    SetMetadata,
    Step,
    describe_step,
)
from yolofs.errors import YolofsError
from yolofs.paths import RelPath, display, split
from yolofs.store import copying
from yolofs.store.interfaces import StorePaths
from yolofs.system.syscalls import PATH_MAX

_HEAD = (
    b"#!/bin/sh",
    b"# What a commit would do to %(root)s, as a script.  It needs the files of the session, GNU coreutils",
    b"# and findutils; for extended attributes setfattr.",
    b"set -eu",
    b"kept=$(mktemp -d %(template)s)",
    b"""trap 'echo "what was replaced lies in $kept" >&2' EXIT""",
    b'mkdir "$kept/parked" "$kept/replaced"',
    b"copy() {  # what forbids its owner to read it is opened up for a moment",
    b'  if [ -r "$1" ] || [ -L "$1" ] || [ ! -f "$1" ]; then',
    b'    cp --archive --no-target-directory --reflink=auto -- "$1" "$2"; return; fi',
    b'  mode=$(stat --format=%%a -- "$1"); chmod u+r -- "$1"',
    b"""  cp --archive --no-target-directory --reflink=auto -- "$1" "$2" || { chmod "$mode" -- "$1"; return 1; }""",
    b'  chmod "$mode" -- "$1" "$2"',
    b"}",
    b"keep() {  # what is at a path goes to $kept, under a number; as a copy, if anything in it has other names",
    b"""  if [ -n "$(find "$1" ! -type d -links +1 -print -quit)" ] && copy "$1" "$kept/copy$2" 2>/dev/null; then""",
    b"""    mv --no-target-directory -- "$kept/copy$2" "$kept/replaced/$2\"""",
    b"""    [ -L "$1" ] || [ ! -d "$1" ] || find "$1" -type d -exec chmod u+wx -- {} +""",
    b"""    rm --recursive --force -- "$1\"""",
    b"""  else""",
    b"""    if [ -e "$kept/copy$2" ]; then rm --recursive --force -- "$kept/copy$2" || :""",
    b"""      echo "cannot be copied, so what is kept of it has the same links: $1" >&2; fi""",
    b'    mv --no-clobber --no-target-directory -- "$1" "$kept/replaced/$2"',
    b"""  fi""",
    b"""  [ ! -e "$1" ] && [ ! -L "$1" ]""",
    b"}",
    b"link() {  # no hard link leads to another disk or mount: a copy has to do there",
    b"""  ln --no-target-directory --physical -- "$1" "$2" 2>/dev/null || {""",
    b"""    [ ! -e "$2" ] && [ ! -L "$2" ] && copy "$1" "$2"; }""",
    b"}",
)
_COPY = b"copy"
_COPY_INTO_GROUP = b"cp --archive --no-preserve=ownership --no-target-directory --reflink=auto --"
"""Makes a copy get the group of its directory, as the user cannot give it that group."""
_MOVE = b"mv --no-clobber --no-target-directory --"
_OPEN_UP = b"chmod u+wx -- "
_MOST_SHOWN = 200
_WORKING = stat.S_IWUSR | stat.S_IXUSR
_CAPABILITY = "security.capability"
_ACLS = ("system.posix_acl_access", "system.posix_acl_default")
_Xattrs: TypeAlias = Mapping[str, bytes]


def script(plan: Plan, store: StorePaths, *, place: bytes) -> Iterator[bytes]:
    """Yield the lines of the script.

    ``place``: the directory (absolute) in which one is made for what is replaced.

    Raises:
        YolofsError: something lies too deep for a path, by which alone the tools could find it.
        OSError: the store cannot be read.
    """
    for step in plan.steps:
        if len(path := os.path.join(plan.root, step.path)) >= PATH_MAX:
            raise YolofsError(
                f"no script does this commit, as something lies too deep for a path: {_shortened(path)}",
                hint="yolofs commit does it; or leave that out: yolofs commit --script --exclude PATTERN",
            )
    template = _quoted(os.path.join(place, b".yolofs-script-XXXXXX"))  # mktemp(1) puts other letters in the X's place
    yield from (line % {b"root": os.fsencode(display(plan.root)), b"template": template} for line in _HEAD)
    writer = _Script(plan, store)
    for step in plan.steps:
        yield b"# " + os.fsencode(describe_step(step, plan.root))
        yield from writer.lines(step)


class _Script:
    def __init__(self, plan: Plan, store: StorePaths) -> None:
        self._root = plan.root
        self._store = store
        self._opened: set[RelPath] = set()
        """Directories that are opened up, by their paths at that moment."""
        self._closed = {
            step.path: stat.S_IMODE(step.was.mode)
            for step in plan.steps
            if isinstance(step, FinishDirectory) and step.was is not None and _is_closed(step.was.mode)
        }
        """Directories that forbid their owner to write, by the paths that they will have, and their
        modes.
        """
        parked = {step.number: step.path for step in plan.steps if isinstance(step, Park)}
        self._moved = {
            step.path: parked[step.number] for step in plan.steps if isinstance(step, Place) and step.number in parked
        }
        """Where base has what comes to a path."""

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
                    yield _chmod(self._mode(step.path), _slot(b"replaced", step.number))
            case Fetch():
                kept = self._store.path(KeptObject(step.commit, step.slot, step.inside).ino)
                yield b"%s %s %s" % (_COPY, _quoted(kept), _slot(b"parked", step.number))
            case MakeDirectory():
                yield self._mkdir(step.ino, path)
            case Create():
                yield from self._out_of_the_way(step, path)
                yield b"%s %s %s" % (self._copies(step.ino), _quoted(self._store.path(step.ino)), path)
            case Place():
                yield from self._out_of_the_way(step, path)
                yield b"%s %s %s" % (_MOVE, _slot(b"parked", step.number), path)
            case Link():
                yield from self._out_of_the_way(step, path)
                yield b"link %s %s" % (self._at(step.existing), path)
            case Duplicate():
                yield from self._out_of_the_way(step, path)
                yield b"%s %s %s" % (_COPY, self._at(step.existing), path)
                yield from self._metadata(step.ino, path, self._xattrs_of_base(step.origin), None)
            case Rewrite():
                yield b"%s %s %s" % (_COPY, path, _slot(b"replaced", step.number))
                if not self._mode(step.path) & stat.S_IWUSR:  # it gets its mode below
                    yield b"chmod u+w -- %s" % path
                yield from self._write(step.ino, path)
                yield from self._metadata(step.ino, path, _xattrs_before(step.was), step.was)
            case SetMetadata():
                yield from self._metadata(step.ino, path, _xattrs_before(step.was), step.was)
            case FinishDirectory():
                if step.ino is not None:
                    yield from self._metadata(step.ino, path, _xattrs_before(step.was), step.was)
                    if step.was is None:
                        yield from self._without_inherited(step.ino, step.path)
                seconds, ns = divmod(step.mtime_ns, 1_000_000_000)
                yield b"touch --no-create --date=@%d.%09d -- %s" % (seconds, ns, path)
                if step.ino is None and step.path in self._closed:
                    yield _chmod(self._closed[step.path], path)
            case _:
                assert_never(step)

    def _out_of_the_way(self, step: Create | Place | Link | Duplicate, path: bytes) -> Iterator[bytes]:
        yield b"keep %s %d" % (path, step.number) if step.replaced is not None else _is_gone(path)

    def _open_up(self, path: RelPath) -> Iterator[bytes]:
        """Yield the line that lets the owner of a directory work in it and move it, while it is
        where base has it.
        """
        if path not in self._opened and _is_closed(self._mode(path, stat.S_IFDIR)):
            self._opened.add(path)
            yield _OPEN_UP + self._at(path)

    def _mode(self, path: RelPath, kind: int = 0) -> int:
        """Return the mode of what base has at a path; if nothing is there, or something of another
        type, one that forbids its owner nothing.
        """
        try:
            mode = os.lstat(os.path.join(self._root, path) if path else self._root).st_mode
        except OSError:
            return stat.S_IRWXU
        return stat.S_IRWXU if kind and stat.S_IFMT(mode) != kind else stat.S_IMODE(mode)

    def _write(self, ino: int, path: bytes) -> Iterator[bytes]:
        """Yield what writes the content of a store inode into a file of base."""
        source = _quoted(self._store.path(ino))
        if os.lstat(self._store.path(ino)).st_mode & stat.S_IRUSR:
            yield b"cat < %s > %s" % (source, path)
            return
        yield b'%s %s "$kept/content"' % (_COPY, source)
        yield b'chmod u+r -- "$kept/content"'
        yield b'cat < "$kept/content" > %s' % path
        yield b'rm --force -- "$kept/content"'

    def _copies(self, ino: int) -> bytes:
        """Return the command that copies a store inode, before two paths."""
        is_closed = stat.S_ISREG(self._store.lstat(ino).st_mode) and not self._store.lstat(ino).st_mode & stat.S_IRUSR
        return _COPY if self._store.shown_owner(ino) is None or is_closed else _COPY_INTO_GROUP

    def _mkdir(self, ino: int, path: bytes) -> bytes:
        """Return the command that makes a directory.  If only the one above can give it its group
        and setgid, it gets its mode at once: chmod would take setgid away.
        """
        if self._store.shown_owner(ino) is None:
            return b"mkdir --mode=700 -- %s" % path
        return b"(umask %03o; mkdir -- %s)" % (~self._store.lstat(ino).st_mode & 0o077, path)

    def _metadata(self, ino: int, path: bytes, before: _Xattrs, was: MetadataBefore | None) -> Iterator[bytes]:
        """Yield the commands that give a path the metadata of a store inode.

        ``before``: the extended attributes that it has; ``was``: its other metadata, if base has
        it.

        What it has already is left alone where only its owner, or its group, might set it.
        """
        source = self._store.path(ino)
        metadata = self._store.metadata(ino)
        st, found = metadata.st, metadata.xattrs
        is_shown = self._store.shown_owner(ino) is not None
        if not (is_shown and was is not None and (was.uid, was.gid) == (st.st_uid, st.st_gid)):
            yield b"chown --no-dereference %d:%d -- %s" % (st.st_uid, st.st_gid, path)
        wanted = dict(found)
        for name, value in wanted.items():
            if before.get(name) != value or name == _CAPABILITY:  # which a chown takes away
                text = b" --value=0x%b" % value.hex().encode() if value else b""
                yield b"setfattr --no-dereference --name=%b%b -- %b" % (_quoted(os.fsencode(name)), text, path)
        for name in before:
            if name not in wanted and not copying.is_label(name):
                yield b"setfattr --no-dereference --remove=%b -- %b" % (_quoted(os.fsencode(name)), path)
        is_made_so = was is None and bool(st.st_mode & stat.S_ISGID) and st.st_mode & stat.S_IRWXU == stat.S_IRWXU
        has_mode = is_shown and (is_made_so if was is None else was.mode == st.st_mode)
        if not stat.S_ISLNK(st.st_mode) and not has_mode:
            yield _chmod(stat.S_IMODE(st.st_mode), path)
        if not stat.S_ISDIR(st.st_mode) and not (is_shown and st.st_uid != os.geteuid()):
            yield b"touch --no-create --no-dereference --reference=%s -- %s" % (_quoted(source), path)

    def _without_inherited(self, ino: int, path: RelPath) -> Iterator[bytes]:
        """Yield the line that takes from a new directory the ACLs that it got from the one above
        it, and is not to have.
        """
        if not self._may_inherit(path):
            return
        wanted = dict(copying.read_metadata(self._store.path(ino)).xattrs)
        for name in _ACLS:
            if name not in wanted:
                yield b"setfattr --remove=%b -- %b 2>/dev/null || :" % (os.fsencode(name), self._at(path))

    def _may_inherit(self, path: RelPath) -> bool:
        """Tell whether a directory of base above a path gives new ones in it an ACL."""
        while path:
            path = split(path)[0]
            if _ACLS[1] in self._xattrs_of_base(self._moved.get(path, path)):
                return True
        return False

    def _xattrs_of_base(self, path: RelPath | None) -> _Xattrs:
        """Return what base has at a path; nothing if it has nothing there."""
        try:
            place = os.path.join(self._root, path) if path else self._root
            return {} if path is None else dict(copying.read_metadata(place).xattrs)
        except OSError:
            return {}

    def _at(self, path: RelPath) -> bytes:
        return _quoted(os.path.join(self._root, path) if path else self._root)


def _xattrs_before(was: MetadataBefore | None) -> _Xattrs:
    """Return what something of base has before the commit, as its plan says."""
    return {os.fsdecode(name): value for name, value in was.xattrs} if was is not None else {}


def _shortened(path: bytes) -> str:
    return f"{display(path[:_MOST_SHOWN])}… ({len(path):,} bytes)"


def _is_closed(mode: int) -> bool:
    return mode & _WORKING != _WORKING


def _is_gone(path: bytes) -> bytes:
    """Return the line that checks that nothing is at a path: mv --no-clobber would not say if
    something is.
    """
    return b"[ ! -e %s ] && [ ! -L %s ]" % (path, path)


def _chmod(mode: int, path: bytes) -> bytes:
    """Return the line that gives a path a mode: with fewer digits a directory would keep setgid."""
    return b"chmod %05o -- %s" % (mode, path)


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
