"""Carries out requests that cannot be answered at once; knows no transport.

A request that somebody has to decide over, or that needs a large copy, is suspended meanwhile, and
then carried out from its beginning.  What it ends with if it cannot be carried out is an errno.
"""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

from yolofs.access.gate import Grant
from yolofs.access.questions import Decision, Question
from yolofs.access.refusals import RefusedError, UndecidedError
from yolofs.fuse.cache.lost_names import Counting
from yolofs.fuse.copy_workers import CopyWorkers
from yolofs.fuse.loop.loop import Future, LoopClosedError
from yolofs.fuse.request import KernelRequest
from yolofs.fuse.results import ChangingError, PostponedError, UncountedError
from yolofs.fuse.sent_back import SentBack
from yolofs.fuse.transport import Kernel, Served
from yolofs.overlay import LongChangeError
from yolofs.overlay.inodes import Inode

log = logging.getLogger("yolofs.fuse")

T = TypeVar("T")
Obstacle: TypeAlias = UndecidedError | PostponedError | LongChangeError | OSError
"""What keeps a request from being carried out now: a question, a large copy, a change that takes
long, or a disk that was full a moment ago.
"""
OBSTACLES = UndecidedError, PostponedError, LongChangeError
"""Those of them that a handler raises to have the request wait."""

_NO_SPACE = frozenset([errno.ENOSPC, errno.EDQUOT])
_MAX_COPIES = 3
"""How often another thread copies a file that others keep changing; then the loop copies it itself.
"""


class AnsweredError(Exception):
    """A request ends with an errno, and everything to be noted about it has been noted."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def drop_pages(kernel: Kernel, numbers: Iterable[int]) -> None:
    """Have the kernel drop what it has cached of files, attributes too.

    Blocks, and needs the loop to serve meanwhile.
    """
    for number in numbers:
        with contextlib.suppress(OSError):
            kernel.forget_file(number)


class _RequestProgress:
    """The progress of a request that is carried out again and again, until nothing is in its way
    any more.
    """

    def __init__(self) -> None:
        self.answers: dict[Grant, Decision] = {}
        """Those given during its path walk and not used yet."""
        self.granted: frozenset[Grant] = frozenset()
        self.left_to_rules: set[Grant] = set()
        """What was asked, and a rule decides since."""
        self.copies_made = 0
        """How many copies were made for it."""
        self.changed: Inode | None = None
        """The file of which its long change was made."""


class Requests:
    """Carries out what cannot be answered at once, and tells the kernel what is outdated."""

    def __init__(self, served: Served, kernel: Kernel) -> None:
        self.sent_back = SentBack(served.handlers.gate.is_open)
        self.outdated = served.handlers.overlay.outdated
        """The files of which the kernel has pages that do not fit: not empty for a short while."""
        self._handlers = served.handlers
        self._kernel = kernel
        self._asker = served.asker
        self._freeing = served.freeing
        self._copy_workers = CopyWorkers(served.handlers.overlay, served.loop)
        self._long_changes = served.long_changes
        self._loop = served.loop
        lost_names = served.handlers.lost_names
        lost_names.thread_of_request = served.current_run.thread
        lost_names.on_seen = self._count
        self._counting = Counting(lost_names, served.loop, kernel.forget_name)
        self._asked: dict[int, Callable[[Decision], None]] = {}
        """What answers each request that waits for an answer, by the identity of its object."""
        self._dropping: Future[None] | None = None
        """Done when the kernel has dropped the pages that it is told of now."""

    # ---- carrying out

    async def carry_out(self, attempt: Callable[[], T], request: KernelRequest, obstacle: Obstacle) -> T:
        """Carry out a request that something is in the way of: wait until that is gone, and begin
        anew.

        ``attempt`` carries it out, from its beginning, and raises what is in its way.

        Raises:
            AnsweredError: it ends with that.
            OSError, LoopClosedError: to be told by :meth:`errno_of`.
        """
        so_far = _RequestProgress()
        if isinstance(obstacle, UndecidedError):
            answers = self.sent_back.arrived(request)
            if answers is None:
                self._wait_elsewhere(request, obstacle)
            else:
                so_far.answers = answers
        try:
            while True:
                if not isinstance(obstacle, LongChangeError):
                    await self._until_gone(request, obstacle, so_far)
                await self._loop.until_resumed()  # danger: the session may be lent by now; a record would be lost
                self._handlers.overlay.look_anew()  # what was asked about may have come meanwhile
                try:
                    with self._with_what_is_granted(so_far):
                        return self._once_more_if_full(attempt)
                except LongChangeError as error:
                    await self._make(error, so_far)  # begins before anything else happens
                    obstacle = error
                except (UndecidedError, PostponedError) as error:
                    obstacle = error
                except RefusedError as error:
                    if error.question.key not in so_far.left_to_rules:
                        raise
                    raise AnsweredError(error.errno or errno.EACCES) from None  # the ask is noted, and its outcome
        finally:
            self._end_change(so_far)

    async def _until_gone(self, request: KernelRequest, obstacle: Obstacle, so_far: _RequestProgress) -> None:
        """Wait until an obstacle is out of a request's way."""
        self._end_change(so_far)  # whoever waits for somebody else keeps nobody waiting
        if isinstance(obstacle, UndecidedError):
            await self._settle(request, obstacle.question, so_far)
        elif isinstance(obstacle, UncountedError):
            await self._counting.wait(obstacle.inode.number)
        elif isinstance(obstacle, ChangingError):
            await self._long_changes.until_ended(obstacle.inode)
        elif isinstance(obstacle, PostponedError):
            await self._copy(obstacle, so_far)

    async def _make(self, error: LongChangeError, so_far: _RequestProgress) -> None:
        """Have another thread make the change that would keep others waiting."""
        self._end_change(so_far)
        try:
            if await self._long_changes.make(error):
                so_far.changed = error.inode
        except OSError as failure:
            if not self.makes_room(failure):
                raise

    def _end_change(self, so_far: _RequestProgress) -> None:
        inode, so_far.changed = so_far.changed, None
        if inode is not None:
            self._long_changes.end(inode)

    def _once_more_if_full(self, attempt: Callable[[], T]) -> T:
        """Carry a request out; a second time if the disk was full, and is not any more."""
        try:
            return attempt()
        except OSError as error:
            if not self.makes_room(error):
                raise
        return attempt()

    async def _settle(self, request: KernelRequest, question: Question, so_far: _RequestProgress) -> None:
        """Have a question answered, if it was not during the request's path walk."""
        is_path_walk = request.kind.is_path_walk
        decision = so_far.answers.pop(question.key, None) or await self._decision(question, request)
        if is_path_walk:
            self.sent_back.answered(request.thread, decision)
        if decision is Decision.INTERRUPTED:
            raise AnsweredError(errno.EINTR)
        if decision is Decision.DENY and not is_path_walk:
            raise AnsweredError(errno.EACCES)
        if decision is Decision.ALLOW:
            so_far.granted |= {question.key}
        elif decision is Decision.AGAIN:
            so_far.left_to_rules.add(question.key)

    async def _copy(self, postponed: PostponedError, so_far: _RequestProgress) -> None:
        """Have another thread make the copy that a request needs."""
        try:
            await self._copy_workers.make(postponed.inode, postponed.size)
        except OSError as error:
            if not self.makes_room(error):
                raise
        so_far.copies_made += 1

    @contextlib.contextmanager
    def _with_what_is_granted(self, so_far: _RequestProgress) -> Iterator[None]:
        """Carry out by what was answered and copied so far, for the time of the block."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._handlers.gate.granting(so_far.granted))
            if so_far.changed is not None:
                stack.enter_context(self._handlers.having_changed(so_far.changed))
            if so_far.copies_made >= _MAX_COPIES:
                stack.enter_context(self._handlers.copying_at_once())
            yield

    def errno_of(self, error: OSError | LoopClosedError, request: KernelRequest) -> int:
        """Return the errno of a failed request; note a refusal, or an ESTALE."""
        if isinstance(error, LoopClosedError):  # unmounting: nobody will answer any more
            return errno.EINTR
        if isinstance(error, RefusedError):
            if not self.sent_back.was_asked(request, error.question.key):
                self._asker.refused(error.question, request.thread)
            return error.errno or errno.EACCES
        if error.errno == errno.ESTALE:
            self.sent_back.note_told_stale(request.thread)
        return self._handlers.errno_of(error)

    def makes_room(self, error: OSError) -> bool:
        """Tell whether a request that failed may be carried out again: the disk was full, and is
        perhaps not any more.

        What was removed and not freed yet is not to be missing.  Until it is freed the loop waits,
        as that request would have, had it been freed on the spot.
        """
        return error.errno in _NO_SPACE and self._freeing.drain()

    # ---- asking

    def _wait_elsewhere(self, request: KernelRequest, obstacle: UndecidedError) -> None:
        """Send a request back, if it would keep a directory locked while it waits, and comes again.

        Raises:
            AnsweredError: ESTALE; it is sent back.
        """
        directories = self.sent_back.send_back(request, [obstacle.question, *obstacle.later])
        for directory in directories:
            self._kernel.forget_attributes(directory)
        if directories:
            raise AnsweredError(errno.ESTALE)

    async def _decision(self, question: Question, request: KernelRequest) -> Decision:
        """Wait for the answer to a question."""
        if request.is_interrupted:
            return Decision.INTERRUPTED
        decided: Future[Decision] = self._loop.create_future()

        def answer(decision: Decision) -> None:
            self._answer(decided, decision)

        self._asker.ask(question, request.thread, answer)
        self._asked[id(request)] = answer
        try:
            return await decided
        finally:
            del self._asked[id(request)]

    def interrupt(self, request: KernelRequest) -> None:
        """Let a request's sender go as soon as it waits for an answer: it wants none any more."""
        request.is_interrupted = True
        answer = self._asked.get(id(request))
        if answer is not None:
            self._asker.withdraw(answer)

    def _answer(self, decided: Future[Decision], decision: Decision) -> None:
        """Let the request go on; to be called from any thread."""
        with contextlib.suppress(LoopClosedError):  # it has been answered, by the end of the loop
            self._loop.post(decided.set_result, decision)

    # ---- names that files have lost

    def _count(self, number: int) -> None:
        """Find out when the kernel has counted what a file has lost."""
        self._loop.spawn(self._counted(number), name="link count")

    async def _counted(self, number: int) -> None:
        with contextlib.suppress(LoopClosedError):
            await self._counting.wait(number)

    # ---- pages that are outdated

    async def drop_pages(self, *, waits: bool) -> None:
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
            if not self.outdated:
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
        outdated = self.outdated.copy()
        self.outdated.clear()
        await self._loop.in_thread(drop_pages, self._kernel, outdated)
        self._handlers.overlay.dropped_pages(outdated)
