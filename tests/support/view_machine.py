"""The model test: a hypothesis state machine that performs every operation on a view and on a plain
directory.

The same machine drives the core (:mod:`tests.property.test_core_model`) and a mount
(:mod:`tests.mount.test_mount_model`) through a :class:`Driver`, and compares results, errnos and
whole trees.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.support.plain_directory import (
    EXPLICIT_NS,
    RENAME_EXCHANGE,
    RENAME_NOREPLACE,
    PlainDirectory,
    by_first_name,
    copy_tree,
    walk_tree,
)
from tests.support.session_cleaning import remove_sessions_below
from yolofs.changes.changes import Change, ChangeKind
from yolofs.paths import is_below
from yolofs.session.session import Session

NAMES = (b"a", b"b", b"c", b"d e", b"n\nl%#", b"\xff\xfe")
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
    """How the machine works on a view: by paths relative to its root, raising OSError as the system
    would.
    """

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
    """Performs operations on both sides, many at a time, and what ends or exchanges a state; and
    compares.
    """

    make_driver: Callable[[bytes], Driver]

    def __init__(self) -> None:
        super().__init__()
        self.directory = os.fsencode(tempfile.mkdtemp(prefix="yolofs-model-"))
        base = self.base = os.path.join(self.directory, b"base")
        model = os.path.join(self.directory, b"model")
        os.mkdir(base)
        populate(base)
        copy_tree(base, model)
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
        """Names are looked at in an order of their own, and then none until all is done that is to
        be done.
        """
        for path in looked:
            self.both("look", path)
        for operation in program:
            self.both(*operation)

    def _close_handles(self, *, if_named: bool = False) -> None:
        """Close all handles, or those of files that have a name: to which state these belong is not
        for here.
        """
        for slot, fd in list(self.model.handles.items()):
            if not if_named or os.fstat(fd).st_nlink:
                self.both("close_handle", slot)

    @rule(looked=orders, old=near, new=st.sampled_from(FREE), change=changes)
    def change_one_that_moved(self, looked: list[bytes], old: bytes, new: bytes, change: tuple[Any, ...]) -> None:
        """One of the names that were looked at, or another, is renamed and changed before anybody
        looks again.
        """
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
        """The list of changes names all that comes or goes, and all else stays."""
        went, came = names_listed(self.view.changes())
        assert set(dict(walk_tree(self.base))) - went | came == set(self.model.tree())

    @rule(some=st.lists(paths, min_size=1, max_size=3))
    def commit_some(self, some: list[bytes]) -> None:
        """The view stays; base becomes the view without the rest of the staging."""
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
        copy_tree(root or self.model.root, copy)
        self.generations[generation] = copy

    def _restore(self, copy: bytes) -> None:
        shutil.rmtree(self.model.root)
        copy_tree(copy, self.model.root)


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

    @rule(path=paths, owner=st.tuples(owners, groups).filter(lambda owner: owner != (-1, -1)))
    def chown(self, path: bytes, owner: tuple[int, int]) -> None:
        """Give a file an owner, a group or both: of a call that gives neither the kernel tells a
        view nothing, so that setgid stays (a difference that posix.md has).
        """
        self.both("chown", path, *owner)

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
    """Return the old and the new names in a list of changes; each renamed thing has a line."""
    went: set[bytes] = set()
    came: set[bytes] = set()
    for change in changes:
        if change.kind is ChangeKind.ADDED:
            came.add(change.path)
        elif change.kind is ChangeKind.DELETED:
            went.add(change.path)
        elif change.old_path is not None:  # renamed; or of another type, below something renamed
            went.add(change.old_path)
            came.add(change.path)
    return went - came, came


def _without_links(what: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """Return a description without the link count and number of a file."""
    return what if what is None or what[0] == "dir" else what[:-2]


def _outcome(operation: Callable[..., object], args: tuple[object, ...]) -> object:
    try:
        return operation(*args)
    except OSError as error:
        return ("errno", error.errno)
