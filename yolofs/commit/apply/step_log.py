"""The log of a commit, ``commits/N/progress``: a line for each step done, in their order.

A line has the index of the step, from 0.  Then come ``came``, for what is at the step's path now,
and ``went``, for what was moved away from there, each with device, inode number, ctime and size;
either may be missing.  Nobody waits for it to be durable: after a power failure it may say less
than was done; the rest is told by what is where.  This holds after a kill, too: lines are written
in groups only for steps that the files at their places can tell.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import NamedTuple, Self

from yolofs.store.restored import InodeCtime
from yolofs.system.plain_files import is_there, open_plain, read_note, replace_note

_NAME = b"progress"
UNKNOWN_NS = 0
"""For the ctime of a store inode that has got a name in base: it changes once more when the store's
name goes.
"""
_MOST_HELD = 64
"""A kill may lose at most this many lines."""
_MOST_BYTES = 1 << 30
"""As much as ten million steps write."""


class ObjectIdentity(NamedTuple):
    """The identity of a thing at one moment; any later change of the thing changes it."""

    device: int
    inode: int
    ctime_ns: int
    size: int

    @property
    def inode_ctime(self) -> InodeCtime:
        """What tells, as long as nobody changes it, that a commit has left it."""
        return self.inode, self.ctime_ns

    @classmethod
    def of(cls, st: os.stat_result) -> ObjectIdentity:
        """Return the identity of a thing, given its attributes."""
        return cls(st.st_dev, st.st_ino, st.st_ctime_ns, st.st_size)


class LoggedStep(NamedTuple):
    """What the log says of one step."""

    came: ObjectIdentity | None = None
    went: ObjectIdentity | None = None


def lies_in(directory: bytes) -> bool:
    """Tell whether there is a log in a commit's directory."""
    return is_there(os.path.join(directory, _NAME))


def read(directory: bytes) -> list[LoggedStep]:
    """Return what the log in a commit's directory says of its first steps: as many as are done for
    certain.

    Raises:
        OSError: it cannot be read.
    """
    return [line for _, line in _read(directory)]


def _read(directory: bytes) -> list[tuple[int, LoggedStep]]:
    """Return the lines that stand in their order, each with its length in bytes.

    Where there is no log none is known for certain, and each is looked at.
    """
    texts = (read_note(os.path.join(directory, _NAME), _MOST_BYTES) or b"").split(b"\n")[:-1]
    found: list[tuple[int, LoggedStep]] = []
    for text in texts:
        words = text.split(b" ")
        if words[0] != b"%d" % len(found):
            break
        found.append((len(text) + 1, _decode(words[1:])))
    return found


def _decode(words: list[bytes]) -> LoggedStep:
    found: dict[bytes, ObjectIdentity] = {}
    with contextlib.suppress(ValueError, TypeError):
        for start in range(0, len(words), 5):
            found[words[start]] = ObjectIdentity(*map(int, words[start + 1 : start + 5]))
    return LoggedStep(found.get(b"came"), found.get(b"went"))


def _encode(index: int, line: LoggedStep) -> bytes:
    words = [b"%d" % index]
    for name, identity in ((b"came", line.came), (b"went", line.went)):
        if identity is not None:
            words.append(b"%b %d %d %d %d" % (name, *identity))
    return b" ".join(words) + b"\n"


def replace(directory: bytes, lines: Sequence[LoggedStep]) -> None:
    """Write the log anew, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    text = b"".join(_encode(index, line) for index, line in enumerate(lines))
    replace_note(os.path.join(directory, _NAME), text)


class Log:
    """The log of a commit, open to be written; use it in a ``with``."""

    def __init__(self, directory: bytes) -> None:
        """Go on after the lines that stand in their order.

        Raises:
            OSError: it cannot be written.
        """
        lengths = [length for length, _ in _read(directory)]
        self._ends = [0]
        for length in lengths:
            self._ends.append(self._ends[-1] + length)
        path = os.path.join(directory, _NAME)
        self._fd = open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.ftruncate(self._fd, self._ends[-1])
        self._held: list[bytes] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.flush()
        finally:
            os.close(self._fd)

    @property
    def done(self) -> int:
        """How many steps it says are done."""
        return len(self._ends) - 1

    def add_unflushed(self, came: ObjectIdentity) -> None:
        """Note that the next step is done.  What is at its path tells that as well, so the line may
        be written later.

        Raises:
            OSError: as :meth:`add`.
        """
        text = b"%d came %d %d %d %d\n" % (len(self._ends) - 1, *came)
        self._held.append(text)
        self._ends.append(self._ends[-1] + len(text))
        if len(self._held) >= _MOST_HELD:
            self.flush()

    def flush(self) -> None:
        """Write what is held.

        Raises:
            OSError: as :meth:`add`.
        """
        if self._held:
            text = b"".join(self._held)
            self._held.clear()
            os.write(self._fd, text)

    def add(self, line: LoggedStep) -> None:
        """Note that the next step is done.

        Raises:
            OSError: the disk is full, for example.
        """
        self.flush()
        text = _encode(self.done, line)
        os.write(self._fd, text)
        self._ends.append(self._ends[-1] + len(text))

    def cut(self, done: int) -> None:
        """Note that only the first ``done`` steps are done.

        Raises:
            OSError: the disk failed.
        """
        self.flush()
        if done < self.done:
            os.ftruncate(self._fd, self._ends[done])
            del self._ends[done + 1 :]
