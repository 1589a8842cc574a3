"""Carries requests out: every one ends in an answer, whatever is in its way.

An :class:`OSError` becomes its errno, anything unexpected a logged traceback and EIO, and the mount lives on.  A
request that somebody has to decide over, or that needs a large copy, is suspended meanwhile, and then carried out from
its beginning.
"""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

import pyfuse3
from pyfuse3 import FUSEError

from yolofs.access.gate import Grant
from yolofs.access.questions import Asker, Decision, Question
from yolofs.access.refusals import RefusedError, UndecidedError
from yolofs.fuse.ask_unlocked import WAYS, Detours
from yolofs.fuse.cache.freeing import Freeing
from yolofs.fuse.copy_workers import Copies
from yolofs.fuse.current_run import Origin, RunOf
from yolofs.fuse.handlers import Handlers, PostponedError
from yolofs.fuse.loop.loop import DeviceLoop, Future, LoopClosedError

log = logging.getLogger("yolofs.fuse")

_NO_SPACE = frozenset([errno.ENOSPC, errno.EDQUOT])
_MAX_COPIES = 3
"""So often the copy of a file that others keep changing is made in another thread; then the loop does it by itself."""


def answering(handler: Callable[..., Any], *, tells: bool = False) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Turn a plain method into a coroutine function that raises nothing but :class:`FUSEError`.

    Where the last argument is no request context, nothing is judged.  With ``tells`` it tells attributes, and may wait
    until the kernel has dropped the pages that they do not fit.
    """

    async def answered(self: Requests, *args: Any) -> Any:
        try:
            obstacle: UndecidedError | PostponedError | None = None
            result: Any = None
            try:
                self.origin.request = args
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
            if not self._detours.was_asked(handler.__name__, args, error.question.key):
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


def drop_pages(numbers: Iterable[int]) -> None:
    """Have the kernel drop what it has cached of files, attributes too.

    Blocks, and needs the loop to serve meanwhile.
    """
    for number in numbers:
        with contextlib.suppress(OSError):  # it does not know it any more
            pyfuse3.invalidate_inode(number)


class Requests(pyfuse3.Operations):
    """What the methods below it, one for each kind of request, have in common.

    ``run_of`` tells which run a thread belongs to, 0 for none.
    """

    def __init__(
        self, handlers: Handlers, loop: DeviceLoop, asker: Asker, freeing: Freeing, run_of: RunOf = lambda _: 0
    ) -> None:
        super().__init__()
        self.origin = Origin(run_of)
        handlers.overlay.run_of_request = self.origin.run
        self._handlers = handlers
        self._asker = asker
        self._freeing = freeing
        self._copies = Copies(handlers.overlay, loop)
        self._loop = loop
        self._detours = Detours(handlers.gate.is_open)
        self._outdated = handlers.overlay.outdated
        self._dropping: Future[None] | None = None
        """Done when the kernel has dropped the pages that it is told of now."""

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
        left_to_rules: set[Grant] = set()
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
                elif decision is Decision.AGAIN:
                    left_to_rules.add(question.key)
            else:
                try:
                    await self._copies.make(obstacle.inode, obstacle.size)
                except OSError as error:
                    if not self._makes_room(error):
                        raise
                copies += 1
            await self._loop.until_resumed()  # danger: the session may be lent by now; a record would be lost
            self._handlers.overlay.look_anew()  # what was asked about may have come meanwhile
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
                except RefusedError as error:
                    if error.question.key not in left_to_rules:
                        raise
                    raise FUSEError(error.errno or errno.EACCES) from None  # the ask is noted, with what became of it

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

    async def _decision(self, question: Question, pid: int) -> Decision:
        """Wait for the answer to a question."""
        decided: Future[Decision] = self._loop.create_future()
        self._asker.ask(question, pid, lambda decision: self._answer(decided, decision))
        return await decided

    def _answer(self, decided: Future[Decision], decision: Decision) -> None:
        """Let the request go on; to be called from any thread."""
        with contextlib.suppress(LoopClosedError):  # it has been answered, by the end of the loop
            self._loop.post(decided.set_result, decision)
