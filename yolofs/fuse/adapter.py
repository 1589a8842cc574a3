"""Translates between pyfuse3 and :mod:`yolofs.fuse.handlers`; decides nothing.

Every request ends in an answer: an :class:`OSError` becomes its errno, anything unexpected a logged traceback and
EIO, and the mount lives on.  A request that somebody has to decide over, or that needs a large copy, is suspended
meanwhile, and then carried out from its beginning.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any

import pyfuse3
from pyfuse3 import EntryAttributes, FileInfo, FUSEError

from yolofs.fuse.copies import Copies
from yolofs.fuse.detours import WAYS, Detours, Name
from yolofs.fuse.freeing import Freeing
from yolofs.fuse.handlers import Answer, DirHandle, Handlers, PostponedError
from yolofs.fuse.listings import Row
from yolofs.fuse.loop import DeviceLoop, Future, LoopClosedError
from yolofs.fuse.origin import Origin, RunOf
from yolofs.gate import Grant
from yolofs.overlay import Owner
from yolofs.questions import Asker, Decision, Question
from yolofs.refusals import RefusedError, UndecidedError

log = logging.getLogger("yolofs.fuse")

_NO_SPACE = frozenset([errno.ENOSPC, errno.EDQUOT])
_MAX_COPIES = 3
"""So often the copy of a file that others keep changing is made in another thread; then the loop does it by itself."""


def answering(
    handler: Callable[..., Any], *, may_change: bool = False, tells: bool = False
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Turn a plain method into a coroutine function that raises nothing but :class:`FUSEError`.

    Where the last argument is no request context, nothing is judged.  With ``tells`` it tells attributes, and may wait
    until the kernel has dropped the pages that they do not fit.
    """

    async def answered(self: Adapter, *args: Any) -> Any:
        try:
            obstacle: UndecidedError | PostponedError | None = None
            result: Any = None
            try:
                self.origin.request = args
                if may_change:
                    self._handlers.listings.epoch += 1
                try:
                    result = handler(self, *args)
                except OSError as error:
                    if not self._makes_room(error):
                        raise
                    result = handler(self, *args)
            except (UndecidedError, PostponedError) as error:
                obstacle = error
            if obstacle is not None:
                result = await self._carry_out(handler, args, obstacle)
            if self._outdated:
                if tells:
                    await self._drop_pages()
                else:
                    self._loop.spawn(self._drop_pages(), name="drop pages")
            return result
        except RefusedError as error:
            self._asker.refused(error.question, args[-1].pid)
            raise FUSEError(error.errno or errno.EACCES) from None
        except OSError as error:
            if error.errno == errno.ESTALE:
                self._detours.told_stale(getattr(args[-1], "pid", 0))
            raise FUSEError(self._handlers.errno_of(error)) from None
        except FUSEError:
            raise
        except LoopClosedError:  # unmounting: nobody will answer any more
            raise FUSEError(errno.EINTR) from None
        except Exception:
            log.exception("%s failed", handler.__name__)
            raise FUSEError(errno.EIO) from None

    answered.__name__ = handler.__name__
    return answered


def telling(handler: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """:func:`answering`, for what tells attributes and keeps nothing locked that has to do with pages."""
    return answering(handler, tells=True)


def changing(handler: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """:func:`answering`, for what may change the view: nothing that was listed before is told again."""
    return answering(handler, may_change=True)


def drop_pages(numbers: Iterable[int]) -> None:
    """Have the kernel drop what it has cached of files, attributes too.

    Blocks, and needs the loop to serve meanwhile.
    """
    for number in numbers:
        with contextlib.suppress(OSError):  # it does not know it any more
            pyfuse3.invalidate_inode(number)


class Adapter(pyfuse3.Operations):
    """The view as pyfuse3 wants it."""

    supports_dot_lookup = True

    def __init__(
        self,
        handlers: Handlers,
        loop: DeviceLoop,
        asker: Asker,
        freeing: Freeing,
        *,
        xattrs: bool = False,
        run_of: RunOf = lambda _: 0,
    ) -> None:
        super().__init__()
        self.origin = Origin(run_of)
        handlers.overlay.run_of_request = self.origin.run
        self._handlers = handlers
        self._asker = asker
        self._freeing = freeing
        self._copies = Copies(handlers.overlay, loop)
        self._loop = loop
        self._xattrs = xattrs
        self._detours = Detours(handlers.gate.is_open)
        self._outdated = handlers.overlay.outdated
        self._dropping: Future[None] | None = None
        """Done when the kernel has dropped the pages that it is told of now."""
        self._own_threads: set[int] = set()
        self._own_handles: set[int] = set()

    @contextlib.contextmanager
    def unjudged(self) -> Iterator[None]:
        """Open files for the calling thread without judging while the block runs: it is :meth:`Mount.flush`'s."""
        thread = threading.get_native_id()  # what the kernel calls the request's pid
        self._own_threads.add(thread)
        try:
            yield
        finally:
            self._own_threads.discard(thread)

    async def _carry_out(
        self, handler: Callable[..., Any], args: Sequence[Any], obstacle: UndecidedError | PostponedError
    ) -> Any:
        """Wait until nothing is in a handler's way any more; each time it starts from its beginning."""
        is_way = handler.__name__ in WAYS
        answers: dict[Grant, Decision] = {}
        if isinstance(obstacle, UndecidedError):
            came = self._detours.arrived(handler.__name__, args)
            if came is None:
                self._send_back(handler.__name__, args, obstacle)
            else:
                answers = came
        granted: frozenset[Grant] = frozenset()
        copies = 0
        while True:
            if isinstance(obstacle, UndecidedError):
                question = obstacle.question
                decision = answers.pop(question.key, None) or await self._decision(question, args[-1].pid)
                if is_way:
                    self._detours.answered(args[-1].pid, decision)
                if decision is Decision.INTERRUPTED:
                    raise FUSEError(errno.EINTR)
                if decision is Decision.DENY and not is_way:
                    raise FUSEError(errno.EACCES)
                if decision is Decision.ALLOW:
                    granted |= {question.key}
            else:
                try:
                    await self._copies.make(obstacle.inode, obstacle.size)
                except OSError as error:
                    if not self._makes_room(error):
                        raise
                copies += 1
            await self._loop.until_resumed()  # danger: the session may be lent by now; a record would be lost
            self._handlers.overlay.look_anew()  # what was asked about may have come meanwhile
            self._handlers.listings.epoch += 1
            with contextlib.ExitStack() as stack:
                stack.enter_context(self._handlers.gate.granting(granted))
                if copies >= _MAX_COPIES:
                    stack.enter_context(self._handlers.copying_at_once())
                try:
                    self.origin.request = tuple(args)
                    try:
                        return handler(self, *args)
                    except OSError as error:
                        if not self._makes_room(error):
                            raise
                        return handler(self, *args)
                except (UndecidedError, PostponedError) as error:
                    obstacle = error

    async def _drop_pages(self) -> None:
        """Have the kernel drop the pages that the host has made wrong.

        A thread does it: who reads such a page keeps it locked, and waits for us.  One at a time: what answers the
        readers has to find a thread, too.
        """
        try:
            while self._dropping is not None:
                await self._dropping
            if not self._outdated:
                return
            self._dropping = self._loop.create_future()
            try:
                await self._drop_outdated()
            finally:
                dropping, self._dropping = self._dropping, None
                dropping.set_result(None)
        except LoopClosedError:  # unmounting: the kernel forgets all
            return
        except RuntimeError as error:  # the system's limit on threads: the next one who is told of them tries again
            log.warning("the kernel could not be told what the host has changed: %s", error)

    async def _drop_outdated(self) -> None:
        outdated = self._outdated.copy()
        self._outdated.clear()
        self._handlers.listings.epoch += 1  # an old size told again would cut off what is behind it
        await self._loop.in_thread(drop_pages, outdated)
        self._handlers.overlay.dropped_pages(outdated)

    def _makes_room(self, error: OSError) -> bool:
        """Tell whether a request that failed may be carried out again: the disk was full, and is perhaps not any more.

        What was removed and not freed yet is not to be missing.  Until it is freed the loop waits, as that request
        would have, had it been freed on the spot.
        """
        return error.errno in _NO_SPACE and self._freeing.settle()

    def _send_back(self, kind: str, args: Sequence[Any], obstacle: UndecidedError) -> None:
        """Have a request wait elsewhere, if it would keep a directory locked while it waits and comes again."""
        directories = self._detours.send_back(kind, args, [obstacle.question, *obstacle.later])
        for directory in directories:
            pyfuse3.invalidate_inode(directory, attr_only=True)  # of attributes alone: this never waits for us
        if directories:
            raise FUSEError(errno.ESTALE)

    def _on_the_way(self, thread: int, name: Name | None, answer: Callable[[], Answer]) -> EntryAttributes:
        """Ask a thread that was sent back, if this is it, before it is answered."""
        question = self._detours.on_the_way(thread, name)
        if question is not None:
            raise UndecidedError(question)
        entry = _entry(answer())
        if not self._detours.is_settled(entry.st_ino):
            entry.attr_timeout = 0
        return entry

    async def _decision(self, question: Question, pid: int) -> Decision:
        """Wait for the answer to a question."""
        decided: Future[Decision] = self._loop.create_future()
        self._asker.ask(question, pid, lambda decision: self._answer(decided, decision))
        return await decided

    def _answer(self, decided: Future[Decision], decision: Decision) -> None:
        """Let the request go on; to be called from any thread."""
        with contextlib.suppress(LoopClosedError):  # it has been answered, by the end of the loop
            self._loop.post(decided.set_result, decision)

    # ---- names

    @telling
    def lookup(self, parent: int, name: bytes, ctx: pyfuse3.RequestContext) -> EntryAttributes:
        if self._detours.coming:
            return self._on_the_way(ctx.pid, (parent, name), lambda: self._handlers.lookup(parent, name))
        return _entry(self._handlers.lookup(parent, name))

    async def forget(self, items: Sequence[tuple[int, int]]) -> None:
        try:
            self._handlers.forget(items)
        except Exception:
            log.exception("forget failed")

    @changing
    def mknod(self, parent: int, name: bytes, mode: int, rdev: int, ctx: pyfuse3.RequestContext) -> EntryAttributes:
        return _entry(self._handlers.mknod(parent, name, mode, rdev, Owner(ctx.uid, ctx.gid)))

    @changing
    def mkdir(self, parent: int, name: bytes, mode: int, ctx: pyfuse3.RequestContext) -> EntryAttributes:
        return _entry(self._handlers.mkdir(parent, name, mode, Owner(ctx.uid, ctx.gid)))

    @changing
    def symlink(self, parent: int, name: bytes, target: bytes, ctx: pyfuse3.RequestContext) -> EntryAttributes:
        return _entry(self._handlers.symlink(parent, name, target, Owner(ctx.uid, ctx.gid)))

    @changing
    def link(self, number: int, parent: int, name: bytes, ctx: pyfuse3.RequestContext) -> EntryAttributes:
        return _entry(self._handlers.link(number, parent, name))

    @changing
    def unlink(self, parent: int, name: bytes, ctx: pyfuse3.RequestContext) -> None:
        self._handlers.unlink(parent, name)

    @changing
    def rmdir(self, parent: int, name: bytes, ctx: pyfuse3.RequestContext) -> None:
        self._handlers.rmdir(parent, name)

    @changing
    def rename(
        self, parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int, ctx: pyfuse3.RequestContext
    ) -> None:
        self._handlers.rename(parent, name, new_parent, new_name, flags)

    # ---- attributes

    @telling
    def getattr(self, number: int, ctx: pyfuse3.RequestContext) -> EntryAttributes:
        if self._detours.coming:
            return self._on_the_way(ctx.pid, None, lambda: self._handlers.getattr(number))
        return _entry(self._handlers.getattr(number))

    @changing
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

    @answering
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

    @answering
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

    @answering
    def getxattr(self, number: int, name: bytes, ctx: pyfuse3.RequestContext) -> bytes:
        self._check_xattrs()
        return self._handlers.getxattr(number, name)

    @answering
    def listxattr(self, number: int, ctx: pyfuse3.RequestContext) -> list[bytes]:
        self._check_xattrs()
        return self._handlers.listxattr(number)

    @changing
    def setxattr(self, number: int, name: bytes, value: bytes, ctx: pyfuse3.RequestContext) -> None:
        self._check_xattrs()
        self._handlers.setxattr(number, name, value)

    @changing
    def removexattr(self, number: int, name: bytes, ctx: pyfuse3.RequestContext) -> None:
        self._check_xattrs()
        self._handlers.removexattr(number, name)

    def _check_xattrs(self) -> None:
        """Where they are off: the kernel takes ENOSYS for an answer once and for all, and never asks again."""
        if not self._xattrs:
            raise FUSEError(errno.ENOSYS)

    # ---- files

    @answering
    def open(self, number: int, flags: int, ctx: pyfuse3.RequestContext) -> FileInfo:
        is_own = ctx.pid in self._own_threads
        opened = self._handlers.open(number, flags, ctx.uid, is_judged=not is_own)
        if flags & os.O_ACCMODE:
            self.origin.opened(opened.handle, ctx.pid)
        if is_own:
            self._own_handles.add(opened.handle)
        if flags & os.O_TRUNC or not opened.keeps.attributes:
            self._handlers.listings.epoch += 1
        if not opened.keeps.attributes:
            pyfuse3.invalidate_inode(number, attr_only=True)  # of attributes alone: this never waits for us
        return FileInfo(fh=opened.handle, keep_cache=opened.keeps.pages)

    @changing
    def create(
        self, parent: int, name: bytes, mode: int, flags: int, ctx: pyfuse3.RequestContext
    ) -> tuple[FileInfo, EntryAttributes]:
        opened, answer = self._handlers.create(parent, name, mode, flags, Owner(ctx.uid, ctx.gid))
        self.origin.opened(opened.handle, ctx.pid)
        return FileInfo(fh=opened.handle, keep_cache=opened.keeps.pages), _entry(answer)

    async def read(self, handle: int, offset: int, size: int) -> Any:  # bytes in pyfuse3's stubs; it takes any buffer
        """Answer from memory, or have a worker thread wait for the disk; the loop goes on serving meanwhile."""
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

    @changing
    def write(self, handle: int, offset: int, data: bytes) -> int:
        return self._handlers.write(handle, offset, data)

    @answering
    def flush(self, handle: int) -> None:
        raise FUSEError(errno.ENOSYS)  # nothing to do at close; the kernel never asks again

    @answering
    def release(self, handle: int) -> None:
        self._own_handles.discard(handle)
        self.origin.released(handle)
        self._handlers.release(handle)

    async def fsync(self, handle: int, datasync: bool) -> None:
        if handle in self._own_handles:  # Mount.flush: only the kernel's cache was to be written out
            return
        await self._sync(lambda: self._handlers.sync_fd(handle))

    async def fsyncdir(self, handle: int, datasync: bool) -> None:
        await self._sync(lambda: None)

    async def _sync(self, find_fd: Callable[[], int | None]) -> None:
        """Make data, then the journal durable, in a worker thread; the loop goes on serving meanwhile."""
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

    @answering
    def opendir(self, number: int, ctx: pyfuse3.RequestContext) -> int:
        return self._handlers.opendir(number)

    @telling
    def readdir(self, handle: int, start: int, token: pyfuse3.ReaddirToken) -> None:
        directory = self._handlers.directory(handle, start)
        if directory.was_told and directory.listing is not None:
            self._tell_again(directory, directory.listing.rows, start, token)
        else:
            self._tell(directory, start, token)

    def _tell_again(self, directory: DirHandle, rows: Sequence[Row], start: int, token: pyfuse3.ReaddirToken) -> None:
        reply = pyfuse3.readdir_reply
        for offset in range(start, len(rows)):
            name, entry, inode = rows[offset]
            if inode is not None and not inode.lookups:  # the kernel has forgotten it, and so may we
                self._handlers.listings.drop(directory.inode.number)
                self._handlers.look_up_again(directory)
                self._tell(directory, offset, token)
                return
            if not reply(token, name, entry, offset + 1):
                return
            if inode is not None:
                inode.lookups += 1

    def _tell(self, directory: DirHandle, start: int, token: pyfuse3.ReaddirToken) -> None:
        reply, handlers = pyfuse3.readdir_reply, self._handlers
        names = directory.names
        for offset in range(start, len(names)):
            name = names[offset]
            if offset < 2:  # "." and "..", which count as no look-up
                answer = handlers.dot(directory, name)
            else:
                answer = handlers.listed(directory, name)
            if answer.attr is None:  # gone since reading began
                directory.listing = None
                continue
            entry = _entry(answer)
            if not reply(token, name, entry, offset + 1):
                if offset >= 2:
                    handlers.forget([(answer.attr.number, 1)])
                return
            if directory.listing is not None:
                handlers.note_told(directory, offset, answer, entry)

    @answering
    def releasedir(self, handle: int) -> None:
        self._handlers.releasedir(handle)


def _entry(answer: Answer) -> EntryAttributes:
    """Return an answer in pyfuse3's form."""
    attr, name_timeout_s, attr_timeout_s = answer
    entry = EntryAttributes()
    entry.entry_timeout = name_timeout_s
    if attr is None:
        entry.st_ino = 0
        return entry
    entry.attr_timeout = attr_timeout_s
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
