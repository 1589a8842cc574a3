"""Waiting for an answer without a locked directory.

The kernel keeps a directory locked while a name in there is made, removed or renamed: as long as somebody is asked
about that, nobody could list the directory, or look up what is not cached.  But a system call that is told ESTALE looks
its path up anew and comes again, once (``retry_estale`` in the kernel's ``fs/namei.c``), and on its way there it locks
nothing.  So who has to wait is sent back, and waits in the look-up of a directory.  A name in the current directory has
nothing to look up: it waits where it is, and so does what would not come again.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from yolofs.questions import Decision, Question

T = TypeVar("T")

_NAMES = {
    "mknod": (0,), "mkdir": (0,), "symlink": (0,), "create": (0,), "link": (1,), "unlink": (0,), "rmdir": (0,),
    "rename": (0, 2),
}  # fmt: skip
"""For each kind of request that has directories locked, which of its arguments they are; a name follows each."""

_KEPT_S = 5.0
"""How long a request that was sent back is waited for, and then its answer holds: it comes within microseconds."""
_REMEMBERED = 65_536
"""How many threads are remembered of each kind: more than wait at a time, as a forgotten one is told ESTALE twice."""


class _Coming:
    """A request that was sent back."""

    __slots__ = ("deadline", "decision", "key", "names", "question")

    def __init__(self, names: Sequence[object], question: Question, deadline: float) -> None:
        self.names = names
        self.key = question.key
        self.question: Question | None = question
        """What is to be asked on the way; None once it has been."""
        self.decision = Decision.AGAIN
        """The answer; to ask again if there was none."""
        self.deadline = deadline
        """Until when it comes."""


class Detours:
    """The requests that were sent back, by thread; belongs to the device loop.  ``clock`` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.coming: dict[int, _Coming] = {}
        """Read-only outside, and there only to see whether there are any."""
        self._were_told: dict[int, bool] = {}
        self._clock = clock

    def send_back(self, kind: str, args: Sequence[Any], question: Question) -> bool:
        """Tell whether to answer a request, of which ``args`` are the adapter's, with ESTALE; then it comes again."""
        if kind not in _NAMES or (kind == "mknod" and stat.S_ISSOCK(args[2])):  # bind(2) does not come again
            return False
        thread = args[-1].pid
        is_second = self._were_told.pop(thread, False)
        if is_second or not thread:  # 0: a process that our pid namespace does not show
            return False
        _note(self.coming, thread, _Coming(_names(kind, args), question, self._clock() + _KEPT_S))
        return True

    def told_stale(self, thread: int) -> None:
        """Note that a thread was told ESTALE for another reason: what it does next may be its second attempt."""
        _note(self._were_told, thread, True)

    def on_the_way(self, thread: int, directory: int, name: bytes) -> Question | None:
        """Return what a thread is to be asked while it looks up a name: nothing if the directory is locked now.

        Only its first look-up counts: if that is of the very name, nothing is on the way, and later ones are about
        something else.
        """
        coming = self.coming.get(thread)
        if coming is None:
            return None
        question, coming.question = coming.question, None
        return question if (directory, name) not in coming.names and self._clock() < coming.deadline else None

    def answered(self, thread: int, decision: Decision) -> None:
        """Note the answer to what a thread was asked on its way."""
        coming = self.coming.get(thread)
        if coming is not None:
            coming.decision, coming.deadline = decision, self._clock() + _KEPT_S
            if decision is Decision.INTERRUPTED:
                del self.coming[thread]

    def arrived(self, kind: str, args: Sequence[Any], question: Question) -> Decision | None:
        """Return the answer that a request got on its way to ``question``; None if it cannot have been sent back."""
        if kind not in _NAMES:
            return None
        coming = self.coming.pop(args[-1].pid, None)
        if coming is None:
            return None
        is_it = coming.names == _names(kind, args) and coming.key == question.key and self._clock() < coming.deadline
        return coming.decision if is_it else Decision.AGAIN


def _names(kind: str, args: Sequence[Any]) -> Sequence[object]:
    """Return the names that a request is about, each with its directory's number."""
    return [(args[at], args[at + 1]) for at in _NAMES[kind]]


def _note(noted: dict[int, T], thread: int, value: T) -> None:
    noted[thread] = value
    if len(noted) > _REMEMBERED:
        del noted[next(iter(noted))]
