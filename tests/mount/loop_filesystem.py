"""A filesystem of few lines on the device loop, in a process of its own:
``loop_filesystem.py MOUNTPOINT [MODE...]``.

Every name exists; what is opened decides by the first part of its name (up to a dot):

    ask      suspends until ``answer`` is opened, and fails with EIO if the loop ends before
    fail     raises ValueError, which no handler of a real filesystem may
    thread   reads as the name of a worker thread
    waiting  reads as the number of suspended handlers
    table    reads as the number of changes of the mount table that the loop was told about
    others   read as their own name

Commands come in on stdin, one a line, each answered by a line ``done``: stop, terminate, pause,
resume. Modes: ``no-trio``: all of trio explodes when called; ``early``: the device is called
readable when it is not, 10 times; ``forgets``: the kernel keeps no names and attributes. At the end
one JSON object tells what there was (see :func:`main`).
"""

from __future__ import annotations

import errno
import json
import os
import select
import stat
import sys
import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pyfuse3
import trio
from pyfuse3 import EntryAttributes, FileHandleT, FileInfo, FileNameT, FlagT, FUSEError, InodeT, RequestContext

from yolofs.fuse.libfuse import backend
from yolofs.fuse.loop.loop import DeviceLoop, Future, LoopClosedError


class LoopFilesystem(pyfuse3.Operations):
    cached_for_s = 60.0

    def __init__(self, loop: DeviceLoop) -> None:
        super().__init__()
        self.loop = loop
        self.names: list[bytes] = [b"", b"/"]  # by inode
        self.inodes: dict[bytes, InodeT] = {}
        self.contents: list[bytes] = []  # by handle
        self.answer: Future[None] = loop.create_future()
        self.waiting_count = 0
        self.closed_count = 0
        self.table_change_count = 0

    async def lookup(self, parent_inode: InodeT, name: FileNameT, ctx: RequestContext) -> EntryAttributes:
        if name not in self.inodes:
            self.inodes[name] = InodeT(len(self.names))
            self.names.append(name)
        return await self.getattr(self.inodes[name], ctx)

    async def getattr(self, inode: InodeT, ctx: RequestContext) -> EntryAttributes:
        attr = EntryAttributes()
        attr.st_ino = inode
        attr.st_mode = pyfuse3.ModeT(stat.S_IFDIR | 0o777 if inode == pyfuse3.ROOT_INODE else stat.S_IFREG | 0o666)
        attr.st_nlink = 1
        attr.entry_timeout = attr.attr_timeout = self.cached_for_s
        return attr

    async def open(self, inode: InodeT, flags: FlagT, ctx: RequestContext) -> FileInfo:
        name = self.names[inode]
        content = name
        match name.split(b".")[0]:
            case b"ask":
                await self.wait_for_answer()
            case b"answer":
                self.answer.set_result(None)
            case b"fail":
                raise ValueError("a handler failed")
            case b"thread":
                content = (await self.loop.in_thread(lambda: threading.current_thread().name)).encode()
            case b"waiting":
                content = b"%d" % self.waiting_count
            case b"table":
                content = b"%d" % self.table_change_count
        self.contents.append(content)
        return FileInfo(fh=FileHandleT(len(self.contents) - 1), direct_io=True)

    async def wait_for_answer(self) -> None:
        self.waiting_count += 1
        try:
            await self.answer
        except LoopClosedError:
            self.closed_count += 1
            raise FUSEError(errno.EIO) from None
        finally:
            self.waiting_count -= 1

    async def read(self, fh: FileHandleT, off: int, size: int) -> bytes:
        return self.contents[fh][off : off + size]

    def note_table_change(self, events: int) -> None:
        self.table_change_count += 1


class RecordingBackend(backend.Backend):
    """Notes what pyfuse3 asks it for."""

    used: set[str]

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_") and name != "used":
            self.used.add(name)
        return super().__getattribute__(name)


def make_trio_explode() -> None:
    def explode(*args: object, **kwargs: object) -> None:
        raise AssertionError("pyfuse3 called trio itself")

    modules: Sequence[ModuleType] = (trio, trio.lowlevel, trio.from_thread)
    for module in modules:
        for name, value in list(vars(module).items()):
            if callable(value):
                setattr(module, name, explode)


def call_early(replaced: backend.Backend, times: int) -> None:
    """Have the device called readable before it is, as when a request is withdrawn between poll()
    and read().
    """
    wait_readable = replaced.wait_readable
    left = times

    async def early(fd: int) -> None:
        nonlocal left
        if left and not select.select([fd], [], [], 0)[0]:
            left -= 1
            os.set_blocking(fd, False)
            return
        await wait_readable(fd)

    replaced.wait_readable = early


def take_commands(loop: DeviceLoop) -> None:
    pending = b""
    while data := os.read(0, 4096):  # not sys.stdin: its lock would be in the way of the interpreter's exit
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            match line:
                case b"pause":
                    loop.call(loop.pause)
                case b"resume":
                    loop.call(loop.resume)
            tell("done")  # of the other two before they are, as the report must come last
            match line:
                case b"stop":
                    loop.stop()
                case b"terminate":
                    pyfuse3.terminate()
    loop.stop()


def tell(line: str) -> None:
    os.write(1, line.encode() + b"\n")


def main() -> None:
    mountpoint, *modes = sys.argv[1:]
    loop = DeviceLoop(spin_us=50)
    filesystem = LoopFilesystem(loop)
    if "forgets" in modes:
        filesystem.cached_for_s = 0.0
    backend.install(loop)
    recording = RecordingBackend.__new__(RecordingBackend)
    recording.used = set()
    RecordingBackend.__init__(recording, loop, None)
    if "early" in modes:
        call_early(recording, 10)
    pyfuse3.__dict__["trio"] = recording
    recording.used.clear()
    if "no-trio" in modes:
        make_trio_explode()
    with open("/proc/self/mountinfo", "rb") as table:
        loop.add_reader(table.fileno(), select.POLLPRI | select.POLLERR, filesystem.note_table_change)
        pyfuse3.init(filesystem, mountpoint, {"fsname=yolofs-loop-test"})
        thread = loop.start(backend.serve_session())
        tell("mounted")
        threading.Thread(target=take_commands, args=(loop,), daemon=True).start()
        error = ""
        try:
            thread.wait()
        except BaseException as failure:  # noqa: BLE001 - reported
            error = repr(failure)
    pyfuse3.close(unmount=True)
    tell(
        json.dumps(
            {
                "error": error,
                "closed handlers": filesystem.closed_count,
                "waiting handlers": filesystem.waiting_count,
                "used of trio": sorted(recording.used),
                "is running": loop.is_running,
            }
        )
    )


if __name__ == "__main__":
    main()
