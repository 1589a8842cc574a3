"""Drives the overlay of a session by paths, without a mount, as the kernel would: look up, act,
forget.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from tests.support.plain_directory import RENAME_EXCHANGE, by_first_name, describe
from yolofs.changes.changes import Change, compare
from yolofs.commit.select.selection import Selection
from yolofs.overlay import Overlay, Owner
from yolofs.overlay.inodes import Attr, Inode
from yolofs.paths import RelPath
from yolofs.session.session import Session, SessionAccess
from yolofs.state.tree import Tree

T = TypeVar("T")
OWNER = Owner(os.getuid(), os.getgid())


class CoreDriver:
    """A view of ``root``, whose session is that of a project in it, or of ``root`` itself."""

    may_leave = False
    """Whether store inodes may be left that nothing shows: the host has taken away the directories
    of their names.
    """

    def __init__(self, root: bytes, project: bytes | None = None) -> None:
        self.root = root
        self.project = project if project is not None else root
        self.handles: dict[int, tuple[contextlib.ExitStack, Inode]] = {}
        self._known: dict[tuple[int, bytes], Inode] = {}
        """What :meth:`look` has found under a name of a directory: not looked up again, as little
        as by the kernel.
        """
        Session.create(self.project)
        self._open()

    def _open(self) -> None:
        self.session = Session.open(self.project, SessionAccess.WRITE, root=self.root)
        state = self.session.present()
        count = self.session.collect_unseen(state)
        assert not count or self.may_leave, "what nothing shows is removed when it is let go of"
        self.overlay = Overlay(
            self.session.base,
            self.session.store,
            self.session.journal,
            state.tree,
            fresh_from=state.fresh_from,
            max_fds=3,
        )

    def close(self) -> None:
        self._known.clear()
        self.overlay.close()
        self.session.close()

    # ---- walking as the kernel does

    @contextlib.contextmanager
    def _held(self, path: bytes) -> Iterator[tuple[Inode, Attr]]:
        """Look every component up, yield the last one, forget them all."""
        inode, attr = self.overlay.root, self.overlay.getattr(self.overlay.root)
        held = []
        try:
            for name in path.split(b"/") if path else ():
                if not inode.is_directory:
                    raise OSError(errno.ENOTDIR if inode.kind != stat.S_IFLNK else errno.ENOENT, "not a directory")
                known = self._known.get((inode.number, name))
                if known is not None:
                    inode, attr = known, self.overlay.getattr(known)
                    known.lookups += 1
                else:
                    found = self.overlay.lookup(inode, name)
                    if found is None:
                        raise OSError(errno.ENOENT, "not found")
                    inode, attr = found
                held.append(inode.number)
            yield inode, attr
        finally:
            for number in held:
                self.overlay.forget(number, 1)

    @contextlib.contextmanager
    def _parent(self, path: bytes) -> Iterator[tuple[Inode, bytes]]:
        directory, _, name = path.rpartition(b"/")
        with self._held(directory) as (inode, _):
            if not inode.is_directory:
                raise OSError(errno.ENOTDIR if inode.kind != stat.S_IFLNK else errno.ENOENT, "not a directory")
            yield inode, name

    def _file(self, path: bytes, flags: int, action: Callable[[Inode, Attr], T]) -> T:
        with self._held(path) as (inode, attr):
            if inode.kind == stat.S_IFLNK:
                raise OSError(errno.ELOOP, "a link")
            if inode.is_directory:
                raise OSError(errno.EISDIR, "a directory")
            if inode.kind != stat.S_IFREG and flags & os.O_ACCMODE != os.O_RDONLY:
                raise OSError(errno.ENXIO, "a fifo that nobody reads")
            if inode.kind != stat.S_IFREG:
                return cast("T", b"")
            self.overlay.open(inode, flags)
            try:
                return action(inode, attr)
            finally:
                self.overlay.release(inode, writer=flags & os.O_ACCMODE != os.O_RDONLY)

    # ---- knowing names as the kernel does

    def look(self, path: bytes) -> None:
        """Look all names on a path up, and know them from then on."""
        directory = b""
        for name in path.split(b"/") if path else ():
            with self._held(directory) as (parent, _), self._held(directory := os.path.join(directory, name)) as found:
                if (parent.number, name) not in self._known:
                    found[0].lookups += 1
                    self._known[parent.number, name] = found[0]

    def _forget_name(self, directory: int, name: bytes) -> None:
        known = self._known.pop((directory, name), None)
        if known is not None:
            self.overlay.forget(known.number, 1)

    def _target(self, parent: Inode, name: bytes) -> Inode | None:
        """Return what a rename would replace, which the kernel looks up if it does not know it."""
        known = self._known.get((parent.number, name))
        if known is None and (found := self.overlay.lookup(parent, name)) is not None:
            known = found[0]
            self.overlay.forget(known.number, 1)
        return known

    def _renamed(self, old: tuple[int, bytes], new: tuple[int, bytes], *, is_swap: bool) -> None:
        moved, other = self._known.pop(old, None), self._known.pop(new, None)
        if moved is not None:
            self._known[new] = moved
        if other is not None and is_swap:
            self._known[old] = other
        elif other is not None:
            self.overlay.forget(other.number, 1)

    # ---- operations

    def _write(self, inode: Inode, offset: int, data: bytes) -> int:
        """Write; nothing at all where there is no data, as the kernel does not ask for that."""
        return self.overlay.write(inode, offset, data) if data else 0

    def create(self, path: bytes, data: bytes, mode: int) -> None:
        with self._parent(path) as (parent, name):
            inode, _ = self.overlay.create(parent, name, mode, OWNER)
            self._write(inode, 0, data)
            self.overlay.release(inode, writer=True)
            self.overlay.forget(inode.number, 1)

    def overwrite(self, path: bytes, data: bytes) -> None:
        self._file(path, os.O_WRONLY | os.O_TRUNC, lambda inode, _: self._write(inode, 0, data))

    def append(self, path: bytes, data: bytes) -> None:
        self._file(path, os.O_WRONLY, lambda inode, attr: self._write(inode, attr.size, data))

    def write_at(self, path: bytes, offset: int, data: bytes) -> None:
        self._file(path, os.O_WRONLY, lambda inode, _: data and self._write(inode, offset, data))

    def write_without_name(self, path: bytes, data: bytes) -> None:
        """Open a file, remove that name of it, and write at the file's beginning."""

        def unlink_and_write(inode: Inode, _: Attr) -> None:
            self.unlink(path)
            if data:
                self._write(inode, 0, data)

        self._file(path, os.O_WRONLY, unlink_and_write)

    def truncate(self, path: bytes, size: int) -> None:
        self._file(path, os.O_WRONLY, lambda inode, _: self.overlay.setattr(inode, size=size))

    def read(self, path: bytes) -> bytes:
        with self._held(path) as (inode, _):
            if inode.kind == stat.S_IFLNK:
                raise OSError(errno.ELOOP, "a link")
            if inode.is_directory:
                raise OSError(errno.EISDIR, "a directory")
        return self._file(path, os.O_RDONLY, lambda inode, _: self.overlay.read(inode, 0, 1 << 20))

    def mkdir(self, path: bytes, mode: int) -> None:
        with self._parent(path) as (parent, name):
            mode &= 0o1777  # as the kernel does before it asks
            self.overlay.forget(self.overlay.mkdir(parent, name, mode, OWNER)[0].number, 1)

    def rmdir(self, path: bytes) -> None:
        with self._parent(path) as (parent, name):
            self.overlay.rmdir(parent, name)
            self._forget_name(parent.number, name)

    def unlink(self, path: bytes) -> None:
        with self._parent(path) as (parent, name):
            self.overlay.unlink(parent, name)
            self._forget_name(parent.number, name)

    def rename(self, old: bytes, new: bytes, flags: int = 0) -> None:
        with self._parent(old) as (parent, name), self._parent(new) as (new_parent, new_name):
            source = self._known.get((parent.number, name))
            target = None
            if source is not None:
                self.look(os.path.dirname(new))
                target = self._target(new_parent, new_name)
            self.overlay.rename(parent, name, new_parent, new_name, flags)
            if source is None or source is not target:
                self._renamed((parent.number, name), (new_parent.number, new_name), is_swap=flags == RENAME_EXCHANGE)

    def link(self, old: bytes, new: bytes) -> None:
        with self._held(old) as (inode, _), self._parent(new) as (parent, name):
            self.overlay.forget(self.overlay.link(inode, parent, name)[0].number, 1)

    def symlink(self, target: bytes, path: bytes) -> None:
        with self._parent(path) as (parent, name):
            self.overlay.forget(self.overlay.symlink(parent, name, target, OWNER)[0].number, 1)

    def mkfifo(self, path: bytes, mode: int) -> None:
        with self._parent(path) as (parent, name):
            self.overlay.forget(self.overlay.mknod(parent, name, stat.S_IFIFO | mode, 0, OWNER)[0].number, 1)

    def chown(self, path: bytes, uid: int, gid: int) -> None:
        with self._held(path) as (inode, _):
            self.overlay.setattr(inode, uid=None if uid < 0 else uid, gid=None if gid < 0 else gid)

    def setxattr(self, path: bytes, name: bytes, value: bytes) -> None:
        with self._held(path) as (inode, _):
            self._check_xattr(inode)
            self.overlay.setxattr(inode, name, value)

    def removexattr(self, path: bytes, name: bytes) -> None:
        with self._held(path) as (inode, _):
            self._check_xattr(inode)
            self.overlay.removexattr(inode, name)

    def xattrs(self, path: bytes) -> tuple[tuple[str, bytes], ...]:
        """Return the extended attributes that the view shows."""
        with self._held(path) as (inode, _):
            return self._xattrs(inode)

    @staticmethod
    def _check_xattr(inode: Inode) -> None:
        if inode.kind not in (stat.S_IFREG, stat.S_IFDIR):
            raise OSError(errno.EPERM, "only files and directories have attributes of users")

    def write_mapping(self, path: bytes, offset: int, data: bytes) -> None:
        def write(inode: Inode, attr: Attr) -> None:
            if not attr.size:
                raise OSError(errno.ENODEV, "cannot be mapped")
            if fitting := data[: max(0, attr.size - offset)]:
                self._write(inode, offset, fitting)

        with self._held(path) as (inode, _):
            if inode.kind == stat.S_IFIFO:
                raise OSError(errno.ENODEV, "cannot be mapped")
        self._file(path, os.O_RDWR, write)

    # ---- handles that stay open

    def open_handle(self, slot: int, path: bytes) -> None:
        with contextlib.ExitStack() as stack:
            inode, _ = stack.enter_context(self._held(path))
            if inode.kind == stat.S_IFLNK:
                raise OSError(errno.ELOOP, "a link")
            if inode.is_directory:
                raise OSError(errno.EISDIR, "a directory")
            if inode.kind != stat.S_IFREG:
                raise OSError(errno.ENXIO, "no regular file")
            self.overlay.open(inode, os.O_RDWR)
            stack.callback(lambda: self.overlay.release(inode, writer=True))
            self.handles[slot] = stack.pop_all(), inode

    def handle_write(self, slot: int, offset: int, data: bytes) -> None:
        if data:
            self._write(self.handles[slot][1], offset, data)

    def handle_truncate(self, slot: int, size: int) -> None:
        self.overlay.setattr(self.handles[slot][1], size=size)

    def handle_facts(self, slot: int) -> tuple[Any, ...]:
        inode = self.handles[slot][1]
        attr = self.overlay.getattr(inode)
        content = self.overlay.read(inode, 0, 1 << 20)
        return (attr.mode, attr.nlink, attr.uid, attr.gid, attr.size, content, self._xattrs(inode))

    def close_handle(self, slot: int) -> None:
        self.handles.pop(slot)[0].close()

    def chmod(self, path: bytes, mode: int) -> None:
        with self._held(path) as (inode, _):
            if inode.kind == stat.S_IFLNK:
                raise OSError(errno.ELOOP, "a link")
            self.overlay.setattr(inode, mode=mode)

    def utimes(self, path: bytes, time_ns: int) -> None:
        with self._held(path) as (inode, _):
            self.overlay.setattr(inode, atime_ns=time_ns, mtime_ns=time_ns)

    # ---- looking

    def tree(self) -> dict[bytes, tuple[Any, ...]]:
        found: dict[bytes, tuple[Any, ...]] = {}
        stack = [b""]
        while stack:
            directory = stack.pop()
            with self._held(directory) as (inode, _):
                names = self.overlay.names(inode)
            assert len(names) == len(set(names))
            for name in names:
                path = os.path.join(directory, name)
                with self._held(path) as (inode, attr):
                    found[path] = self._describe(inode, attr)
                    if inode.is_directory:
                        stack.append(path)
        return by_first_name(found)

    def _describe(self, inode: Inode, attr: Attr) -> tuple[Any, ...]:
        st = os.stat_result(
            (attr.mode, attr.number, 0, attr.nlink, attr.uid, attr.gid, attr.size, 0, 0, 0),
            {"st_mtime_ns": attr.mtime_ns, "st_rdev": attr.rdev},
        )
        return describe(
            st,
            lambda: self.overlay.read(inode, 0, attr.size),
            lambda: self.overlay.readlink(inode),
            lambda: self._xattrs(inode),
        )

    def _xattrs(self, inode: Inode) -> tuple[tuple[str, bytes], ...]:
        names = sorted(name for name in self.overlay.listxattr(inode) if name.startswith(b"user."))
        return tuple((os.fsdecode(name), self.overlay.getxattr(inode, name)) for name in names)

    def changes(self) -> list[Change]:
        session = self.session
        return compare(Tree(), session.state(), session.base, session.store, expand_renames=True)

    # ---- time

    def snapshot(self) -> int:
        generation = self.session.snapshot()
        assert generation is not None
        self.overlay.mark(self.session.store.next_ino)
        return generation

    def travel(self, generation: int) -> int:
        _, present = self.session.travel(str(generation))
        self._reload(committed=False)
        return present

    def _reload(self, *, committed: bool) -> None:
        state = self.session.present()
        stale = self.overlay.reload(self.session.journal, state.tree, fresh_from=state.fresh_from, committed=committed)
        for directory, name in stale.entries:
            self._forget_name(directory, name)

    def remount(self) -> None:
        self.close()
        self._open()

    def commit(self) -> None:
        from yolofs.session.commit import commit

        commit(self.session)
        self._reload(committed=True)

    def commit_paths(self, paths: list[bytes]) -> bool:
        is_done = commit_some(self.session, paths)
        if is_done:
            self._reload(committed=True)
        return is_done

    def abort(self) -> None:
        self.session.put_away(None)
        self._reload(committed=False)


def commit_some(session: Session, paths: list[bytes]) -> bool:
    """Commit what changed at or below some paths; return whether that ended the journal."""
    from yolofs.session.commit import commit

    selection = Selection(session.regions, paths=tuple(map(RelPath, paths)))
    return commit(session, selection=selection).number is not None
