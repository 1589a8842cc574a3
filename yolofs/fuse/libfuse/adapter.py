"""Translates between pyfuse3 and :mod:`yolofs.fuse.handlers`; decides nothing.

Requests that cannot be answered at once are those of :mod:`yolofs.fuse.suspended_requests`.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, TypeAlias

import pyfuse3
from pyfuse3 import EntryAttributes, FileInfo, FUSEError

from yolofs.access.refusals import UndecidedError
from yolofs.fuse.cache.listings import ToldName
from yolofs.fuse.loop.loop import LoopClosedError
from yolofs.fuse.request import DirectoryAndName, KernelRequest, RequestKind
from yolofs.fuse.results import DirHandle, EntryReply
from yolofs.fuse.suspended_requests import OBSTACLES, AnsweredError, Obstacle, Requests
from yolofs.fuse.transport import Kernel, Served
from yolofs.overlay import Owner

log = logging.getLogger("yolofs.fuse")


Answering: TypeAlias = Callable[..., Coroutine[Any, Any, Any]]


def answering(kind: RequestKind, *, tells: bool = False) -> Callable[[Callable[..., Any]], Answering]:
    """Turn a plain method into a coroutine function that raises nothing but :class:`FUSEError`.

    What is judged has its request context as the last argument.  An :class:`OSError` becomes its
    errno, anything unexpected a logged traceback and EIO, and the mount lives on.  ``tells``: it
    tells attributes, and keeps nothing locked that has to do with pages, so it may wait until the
    kernel has dropped the pages that they do not fit.
    """

    def decorate(handler: Callable[..., Any]) -> Answering:
        async def answered(self: Adapter, *args: Any) -> Any:
            try:
                obstacle: Obstacle | None = None
                result: Any = None
                self.current_run.sent_with(args)
                try:
                    result = handler(self, *args)
                except OBSTACLES as error:
                    obstacle = error
                except OSError as error:
                    if not self.makes_room(error):
                        raise
                    obstacle = error
                if obstacle is not None:
                    result = await self.carry_out(
                        lambda: self.attempt(handler, args), KernelRequest(kind, args), obstacle
                    )
                if self.outdated:
                    await self.drop_pages(waits=tells)
                return result
            except FUSEError:
                raise
            except AnsweredError as error:
                raise FUSEError(error.number) from None
            except (OSError, LoopClosedError) as error:
                raise FUSEError(self.errno_of(error, KernelRequest(kind, args))) from None
            except Exception:
                log.exception("%s failed", kind.value)
                raise FUSEError(errno.EIO) from None

        return answered

    return decorate


class Adapter(Requests, pyfuse3.Operations):
    """The view as pyfuse3 wants it."""

    supports_dot_lookup = True

    def __init__(self, served: Served, kernel: Kernel, *, xattrs: bool = False) -> None:
        super().__init__(served, kernel)
        self.current_run = served.current_run
        self._xattrs = xattrs
        self._own_threads: set[int] = set()
        self._own_handles: set[int] = set()

    def attempt(self, handler: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Carry a request out that came before."""
        self.current_run.sent_with(args)
        return handler(self, *args)

    @contextlib.contextmanager
    def unjudged(self) -> Iterator[None]:
        """Open files for the calling thread without judging while the block runs: it is
        :meth:`Mount.flush`'s.
        """
        thread = threading.get_native_id()  # what the kernel calls the request's pid
        self._own_threads.add(thread)
        try:
            yield
        finally:
            self._own_threads.discard(thread)

    def _during_path_walk(
        self, thread: int, name: DirectoryAndName | None, answer: Callable[[], EntryReply]
    ) -> EntryAttributes:
        """Ask the thread of a request that was sent back, if this is one, before it is answered."""
        question = self.sent_back.question_for(thread, name)
        if question is not None:
            raise UndecidedError(question)
        entry = _entry(answer())
        if not self.sent_back.is_settled(entry.st_ino):
            entry.attr_timeout = 0
        return entry

    # ---- names

    @answering(RequestKind.LOOKUP, tells=True)
    def lookup(self, parent: int, name: bytes, ctx: pyfuse3.RequestContext) -> EntryAttributes:
        if self.sent_back.awaited:
            return self._during_path_walk(ctx.pid, (parent, name), lambda: self._handlers.lookup(parent, name))
        return _entry(self._handlers.lookup(parent, name))

    async def forget(self, items: Sequence[tuple[int, int]]) -> None:
        try:
            self._handlers.forget(items)
        except Exception:
            log.exception("forget failed")

    @answering(RequestKind.MKNOD)
    def mknod(self, parent: int, name: bytes, mode: int, rdev: int, ctx: pyfuse3.RequestContext) -> EntryAttributes:
        return _entry(self._handlers.mknod(parent, name, mode, rdev, Owner(ctx.uid, ctx.gid)))

    @answering(RequestKind.MKDIR)
    def mkdir(self, parent: int, name: bytes, mode: int, ctx: pyfuse3.RequestContext) -> EntryAttributes:
        return _entry(self._handlers.mkdir(parent, name, mode, Owner(ctx.uid, ctx.gid)))

    @answering(RequestKind.SYMLINK)
    def symlink(self, parent: int, name: bytes, target: bytes, ctx: pyfuse3.RequestContext) -> EntryAttributes:
        return _entry(self._handlers.symlink(parent, name, target, Owner(ctx.uid, ctx.gid)))

    @answering(RequestKind.LINK)
    def link(self, number: int, parent: int, name: bytes, ctx: pyfuse3.RequestContext) -> EntryAttributes:
        return _entry(self._handlers.link(number, parent, name))

    @answering(RequestKind.UNLINK)
    def unlink(self, parent: int, name: bytes, ctx: pyfuse3.RequestContext) -> None:
        self._handlers.unlink(parent, name)

    @answering(RequestKind.RMDIR)
    def rmdir(self, parent: int, name: bytes, ctx: pyfuse3.RequestContext) -> None:
        self._handlers.rmdir(parent, name)

    @answering(RequestKind.RENAME)
    def rename(
        self, parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int, ctx: pyfuse3.RequestContext
    ) -> None:
        self._handlers.rename(parent, name, new_parent, new_name, flags)

    # ---- attributes

    @answering(RequestKind.GETATTR, tells=True)
    def getattr(self, number: int, ctx: pyfuse3.RequestContext) -> EntryAttributes:
        if self.sent_back.awaited:
            return self._during_path_walk(ctx.pid, None, lambda: self._handlers.getattr(number))
        return _entry(self._handlers.getattr(number))

    @answering(RequestKind.SETATTR)
    def setattr(
        self,
        number: int,
        attr: EntryAttributes,
        fields: pyfuse3.SetattrFields,
        handle: int | None,
        ctx: pyfuse3.RequestContext,
    ) -> EntryAttributes:
        return _entry(
            self._handlers.setattr(
                number,
                attr.st_mode if fields.update_mode else None,
                attr.st_uid if fields.update_uid else None,
                attr.st_gid if fields.update_gid else None,
                attr.st_size if fields.update_size else None,
                attr.st_atime_ns if fields.update_atime else None,
                attr.st_mtime_ns if fields.update_mtime else None,
                is_open=handle is not None,
            )
        )

    @answering(RequestKind.READLINK)
    def readlink(self, number: int, ctx: pyfuse3.RequestContext) -> bytes:
        return self._handlers.readlink(number)

    async def statfs(self, ctx: pyfuse3.RequestContext) -> pyfuse3.StatvfsData:
        """Tell what is free, after all that was removed is; the loop goes on serving meanwhile."""
        if self._freeing.count:
            self._freeing.hand_over()
            with contextlib.suppress(LoopClosedError, RuntimeError):  # RuntimeError: the system's limit on threads
                await self._loop.in_thread(self._freeing.wait)
        data: pyfuse3.StatvfsData = await self._statfs(ctx)
        return data

    @answering(RequestKind.STATFS)
    def _statfs(self, ctx: pyfuse3.RequestContext) -> pyfuse3.StatvfsData:
        figures = self._handlers.statvfs()
        data = pyfuse3.StatvfsData()
        for field in (
            "f_bsize",
            "f_frsize",
            "f_blocks",
            "f_bfree",
            "f_bavail",
            "f_files",
            "f_ffree",
            "f_favail",
            "f_namemax",
        ):
            setattr(data, field, getattr(figures, field))
        return data

    @answering(RequestKind.GETXATTR)
    def getxattr(self, number: int, name: bytes, ctx: pyfuse3.RequestContext) -> bytes:
        self._check_xattrs()
        return self._handlers.getxattr(number, name)

    @answering(RequestKind.LISTXATTR)
    def listxattr(self, number: int, ctx: pyfuse3.RequestContext) -> list[bytes]:
        self._check_xattrs()
        return self._handlers.listxattr(number, ctx.uid)

    @answering(RequestKind.SETXATTR)
    def setxattr(self, number: int, name: bytes, value: bytes, ctx: pyfuse3.RequestContext) -> None:
        self._check_xattrs()
        self._handlers.setxattr(number, name, value)

    @answering(RequestKind.REMOVEXATTR)
    def removexattr(self, number: int, name: bytes, ctx: pyfuse3.RequestContext) -> None:
        self._check_xattrs()
        self._handlers.removexattr(number, name)

    def _check_xattrs(self) -> None:
        """Where they are off: the kernel takes ENOSYS for an answer once and for all, and never
        asks again.
        """
        if not self._xattrs:
            raise FUSEError(errno.ENOSYS)

    # ---- files

    @answering(RequestKind.OPEN)
    def open(self, number: int, flags: int, ctx: pyfuse3.RequestContext) -> FileInfo:
        is_own = ctx.pid in self._own_threads
        opened = self._handlers.open(number, flags, may_keep_setuid=ctx.uid == 0, is_judged=not is_own)
        if flags & os.O_ACCMODE:
            self.current_run.opened(opened.handle)
        if is_own:
            self._own_handles.add(opened.handle)
        if not opened.keeps.attributes:
            self._kernel.forget_attributes(number)
        return FileInfo(fh=opened.handle, keep_cache=opened.keeps.pages)

    @answering(RequestKind.CREATE)
    def create(
        self, parent: int, name: bytes, mode: int, flags: int, ctx: pyfuse3.RequestContext
    ) -> tuple[FileInfo, EntryAttributes]:
        owner, is_root = Owner(ctx.uid, ctx.gid), ctx.uid == 0
        opened, answer = self._handlers.create(parent, name, mode, flags, owner, may_keep_setuid=is_root)
        self.current_run.opened(opened.handle)
        return FileInfo(fh=opened.handle, keep_cache=opened.keeps.pages), _entry(answer)

    async def read(self, handle: int, offset: int, size: int) -> Any:  # bytes in pyfuse3's stubs; it takes any buffer
        """Answer from memory, or have a worker thread wait for the disk; the loop goes on serving
        meanwhile.
        """
        try:
            data = self._handlers.read(handle, offset, size)
            if data is None:
                data = await self._loop.in_thread(self._handlers.read_job(handle, offset, size))
        except OSError as error:
            raise FUSEError(self._handlers.errno_of(error)) from None
        except LoopClosedError:  # unmounting
            raise FUSEError(errno.EIO) from None
        except Exception:
            log.exception("read failed")
            raise FUSEError(errno.EIO) from None
        return data

    @answering(RequestKind.WRITE)
    def write(self, handle: int, offset: int, data: bytes) -> int:
        return self._handlers.write(handle, offset, data)

    @answering(RequestKind.FLUSH)
    def flush(self, handle: int) -> None:
        raise FUSEError(errno.ENOSYS)  # nothing to do at close; the kernel never asks again

    @answering(RequestKind.RELEASE)
    def release(self, handle: int) -> None:
        self._own_handles.discard(handle)
        self.current_run.released(handle)
        self._handlers.release(handle)

    async def fsync(self, handle: int, datasync: bool) -> None:
        if handle in self._own_handles:  # Mount.flush: only the kernel's cache was to be written out
            return
        await self._sync(lambda: self._handlers.sync_fd(handle))

    async def fsyncdir(self, handle: int, datasync: bool) -> None:
        await self._sync(lambda: None)

    async def _sync(self, find_fd: Callable[[], int | None]) -> None:
        """Make data, then the journal durable, in a worker thread; the loop goes on serving
        meanwhile.
        """
        try:
            await self._loop.in_thread(self._handlers.sync_job(find_fd()))
        except OSError as error:
            raise FUSEError(error.errno or errno.EIO) from None
        except LoopClosedError:  # unmounting: nobody can tell any more whether it reached the disk
            raise FUSEError(errno.EIO) from None
        except Exception:
            log.exception("fsync failed")
            raise FUSEError(errno.EIO) from None

    # ---- directories

    @answering(RequestKind.OPENDIR)
    def opendir(self, number: int, ctx: pyfuse3.RequestContext) -> int:
        return self._handlers.opendir(number)

    @answering(RequestKind.READDIR, tells=True)
    def readdir(self, handle: int, start: int, token: pyfuse3.ReaddirToken) -> None:
        directory = self._handlers.directory(handle, start)
        if directory.was_told and directory.listing is not None:
            self._tell_again(directory, directory.listing.rows, start, token)
        else:
            self._tell(directory, start, token)

    def _tell_again(
        self, directory: DirHandle, rows: Sequence[ToldName], start: int, token: pyfuse3.ReaddirToken
    ) -> None:
        reply = pyfuse3.readdir_reply
        for offset in range(start, len(rows)):
            row = rows[offset]
            inode = row.inode
            if inode is None or (inode.changes == row.changes and inode.lookups):
                if not reply(token, row.name, row.entry, offset + 1):
                    return
                if inode is not None:
                    inode.lookups += 1
            elif not self._tell_name(directory, offset, row.name, token):
                return
            elif not directory.was_told:  # the rest, likewise
                self._tell(directory, offset + 1, token)
                return

    def _tell(self, directory: DirHandle, start: int, token: pyfuse3.ReaddirToken) -> None:
        names = directory.names
        for offset in range(start, len(names)):
            if not self._tell_name(directory, offset, names[offset], token):
                return

    def _tell_name(self, directory: DirHandle, offset: int, name: bytes, token: pyfuse3.ReaddirToken) -> bool:
        """Look up and tell one name; return whether there was room for it."""
        handlers = self._handlers
        # "." and ".." count as no look-up
        answer = handlers.dot(directory, name) if offset < 2 else handlers.listed(directory, name)
        if answer.attr is None:  # gone since reading began
            handlers.look_up_again(directory)
            return True
        entry = _entry(answer)
        if not pyfuse3.readdir_reply(token, name, entry, offset + 1):
            if offset >= 2:
                handlers.forget([(answer.attr.number, 1)])
            return False
        handlers.note_told(directory, offset, name, answer, entry)
        return True

    @answering(RequestKind.RELEASEDIR)
    def releasedir(self, handle: int) -> None:
        self._handlers.releasedir(handle)


def _entry(answer: EntryReply) -> EntryAttributes:
    """Return an answer in pyfuse3's form."""
    attr = answer.attr
    entry = EntryAttributes()
    entry.entry_timeout = answer.name_timeout_s
    if attr is None:
        entry.st_ino = 0
        return entry
    entry.attr_timeout = answer.attr_timeout_s
    entry.st_ino = attr.number
    entry.st_mode = attr.mode
    entry.st_nlink = attr.nlink
    entry.st_uid = attr.uid
    entry.st_gid = attr.gid
    entry.st_rdev = attr.rdev
    entry.st_size = attr.size
    entry.st_blocks = attr.blocks
    entry.st_atime_ns = attr.atime_ns
    entry.st_mtime_ns = attr.mtime_ns
    entry.st_ctime_ns = attr.ctime_ns
    return entry
