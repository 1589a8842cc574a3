"""What base has to be after a commit, found in the simplest way, and what it is."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, NoReturn

import pytest

from tests.support.scribe import Scribe
from yolofs.commit import Plan, execute, plan_commit
from yolofs.commit.select.units import Units
from yolofs.journal.records import Keep, Stage
from yolofs.paths import RelPath, join
from yolofs.state.tree import Staged
from yolofs.store import copying
from yolofs.system import syscalls


class Node(NamedTuple):
    """One path: all that a commit has to get right."""

    kind: int
    mode: int
    owner: tuple[int, int]
    content: bytes
    """A regular file's data, a symlink's target, a device's number."""
    mtime_ns: int
    xattrs: tuple[tuple[str, bytes], ...]
    links: frozenset[bytes]
    """All paths of the same file."""


def lacks_renameat2(patch: pytest.MonkeyPatch) -> None:
    """Have a rename answered as by a kernel, or a filter of system calls, that knows no flags of
    it.
    """

    def refuse(_src_fd: int, _src: bytes, _dst_fd: int, dst: bytes, _flags: int) -> NoReturn:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), dst)

    patch.setattr(syscalls, "_renameat2", refuse)


def is_spare(ino: int) -> bool:
    """Tell of half of all store inodes that they may be put into base themselves, so that each
    commit does both.
    """
    return bool(ino % 2)


def besides(rest: Iterable[Keep]) -> Callable[[int], bool]:
    """Return the same for a commit that leaves something staged."""
    needed = {record.ino for record in rest}
    return lambda ino: is_spare(ino) and ino not in needed


def have_linked(patch: pytest.MonkeyPatch) -> None:
    """Have each commit put all store inodes into base themselves that may be."""
    defaults = execute.__kwdefaults__
    assert defaults is not None
    patch.setitem(defaults, "is_spare", lambda _: True)


class CommitScribe(Scribe):
    """A scribe with operations that matter to a commit only; it knows the expected base."""

    def link_metadata(self, path: bytes, new: bytes) -> None:
        """Give a file a second name as the view does it: a regular file's data stays in base."""
        ino = self.copy_up(path, data=False)
        shown = self.shown(path)
        assert shown is not None
        self._apply(Stage(self._now(), RelPath(new), ino, origin=shown.base))

    def utime_any(self, path: bytes, mtime_ns: int) -> None:
        """Set the mtime of whatever is there."""
        ino = self.copy_up(path, data=False)
        os.utime(self.store.path(ino), ns=(0, mtime_ns), follow_symlinks=False)

    def chown(self, path: bytes, uid: int, gid: int) -> None:
        """Set the owner."""
        os.chown(self.store.path(self.copy_up(path, data=False)), uid, gid, follow_symlinks=False)

    def set_xattr(self, path: bytes, name: str, value: bytes) -> None:
        """Set an xattr."""
        ino = self.copy_up(path, data=False)
        os.setxattr(self.store.path(ino), name, value, follow_symlinks=False)

    def plan(self) -> Plan:
        """Plan a commit."""
        return plan_commit(self.tree, self.base, self.store)

    def commit(self, parking: bytes, progress: Callable[[int, int], None] | None = None) -> Plan:
        """Plan and commit, and return the plan."""
        plan = self.plan()
        execute(plan, self.store, parking=parking, progress=progress, is_spare=is_spare, durable=False)
        return plan

    # ---- what is to be expected

    def expected(self) -> dict[bytes, Node]:
        """Return what base has to be after a commit."""
        keepers = self._keepers()
        nodes: dict[bytes, Node] = {}
        groups: dict[object, set[bytes]] = {}
        for path in self._paths():
            group, meta, data = self._origin_of(path, keepers)
            st = os.lstat(meta)
            links = groups.setdefault(path if stat.S_ISDIR(st.st_mode) else group, set())
            links.add(path)
            shown = self.shown(path)
            touched = shown.entry.touched_ns if shown is not None and shown.entry is not None else 0
            nodes[path] = _node(
                meta, data, st, mtime_ns=touched if stat.S_ISDIR(st.st_mode) and touched else st.st_mtime_ns
            )
            groups[path] = links
        return {path: node._replace(links=frozenset(groups[path])) for path, node in nodes.items()}

    def _paths(self) -> Iterator[bytes]:
        todo = [b""]
        while todo:
            path = todo.pop()
            yield path
            if self.kind(path) == stat.S_IFDIR:
                todo.extend(join(path, name) for name in self.names(path))

    def _origin_of(self, path: bytes, keepers: dict[tuple[int, int], Staged]) -> tuple[object, bytes, bytes]:
        """Return which file a path is after the commit, and what has its metadata and data."""
        shown = self.shown(path)
        assert shown is not None
        staged, group = shown.staged, None
        if staged is None:
            assert shown.base is not None
            group = _file(self.base.lstat(shown.base))
            staged = keepers.get(group)
            if staged is None:
                return group, self.base.path(shown.base), self.base.path(shown.base)
        meta = self.store.path(staged.ino)
        data = self.base.path(staged.origin) if staged.origin is not None else meta
        file = self._base_file(staged)
        if group is None:
            group = file if file is not None and keepers.get(file) is staged else None
        return group or staged.ino, meta, data

    def _base_file(self, staged: Staged) -> tuple[int, int] | None:
        if staged.home is None or stat.S_ISDIR(os.lstat(self.store.path(staged.ino)).st_mode):
            return None
        return _file(self.base.lstat(staged.home))

    def _keepers(self) -> dict[tuple[int, int], Staged]:
        """Return which staged file each changed base file becomes, under all the names the view
        gave no other.
        """
        versions: dict[tuple[int, int], list[Staged]] = {}
        for staged in self.tree.staged.values():
            if (file := self._base_file(staged)) is not None:
                versions.setdefault(file, []).append(staged)
        keepers = {}
        for file, some in versions.items():
            in_place = some if len(some) == 1 else [staged for staged in some if staged.origin is not None]
            if in_place:
                keepers[file] = min(in_place, key=lambda staged: (not staged.links, staged.ino))
        return keepers


def scan(root: bytes) -> dict[bytes, Node]:
    """Return what a directory is."""
    nodes: dict[bytes, Node] = {}
    files: dict[object, set[bytes]] = {}
    todo = [b""]
    while todo:
        rel = todo.pop()
        path = os.path.join(root, rel) if rel else root
        st = os.lstat(path)
        if stat.S_ISDIR(st.st_mode):
            todo.extend(join(rel, name) for name in os.listdir(path))
        links = files.setdefault(rel if stat.S_ISDIR(st.st_mode) else _file(st), set())
        links.add(rel)
        nodes[rel] = _node(path, path, st, mtime_ns=st.st_mtime_ns)
        files[rel] = links
    return {rel: node._replace(links=frozenset(files[rel])) for rel, node in nodes.items()}


def untouched(scribe: Scribe) -> dict[bytes, tuple[int, int, int]]:
    """Return inode, ctime and mtime of all in base that the override tree says nothing of, by
    path.
    """
    root, found = scribe.base.root, {}
    for rel in scan(root):
        shown = scribe.tree.resolve(rel)
        st = os.lstat(os.path.join(root, rel) if rel else root)
        if (
            shown is not None
            and shown.entry is None
            and shown.base == rel
            and st.st_nlink == 1 + stat.S_ISDIR(st.st_mode)
        ):
            found[rel] = st.st_ino, st.st_ctime_ns, st.st_mtime_ns
    return found


def contents(root: bytes) -> set[bytes]:
    """Return the content of every regular file below a directory."""
    return {node.content for node in scan(root).values() if node.kind == stat.S_IFREG}


def _node(meta: bytes, data: bytes, st: os.stat_result, *, mtime_ns: int) -> Node:
    content = b""
    if stat.S_ISREG(st.st_mode):
        with open(data, "rb") as file:
            content = file.read()
    elif stat.S_ISLNK(st.st_mode):
        content = os.readlink(data)
    elif stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode):
        content = b"%d" % st.st_rdev
    xattrs = copying.read_metadata(meta, st=st).xattrs
    kind, mode = stat.S_IFMT(st.st_mode), stat.S_IMODE(st.st_mode)
    return Node(kind, mode, (st.st_uid, st.st_gid), content, mtime_ns, tuple(sorted(xattrs)), frozenset())


def _file(st: os.stat_result) -> tuple[int, int]:
    return st.st_dev, st.st_ino


def paths_of_unit(scribe: CommitScribe, path: bytes) -> set[bytes]:
    """Return all paths of the unit that the change of a path belongs to."""
    units = Units(scribe.tree, scribe.base, scribe.store)
    entry = scribe.tree.find(path)
    assert entry is not None
    return set(units.of[entry].paths)
