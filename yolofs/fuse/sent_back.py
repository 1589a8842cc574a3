"""Waiting for an answer without a locked directory.

The kernel keeps a directory locked while a name in there is made, removed or renamed: as long as somebody is asked
about that, nobody could list the directory, or look up what is not cached.  But a system call that is told ESTALE looks
its path up anew and comes again, once (``retry_estale`` in the kernel's ``fs/namei.c``), and on its way there it locks
nothing.  So who has to wait is sent back, and waits in the first thing that the kernel wants to know on his way: the
look-up of a directory, or, for a name in the current directory, that directory's permissions.  For that it is told that
it does not know them any more.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from yolofs.access.gate import Grant
from yolofs.access.questions import Decision, Question

T = TypeVar("T")

_NAMES = {
    "mknod": (0,), "mkdir": (0,), "symlink": (0,), "create": (0,), "link": (1,), "unlink": (0,), "rmdir": (0,),
    "rename": (0, 2),
}  # fmt: skip
"""For each kind of request that has directories locked, which of its arguments they are; a name follows each."""

WAYS = frozenset(["lookup", "getattr"])
"""The kinds of requests in which a thread is asked on its way."""

_KEPT_S = 5.0
"""How long a request that was sent back is waited for, and then its answers hold: it comes within microseconds.  As
long the kernel is to ask for the attributes of its directory each time that it needs them."""
_REMEMBERED = 65_536
"""How many threads are remembered of each kind: more than wait at a time, as a forgotten one is told ESTALE twice."""

Name = tuple[int, bytes]
"""A directory's number and a name in it."""


class _Coming:
    """A request that was sent back."""

    __slots__ = ("answers", "args", "asked", "deadline", "is_seen", "kind", "names", "not_allowed", "questions")

    def __init__(self, kind: str, args: Sequence[Any], questions: Sequence[Question], deadline: float) -> None:
        self.kind = kind
        self.args = tuple(args[:-1])
        self.names = _names(kind, args)
        self.questions = list(questions)
        """What is still to be asked on the way."""
        self.asked: Question | None = None
        """What is being asked."""
        self.answers: dict[Grant, Decision] = {}
        self.not_allowed: set[Grant] = set()
        """What was asked and denied, or left to the rules."""
        self.is_seen = False
        """Whether anything came of the thread since."""
        self.deadline = deadline
        """Until when it comes."""

    def may_be(self, kind: str, args: Sequence[Any]) -> bool:
        """Tell whether a request can be this one, in other directories perhaps as others have renamed some."""
        if kind != self.kind:
            return False
        if kind == "create":  # of a name that a link tells
            return True
        return [name for _, name in _names(kind, args)] == [name for _, name in self.names]


class Detours:
    """The requests that were sent back, by thread; belongs to the device loop.

    ``is_open`` tells whether a question is still to be asked as the rules are by now, ``clock`` counts seconds.
    """

    def __init__(self, is_open: Callable[[Question], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self.coming: dict[int, _Coming] = {}
        """Read-only outside, and there only to see whether there are any."""
        self._unsettled: dict[int, float] = {}
        """Directories that somebody is on his way to, and until when their attributes are told for no time."""
        self._were_told: dict[int, bool] = {}
        self._is_open = is_open
        self._clock = clock

    def send_back(self, kind: str, args: Sequence[Any], questions: Sequence[Question]) -> Sequence[int]:
        """Return the directories whose attributes the kernel must forget before the request is answered with ESTALE.

        It comes again then.  If there are none, it would not: it has to wait where it is.  ``args`` are the adapter's.
        """
        if kind not in _NAMES or (kind == "mknod" and stat.S_ISSOCK(args[2])):  # bind(2) does not come again
            return ()
        thread = args[-1].pid
        is_second = self._were_told.pop(thread, False)
        if is_second or not thread:  # 0: a process that our pid namespace does not show
            return ()
        now = self._clock()
        coming = _Coming(kind, args, questions, now + _KEPT_S)
        _note(self.coming, thread, coming)
        directories = {directory for directory, _ in coming.names}
        for directory in directories:
            _note(self._unsettled, directory, now + _KEPT_S)
        return sorted(directories)

    def told_stale(self, thread: int) -> None:
        """Note that a thread was told ESTALE for another reason: what it does next may be its second attempt."""
        _note(self._were_told, thread, True)

    def is_settled(self, directory: int) -> bool:
        """Tell whether the kernel may remember a directory's attributes: not if somebody has to ask for them soon."""
        until = self._unsettled.get(directory)
        if until is None:
            return True
        if self._clock() < until:
            return False
        del self._unsettled[directory]
        return True

    def on_the_way(self, thread: int, name: Name | None = None) -> Question | None:
        """Return what a thread is to be asked while it looks up a ``name``, or attributes.

        Nothing if a directory may be locked now.  That is told by its first request: if that looks up the very name,
        nothing was on the way, and later ones are about something else.
        """
        coming = self.coming.get(thread)
        if coming is None:
            return None
        questions = coming.questions
        if not coming.is_seen:
            coming.is_seen = True
            if name in coming.names or self._clock() >= coming.deadline:
                questions.clear()
                return None
        elif coming.asked is None:
            return None
        else:
            while questions and not self._is_open(questions[0]):
                del questions[0]
        coming.asked = questions.pop(0) if questions else None
        return coming.asked

    def answered(self, thread: int, decision: Decision) -> None:
        """Note the answer to what a thread was asked on its way."""
        coming = self.coming.get(thread)
        if coming is None or coming.asked is None:
            return
        coming.deadline = self._clock() + _KEPT_S
        if decision is not Decision.ALLOW:
            coming.not_allowed.add(coming.asked.key)
        if decision is Decision.INTERRUPTED:
            del self.coming[thread]
        elif decision is Decision.AGAIN:
            coming.questions.insert(0, coming.asked)
        else:
            coming.answers[coming.asked.key] = decision
            if decision is Decision.DENY:
                coming.questions.clear()

    def arrived(self, kind: str, args: Sequence[Any]) -> dict[Grant, Decision] | None:
        """Return the answers that a request got on its way; None if it cannot have been sent back.

        What was sent back need not come again: if somebody else has made the name meanwhile, the kernel says so by
        itself.  So an answer is for the very same request alone, and not for the next one about that name.
        """
        coming = self._arrived(kind, args)
        if coming is None:
            return None
        return coming.answers if self._is_it(coming, args) else {}

    def was_asked(self, kind: str, args: Sequence[Any], key: Grant) -> bool:
        """Tell whether a request that a rule refuses was asked about that on its way, and not allowed."""
        coming = self._arrived(kind, args)
        return coming is not None and key in coming.not_allowed and self._is_it(coming, args)

    def _arrived(self, kind: str, args: Sequence[Any]) -> _Coming | None:
        if kind not in _NAMES:
            return None
        coming = self.coming.pop(args[-1].pid, None)
        return coming if coming is not None and coming.may_be(kind, args) else None

    def _is_it(self, coming: _Coming, args: Sequence[Any]) -> bool:
        """Tell whether a request is the very one that was sent back, and in time."""
        return coming.args == tuple(args[:-1]) and self._clock() < coming.deadline


def _names(kind: str, args: Sequence[Any]) -> Sequence[Name]:
    """Return the names that a request is about."""
    return [(args[at], args[at + 1]) for at in _NAMES[kind]]


def _note(noted: dict[int, T], number: int, value: T) -> None:
    noted[number] = value
    if len(noted) > _REMEMBERED:
        del noted[next(iter(noted))]
