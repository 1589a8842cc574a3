"""Carries requests out: every one ends in an answer, whatever is in its way.

An :class:`OSError` becomes its errno, anything unexpected a logged traceback and EIO, and the mount
lives on.  A request that somebody has to decide over, or that needs a large copy, is suspended
meanwhile, and then carried out from its beginning.
"""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeAlias

import pyfuse3
from pyfuse3 import FUSEError

from yolofs.access.gate import Grant
from yolofs.access.questions import Asker, Decision, Question
from yolofs.access.refusals import RefusedError, UndecidedError
from yolofs.fuse.cache.freeing import Freeing
from yolofs.fuse.copy_workers import CopyWorkers
from yolofs.fuse.current_run import CurrentRun
from yolofs.fuse.handlers import Handlers, PostponedError
from yolofs.fuse.loop.loop import DeviceLoop, Future, LoopClosedError
from yolofs.fuse.request import Kind, Request, thread_of
from yolofs.fuse.sent_back import SentBack

log = logging.getLogger("yolofs.fuse")

Answering: TypeAlias = Callable[..., Coroutine[Any, Any, Any]]
Obstacle: TypeAlias = UndecidedError | PostponedError | OSError
"""What keeps a request from being carried out now: a question, a large copy, or a disk that was
full a moment ago.
"""

_NO_SPACE = frozenset([errno.ENOSPC, errno.EDQUOT])
_MAX_COPIES = 3
"""So often the copy of a file that others keep changing is made in another thread; then the loop
does it by itself.
"""


def answering(kind: Kind, *, tells: bool = False) -> Callable[[Callable[..., Any]], Answering]:
    """Turn a plain method into a coroutine function that raises nothing but :class:`FUSEError`.

    What is judged has its request context as the last argument.  ``tells``: it tells attributes,
    and keeps nothing locked that has to do with pages, so it may wait until the kernel has dropped
    the pages that they do not fit.
    """

    def decorate(handler: Callable[..., Any]) -> Answering:
        async def answered(self: Requests, *args: Any) -> Any:
            try:
                obstacle: Obstacle | None = None
                result: Any = None
                self.current_run.request = args
                try:
                    result = handler(self, *args)
                except (UndecidedError, PostponedError) as error:
                    obstacle = error
                except OSError as error:
                    if not self._makes_room(error):
                        raise
                    obstacle = error
                if obstacle is not None:
                    result = await self._carry_out(handler, Request(kind, args), obstacle)
                if self._outdated:
                    await self._drop_pages(waits=tells)
                return result
            except FUSEError:
                raise
            except (OSError, LoopClosedError) as error:
                raise FUSEError(self._errno_of(error, kind, args)) from None
            except Exception:
                log.exception("%s failed", kind.value)
                raise FUSEError(errno.EIO) from None

        return answered

    return decorate


def drop_pages(numbers: Iterable[int]) -> None:
    """Have the kernel drop what it has cached of files, attributes too.

    Blocks, and needs the loop to serve meanwhile.
    """
    for number in numbers:
        with contextlib.suppress(OSError):  # it does not know it any more
            pyfuse3.invalidate_inode(number)


class _SoFar:
    """What has come of a request that is carried out again and again, until nothing is in its way
    any more.
    """

    def __init__(self) -> None:
        self.answers: dict[Grant, Decision] = {}
        """Those given during its path walk and not used yet."""
        self.granted: frozenset[Grant] = frozenset()
        self.left_to_rules: set[Grant] = set()
        """What was asked, and a rule decides since."""
        self.copies = 0
        """How many copies were made for it."""


class Requests(pyfuse3.Operations):
    """What the methods below it, one for each kind of request, have in common.

    ``current_run`` is told which request is carried out.
    """

    def __init__(
        self, handlers: Handlers, loop: DeviceLoop, asker: Asker, freeing: Freeing, current_run: CurrentRun
    ) -> None:
        super().__init__()
        self.current_run = current_run
        self._handlers = handlers
        self._asker = asker
        self._freeing = freeing
        self._copies = CopyWorkers(handlers.overlay, loop)
        self._loop = loop
        self._sent_back = SentBack(handlers.gate.is_open)
        self._outdated = handlers.overlay.outdated
        self._dropping: Future[None] | None = None
        """Done when the kernel has dropped the pages that it is told of now."""

    # ---- carrying out

    def _attempt(self, handler: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Carry a request out; a second time if the disk was full, and is not any more."""
        self.current_run.request = args
        try:
            return handler(self, *args)
        except OSError as error:
            if not self._makes_room(error):
                raise
        return handler(self, *args)

    async def _carry_out(self, handler: Callable[..., Any], request: Request, obstacle: Obstacle) -> Any:
        """Carry out a request that something is in the way of: wait until that is gone, and begin
        anew.
        """
        so_far = _SoFar()
        if isinstance(obstacle, UndecidedError):
            answers = self._sent_back.arrived(request)
            if answers is None:
                self._wait_elsewhere(request, obstacle)
            else:
                so_far.answers = answers
        while True:
            if isinstance(obstacle, UndecidedError):
                await self._settle(request, obstacle.question, so_far)
            elif isinstance(obstacle, PostponedError):
                await self._copy(obstacle, so_far)
            await self._loop.until_resumed()  # danger: the session may be lent by now; a record would be lost
            self._handlers.overlay.look_anew()  # what was asked about may have come meanwhile
            try:
                with self._going_by(so_far):
                    return self._attempt(handler, request.args)
            except (UndecidedError, PostponedError) as error:
                obstacle = error
            except RefusedError as error:
                if error.question.key not in so_far.left_to_rules:
                    raise
                raise FUSEError(error.errno or errno.EACCES) from None  # the ask is noted, with what became of it

    async def _settle(self, request: Request, question: Question, so_far: _SoFar) -> None:
        """Have a question answered, if it was not during the request's path walk."""
        is_path_walk = request.kind.is_path_walk
        decision = so_far.answers.pop(question.key, None) or await self._decision(question, request.thread)
        if is_path_walk:
            self._sent_back.answered(request.thread, decision)
        if decision is Decision.INTERRUPTED:
            raise FUSEError(errno.EINTR)
        if decision is Decision.DENY and not is_path_walk:
            raise FUSEError(errno.EACCES)
        if decision is Decision.ALLOW:
            so_far.granted |= {question.key}
        elif decision is Decision.AGAIN:
            so_far.left_to_rules.add(question.key)

    async def _copy(self, postponed: PostponedError, so_far: _SoFar) -> None:
        """Have another thread make the copy that a request needs."""
        try:
            await self._copies.make(postponed.inode, postponed.size)
        except OSError as error:
            if not self._makes_room(error):
                raise
        so_far.copies += 1

    @contextlib.contextmanager
    def _going_by(self, so_far: _SoFar) -> Iterator[None]:
        """Carry out by what was answered and copied so far, for the time of the block."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._handlers.gate.granting(so_far.granted))
            if so_far.copies >= _MAX_COPIES:
                stack.enter_context(self._handlers.copying_at_once())
            yield

    def _errno_of(self, error: OSError | LoopClosedError, kind: Kind, args: tuple[Any, ...]) -> int:
        """Return the errno of a request that failed, and note the failure where that is wanted."""
        if isinstance(error, LoopClosedError):  # unmounting: nobody will answer any more
            return errno.EINTR
        if isinstance(error, RefusedError):
            if not self._sent_back.was_asked(Request(kind, args), error.question.key):
                self._asker.refused(error.question, thread_of(args))
            return error.errno or errno.EACCES
        if error.errno == errno.ESTALE:
            self._sent_back.told_stale(thread_of(args))
        return self._handlers.errno_of(error)

    def _makes_room(self, error: OSError) -> bool:
        """Tell whether a request that failed may be carried out again: the disk was full, and is
        perhaps not any more.

        What was removed and not freed yet is not to be missing.  Until it is freed the loop waits,
        as that request would have, had it been freed on the spot.
        """
        return error.errno in _NO_SPACE and self._freeing.settle()

    # ---- asking

    def _wait_elsewhere(self, request: Request, obstacle: UndecidedError) -> None:
        """Send a request back, if it would keep a directory locked while it waits, and comes again.

        Raises:
            FUSEError: ESTALE; it is sent back.
        """
        directories = self._sent_back.send_back(request, [obstacle.question, *obstacle.later])
        for directory in directories:
            pyfuse3.invalidate_inode(directory, attr_only=True)  # of attributes alone: this never waits for us
        if directories:
            raise FUSEError(errno.ESTALE)

    async def _decision(self, question: Question, pid: int) -> Decision:
        """Wait for the answer to a question."""
        decided: Future[Decision] = self._loop.create_future()
        self._asker.ask(question, pid, lambda decision: self._answer(decided, decision))
        return await decided

    def _answer(self, decided: Future[Decision], decision: Decision) -> None:
        """Let the request go on; to be called from any thread."""
        with contextlib.suppress(LoopClosedError):  # it has been answered, by the end of the loop
            self._loop.post(decided.set_result, decision)

    # ---- pages that are outdated

    async def _drop_pages(self, *, waits: bool) -> None:
        """Have the kernel drop the pages that the host has made wrong; ``waits``: before the
        request is answered.
        """
        if waits:
            await self._dropped_pages()
        else:
            self._loop.spawn(self._dropped_pages(), name="drop pages")

    async def _dropped_pages(self) -> None:
        """Have the kernel drop the pages that the host has made wrong, and wait until it has.

        A thread does it: a process that reads such a page keeps it locked, and waits for us.  One
        at a time: what answers the readers has to find a thread, too.
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
        await self._loop.in_thread(drop_pages, outdated)
        self._handlers.overlay.dropped_pages(outdated)
