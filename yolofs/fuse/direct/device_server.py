"""Reads requests from the device and answers them: the hot path.

A request is answered before the next one is read, unless it has to wait: then
:mod:`yolofs.fuse.direct.waiting` has it carried out later, from the bytes that came.  An
:class:`OSError` becomes its errno, anything unexpected a logged traceback and EIO, and the mount
lives on.  There is one method for each kind of request, so the file is long.
"""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import os
import threading
from collections.abc import Callable, Iterator

from yolofs.access.refusals import UndecidedError
from yolofs.fuse.direct import incoming
from yolofs.fuse.direct.device import MOUNT_ENDED, NOBODY_WAITS, WITHDRAWN, Device
from yolofs.fuse.direct.directory_names import Listed
from yolofs.fuse.direct.handshake import MAX_WRITE, answer_init, serves_xattrs
from yolofs.fuse.direct.kernel_protocol import (
    CACHE_DIR,
    COPY_FILE_RANGE_IN,
    FALLOCATE_IN,
    FORGET_ONE,
    FORGETS_IN,
    GETXATTR_IN,
    HANDLE,
    IN,
    IN_SIZE,
    INTERRUPT_IN,
    IO_IN,
    KEEP_CACHE,
    LSEEK_IN,
    OPCODES,
    OPEN_IN,
    OPEN_KILL_SUIDGID,
    SETATTR_IN,
    SETXATTR_ACL_KILL_SGID,
    SETXATTR_EXT_IN,
    SETXATTR_IN,
    WRITE_CACHE,
    WRITE_DATA_AT,
    WRITE_IN,
    WRITE_KILL_SUIDGID,
    Init,
    Opcode,
    Valid,
)
from yolofs.fuse.direct.notices import Notices
from yolofs.fuse.direct.replies import Replies, Reply
from yolofs.fuse.direct.waiting import Waiting
from yolofs.fuse.loop.loop import Future
from yolofs.fuse.request import DirectoryAndName
from yolofs.fuse.results import EntryReply
from yolofs.fuse.suspended_requests import OBSTACLES, Requests
from yolofs.fuse.transport import MountOptions, Served
from yolofs.overlay import NOW, Owner
from yolofs.system.requesters import may_keep_setuid

log = logging.getLogger("yolofs.fuse")

_BUFFER_SIZE = MAX_WRITE + (1 << 16)
_SECOND_NS = 1_000_000_000
Answering = Callable[[int, int], Reply | None]
"""Carries out the request in the buffer, about a node and of a size in bytes; None: there is
nothing to say, or it is said later.
"""


class DeviceServer:
    """Answers what comes from ``device``; belongs to the device loop."""

    def __init__(self, served: Served, options: MountOptions, device: Device, notices: Notices) -> None:
        self._handlers = served.handlers
        self._overlay = served.handlers.overlay
        self._loop = served.loop
        self._freeing = served.freeing
        self._options = options
        self._requests = Requests(served, notices)
        self._sent_back = self._requests.sent_back
        self._outdated = self._requests.outdated
        self._notices = notices
        self._current_run = served.current_run
        self._fd = device.fd
        self._device = io.FileIO(device.fd, "r+b", closefd=False)
        self._readinto = self._device.readinto  # says None where readv(2) would make an exception
        self._buffer = bytearray(_BUFFER_SIZE)
        self._bytes = memoryview(self._buffer)
        self._replies = Replies(_BUFFER_SIZE)
        self._listed = Listed(served.handlers, self._replies.out)
        self._unique = self._uid = self._gid = 0
        self.pid = 0
        """The thread that has sent the request which is carried out."""
        self._own_threads: set[int] = set()
        self._own_handles: set[int] = set()
        self._waiting = Waiting(
            served,
            self._requests,
            self._replies,
            again=self._again,
            say=self._say,
            device=device,
        )
        self._takes_privileges_away = False
        """Whether setuid and setgid bits are ours to take away when somebody writes."""
        self._has_setxattr_flags = False
        self._makes_lists = False
        """Whether what is made gets its access control list, or what a umask leaves, from us."""
        self.ended: Future[None] = served.loop.create_future()
        """Done when the mount has been taken away."""
        self.answers: list[Answering] = self._table()

    def _table(self) -> list[Answering]:
        table: list[Answering] = [self._unknown] * OPCODES
        for opcode, answer in (
            (Opcode.LOOKUP, self._lookup),
            (Opcode.FORGET, self._forget),
            (Opcode.GETATTR, self._getattr),
            (Opcode.SETATTR, self._setattr),
            (Opcode.READLINK, self._readlink),
            (Opcode.SYMLINK, self._symlink),
            (Opcode.MKNOD, self._mknod),
            (Opcode.MKDIR, self._mkdir),
            (Opcode.UNLINK, self._unlink),
            (Opcode.RMDIR, self._rmdir),
            (Opcode.RENAME, self._rename),
            (Opcode.LINK, self._link),
            (Opcode.OPEN, self._open),
            (Opcode.READ, self._read),
            (Opcode.WRITE, self._write),
            (Opcode.STATFS, self._statfs),
            (Opcode.GETXATTR, self._getxattr),
            (Opcode.LISTXATTR, self._listxattr),
            (Opcode.SETXATTR, self._setxattr),
            (Opcode.REMOVEXATTR, self._removexattr),
            (Opcode.RELEASE, self._release),
            (Opcode.FSYNC, self._fsync),
            (Opcode.INIT, self._init),
            (Opcode.OPENDIR, self._opendir),
            (Opcode.RELEASEDIR, self._releasedir),
            (Opcode.FSYNCDIR, self._fsyncdir),
            (Opcode.CREATE, self._create),
            (Opcode.INTERRUPT, self._interrupt),
            (Opcode.DESTROY, self._destroy),
            (Opcode.BATCH_FORGET, self._batch_forget),
            (Opcode.FALLOCATE, self._fallocate),
            (Opcode.READDIRPLUS, self._readdirplus),
            (Opcode.RENAME2, self._rename2),
            (Opcode.LSEEK, self._lseek),
            (Opcode.COPY_FILE_RANGE, self._copy_file_range),
            (Opcode.TMPFILE, self._tmpfile),
            (Opcode.STATX, self._statx),
        ):
            table[opcode] = answer
        return table

    @contextlib.contextmanager
    def unjudged(self) -> Iterator[None]:
        """Open files for the calling thread without judging while the block runs."""
        thread = threading.get_native_id()
        self._own_threads.add(thread)
        try:
            yield
        finally:
            self._own_threads.discard(thread)

    def end(self) -> None:
        """Answer what is not answered yet and will not be, as the mount ends."""
        self._waiting.end()

    # ---- one request

    def serve_one(self) -> bool:
        """Read a request and answer it, or see to it; false if there is none."""
        try:
            size = self._readinto(self._buffer)
        except OSError as error:
            if error.errno in WITHDRAWN:
                return True
            if error.errno not in MOUNT_ENDED:
                raise
            if not self.ended.is_done:
                self.ended.set_result(None)
            return False
        if not size:
            return False
        opcode, unique, node, self._uid, self._gid, self.pid = IN.unpack_from(self._buffer)
        self._unique = unique
        self._current_run.sent_by(self.pid)
        try:
            reply = self.answers[opcode](node, size)
        except OBSTACLES as obstacle:
            self._waiting.suspend(bytes(self._bytes[:size]), obstacle)
        except OSError as error:
            self._failed(size, error)
        except Exception:
            log.exception("request %d failed", opcode)
            self._say(self._replies.error(unique, errno.EIO))
        else:
            if self._outdated:
                self._waiting.drop_pages(opcode, reply)
            elif reply is not None:
                self._say(reply)
        return True

    def _say(self, reply: Reply) -> None:
        try:
            os.write(self._fd, reply)
        except OSError as error:
            if error.errno not in NOBODY_WAITS:
                raise

    def _say_data(self, unique: int, data: Reply) -> None:
        try:
            os.writev(self._fd, (self._replies.head(unique, len(data)), data))
        except OSError as error:
            if error.errno not in NOBODY_WAITS:
                raise

    def _done(self) -> memoryview:
        return self._replies.error(self._unique, 0)

    def _unknown(self, node: int, size: int) -> Reply:
        """Of what the view does not serve the kernel mostly asks once."""
        return self._replies.error(self._unique, errno.ENOSYS)

    # ---- what is in a request's way

    def _failed(self, size: int, error: OSError) -> None:
        if self._requests.makes_room(error):
            self._waiting.suspend(bytes(self._bytes[:size]), error)
            return
        self._say(self._replies.error(self._unique, self._waiting.errno_of(self._buffer, size, error)))

    def _again(self, message: bytes) -> Reply | None:
        """Carry out a request that came before."""
        size = len(message)
        self._buffer[:size] = message
        opcode, self._unique, node, self._uid, self._gid, self.pid = IN.unpack_from(message)
        self._current_run.sent_by(self.pid)
        answer: Answering = self.answers[opcode]
        return answer(node, size)

    def _during_path_walk(self, name: DirectoryAndName | None) -> None:
        """Ask the thread of a request that was sent back, if this is one, before it is answered."""
        question = self._sent_back.question_for(self.pid, name)
        if question is not None:
            raise UndecidedError(question)

    def _settled(self, answer: EntryReply) -> EntryReply:
        """Let the kernel remember nothing of a directory that somebody has to ask for again."""
        if answer.attr is not None and not self._sent_back.is_settled(answer.attr.number):
            answer.attr_timeout_s = 0.0
        return answer

    # ---- names

    def _lookup(self, node: int, size: int) -> Reply:
        name = bytes(self._bytes[IN_SIZE : size - 1])
        if self._sent_back.awaited:
            self._during_path_walk((node, name))
            return self._replies.entry(self._unique, self._settled(self._handlers.lookup(node, name)))
        return self._replies.entry(self._unique, self._handlers.lookup(node, name))

    def _forget(self, node: int, size: int) -> None:
        self._overlay.forget(node, HANDLE.unpack_from(self._buffer, IN_SIZE)[0])

    def _batch_forget(self, node: int, size: int) -> None:
        (count,) = FORGETS_IN.unpack_from(self._buffer, IN_SIZE)
        start = IN_SIZE + 8
        self._handlers.forget(list(FORGET_ONE.iter_unpack(self._bytes[start : start + FORGET_ONE.size * count])))

    def _mknod(self, node: int, size: int) -> Reply:
        name, mode, rdev, umask = incoming.mknod(self._buffer, size)
        answer = self._handlers.mknod(node, name, mode, rdev, self._owner(umask))
        return self._replies.entry(self._unique, answer)

    def _mkdir(self, node: int, size: int) -> Reply:
        name, mode, umask = incoming.mkdir(self._buffer, size)
        return self._replies.entry(self._unique, self._handlers.mkdir(node, name, mode, self._owner(umask)))

    def _owner(self, umask: int) -> Owner:
        return Owner(self._uid, self._gid, umask if self._makes_lists else None)

    def _symlink(self, node: int, size: int) -> Reply:
        name, target = incoming.symlink(self._buffer, size)
        answer = self._handlers.symlink(node, name, target, Owner(self._uid, self._gid))
        return self._replies.entry(self._unique, answer)

    def _link(self, node: int, size: int) -> Reply:
        number, name = incoming.link(self._buffer, size)
        return self._replies.entry(self._unique, self._handlers.link(number, node, name))

    def _unlink(self, node: int, size: int) -> Reply:
        self._handlers.unlink(node, incoming.name(self._buffer, size))
        return self._done()

    def _rmdir(self, node: int, size: int) -> Reply:
        self._handlers.rmdir(node, incoming.name(self._buffer, size))
        return self._done()

    def _rename(self, node: int, size: int) -> Reply:
        name, directory, new_name = incoming.rename(self._buffer, size)
        self._handlers.rename(node, name, directory, new_name, 0)
        return self._done()

    def _rename2(self, node: int, size: int) -> Reply:
        self._handlers.rename(node, *incoming.rename2(self._buffer, size))
        return self._done()

    # ---- attributes

    def _getattr(self, node: int, size: int) -> Reply:
        if self._sent_back.awaited:
            self._during_path_walk(None)
            return self._replies.attributes(self._unique, self._settled(self._handlers.getattr(node)))
        return self._replies.attributes(self._unique, self._handlers.getattr(node))

    def _statx(self, node: int, size: int) -> Reply:
        """Tell attributes to somebody who wants to know of a birth; nobody walks along a path
        so.
        """
        answer = self._handlers.getattr(node)
        return self._replies.extended_attributes(self._unique, answer, self._handlers.birth_ns(node))

    def _setattr(self, node: int, size: int) -> Reply:
        valid, _, length, atime_s, mtime_s, _, atime_ns, mtime_ns, _, mode, _, uid, gid = SETATTR_IN.unpack_from(
            self._buffer, IN_SIZE
        )
        answer = self._handlers.setattr(
            node,
            mode if valid & Valid.MODE else None,
            uid if valid & Valid.UID else None,
            gid if valid & Valid.GID else None,
            length if valid & Valid.SIZE else None,
            _time_ns(valid, Valid.ATIME, Valid.ATIME_NOW, atime_s, atime_ns),
            _time_ns(valid, Valid.MTIME, Valid.MTIME_NOW, mtime_s, mtime_ns),
            is_open=bool(valid & Valid.HANDLE),
            drops_setuid=bool(valid & Valid.KILL_SUIDGID),
        )
        return self._replies.attributes(self._unique, answer)

    def _readlink(self, node: int, size: int) -> None:
        self._say_data(self._unique, self._handlers.readlink(node))

    def _statfs(self, node: int, size: int) -> Reply | None:
        """Tell what is free, after all that was removed is; the loop goes on serving meanwhile."""
        if self._freeing.count:
            self._waiting.statfs_when_freed(self._unique)
            return None
        return self._replies.statfs(self._unique, self._handlers.statvfs())

    def _getxattr(self, node: int, size: int) -> Reply | None:
        name = bytes(self._bytes[IN_SIZE + 8 : size - 1])
        if self._handlers.lacks_xattr(node, name):  # as nearly always: an exception takes longer than all the rest
            return self._replies.error(self._unique, errno.ENODATA)
        room = GETXATTR_IN.unpack_from(self._buffer, IN_SIZE)[0]
        return self._sized(room, self._handlers.getxattr(node, name))

    def _listxattr(self, node: int, size: int) -> Reply | None:
        room = GETXATTR_IN.unpack_from(self._buffer, IN_SIZE)[0]
        return self._sized(room, b"".join(name + b"\0" for name in self._handlers.listxattr(node, self._uid)))

    def _sized(self, room: int, data: bytes) -> Reply | None:
        """Answer with the attribute, or only with its length if the asker gave no room."""
        if not room:
            return self._replies.count(self._unique, len(data))
        if len(data) > room:
            return self._replies.error(self._unique, errno.ERANGE)
        self._say_data(self._unique, data)
        return None

    def _setxattr(self, node: int, size: int) -> Reply:
        kernels_flags = 0
        if self._has_setxattr_flags:
            length, flags, kernels_flags = SETXATTR_EXT_IN.unpack_from(self._buffer, IN_SIZE)
            start = IN_SIZE + SETXATTR_EXT_IN.size
        else:
            length, flags = SETXATTR_IN.unpack_from(self._buffer, IN_SIZE)
            start = IN_SIZE + SETXATTR_IN.size
        end = self._buffer.index(0, start)
        name, value = bytes(self._bytes[start:end]), bytes(self._bytes[end + 1 : end + 1 + length])
        drops_setgid = bool(kernels_flags & SETXATTR_ACL_KILL_SGID)
        self._handlers.setxattr(node, name, value, flags, drops_setgid=drops_setgid)
        return self._done()

    def _removexattr(self, node: int, size: int) -> Reply:
        self._handlers.removexattr(node, incoming.name(self._buffer, size))
        return self._done()

    # ---- files

    def _open(self, node: int, size: int) -> Reply:
        flags, kernels_flags = OPEN_IN.unpack_from(self._buffer, IN_SIZE)
        is_own = self.pid in self._own_threads
        keeps_setuid = self._may_keep_setuid(kernels_flags)
        opened = self._handlers.open(node, flags, may_keep_setuid=keeps_setuid, is_judged=not is_own)
        if flags & os.O_ACCMODE:
            self._current_run.opened(opened.handle)
        if is_own:
            self._own_handles.add(opened.handle)
        keeps = opened.keeps
        if not keeps.attributes:
            self._notices.forget_attributes(node)
        return self._replies.opened(self._unique, opened.handle, KEEP_CACHE if keeps.pages else 0)

    def _may_keep_setuid(self, kernels_flags: int) -> bool:
        """Tell whether whoever empties a file by opening it may keep its setuid and setgid bits: as
        the kernel says, or else only root.
        """
        return not kernels_flags & OPEN_KILL_SUIDGID if self._takes_privileges_away else self._uid == 0

    def _create(self, node: int, size: int) -> Reply:
        name, mode, flags, umask = incoming.create(self._buffer, size)
        keeps_setuid = self._may_keep_setuid(incoming.kernels_flags_of_create(self._buffer))
        owner = self._owner(umask)
        opened, answer = self._handlers.create(node, name, mode, flags, owner, may_keep_setuid=keeps_setuid)
        self._current_run.opened(opened.handle)
        return self._replies.created(self._unique, opened, answer)

    def _tmpfile(self, node: int, size: int) -> Reply:
        _, mode, flags, umask = incoming.create(self._buffer, size)
        opened, answer = self._handlers.tmpfile(node, mode, flags, self._owner(umask))
        self._current_run.opened(opened.handle)
        return self._replies.created(self._unique, opened, answer)

    def _read(self, node: int, size: int) -> None:
        """Answer from memory, or have a worker thread wait for the disk."""
        handle, offset, length = IO_IN.unpack_from(self._buffer, IN_SIZE)
        data = self._handlers.read(handle, offset, length)
        if data is None:
            self._waiting.in_thread(self._unique, self._handlers.read_job(handle, offset, length))
        else:
            self._say_data(self._unique, data)

    def _write(self, node: int, size: int) -> Reply:
        """Write, and take setuid and setgid bits away where the kernel leaves that to us."""
        handle, offset, length, flags, of_file = WRITE_IN.unpack_from(self._buffer, IN_SIZE)
        self._current_run.sent_through(handle)
        data = self._bytes[WRITE_DATA_AT : WRITE_DATA_AT + length]  # as it came: a copy takes as long as the write
        appends = of_file & os.O_APPEND != 0 and not flags & WRITE_CACHE
        written = self._handlers.write(handle, offset, data, appends=appends)
        if flags & WRITE_KILL_SUIDGID:
            self._handlers.drop_setuid(handle)
        return self._replies.count(self._unique, written)

    def _release(self, node: int, size: int) -> Reply:
        (handle,) = HANDLE.unpack_from(self._buffer, IN_SIZE)
        self._own_handles.discard(handle)
        self._current_run.released(handle)
        self._handlers.release(handle)
        return self._done()

    def _fsync(self, node: int, size: int) -> Reply | None:
        (handle,) = HANDLE.unpack_from(self._buffer, IN_SIZE)
        if handle in self._own_handles:  # Mount.flush: only the kernel's cache was to be written out
            return self._done()
        self._waiting.in_thread(self._unique, self._handlers.sync_job(self._handlers.sync_fd(handle)))
        return None

    def _fsyncdir(self, node: int, size: int) -> None:
        self._waiting.in_thread(self._unique, self._handlers.sync_job(None))

    def _fallocate(self, node: int, size: int) -> Reply:
        handle, offset, length, mode = FALLOCATE_IN.unpack_from(self._buffer, IN_SIZE)
        self._current_run.sent_through(handle)
        self._handlers.fallocate(handle, mode, offset, length)
        self._changed_by_sender(handle)
        return self._done()

    def _lseek(self, node: int, size: int) -> Reply | None:
        """Tell of data and holes; what was written by a mapping the kernel hands over before."""
        handle, offset, whence = LSEEK_IN.unpack_from(self._buffer, IN_SIZE)
        if self._handlers.may_be_mapped(handle):
            self._waiting.seek_when_written(self._unique, handle, offset, whence)
            return None
        return self._replies.offset(self._unique, self._handlers.seek(handle, offset, whence))

    def _copy_file_range(self, node: int, size: int) -> Reply:
        source, source_offset, _, target, offset, length, _ = COPY_FILE_RANGE_IN.unpack_from(self._buffer, IN_SIZE)
        self._current_run.sent_through(target)
        copied = self._handlers.copy_range(source, source_offset, target, offset, length)
        self._changed_by_sender(target)
        return self._replies.count(self._unique, copied)

    def _changed_by_sender(self, handle: int) -> None:
        """Take setuid and setgid bits away if the kernel leaves that to us.  The request does not
        tell whether the sender may keep them; of root, ``/proc`` does.
        """
        if not self._takes_privileges_away or not self._handlers.lends_rights(handle):
            return
        if self._uid or not may_keep_setuid(self.pid):
            self._handlers.drop_setuid(handle)

    # ---- directories

    def _opendir(self, node: int, size: int) -> Reply:
        """The kernel may keep the listing, and tell the one that it has as long as we would."""
        handle = self._handlers.opendir(node)
        flags = CACHE_DIR | (KEEP_CACHE if self._handlers.would_tell_again(handle) else 0)
        return self._replies.opened(self._unique, handle, flags)

    def _readdirplus(self, node: int, size: int) -> Reply:
        handle, start, length = IO_IN.unpack_from(self._buffer, IN_SIZE)
        return self._replies.listing(self._unique, self._listed.tell(handle, start, length))

    def _releasedir(self, node: int, size: int) -> Reply:
        self._handlers.releasedir(HANDLE.unpack_from(self._buffer, IN_SIZE)[0])
        return self._done()

    # ---- the mount

    def _init(self, node: int, size: int) -> Reply:
        options = self._options
        xattrs = serves_xattrs(self._buffer, options.xattrs)
        answer, agreed = answer_init(
            self._unique, self._buffer, drops_pages_itself=options.drops_pages_itself, xattrs=xattrs
        )
        if not xattrs:
            for opcode in (Opcode.GETXATTR, Opcode.LISTXATTR, Opcode.SETXATTR, Opcode.REMOVEXATTR):
                self.answers[opcode] = self._unknown
        self._takes_privileges_away = Init.HANDLE_KILLPRIV_V2 in agreed
        self._has_setxattr_flags = Init.SETXATTR_EXT in agreed
        self._makes_lists = Init.POSIX_ACL in agreed
        if self._makes_lists:
            self._overlay.attributes.is_shared = False  # the kernel judges by lists, and wants modes as they are
        return answer

    def _interrupt(self, node: int, size: int) -> None:
        (unique,) = INTERRUPT_IN.unpack_from(self._buffer, IN_SIZE)
        self._waiting.interrupt(unique)

    def _destroy(self, node: int, size: int) -> Reply:
        return self._done()


def _time_ns(valid: int, given: int, now: int, seconds: int, rest_ns: int) -> int | None:
    if valid & now:
        return NOW
    return seconds * _SECOND_NS + rest_ns if valid & given else None
