"""Having the kernel forget names, though it may have locked their directories.

It keeps a directory locked while a name is made or removed in it, so for as long as somebody is
asked about that; a message about a name in there waits for the lock.  Whoever sends it must not be
kept waiting: the answer may be what made the rule.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeAlias

Instead: TypeAlias = Callable[[], object]

_PATIENCE_S = 0.5
"""How long the first message that gets stuck is waited for."""
_SHORT_PATIENCE_S = 0.05
"""The same for all that follow: the first one has shown that more may get stuck."""
_AT_MOST_S = 10.0
"""How long a thread that has just not had its turn, as on a busy machine, is waited for."""


def is_stuck(thread: threading.Thread) -> bool:
    """Tell whether a thread waits in the kernel as it does for a lock, uninterruptibly, or has
    ended.
    """
    try:
        with open(f"/proc/self/task/{thread.native_id}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"R", b"S")
    except OSError:
        return True


class Forgetting:
    """Sends messages about names, each a directory's number and a name, by ``tell``, which may
    block.

    ``is_stuck`` tells of a thread that has not got on for a while whether somebody else is why.
    """

    def __init__(
        self, tell: Callable[[int, bytes], None], is_stuck: Callable[[threading.Thread], bool] = is_stuck
    ) -> None:
        self._tell = tell
        self._is_stuck = is_stuck
        self._threads: list[threading.Thread] = []
        self._has_ended = False
        self._changing = threading.Lock()
        """Guards these two: the mount may be ended by another thread."""

    def forget(
        self, names: Iterable[tuple[int, bytes]], instead: Mapping[tuple[int, bytes], Instead] | None = None
    ) -> bool:
        """Send messages; on return all are sent but those about locked directories, which follow as
        soon as may be.

        ``instead`` has what is to be called for a name in the place of the message about it.
        Returns whether all are sent.
        """
        batch = _Batch(self._tell, names, instead or {})
        patience_s = _PATIENCE_S
        with self._changing:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
        while batch.has_more:
            thread = threading.Thread(target=batch.work, name="forgetting", daemon=True)
            with self._changing:
                if self._has_ended:  # with the mount the kernel forgets all
                    return True
                thread.start()
                self._threads.append(thread)
            if batch.is_done_or_stuck(patience_s, partial(self._is_stuck, thread)):
                break
            patience_s = _SHORT_PATIENCE_S
        return batch.is_done

    def join(self, timeout_s: float) -> None:
        """Send no more messages, and wait for those that are still to follow."""
        deadline = time.monotonic() + timeout_s
        with self._changing:
            self._has_ended = True
            threads = self._threads.copy()
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0))


class _Batch:
    """Messages, some of which may get stuck; several threads may work on them, each in another
    directory.
    """

    def __init__(
        self,
        tell: Callable[[int, bytes], None],
        names: Iterable[tuple[int, bytes]],
        instead: Mapping[tuple[int, bytes], Instead],
    ) -> None:
        self._tell = tell
        self._instead = instead
        by_directory: dict[int, list[bytes]] = {}
        for directory, name in names:
            by_directory.setdefault(directory, []).append(name)
        self._todo = deque(by_directory.items())
        self._left = sum(map(len, by_directory.values()))
        self._changed = threading.Condition()
        """Guards what is above."""

    @property
    def has_more(self) -> bool:
        """Whether there is a directory that no thread has taken on."""
        return bool(self._todo)

    @property
    def is_done(self) -> bool:
        """Whether all messages are sent."""
        return not self._left

    def work(self) -> None:
        """Send messages until no directory is left."""
        while True:
            with self._changed:
                if not self._todo:
                    return
                directory, names = self._todo.popleft()
            for name in names:
                if (instead := self._instead.get((directory, name))) is not None:
                    instead()
                else:
                    self._tell(directory, name)
                with self._changed:
                    self._left -= 1
                    self._changed.notify()

    def is_done_or_stuck(self, patience_s: float, is_stuck: Callable[[], bool]) -> bool:
        """Wait until all is sent, or nothing gets on; false if another thread could go on.

        ``is_stuck`` tells whether the one that was started last waits for somebody else.
        """
        begun = time.monotonic()
        with self._changed:
            while left := self._left:
                if self._changed.wait(patience_s) or self._left != left:
                    begun = time.monotonic()
                elif is_stuck() or time.monotonic() - begun > _AT_MOST_S:
                    return not self._todo
            return True
