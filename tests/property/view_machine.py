"""The model test: a hypothesis state machine that performs every operation on a view and on a plain directory.

The same machine drives the core (:mod:`tests.property.test_core_model`) and a mount
(:mod:`tests.mount.test_mount_model`) through a :class:`Driver`, and compares results, errnos and whole trees.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Protocol

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.session_cleaning import remove_sessions_below
from yolofs.changes import Change, Kind
from yolofs.paths import is_below
from yolofs.session import Session

RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
AT_FDCWD = -100
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_off_t = ctypes.c_long
_MS_SYNC = 4

NAMES = (b"a", b"b", b"c", b"d e", b"n\nl%#", b"\xff\xfe")
EXPLICIT_NS = 1_000_000_000_123_456_789
"""A time that only utimes sets (2001): compared exactly, any other only to be no such time."""

LINKED = ((b"a/a", b"b/a"), (b"a/b/a", b"c", b"a/b/c/c"), (b"d e", b"b/d e"))
"""What :func:`populate` gives two or three names."""
POPULATED = (*(name for some in LINKED for name in some), b"a", b"a/b", b"a/b/c", b"a/b/c/b", b"a/c", b"b", b"b/b")

names = st.sampled_from(NAMES)
paths = st.lists(names, min_size=1, max_size=3).map(b"/".join) | st.sampled_from(POPULATED)
contents = st.sampled_from((b"", b"x", b"hello\n", b"y" * 5000, b"\0" * 100))
modes = st.sampled_from((0o644, 0o600, 0o755, 0o444, 0o700, 0o2755, 0o4711, 0o1777))
xattr_names = st.sampled_from((b"user.one", b"user.two"))
OWNERS = (0, 1234, 5678) if os.getuid() == 0 else (os.getuid(),)
"""Who may own files; only root may give them away."""
owners = st.sampled_from((-1, *OWNERS))
groups = st.sampled_from((-1, *OWNERS)) if os.getuid() == 0 else st.sampled_from((-1, os.getgid()))
slots = st.sampled_from((0, 1))
"""Handles that are kept open."""
FREE = (b"n\nl%#", b"\xff\xfe", b"a/d e", b"b/c", b"a/b/b")
"""Names that are not there at first."""
near = st.sampled_from((*POPULATED, *FREE))
"""What is there at first, and some names beside it that are not."""
unwatched = st.one_of(
    st.tuples(st.just("rename"), near, near, st.sampled_from((0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE))),
    st.tuples(st.just("rename"), near, near),
    st.tuples(st.just("link"), near, near),
    st.tuples(st.sampled_from(("unlink", "unlink", "rmdir", "look", "look")), near),
    st.tuples(st.just("append"), near, st.just(b"more")),
    st.tuples(st.just("overwrite"), near, contents),
    st.tuples(st.just("truncate"), near, st.sampled_from((0, 3))),
    st.tuples(st.just("chmod"), near, modes),
    st.tuples(st.just("utimes"), near, st.just(EXPLICIT_NS)),
    st.tuples(st.just("setxattr"), near, xattr_names, st.just(b"v")),
    st.tuples(st.just("create"), near, contents, modes),
    st.tuples(st.just("mkdir"), near, modes),
)
"""Operations with their arguments that nobody looks in between of."""
changes = st.sampled_from(
    (("chmod", 0o600), ("append", b"more"), ("truncate", 2), ("utimes", EXPLICIT_NS), ("setxattr", b"user.one", b"v"))
)
"""What is done to a file, without its path."""
orders = st.sampled_from(LINKED).flatmap(st.permutations) | st.lists(near, max_size=3)
"""Names in the order in which they are looked at, and no names."""


class Driver(Protocol):
    """How the machine works on a view: by paths relative to its root, raising OSError as the system would."""

    root: bytes
    """The base directory."""
    session: Session

    def create(self, path: bytes, data: bytes, mode: int) -> None: ...
    def overwrite(self, path: bytes, data: bytes) -> None: ...
    def append(self, path: bytes, data: bytes) -> None: ...
    def write_at(self, path: bytes, offset: int, data: bytes) -> None: ...
    def write_without_name(self, path: bytes, data: bytes) -> None: ...
    def truncate(self, path: bytes, size: int) -> None: ...
    def read(self, path: bytes) -> bytes: ...
    def look(self, path: bytes) -> None: ...
    def mkdir(self, path: bytes, mode: int) -> None: ...
    def rmdir(self, path: bytes) -> None: ...
    def unlink(self, path: bytes) -> None: ...
    def rename(self, old: bytes, new: bytes, flags: int = 0) -> None: ...
    def link(self, old: bytes, new: bytes) -> None: ...
    def symlink(self, target: bytes, path: bytes) -> None: ...
    def mkfifo(self, path: bytes, mode: int) -> None: ...
    def chmod(self, path: bytes, mode: int) -> None: ...
    def chown(self, path: bytes, uid: int, gid: int) -> None: ...
    def utimes(self, path: bytes, time_ns: int) -> None: ...
    def setxattr(self, path: bytes, name: bytes, value: bytes) -> None: ...
    def removexattr(self, path: bytes, name: bytes) -> None: ...
    def write_mapping(self, path: bytes, offset: int, data: bytes) -> None: ...
    def open_handle(self, slot: int, path: bytes) -> None: ...
    def handle_write(self, slot: int, offset: int, data: bytes) -> None: ...
    def handle_truncate(self, slot: int, size: int) -> None: ...
    def handle_facts(self, slot: int) -> tuple[Any, ...]: ...
    def close_handle(self, slot: int) -> None: ...
    def tree(self) -> dict[bytes, tuple[Any, ...]]: ...
    def changes(self) -> list[Change]: ...
    def snapshot(self) -> int: ...
    def travel(self, generation: int) -> int: ...
    def remount(self) -> None: ...
    def commit(self) -> None: ...
    def commit_paths(self, paths: list[bytes]) -> bool: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


class PlainDirectory:
    """The same operations on a plain directory, by system calls."""

    def __init__(self, root: bytes) -> None:
        self.root = root
        self.handles: dict[int, int] = {}

    def _at(self, path: bytes) -> bytes:
        return os.path.join(self.root, path)

    def create(self, path: bytes, data: bytes, mode: int) -> None:
        fd = os.open(self._at(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)

    def overwrite(self, path: bytes, data: bytes) -> None:
        self._write(path, os.O_TRUNC, data)

    def append(self, path: bytes, data: bytes) -> None:
        self._write(path, os.O_APPEND, data)

    def _write(self, path: bytes, flags: int, data: bytes) -> None:
        fd = os.open(self._at(path), os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | flags)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)

    def write_at(self, path: bytes, offset: int, data: bytes) -> None:
        fd = os.open(self._at(path), os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            os.pwrite(fd, data, offset)
        finally:
            os.close(fd)

    def write_without_name(self, path: bytes, data: bytes) -> None:
        """Open a file, remove that name of it, and write at the file's beginning."""
        fd = os.open(self._at(path), os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            os.unlink(self._at(path))
            os.pwrite(fd, data, 0)
        finally:
            os.close(fd)

    def truncate(self, path: bytes, size: int) -> None:
        fd = os.open(self._at(path), os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            os.ftruncate(fd, size)
        finally:
            os.close(fd)

    def read(self, path: bytes) -> bytes:
        fd = os.open(self._at(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            return os.read(fd, 1 << 20)
        finally:
            os.close(fd)

    def look(self, path: bytes) -> None:
        """Look at a name, which the view may know the file by from then on."""
        os.lstat(self._at(path))

    def mkdir(self, path: bytes, mode: int) -> None:
        os.mkdir(self._at(path), mode)

    def rmdir(self, path: bytes) -> None:
        os.rmdir(self._at(path))

    def unlink(self, path: bytes) -> None:
        os.unlink(self._at(path))

    def rename(self, old: bytes, new: bytes, flags: int = 0) -> None:
        if _libc.renameat2(AT_FDCWD, self._at(old), AT_FDCWD, self._at(new), flags):
            raise OSError(ctypes.get_errno(), "renameat2")

    def link(self, old: bytes, new: bytes) -> None:
        os.link(self._at(old), self._at(new), follow_symlinks=False)

    def symlink(self, target: bytes, path: bytes) -> None:
        os.symlink(target, self._at(path))

    def mkfifo(self, path: bytes, mode: int) -> None:
        os.mkfifo(self._at(path), mode)

    def chmod(self, path: bytes, mode: int) -> None:
        fd = os.open(self._at(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            os.chmod(self._at(path), mode)
        finally:
            os.close(fd)

    def utimes(self, path: bytes, time_ns: int) -> None:
        os.utime(self._at(path), ns=(time_ns, time_ns), follow_symlinks=False)

    def chown(self, path: bytes, uid: int, gid: int) -> None:
        os.chown(self._at(path), uid, gid, follow_symlinks=False)

    def setxattr(self, path: bytes, name: bytes, value: bytes) -> None:
        os.setxattr(self._at(path), name, value, follow_symlinks=False)

    def removexattr(self, path: bytes, name: bytes) -> None:
        os.removexattr(self._at(path), name, follow_symlinks=False)

    def write_mapping(self, path: bytes, offset: int, data: bytes) -> None:
        """Write through a shared mapping of the whole file what fits into it."""
        fd = os.open(self._at(path), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            st = os.fstat(fd)
            if not stat.S_ISREG(st.st_mode) or not st.st_size:
                raise OSError(errno.ENODEV, "cannot be mapped")
            _write_through_mapping(fd, st.st_size, offset, data[: max(0, st.st_size - offset)])
        finally:
            os.close(fd)

    # ---- handles that stay open

    def open_handle(self, slot: int, path: bytes) -> None:
        fd = os.open(self._at(path), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.ENXIO, "no regular file")
        self.handles[slot] = fd

    def handle_write(self, slot: int, offset: int, data: bytes) -> None:
        os.pwrite(self.handles[slot], data, offset)

    def handle_truncate(self, slot: int, size: int) -> None:
        os.ftruncate(self.handles[slot], size)

    def handle_facts(self, slot: int) -> tuple[Any, ...]:
        fd = self.handles[slot]
        st = os.fstat(fd)
        return (st.st_mode, st.st_nlink, st.st_uid, st.st_gid, st.st_size, os.pread(fd, 1 << 20, 0), xattrs_of(fd))

    def close_handle(self, slot: int) -> None:
        os.close(self.handles.pop(slot))

    def tree(self) -> dict[bytes, tuple[Any, ...]]:
        return by_first_name(dict(walk_tree(self.root)))


def _write_through_mapping(fd: int, size: int, offset: int, data: bytes) -> None:
    """Map a file, write, sync and unmap, all by calls that let go of the interpreter lock.

    A view that this very process serves could not answer otherwise what the kernel wants for that.
    """
    address = _libc.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, _off_t(0))
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")
    _libc.memcpy(ctypes.c_void_p(address + offset), data, ctypes.c_size_t(len(data)))
    _libc.msync(ctypes.c_void_p(address), ctypes.c_size_t(size), _MS_SYNC)
    _libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))


def xattrs_of(path: bytes | int) -> tuple[tuple[str, bytes], ...]:
    """Return the extended attributes that users set."""
    follow = isinstance(path, int)
    names = sorted(name for name in os.listxattr(path, follow_symlinks=follow) if name.startswith("user."))
    return tuple((name, os.getxattr(path, name, follow_symlinks=follow)) for name in names)


def describe(
    st: os.stat_result,
    read: Callable[[], bytes],
    readlink: Callable[[], bytes],
    xattrs: Callable[[], tuple[tuple[str, bytes], ...]],
) -> tuple[Any, ...]:
    """Return what must be equal on both sides; of all but directories the last is their number."""
    mtime_ns = st.st_mtime_ns if st.st_mtime_ns < 2 * EXPLICIT_NS * 0.8 and st.st_mtime_ns > 10**17 else 0
    if stat.S_ISDIR(st.st_mode):
        return ("dir", st.st_mode, st.st_uid, st.st_gid, mtime_ns, st.st_nlink, xattrs())
    if stat.S_ISREG(st.st_mode):
        what: tuple[Any, ...] = ("file", st.st_size, read(), xattrs())
    elif stat.S_ISLNK(st.st_mode):
        what = ("link", readlink())
    else:
        what = ("other", st.st_rdev)
    return (*what, st.st_mode, st.st_uid, st.st_gid, mtime_ns, st.st_nlink, st.st_ino)


def by_first_name(tree: dict[bytes, tuple[Any, ...]]) -> dict[bytes, tuple[Any, ...]]:
    """Replace each file's number, which differs between both sides, by the first path that has it."""
    first: dict[int, bytes] = {}
    for path in sorted(tree):
        if tree[path][0] != "dir":
            first.setdefault(tree[path][-1], path)
    return {path: what if what[0] == "dir" else (*what[:-1], first[what[-1]]) for path, what in tree.items()}


def walk_tree(root: bytes) -> Iterator[tuple[bytes, tuple[Any, ...]]]:
    """Yield every path below ``root`` with its description."""
    stack = [b""]
    while stack:
        directory = stack.pop()
        for name in os.listdir(os.path.join(root, directory)):
            path = os.path.join(directory, name)
            if name == b".yolofs":
                continue
            full = os.path.join(root, path)
            st = os.lstat(full)
            yield path, describe(st, partial(_read, full), partial(os.readlink, full), partial(xattrs_of, full))
            if stat.S_ISDIR(st.st_mode):
                stack.append(path)


def _read(path: bytes) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def populate(root: bytes) -> None:
    """Make the tree that every example starts from."""
    os.makedirs(os.path.join(root, b"a/b/c"))
    os.makedirs(os.path.join(root, b"b"))
    for path, data in ((b"a/a", b"base a\n"), (b"a/b/a", b"z" * 9000), (b"a/b/c/b", b""), (b"b/b", b"1\n2\n3\n")):
        with open(os.path.join(root, path), "wb") as file:
            file.write(data)
    os.symlink(b"nowhere/a", os.path.join(root, b"d e"))
    for path, other in ((b"a/a", b"b/a"), (b"a/b/a", b"c"), (b"a/b/a", b"a/b/c/c"), (b"d e", b"b/d e")):
        os.link(os.path.join(root, path), os.path.join(root, other), follow_symlinks=False)
    os.chmod(os.path.join(root, b"b/b"), 0o640)
    os.setxattr(os.path.join(root, b"b/b"), "user.one", b"of base")
    os.setxattr(os.path.join(root, b"a/b"), "user.two", b"of base")
    os.mkfifo(os.path.join(root, b"a/c"))
    os.chown(os.path.join(root, b"a/b"), -1, OWNERS[-1] if os.getuid() == 0 else -1)
    os.chmod(os.path.join(root, b"a/b"), 0o2755)


class StatesMachine(RuleBasedStateMachine):
    """Performs operations on both sides, many at a time, and what ends or exchanges a state; and compares."""

    make_driver: Callable[[bytes], Driver]

    def __init__(self) -> None:
        super().__init__()
        self.directory = os.fsencode(tempfile.mkdtemp(prefix="yolofs-model-"))
        base = self.base = os.path.join(self.directory, b"base")
        model = os.path.join(self.directory, b"model")
        os.mkdir(base)
        populate(base)
        _copy(base, model)
        self.old_umask = os.umask(0)
        self.view = type(self).make_driver(base)
        self.model = PlainDirectory(model)
        self.generations: dict[int, bytes] = {}
        self._keep(0)

    def teardown(self) -> None:
        try:
            self._close_handles()
            self.view.close()
        finally:
            os.umask(self.old_umask)
            remove_sessions_below(self.directory)
            shutil.rmtree(self.directory)

    # ---- comparing

    def both(self, operation: str, *args: Any) -> None:
        """Perform one operation on both sides and compare what they return or raise."""
        expected = _outcome(getattr(self.model, operation), args)
        actual = _outcome(getattr(self.view, operation), args)
        assert actual == expected, f"{operation}{args}: view {actual!r}, plain directory {expected!r}"

    @invariant()
    def trees_are_equal(self) -> None:
        assert self.view.tree() == self.model.tree()

    @invariant()
    def handles_are_equal(self) -> None:
        for slot in self.model.handles:
            self.both("handle_facts", slot)

    @rule(looked=orders, program=st.lists(unwatched, min_size=1, max_size=6))
    def between_looks(self, looked: list[bytes], program: list[tuple[Any, ...]]) -> None:
        """Names are looked at in an order of their own, and then none until all is done that is to be done."""
        for path in looked:
            self.both("look", path)
        for operation in program:
            self.both(*operation)

    def _close_handles(self, *, if_named: bool = False) -> None:
        """Close all handles, or those of files that have a name: to which state these belong is not for here."""
        for slot, fd in list(self.model.handles.items()):
            if not if_named or os.fstat(fd).st_nlink:
                self.both("close_handle", slot)

    @rule(looked=orders, old=near, new=st.sampled_from(FREE), change=changes)
    def change_one_that_moved(self, looked: list[bytes], old: bytes, new: bytes, change: tuple[Any, ...]) -> None:
        """One of the names that were looked at, or another, is renamed and changed before anybody looks again."""
        for path in looked:
            self.both("look", path)
        self.both("rename", looked[0] if looked else old, new)
        self.both(change[0], new, *change[1:])

    # ---- time

    @rule()
    def snapshot(self) -> None:
        self._keep(self.view.snapshot())

    @precondition(lambda self: len(self.generations) > 1)
    @rule(data=st.data())
    def travel(self, data: st.DataObject) -> None:
        target = data.draw(st.sampled_from(sorted(self.generations)))
        self._close_handles(if_named=True)
        present = self.view.travel(target)
        if present - 1 not in self.generations:  # travel has snapshotted what was not
            self._keep(present - 1)
        self._restore(self.generations[target])
        self._keep(present)

    @rule()
    def remount(self) -> None:
        self._close_handles()
        self.view.remount()

    @rule()
    def commit(self) -> None:
        self._check_listing()
        self.view.commit()
        assert by_first_name(dict(walk_tree(self.base))) == self.model.tree()
        self._new_base()

    def _check_listing(self) -> None:
        """What is listed says which names come and which go, so that all others stay."""
        went, came = names_listed(self.view.changes())
        assert set(dict(walk_tree(self.base))) - went | came == set(self.model.tree())

    @rule(some=st.lists(paths, min_size=1, max_size=3))
    def commit_some(self, some: list[bytes]) -> None:
        """The view stays what it is; base is what the view was without what stays staged."""
        before = dict(walk_tree(self.base))
        if not self.view.commit_paths(some):
            assert dict(walk_tree(self.base)) == before
            return
        after = dict(walk_tree(self.base))
        for path in before.keys() | after.keys():
            if not any(is_below(path, one) or is_below(one, path) for one in some):
                assert _without_links(after.get(path)) == _without_links(before.get(path)), path
        self.generations.clear()
        self._keep(0, self.base)
        if self.view.session.timeline.present:  # something stays staged
            self._keep(1)

    @rule()
    def abort(self) -> None:
        self._close_handles(if_named=True)
        self.view.abort()
        self._restore(self.generations[0])
        self._new_base()

    def _new_base(self) -> None:
        self.generations.clear()
        self._keep(0)

    def _keep(self, generation: int, root: bytes | None = None) -> None:
        """Keep a copy of the plain directory (or of ``root``) as it is now."""
        copy = os.path.join(self.directory, b"kept-%d-%d" % (generation, len(os.listdir(self.directory))))
        _copy(root or self.model.root, copy)
        self.generations[generation] = copy

    def _restore(self, copy: bytes) -> None:
        shutil.rmtree(self.model.root)
        _copy(copy, self.model.root)


class ViewMachine(StatesMachine):
    """Performs single operations, too, and compares after each."""

    # ---- operations

    @rule(path=paths, data=contents, mode=modes)
    def create(self, path: bytes, data: bytes, mode: int) -> None:
        self.both("create", path, data, mode)

    @rule(path=paths, data=contents)
    def overwrite(self, path: bytes, data: bytes) -> None:
        self.both("overwrite", path, data)

    @rule(path=paths, data=contents)
    def append(self, path: bytes, data: bytes) -> None:
        self.both("append", path, data)

    @rule(path=paths, offset=st.sampled_from((0, 3, 4096, 20000)), data=contents)
    def write_at(self, path: bytes, offset: int, data: bytes) -> None:
        self.both("write_at", path, offset, data)

    @rule(path=paths, data=contents)
    def write_without_name(self, path: bytes, data: bytes) -> None:
        self.both("write_without_name", path, data)

    @rule(path=paths, size=st.sampled_from((0, 1, 4000, 12000)))
    def truncate(self, path: bytes, size: int) -> None:
        self.both("truncate", path, size)

    @rule(path=paths)
    def read(self, path: bytes) -> None:
        self.both("read", path)

    @rule(path=paths, mode=modes)
    def mkdir(self, path: bytes, mode: int) -> None:
        self.both("mkdir", path, mode)

    @rule(path=paths)
    def rmdir(self, path: bytes) -> None:
        self.both("rmdir", path)

    @rule(path=paths)
    def unlink(self, path: bytes) -> None:
        self.both("unlink", path)

    @rule(old=paths, new=paths, flags=st.sampled_from((0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE)))
    def rename(self, old: bytes, new: bytes, flags: int) -> None:
        self.both("rename", old, new, flags)

    @rule(old=paths, new=paths)
    def link(self, old: bytes, new: bytes) -> None:
        self.both("link", old, new)

    @rule(to=st.sampled_from((b"nowhere", b"../x/y", b"/nonexistent/z")), path=paths)
    def symlink(self, to: bytes, path: bytes) -> None:
        self.both("symlink", to, path)

    @rule(path=paths, mode=modes)
    def chmod(self, path: bytes, mode: int) -> None:
        self.both("chmod", path, mode)

    @rule(path=paths, mode=modes)
    def mkfifo(self, path: bytes, mode: int) -> None:
        self.both("mkfifo", path, mode)

    @rule(path=paths, uid=owners, gid=groups)
    def chown(self, path: bytes, uid: int, gid: int) -> None:
        self.both("chown", path, uid, gid)

    @rule(path=paths, name=xattr_names, value=st.sampled_from((b"", b"v", b"w" * 3000)))
    def setxattr(self, path: bytes, name: bytes, value: bytes) -> None:
        self.both("setxattr", path, name, value)

    @rule(path=paths, name=xattr_names)
    def removexattr(self, path: bytes, name: bytes) -> None:
        self.both("removexattr", path, name)

    @rule(path=paths, offset=st.sampled_from((0, 3, 4096)), data=contents)
    def write_mapping(self, path: bytes, offset: int, data: bytes) -> None:
        self.both("write_mapping", path, offset, data)

    @rule(old=paths, new=paths)
    def exchange(self, old: bytes, new: bytes) -> None:
        self.both("rename", old, new, RENAME_EXCHANGE)

    # ---- handles that stay open

    @rule(slot=slots, path=paths, unlinks=st.booleans())
    def open_handle(self, slot: int, path: bytes, unlinks: bool) -> None:
        if slot in self.model.handles:
            self.both("close_handle", slot)
        self.both("open_handle", slot, path)
        if unlinks and slot in self.model.handles:
            self.both("unlink", path)

    @rule(slot=slots, offset=st.sampled_from((0, 3, 20000)), data=contents)
    def handle_write(self, slot: int, offset: int, data: bytes) -> None:
        if slot in self.model.handles:
            self.both("handle_write", slot, offset, data)

    @rule(slot=slots, size=st.sampled_from((0, 1, 12000)))
    def handle_truncate(self, slot: int, size: int) -> None:
        if slot in self.model.handles:
            self.both("handle_truncate", slot, size)

    @rule(slot=slots)
    def close_handle(self, slot: int) -> None:
        if slot in self.model.handles:
            self.both("close_handle", slot)

    @rule(path=paths, shift=st.integers(0, 3))
    def utimes(self, path: bytes, shift: int) -> None:
        self.both("utimes", path, EXPLICIT_NS + shift)


def names_listed(changes: Iterable[Change]) -> tuple[set[bytes], set[bytes]]:
    """Return the names that go and those that come by a list of changes, in which each renamed thing has its line."""
    went: set[bytes] = set()
    came: set[bytes] = set()
    for change in changes:
        if change.kind is Kind.ADDED:
            came.add(change.path)
        elif change.kind is Kind.DELETED:
            went.add(change.path)
        elif change.old_path is not None:  # renamed; or of another type, below something renamed
            went.add(change.old_path)
            came.add(change.path)
    return went - came, came


def _copy(source: bytes, target: bytes) -> None:
    """Copy a tree with times, and hard links as hard links."""
    os.makedirs(target)
    links: dict[int, bytes] = {}
    directories = [(source, target)]
    for old, new in directories:
        for name in os.listdir(old):
            if name == b".yolofs":
                continue
            one, other = os.path.join(old, name), os.path.join(new, name)
            st = os.lstat(one)
            if stat.S_ISDIR(st.st_mode):
                os.mkdir(other)
                directories.append((one, other))
            elif st.st_ino in links:
                os.link(links[st.st_ino], other, follow_symlinks=False)
            else:
                if stat.S_ISFIFO(st.st_mode):
                    os.mkfifo(other)
                else:
                    shutil.copyfile(one, other, follow_symlinks=False)
                _copy_metadata(one, other)
                links[st.st_ino] = other
    for old, new in reversed(directories):
        _copy_metadata(old, new)


def _copy_metadata(old: bytes, new: bytes) -> None:
    st = os.lstat(old)
    os.chown(new, st.st_uid, st.st_gid, follow_symlinks=False)
    shutil.copystat(old, new, follow_symlinks=False)


def _without_links(what: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """Return a description without the link count and number of a file."""
    return what if what is None or what[0] == "dir" else what[:-2]


def _outcome(operation: Callable[..., object], args: tuple[object, ...]) -> object:
    try:
        return operation(*args)
    except OSError as error:
        return ("errno", error.errno)
