"""What our own code costs for each request: the adapter is called as pyfuse3 calls it, and no
kernel takes part.

    python -m benchmarks.answering [--rounds 5] [--files 1000]

The rest of a request is pyfuse3's, the device loop's and the kernel's.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from types import SimpleNamespace
from typing import Any

from benchmarks.core import Line, measure
from yolofs.access.gate import Gate
from yolofs.fuse.cache.freeing import Freeing
from yolofs.fuse.cache.lifetimes import Lifetimes
from yolofs.fuse.current_run import CurrentRun
from yolofs.fuse.handlers import Handlers
from yolofs.fuse.libfuse.transport import Pyfuse3Transport
from yolofs.fuse.long_changes import LongChanges
from yolofs.fuse.loop.loop import DeviceLoop
from yolofs.fuse.mount import NobodyToAsk
from yolofs.fuse.transport import MountOptions, Served
from yolofs.overlay import Overlay
from yolofs.rules import PathRule, RuleBook, RuleSet, RuleState
from yolofs.session.session import Session, SessionAccess

PAGE = b"p" * 4096
ROOT = 1


def now(request: Coroutine[Any, Any, Any]) -> Any:
    """Carry out a request that waits for nothing."""
    try:
        request.send(None)
    except StopIteration as answered:
        return answered.value
    raise AssertionError("the request waits")


class Requests:
    """A view of ``files`` base files in one directory, asked without a mount."""

    def __init__(self, session: Session, files: int) -> None:
        state = session.present()
        self._overlay = Overlay(
            session.base, session.store, session.journal, state.tree, fresh_from=state.fresh_from, max_fds=512
        )
        gate = Gate(self._overlay, RuleBook(RuleSet((PathRule(b"/", RuleState.ALLOW, "bench"),))))
        lifetimes = Lifetimes(session.base, staged_s=3600, base_s=3600)
        self._loop = DeviceLoop(spin_us=0)
        freeing, current_run = Freeing(self._loop.call_later), CurrentRun(lambda _: 0)
        handlers = Handlers(self._overlay, gate, lifetimes)
        long_changes = LongChanges(self._loop, handlers.changing)
        self._overlay.serve(
            is_shared=False, lately_ns=0, hold_ns=0, later=self._loop.call_later, run_of_request=current_run.run
        )
        served = Served(handlers, self._loop, NobodyToAsk(), freeing, current_run, long_changes)
        options = MountOptions(allow_other=False, drops_pages_itself=False, xattrs=False)
        self._adapter = Pyfuse3Transport(served, options).adapter
        self._context = SimpleNamespace(uid=os.getuid(), gid=os.getgid(), pid=0, umask=0o022)
        self._names = [b"file%d" % number for number in range(files)]
        self._directory = now(self._adapter.lookup(ROOT, b"work", self._context)).st_ino
        self._numbers = [self._lookup(name).st_ino for name in self._names]

    def close(self) -> None:
        """Close what is open."""
        self._overlay.close()

    def _lookup(self, name: bytes) -> Any:
        return now(self._adapter.lookup(self._directory, name, self._context))

    def lines(self) -> Iterator[Line]:
        """Yield a line for each kind of request that makes up everyday work; each action can be
        repeated.
        """
        adapter, context, directory, count = self._adapter, self._context, self._directory, len(self._names)

        def each(ask: Callable[[int, bytes], Coroutine[Any, Any, Any]]) -> Callable[[], None]:
            def action() -> None:
                for number, name in zip(self._numbers, self._names, strict=True):
                    now(ask(number, name))

            return action

        handles: list[int] = []

        def open_and_release() -> None:
            for number in self._numbers:
                now(adapter.release(now(adapter.open(number, os.O_RDONLY, context)).fh))

        def create() -> None:
            for name in self._names:
                opened, attr = now(adapter.create(directory, b"new" + name, 0o644, os.O_WRONLY, context))
                now(adapter.write(opened.fh, 0, PAGE))
                now(adapter.release(opened.fh))
                now(adapter.unlink(directory, b"new" + name, context))
                now(adapter.forget([(attr.st_ino, 1)]))

        def rename() -> None:
            for name in self._names:
                now(adapter.rename(directory, name, directory, b"renamed", 0, context))
                now(adapter.rename(directory, b"renamed", directory, name, 0, context))

        yield Line("lookup, of a base file", count, each(lambda _, name: adapter.lookup(directory, name, context)))
        yield Line(
            "lookup, nothing there", count, each(lambda _, name: adapter.lookup(directory, name + b"x", context))
        )
        yield Line("getattr, of a base file", count, each(lambda number, _: adapter.getattr(number, context)))
        yield Line("open and release, of a base file", count, open_and_release)
        handles.append(now(adapter.open(self._numbers[0], os.O_RDONLY, context)).fh)
        yield Line("read of 4 KiB", count, each(lambda *_: adapter.read(handles[0], 0, 4096)))
        yield Line("create, write of 4 KiB, release, unlink, forget", count, create)
        yield Line("rename, of a base file; half of it back again", 2 * count, rename)
        handles.append(now(adapter.open(self._numbers[0], os.O_RDWR, context)).fh)
        yield Line("write of 4 KiB", count, each(lambda *_: adapter.write(handles[1], 0, PAGE)))
        yield Line(
            "lookup, of a staged file", count, each(lambda *_: adapter.lookup(directory, self._names[0], context))
        )
        yield Line("getattr, of a staged file", count, each(lambda *_: adapter.getattr(self._numbers[0], context)))
        for handle in handles:
            now(adapter.release(handle))


@contextlib.contextmanager
def requests(files: int) -> Iterator[Requests]:
    """Give a view of ``files`` base files, in a session made for it."""
    with tempfile.TemporaryDirectory() as directory:
        project = os.fsencode(directory)
        os.mkdir(os.path.join(project, b"work"))
        for number in range(files):
            with open(os.path.join(project, b"work/file%d" % number), "wb") as file:
                file.write(PAGE)
        Session.create(project)
        with Session.open(project, SessionAccess.WRITE, root=project) as session:
            asked = Requests(session, files)
            try:
                yield asked
            finally:
                asked.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.answering", description="What our code costs a request."
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=1000)
    options = parser.parse_args()
    with requests(options.files) as asked:
        for line in asked.lines():
            print(measure(line, options.rounds), flush=True)


if __name__ == "__main__":
    main()
