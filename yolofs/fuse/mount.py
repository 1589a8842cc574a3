"""One mounted view: the overlay, the device loop that owns it, and what the kernel is told."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import select
from collections.abc import Callable
from functools import partial
from typing import Literal, TypeVar

from yolofs.access.gate import Gate
from yolofs.access.questions import Asker, Decision, Question
from yolofs.errors import MountError
from yolofs.fuse import transport_choice
from yolofs.fuse.cache.forgetting import Forgetting
from yolofs.fuse.cache.freeing import Freeing
from yolofs.fuse.cache.lifetimes import Lifetimes
from yolofs.fuse.current_run import CurrentRun, RunOf
from yolofs.fuse.handlers import Handlers
from yolofs.fuse.long_changes import LongChanges
from yolofs.fuse.loop.loop import DeviceLoop, LoopThread
from yolofs.fuse.suspended_requests import drop_pages
from yolofs.fuse.trace import Trace
from yolofs.fuse.transport import MountOptions, Served, Transport
from yolofs.overlay import Invalidation, Overlay
from yolofs.paths import RelPath
from yolofs.rules import PathRule, RuleBook, RuleSet, RuleState

log = logging.getLogger("yolofs.fuse")
T = TypeVar("T")

_LAST_MESSAGES_S = 1.0
"""How long the end waits for messages to the kernel."""
_LAST_FREED_S = 1.0
"""How long the end waits for the blocks of what was removed; the end of the process frees the
rest.
"""
LOOK_AT_OPEN_S = 0.5
"""How often somebody has to call :meth:`Mount.look_at_open`, in seconds."""
_EVERYTHING = RuleSet((PathRule(b"/", RuleState.ALLOW, "no rules"),))


_LATELY_NS = 1_000_000
"""See :attr:`yolofs.overlay.recent_looks.RecentLooks.lately_ns`: requests that belong together come
within less.
"""
_MOST_HELD_NS = 20_000_000
"""How long a base directory is held at most (:mod:`yolofs.overlay.held_directories`): a compiler
looks for several headers in each.
"""
_HELD_OF_TIMEOUT = 1e9 / 50
"""What part of the time that the kernel may trust names of base for, in ns for each second."""


class NobodyToAsk:
    """Answers every question at once."""

    def __init__(self, decision: Decision = Decision.DENY) -> None:
        self._decision = decision

    def ask(self, question: Question, pid: int, answer: Callable[[Decision], None]) -> None:  # noqa: ARG002 - Asker's
        """Give the one answer."""
        answer(self._decision)

    def withdraw(self, answer: Callable[[Decision], None]) -> None:
        """Nobody waits."""

    def refused(self, question: Question, pid: int) -> None:
        """Keep no account."""


class Mount:
    """The view of ``overlay`` at ``mountpoint``, served by a thread of its own.

    ``book`` holds the rules (without one everything is allowed), ``asker`` answers what they leave
    open.  ``trace`` counts the requests.  ``run_of`` tells which run a process belongs to.
    ``make_transport`` makes what stands between the kernel and us.

    From :meth:`start` on the overlay belongs to that thread: reach it through :meth:`call` only.
    """

    def __init__(
        self,
        overlay: Overlay,
        mountpoint: bytes,
        *,
        allow_other: bool,
        staged_timeout_s: float,
        base_timeout_s: float,
        watched_timeout_s: float | None = None,
        book: RuleBook | None = None,
        asker: Asker | None = None,
        xattrs: bool | Literal["auto"] = False,
        spin_us: int = 0,
        trace: Trace | None = None,
        run_of: RunOf = lambda _: 0,
        make_transport: transport_choice.TransportClass | None = None,
    ) -> None:
        self.overlay = overlay
        self.mountpoint = mountpoint
        self.loop = DeviceLoop(spin_us=spin_us)
        self._forgetting = Forgetting(lambda parent, name: _tell(self._transport.forget_name, parent, name))
        self._freeing = Freeing(self.loop.call_later)
        current_run = CurrentRun(run_of)
        overlay.serve(
            is_shared=allow_other,
            lately_ns=_LATELY_NS,
            hold_ns=max(_LATELY_NS, min(_MOST_HELD_NS, int(base_timeout_s * _HELD_OF_TIMEOUT))),
            later=self.loop.call_later,
            run_of_request=current_run.run,
            close_removed=self._freeing.close,
        )
        self._thread: LoopThread | None = None
        self._mounts_fd = -1
        self.gate = Gate(overlay, book or RuleBook(_EVERYTHING))
        self.lifetimes = Lifetimes(
            overlay.base, staged_s=staged_timeout_s, base_s=base_timeout_s, watched_s=watched_timeout_s
        )
        self.handlers = Handlers(overlay, self.gate, self.lifetimes)
        self._long_changes = LongChanges(self.loop, self.handlers.changing)
        self._transport: Transport = (make_transport or transport_choice.transport_for())(
            Served(self.handlers, self.loop, asker or NobodyToAsk(), self._freeing, current_run, self._long_changes),
            MountOptions(allow_other=allow_other, drops_pages_itself=base_timeout_s < LOOK_AT_OPEN_S, xattrs=xattrs),
        )
        if trace is not None:
            self._transport.count(trace)

    # ---- life

    def start(self, on_end: Callable[[], None] = lambda: None) -> None:
        """Mount and serve.  ``on_end`` is called, on the serving thread, once it has ended for
        whatever reason.

        Raises:
            MountError: the kernel or fusermount3 refuses.
        """
        self._transport.mount(self.mountpoint)
        self._watch_mounts()
        self._thread = self.loop.start(self._serve(on_end))
        with contextlib.suppress(OSError):
            os.lstat(self.mountpoint)  # until it has asked, the kernel takes root for the owner

    def stop(self, *, unmount: bool = True) -> None:
        """Stop serving, unmount and close the overlay.  Blocks until all of it is done; twice does
        no harm.

        Without ``unmount`` the mount has been taken away already.

        Raises:
            MountError: the device loop had failed; all is cleaned up all the same.
        """
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self.loop.stop()
        try:
            thread.wait()
        except Exception as error:
            raise MountError(f"the device loop failed: {error!r}") from error
        finally:
            self._forgetting.join(_LAST_MESSAGES_S)
            self._transport.close(unmount=unmount)
            self._long_changes.join()
            self.overlay.close()
            self._freeing.end(_LAST_FREED_S)
            if self._mounts_fd >= 0:
                os.close(self._mounts_fd)
                self._mounts_fd = -1

    @property
    def is_serving(self) -> bool:
        """Whether the device loop runs: false after a umount from outside."""
        return self._thread is not None and self._thread.is_alive()

    async def _serve(self, on_end: Callable[[], None]) -> None:
        try:
            await self._transport.serve()
        finally:
            on_end()

    def _watch_mounts(self) -> None:
        """Keep the list of pseudo filesystems true: the kernel signals POLLPRI when the mount table
        changes.
        """
        with contextlib.suppress(OSError):
            self._mounts_fd = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
            self.overlay.base.refresh_mounts()  # our own mountpoint, should it lie below base, is new
            self.loop.add_reader(self._mounts_fd, select.POLLPRI, lambda _: self.overlay.base.refresh_mounts())

    # ---- reaching in

    def call(self, function: Callable[[], T]) -> T:
        """Run ``function`` on the device loop, between two requests, and return what it returns.

        Blocks; must not be called from the device loop itself.
        """
        return self.loop.call(function)

    def call_at_rest(self, function: Callable[[], T]) -> T:
        """Do the same while no request stands half carried out, as a thread makes a change of its
        file that takes long.
        """
        return self._long_changes.call(function)

    def invalidate(self, stale: Invalidation) -> None:
        """Make the kernel forget.  Blocks, and needs the loop to serve meanwhile: call it from
        another thread.

        It waits for no answer of anybody.  Attributes come first: for them no directory's lock is
        needed, and without them nothing is told of a file whose name the kernel still knows.
        """
        for number in stale.attributes:
            _tell(self._transport.forget_attributes, number)
        for number in stale.inodes:
            _tell(self._transport.forget_file, number)
        instead: dict[tuple[int, bytes], Callable[[], object]] = {}
        for known, path in stale.renewed.items():
            tell = self._transport.expire_name if known in stale.expired else self._transport.forget_name
            instead[known] = partial(self._renew, tell, *known, path)
        if self._forgetting.forget(stale.entries, instead):
            for path in stale.moved:
                self._look_up(path)

    def _renew(self, tell: Callable[[int, bytes], None], directory: int, name: bytes, path: RelPath) -> None:
        _tell(tell, directory, name)
        self._look_up(path)

    def _look_up(self, path: RelPath) -> None:
        with contextlib.suppress(OSError):
            os.lstat(os.path.join(self.mountpoint, path))

    def changed_unnoticed(self) -> list[RelPath]:
        """Return the watched base files that have changed without a notice: through a shared
        mapping.

        Looks at each file of which the kernel trusts the attributes for long.  Blocks.
        """
        changed, over = self.lifetimes.changed_unnoticed()
        if changed or over:
            self.loop.call(self.lifetimes.drop, changed + over)
        return [path for path, _ in changed]

    def look_at_open(self) -> None:
        """Have the kernel drop the pages of open base files that the host has changed, where no
        watch tells us.

        To be called every :data:`LOOK_AT_OPEN_S`.  Looks at each.  Blocks, and needs the loop to
        serve meanwhile.
        """
        found = {}
        for number, path in self.loop.call(self.handlers.open_in_base).items():
            with contextlib.suppress(OSError):  # it is gone: what is open of it stays as it is
                found[number] = os.lstat(path)
        outdated = self.loop.call(self.overlay.outdated_by, found)
        if outdated:
            drop_pages(self._transport, outdated)
            self.call(lambda: self.overlay.dropped_pages(outdated))

    def flush(self) -> None:
        """Have the kernel hand over what it holds back of mmapped and cached writes.

        Blocks, and needs the loop to serve meanwhile.  Only a file that is open for writing can
        have such data.  syncfs(2) would not do: for FUSE it starts the writing and does not wait
        for it.
        """
        with self._transport.unjudged():
            for path, number in self.loop.call(self._writers):
                self._flush_one(path, number)

    def _flush_one(self, path: bytes, number: int) -> None:
        try:
            sync_cached(os.path.join(self.mountpoint, path))
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise
            _tell(self._transport.forget_file, number)  # hidden, renamed or removed: to drop pages is to write them out

    def _writers(self) -> list[tuple[bytes, int]]:
        """Return a path and the number of each file that is open for writing."""
        writers = self.overlay.writers()
        return [(self.overlay.path(inode), inode.number) for inode in writers if inode.is_placed]


def sync_cached(path: bytes) -> None:
    """fsync(2) a file of the mount through the mount; the adapter knows our thread and leaves out
    the disk.

    Raises:
        OSError: as open(2) and fsync(2).
    """
    flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        fd = os.open(path, os.O_RDONLY | flags)
    except PermissionError:
        fd = os.open(path, os.O_WRONLY | flags)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _tell(forget: Callable[..., None], *args: object) -> None:
    try:
        forget(*args)
    except OSError as error:
        log.warning("the kernel refused %s%r: %s", forget.__name__, args, error)
