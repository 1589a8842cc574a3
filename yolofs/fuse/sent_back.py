"""Waiting for an answer without a locked directory.

The kernel keeps a directory locked while a name in it is made, removed or renamed.  If somebody
were asked about that meanwhile, nobody could list the directory, or look up a name that is not
cached.  But a system call that is told ESTALE looks its path up anew and comes again, once
(``retry_estale`` in the kernel's ``fs/namei.c``), and it locks nothing on its way there.  So a
request that has to wait is sent back.  Its thread waits in the first request of that path walk: the
look-up of a directory, or, for a name in the current directory, a request for that directory's
attributes.  The kernel is told to forget these, so that it has to ask.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from yolofs.access.gate import Grant
from yolofs.access.questions import Decision, Question
from yolofs.fuse.request import DirectoryAndName, KernelRequest, RequestKind

T = TypeVar("T")

_KEPT_S = 5.0
"""How long a request that was sent back is waited for, and then its answers hold: it comes within
microseconds.  As long the kernel is to ask for the attributes of its directory each time that it
needs them."""
_REMEMBERED = 65_536
"""How many threads are remembered of each kind: more than wait at a time, as a forgotten one is
told ESTALE twice.
"""


class _Awaited:
    """A request that was sent back and is to come again."""

    __slots__ = ("answers", "asked", "deadline", "is_seen", "not_allowed", "questions", "request")

    def __init__(self, request: KernelRequest, questions: Sequence[Question], deadline: float) -> None:
        self.request = request
        self.questions = list(questions)
        """What is still to be asked during the path walk."""
        self.asked: Question | None = None
        """What is being asked."""
        self.answers: dict[Grant, Decision] = {}
        self.not_allowed: set[Grant] = set()
        """What was asked and denied, or left to the rules."""
        self.is_seen = False
        """Whether its thread has sent anything since."""
        self.deadline = deadline
        """Until when it is awaited."""

    def may_be(self, request: KernelRequest) -> bool:
        """Tell whether a request can be this one, perhaps in other directories, as others have
        renamed some.
        """
        if request.kind is not self.request.kind:
            return False
        if request.kind is RequestKind.CREATE:  # of a name that a link tells
            return True
        return [name for _, name in request.names] == [name for _, name in self.request.names]


class SentBack:
    """The requests that were sent back, by thread; belongs to the device loop.

    ``is_open`` tells whether a question is still to be asked as the rules are by now, ``clock``
    counts seconds.
    """

    def __init__(self, is_open: Callable[[Question], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self.awaited: dict[int, _Awaited] = {}
        """Read-only outside, and there only to see whether there are any."""
        self._unsettled: dict[int, float] = {}
        """Directories that a path walk leads to, and until when the kernel may not keep their
        attributes.
        """
        self._were_told: dict[int, bool] = {}
        self._is_open = is_open
        self._clock = clock

    def send_back(self, request: KernelRequest, questions: Sequence[Question]) -> Sequence[int]:
        """Return the directories whose attributes the kernel must forget before the request is
        answered with ESTALE.

        Then it comes again.  If there are none, it would not: it has to wait where it is.
        """
        if not request.kind.locks_directories or _is_bind(request):
            return ()
        thread = request.thread
        is_second = self._were_told.pop(thread, False)
        if is_second or not thread:  # 0: a process that our pid namespace does not show
            return ()
        now = self._clock()
        _note(self.awaited, thread, _Awaited(request, questions, now + _KEPT_S))
        directories = {directory for directory, _ in request.names}
        for directory in directories:
            _note(self._unsettled, directory, now + _KEPT_S)
        return sorted(directories)

    def note_told_stale(self, thread: int) -> None:
        """Note that a thread was told ESTALE for another reason: what it does next may be its
        second attempt.
        """
        _note(self._were_told, thread, True)

    def is_settled(self, directory: int) -> bool:
        """Tell whether the kernel may remember a directory's attributes: not if somebody has to ask
        for them soon.
        """
        until = self._unsettled.get(directory)
        if until is None:
            return True
        if self._clock() < until:
            return False
        del self._unsettled[directory]
        return True

    def question_for(self, thread: int, name: DirectoryAndName | None = None) -> Question | None:
        """Return what a thread is to be asked while it walks along its path: looks up a ``name``,
        or attributes.

        Nothing if a directory may be locked now.  Its first request tells that: if it looks up the
        very name, no directory came before it, and later requests are about something else.
        """
        awaited = self.awaited.get(thread)
        if awaited is None:
            return None
        questions = awaited.questions
        if not awaited.is_seen:
            awaited.is_seen = True
            if name in awaited.request.names or self._clock() >= awaited.deadline:
                questions.clear()
                return None
        elif awaited.asked is None:
            return None
        else:
            while questions and not self._is_open(questions[0]):
                del questions[0]
        awaited.asked = questions.pop(0) if questions else None
        return awaited.asked

    def answered(self, thread: int, decision: Decision) -> None:
        """Note the answer to what a thread was asked during its path walk."""
        awaited = self.awaited.get(thread)
        if awaited is None or awaited.asked is None:
            return
        awaited.deadline = self._clock() + _KEPT_S
        if decision is not Decision.ALLOW:
            awaited.not_allowed.add(awaited.asked.key)
        if decision is Decision.INTERRUPTED:
            del self.awaited[thread]
        elif decision is Decision.AGAIN:
            awaited.questions.insert(0, awaited.asked)
        else:
            awaited.answers[awaited.asked.key] = decision
            if decision is Decision.DENY:
                awaited.questions.clear()

    def arrived(self, request: KernelRequest) -> dict[Grant, Decision] | None:
        """Return the answers that a request got during its path walk; None if it cannot have been
        sent back.

        What was sent back need not come again: if somebody else has made the name meanwhile, the
        kernel says so by itself.  So an answer is for the very same request alone, and not for the
        next one about that name.
        """
        awaited = self._take(request)
        if awaited is None:
            return None
        return awaited.answers if self._is_it(awaited, request) else {}

    def was_asked(self, request: KernelRequest, key: Grant) -> bool:
        """Tell whether a request that a rule refuses was asked about that during its path walk, and
        not allowed.
        """
        awaited = self._take(request)
        return awaited is not None and key in awaited.not_allowed and self._is_it(awaited, request)

    def _take(self, request: KernelRequest) -> _Awaited | None:
        if not request.kind.locks_directories:
            return None
        awaited = self.awaited.pop(request.thread, None)
        return awaited if awaited is not None and awaited.may_be(request) else None

    def _is_it(self, awaited: _Awaited, request: KernelRequest) -> bool:
        """Tell whether a request is the very one that was sent back, and in time."""
        return awaited.request.asked_for == request.asked_for and self._clock() < awaited.deadline


def _is_bind(request: KernelRequest) -> bool:
    """Tell whether a request is bind(2)'s, which does not come again."""
    return request.kind is RequestKind.MKNOD and stat.S_ISSOCK(request.args[2])


def _note(noted: dict[int, T], number: int, value: T) -> None:
    noted[number] = value
    if len(noted) > _REMEMBERED:
        del noted[next(iter(noted))]
